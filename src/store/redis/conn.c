/*
 * conn.c - bytes out, replies in; see conn.h and conn_inner.h
 *
 * Spinning. While a reply is due the reader may ask the socket again and again for a moment before it sleeps (base/spin.h).
 * Whether that pays depends on what is asked: a long request mostly takes long, so each power of two of bytes sent learns
 * by itself.
 *
 * Fault points: redis.send.before, redis.send.after and redis.reply.after, around every round trip, the handshake's too. One
 * armed to fail stands for a connection that is lost there.
 */
#include "store/redis/conn_inner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"

#define HURRY_LOOK (500 * LADE_MILLISECOND)
#define READ_MIN   16384
#define SPIN_CLASS 512 /* bytes: the smallest class of requests */
#define IDLE_NS \
    (10 * LADE_MILLISECOND) /* after that long a connection is looked at before it is used */

/* object ----------------------------------------------------------------------------------------------------------- */

int ls_redis_conn_open(struct ls_redis_conn **out, const struct ls_redis_conn_config *config,
                       lade_err *err)
{
    *out = NULL;
    LB_CHECK(config->connect_timeout > 0);
    size_t n_scripts = config->scripts ? config->scripts->n : 0;
    LB_CHECK(n_scripts <= LS_REDIS_SCRIPTS_MAX);
    struct ls_redis_conn *c = lb_calloc(1, sizeof(*c));
    if (!c)
        return lb_fail_nomem(err, "open");
    c->config = *config;
    if (c->config.reply_max == 0)
        c->config.reply_max = LS_REDIS_REPLY_MAX;
    c->sock.fd = -1;
    int rc = ls_redis_tls_ctx_open(&c->tls_ctx, config->url, err);
    if (rc == 0 && n_scripts > 0) {
        c->sha = lb_calloc(n_scripts, sizeof(*c->sha));
        rc = c->sha ? 0 : lb_fail_nomem(err, "open");
    }
    if (rc < 0) {
        ls_redis_conn_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

void ls_redis_conn_close(struct ls_redis_conn *c)
{
    if (!c)
        return;
    ls_redis_conn_drop(c);
    ls_redis_tls_ctx_close(c->tls_ctx);
    lb_buf_fini(&c->out);
    lb_buf_fini(&c->in);
    lb_free(c->span);
    lb_free(c->sha);
    lb_free(c);
}

void ls_redis_conn_drop(struct ls_redis_conn *c)
{
    ls_redis_socket_close(&c->sock);
    c->sent = c->got = 0;
    c->in_at = 0;
    c->taken = false;
    lb_buf_clear(&c->in);
    ls_redis_scan_init(&c->scan, c->config.reply_max);
    lb_buf_clear(&c->out);
    c->queued = 0;
}

bool ls_redis_conn_is_up(const struct ls_redis_conn *c)
{
    return c->sock.fd >= 0;
}

int ls_redis_conn_fd(const struct ls_redis_conn *c)
{
    return c->sock.fd;
}

const char *ls_redis_conn_server(const struct ls_redis_conn *c)
{
    return c->server;
}

uint64_t ls_redis_conn_generation(const struct ls_redis_conn *c)
{
    return c->generation;
}

uint64_t ls_redis_conn_pushes(const struct ls_redis_conn *c)
{
    return c->pushes;
}

bool ls_redis_conn_may_have_run(const struct ls_redis_conn *c)
{
    return c->may_have_run;
}

size_t ls_redis_conn_outstanding(const struct ls_redis_conn *c)
{
    return c->taken ? 0 : c->sent;
}

struct lb_slice ls_redis_conn_span(const struct ls_redis_conn *c, size_t i)
{
    LB_CHECK(i < c->got);
    return lb_slice(c->in.p + c->span[i].at, c->span[i].n);
}

struct ls_redis_cursor ls_redis_conn_reply(const struct ls_redis_conn *c, size_t i)
{
    LB_CHECK(c->taken);
    return ls_redis_cursor(ls_redis_conn_span(c, c->prelude + i));
}

void ls_redis_conn_prelude(struct ls_redis_conn *c)
{
    c->prelude = c->queued;
}

bool ls_redis_conn_prelude_failed(struct ls_redis_conn *c)
{
    for (size_t i = 0; i < c->prelude; i++) {
        struct ls_redis_cursor cur = ls_redis_cursor(ls_redis_conn_span(c, i));
        if (ls_redis_peek(&cur) == LS_REDIS_ERROR) {
            c->prelude = i;
            return true;
        }
    }
    return false;
}

int ls_redis_conn_fail_reply(const struct ls_redis_conn *c, const char *where, lade_err *err)
{
    return lb_fail(err, LADE_EPROTO, where,
                   "%s: the answer to %s is not of the expected form; is a proxy in between?",
                   c->config.url->text, where);
}

static void shrink(struct lb_buf *b)
{
    if (b->cap > LS_REDIS_KEEP_BUF)
        lb_buf_fini(b);
}

/* Makes room for the next round. Bytes behind the last reply, the start of a push, move to the front. */
static void release_replies(struct ls_redis_conn *c)
{
    if (!c->taken)
        return;
    size_t rest = c->in.n - c->in_at;
    if (rest > 0)
        memmove(c->in.p, c->in.p + c->in_at, rest);
    c->in.n = rest;
    c->in_at = 0;
    c->sent = c->got = 0;
    c->taken = false;
    if (rest == 0)
        shrink(&c->in);
}

void ls_redis_conn_reset(struct ls_redis_conn *c)
{
    release_replies(c);
    lb_buf_clear(&c->out);
    shrink(&c->out);
    c->queued = 0;
}

struct ls_redis_cmd *ls_redis_conn_begin(struct ls_redis_conn *c, size_t args_hint)
{
    LB_CHECK(c->queued < LS_REDIS_PIPELINE_MAX);
    if (c->queued == 0) {
        release_replies(c);
        c->prelude = 0;
    }
    if (c->queued == 1)
        c->first_end = c->out.n;
    c->queued++;
    ls_redis_cmd_begin(&c->cmd, &c->out, args_hint);
    return &c->cmd;
}

/* failures --------------------------------------------------------------------------------------------------------- */

/* The text of reply i when that is an error, else empty. */
static struct lb_slice error_text(const struct ls_redis_conn *c, size_t i)
{
    struct ls_redis_cursor cur = ls_redis_cursor(ls_redis_conn_span(c, i));
    struct ls_redis_value v = ls_redis_read(&cur);
    return v.type == LS_REDIS_ERROR ? v.bytes : lb_slice("", 0);
}

/*
 * The connection is gone. A server that turns a client away says why and closes: then its words are the reason, not the
 * closing. It does so in the handshake, and at any time when a command breaks its limits: repeating that would only be
 * turned away again.
 */
static int lose(struct ls_redis_conn *c, enum ls_redis_io io, const char *where, lade_err *err)
{
    static const char limit[] = "ERR Protocol error";
    const char *server = c->config.url->text;
    struct lb_slice first = {0};
    struct lb_slice last = {0};
    if (c->got > 0 && !c->taken) {
        first = error_text(c, 0);
        last = error_text(c, c->got - 1);
    }
    int rc;
    if (last.n >= sizeof(limit) - 1 && memcmp(last.p, limit, sizeof(limit) - 1) == 0) {
        rc = lb_fail(err, LADE_ETOOBIG, where,
                     "%s refused a command over its limits (server: %.*s); see proto-max-bulk-len",
                     server, (int)LB_MIN(last.n, 100), (const char *)last.p);
    } else if (c->handshaking && first.n > 0) {
        rc = ls_redis_refusal_fail(err, where, server, first);
    } else if (c->sock.tls && ls_redis_tls_final(c->sock.tls)) {
        rc = lb_fail(err, ls_redis_tls_final(c->sock.tls), where, "%s: %s", server,
                     ls_redis_tls_error(c->sock.tls));
    } else {
        char why[160];
        ls_redis_socket_describe(&c->sock, io, why, sizeof(why));
        rc = lb_fail(err, LADE_EUNAVAILABLE, where, "connection to %s lost: %s", server, why);
    }
    ls_redis_conn_drop(c);
    return rc;
}

static int lose_nomem(struct ls_redis_conn *c, const char *where, lade_err *err)
{
    ls_redis_conn_drop(c);
    return lb_fail_nomem(err, where);
}

static int lose_late(struct ls_redis_conn *c, const char *where, lade_err *err)
{
    ls_redis_conn_drop(c);
    return lb_fail(err, LADE_EUNAVAILABLE, where, "no answer from %s before the deadline",
                   c->config.url->text);
}

static int lose_malformed(struct ls_redis_conn *c, const char *why, bool over, const char *where,
                          lade_err *err)
{
    ls_redis_conn_drop(c);
    if (over)
        return lb_fail(err, LADE_ETOOBIG, where, "the answer of %s is too large: %s (%zu bytes)",
                       c->config.url->text, why, c->config.reply_max);
    return lb_fail(err, LADE_EPROTO, where,
                   "%s does not answer as a Redis server: %s; check host and port",
                   c->config.url->text, why);
}

/* in --------------------------------------------------------------------------------------------------------------- */

static bool keep_reply(struct ls_redis_conn *c)
{
    if (c->got == c->span_cap) {
        size_t cap = c->span_cap ? 2 * c->span_cap : 16;
        struct span *p = lb_realloc(c->span, cap * sizeof(*p));
        if (!p)
            return false;
        c->span = p;
        c->span_cap = cap;
    }
    c->span[c->got++] = (struct span){c->in_at, c->scan.at};
    return true;
}

/* Takes what is whole out of `in`. Pushes are counted and passed over. 0 or the failure, dropped. */
static int parse(struct ls_redis_conn *c, const char *where, lade_err *err)
{
    while (c->in_at < c->in.n) {
        const uint8_t *p = c->in.p + c->in_at;
        bool push = *p == '>';
        if (!push && c->got == c->sent)
            return lose_malformed(c, "a reply that nobody asked for", false, where, err);
        enum ls_redis_scanned r = ls_redis_scan(&c->scan, p, c->in.n - c->in_at);
        if (r == LS_REDIS_SCAN_BAD)
            return lose_malformed(c, c->scan.why, c->scan.over, where, err);
        if (r == LS_REDIS_SCAN_MORE)
            return 0;
        if (!push && !keep_reply(c))
            return lose_nomem(c, where, err);
        c->pushes += push;
        c->in_at += c->scan.at;
        ls_redis_scan_init(&c->scan, c->config.reply_max);
    }
    if (c->sent == 0)
        c->in_at = c->in.n = 0; /* nothing but pushes while nobody asks */
    return 0;
}

/*
 * Reads what is there, once. Room is made for what is missing, but for no more than has come already: a declared
 * length alone allocates nothing. 0 with *io (DONE: read and parsed), or the failure, dropped.
 */
static int read_some(struct ls_redis_conn *c, enum ls_redis_io *io, const char *where,
                     lade_err *err)
{
    size_t missing = ls_redis_scan_missing(&c->scan, c->in.n - c->in_at);
    size_t room = LB_MAX(LB_MIN(missing, c->in.n), (size_t)READ_MIN);
    uint8_t *p = lb_buf_reserve(&c->in, room);
    if (!p)
        return lose_nomem(c, where, err);
    size_t got = 0;
    *io = ls_redis_socket_read(&c->sock, p, c->in.cap - c->in.n, &got);
    if (*io == LS_REDIS_IO_END || *io == LS_REDIS_IO_ERROR)
        return lose(c, *io, where, err);
    if (*io != LS_REDIS_IO_DONE)
        return 0;
    c->in.n += got;
    return parse(c, where, err);
}

/* The estimate for a request of n bytes. */
static struct lb_spin *spin_of(struct ls_redis_conn *c, size_t n)
{
    size_t k = 0;
    while (k + 1 < LB_ARRAY_LEN(c->spin) && n > (size_t)SPIN_CLASS << k)
        k++;
    return &c->spin[k];
}

/* Asks again and again until something was read, if that is promising. */
static int spin(struct ls_redis_conn *c, size_t asked, const char *where, lade_err *err)
{
    struct lb_spin *s = spin_of(c, asked);
    int64_t now = lb_clock_mono();
    if (c->config.no_spin || c->handshaking || !lb_spin_begin(s, now))
        return 0;
    enum ls_redis_io io = LS_REDIS_IO_READ;
    int rc;
    do {
        rc = read_some(c, &io, where, err);
        now = lb_clock_mono();
    } while (rc == 0 && io != LS_REDIS_IO_DONE && lb_spin_goes_on(s, now));
    lb_spin_end(s, now, rc < 0 || io == LS_REDIS_IO_DONE);
    return rc;
}

static bool has_all(const struct ls_redis_conn *c)
{
    return c->sent > 0 && c->got == c->sent;
}

/* Waits for all replies, the event or the deadline; enum ls_redis_awaited or the failure. */
static int await(struct ls_redis_conn *c, struct lr_event *wake, int64_t deadline,
                 const char *where, lade_err *err)
{
    struct lr_fd fd[2] = {{.fd = c->sock.fd, .want = LR_READ},
                          {.fd = wake ? wake->fd : -1, .want = LR_READ}};
    bool late = false;
    for (;;) {
        enum ls_redis_io io = LS_REDIS_IO_DONE;
        while (!has_all(c) && io == LS_REDIS_IO_DONE) {
            int rc = read_some(c, &io, where, err);
            if (rc < 0)
                return rc;
        }
        if (has_all(c))
            return LS_REDIS_REPLIED;
        if (fd[1].ready)
            return LS_REDIS_WOKEN;
        if (late)
            return LS_REDIS_LATE;
        fd[0].want = io == LS_REDIS_IO_WRITE ? LR_WRITE : LR_READ;
        /* Who cannot be woken looks now and then whether there is a hurry; few replies take that long. */
        int64_t look = wake ? LB_FOREVER : lb_deadline_in(HURRY_LOOK);
        int ready =
            lr_wait_fds(fd, LB_ARRAY_LEN(fd), LB_MIN(look, ls_redis_conn_hurried(c, deadline)));
        if (ready < 0) {
            ls_redis_conn_drop(c);
            return lb_fail_errno(err, EIO, where, "poll");
        }
        late = ready == 0 && lb_clock_mono() >= ls_redis_conn_hurried(c, deadline);
    }
}

/* Hands them over, and notes when. */
static int take_replies(struct ls_redis_conn *c)
{
    c->taken = true;
    c->idle_since = lb_clock_mono();
    return LS_REDIS_REPLIED;
}

int ls_redis_conn_await(struct ls_redis_conn *c, struct lr_event *wake, int64_t deadline,
                        lade_err *err)
{
    if (!ls_redis_conn_is_up(c))
        return lb_fail(err, LADE_EUNAVAILABLE, "wait", "not connected to %s", c->config.url->text);
    release_replies(c);
    int rc = await(c, wake, deadline, "wait", err);
    return rc == LS_REDIS_REPLIED ? take_replies(c) : rc;
}

/* out -------------------------------------------------------------------------------------------------------------- */

/* Some replies may come while a long pipeline is still being written; they are read so that neither side stalls. */
static int wait_writable(struct ls_redis_conn *c, enum ls_redis_io io, int64_t deadline,
                         const char *where, lade_err *err)
{
    unsigned want = io == LS_REDIS_IO_READ ? LR_READ : LR_READ | LR_WRITE;
    struct lr_fd fd = {.fd = c->sock.fd, .want = want};
    int64_t end;
    int ready;
    do {
        int64_t look = lb_deadline_in(HURRY_LOOK);
        end = ls_redis_conn_hurried(c, deadline);
        ready = lr_wait_fds(&fd, 1, LB_MIN(look, end));
    } while (ready == 0 && lb_clock_mono() < end);
    if (ready < 0) {
        ls_redis_conn_drop(c);
        return lb_fail_errno(err, EIO, where, "poll");
    }
    if (ready == 0)
        return lose_late(c, where, err);
    enum ls_redis_io read;
    return fd.ready & LR_READ ? read_some(c, &read, where, err) : 0;
}

/* A server that closed while we wrote may have said why. */
static int lose_writing(struct ls_redis_conn *c, enum ls_redis_io io, const char *where,
                        lade_err *err)
{
    enum ls_redis_io read = LS_REDIS_IO_DONE;
    int rc = 0;
    while (rc == 0 && read == LS_REDIS_IO_DONE && !has_all(c))
        rc = read_some(c, &read, where, err);
    return rc < 0 ? rc : lose(c, io, where, err);
}

static int flush(struct ls_redis_conn *c, int64_t deadline, const char *where, lade_err *err)
{
    if (c->out.failed)
        return lose_nomem(c, where, err);
    if (c->queued == 1)
        c->first_end = c->out.n;
    c->sent += c->queued;
    c->queued = 0;
    size_t at = 0;
    while (at < c->out.n) {
        size_t done = 0;
        enum ls_redis_io io = ls_redis_socket_write(&c->sock, c->out.p + at, c->out.n - at, &done);
        at += done;
        if (at >= c->first_end && !c->handshaking)
            c->may_have_run = true;
        if (io == LS_REDIS_IO_DONE)
            continue;
        if (io == LS_REDIS_IO_END || io == LS_REDIS_IO_ERROR)
            return lose_writing(c, io, where, err);
        int rc = wait_writable(c, io, deadline, where, err);
        if (rc < 0)
            return rc;
    }
    lb_buf_clear(&c->out);
    return 0;
}

int ls_redis_conn_send(struct ls_redis_conn *c, int64_t deadline, lade_err *err)
{
    LB_CHECK(c->queued > 0);
    if (!ls_redis_conn_is_up(c)) {
        ls_redis_conn_reset(c);
        return lb_fail(err, LADE_EUNAVAILABLE, "send", "not connected to %s", c->config.url->text);
    }
    return flush(c, deadline, "send", err);
}

/* Whether the server is still there, when it was silent for a while: finds a closing before anything is sent. */
static int check_alive(struct ls_redis_conn *c, int64_t now, const char *where, lade_err *err)
{
    if (c->handshaking || now - c->idle_since < IDLE_NS)
        return 0;
    enum ls_redis_io io = LS_REDIS_IO_DONE;
    int rc = 0;
    while (rc == 0 && io == LS_REDIS_IO_DONE)
        rc = read_some(c, &io, where, err);
    return rc;
}

int ls_redis_conn_exchange(struct ls_redis_conn *c, const char *where, int64_t deadline,
                           lade_err *err)
{
    LB_CHECK(c->queued > 0 && ls_redis_conn_outstanding(c) == 0);
    size_t asked = c->out.n;
    int rc = check_alive(c, lb_clock_mono(), where, err);
    if (rc == 0 && LB_FAULT_FAILS("redis.send.before"))
        rc = lose(c, LS_REDIS_IO_END, where, err);
    if (rc == 0)
        rc = flush(c, deadline, where, err);
    if (rc == 0 && LB_FAULT_FAILS("redis.send.after"))
        rc = lose(c, LS_REDIS_IO_END, where, err);
    if (rc == 0)
        rc = spin(c, asked, where, err);
    if (rc == 0)
        rc = await(c, NULL, deadline, where, err);
    if (rc == LS_REDIS_LATE)
        return lose_late(c, where, err);
    if (rc == 0 && LB_FAULT_FAILS("redis.reply.after"))
        rc = lose(c, LS_REDIS_IO_END, where, err);
    return rc < 0 ? rc : take_replies(c);
}
