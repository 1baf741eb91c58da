/*
 * resp_fuzz.c - any bytes through the protocol codec
 *
 * The first byte chooses the size of the pieces. Holds: whole and piecewise scanning agree; a reply that is done can be
 * walked to its very end; written out again in a plain form it scans, and its plain form is the same again; readers
 * that ask for the wrong thing never leave it.
 */
#include <stdlib.h>

#include "base/base.h"
#include "base/buf.h"
#include "store/redis/refusal.h"
#include "store/redis/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REPLY_MAX 1048576

static enum ls_redis_scanned scan_pieces(const uint8_t *p, size_t n, size_t piece, size_t *len)
{
    struct ls_redis_scan s;
    ls_redis_scan_init(&s, REPLY_MAX);
    enum ls_redis_scanned r = LS_REDIS_SCAN_MORE;
    for (size_t have = 0; r == LS_REDIS_SCAN_MORE; have += LB_MIN(piece, n - have)) {
        r = ls_redis_scan(&s, p, have);
        LB_CHECK(s.at <= have);
        LB_CHECK((r == LS_REDIS_SCAN_BAD) == (s.why != NULL));
        if (have == n)
            break;
    }
    *len = s.at;
    return r;
}

static void write_header(struct lb_buf *out, char type, size_t n)
{
    lb_buf_add_fmt(out, "%c%zu\r\n", type, n);
}

static void write_string(struct lb_buf *out, char type, struct lb_slice s, const char *prefix)
{
    write_header(out, type, s.n + strlen(prefix));
    lb_buf_add_str(out, prefix);
    lb_buf_add(out, s.p, s.n);
    lb_buf_add_str(out, "\r\n");
}

static void write_line(struct lb_buf *out, char type, struct lb_slice s)
{
    lb_buf_add_byte(out, (uint8_t)type);
    lb_buf_add(out, s.p, s.n);
    lb_buf_add_str(out, "\r\n");
}

/* Plain: no attributes, errors and nulls in one form. Containers come as a header and then their values. */
static void write_value(struct lb_buf *out, const struct ls_redis_value *v)
{
    switch (v->type) {
    case LS_REDIS_NONE:
        abort();
    case LS_REDIS_SIMPLE:
        write_line(out, '+', v->bytes);
        break;
    case LS_REDIS_ERROR:
        write_string(out, '!', v->bytes, "");
        break;
    case LS_REDIS_INT:
        lb_buf_add_fmt(out, ":%lld\r\n", (long long)v->integer);
        break;
    case LS_REDIS_BULK:
        write_string(out, '$', v->bytes, "");
        break;
    case LS_REDIS_VERBATIM:
        write_string(out, '=', v->bytes, "txt:");
        break;
    case LS_REDIS_ARRAY:
        write_header(out, '*', v->n);
        break;
    case LS_REDIS_SET:
        write_header(out, '~', v->n);
        break;
    case LS_REDIS_PUSH:
        write_header(out, '>', v->n);
        break;
    case LS_REDIS_MAP:
        write_header(out, '%', v->n / 2);
        break;
    case LS_REDIS_NULL:
        lb_buf_add_str(out, "_\r\n");
        break;
    case LS_REDIS_DOUBLE:
        write_line(out, ',', v->bytes);
        break;
    case LS_REDIS_BOOL:
        lb_buf_add_str(out, v->integer ? "#t\r\n" : "#f\r\n");
        break;
    case LS_REDIS_BIG:
        write_line(out, '(', v->bytes);
        break;
    }
}

static void rewrite(struct lb_slice reply, struct lb_buf *out)
{
    struct ls_redis_cursor c = ls_redis_cursor(reply);
    size_t left = 1;
    while (left > 0) {
        enum ls_redis_type ahead = ls_redis_peek(&c);
        struct ls_redis_value v = ls_redis_read(&c);
        LB_CHECK(v.type == ahead);
        LB_CHECK(v.bytes.n == 0 || (v.bytes.p >= reply.p && v.bytes.p + v.bytes.n <= c.end));
        write_value(out, &v);
        left += v.n - 1;
    }
    LB_CHECK(ls_redis_peek(&c) == LS_REDIS_NONE);
    LB_CHECK(c.p == c.end);
}

/* Asks for one thing after the other, fitting or not. */
static void misread(struct lb_slice reply, uint8_t seed)
{
    struct ls_redis_cursor c = ls_redis_cursor(reply);
    for (int i = 0; i < 64 && c.p < c.end; i++) {
        switch ((seed >> (i % 7)) & 3) {
        case 0:
            (void)ls_redis_read_int(&c);
            break;
        case 1:
            (void)ls_redis_read_bytes_or_null(&c);
            break;
        case 2:
            (void)ls_redis_read_array(&c);
            break;
        default:
            ls_redis_skip(&c);
            break;
        }
        LB_CHECK(c.p <= c.end);
        if (c.bad)
            c.bad = false;
    }
}

static void check_reply(struct lb_slice reply, uint8_t seed)
{
    struct lb_buf once;
    struct lb_buf twice;
    lb_buf_init(&once);
    lb_buf_init(&twice);
    rewrite(reply, &once);
    size_t len;
    if (once.n <= REPLY_MAX) {
        LB_CHECK(scan_pieces(once.p, once.n, once.n, &len) == LS_REDIS_SCAN_DONE);
        LB_CHECK(len == once.n);
        rewrite(lb_buf_slice(&once), &twice);
        LB_CHECK(lb_slice_eq(lb_buf_slice(&once), lb_buf_slice(&twice)));
    }
    misread(reply, seed);
    lb_buf_fini(&once);
    lb_buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    uint8_t seed = data[0];
    const uint8_t *p = data + 1;
    size_t n = size - 1;
    size_t whole;
    size_t pieces;
    enum ls_redis_scanned r = scan_pieces(p, n, n, &whole);
    LB_CHECK(scan_pieces(p, n, 1 + (size_t)seed % 37, &pieces) == r);
    (void)ls_redis_refusal_of(lb_slice(p, n), NULL);
    if (r != LS_REDIS_SCAN_DONE)
        return 0;
    LB_CHECK(whole == pieces);
    check_reply(lb_slice(p, whole), seed);
    return 0;
}
