/* command.c - the writer of resp.h: commands as arrays of bulk strings */
#include "store/redis/resp.h"

/* Writes v backwards, ending before `end`; returns where it starts. */
static uint8_t *write_u64(uint8_t *end, uint64_t v)
{
    do {
        *--end = (uint8_t)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    return end;
}

static size_t digits_of(uint64_t v)
{
    size_t n = 1;
    for (; v >= 10; v /= 10)
        n++;
    return n;
}

void ls_redis_cmd_begin(struct ls_redis_cmd *cmd, struct lb_buf *out, size_t args_hint)
{
    *cmd = (struct ls_redis_cmd){.out = out, .at = out->n, .digits = digits_of(args_hint)};
    uint8_t *p = lb_buf_reserve(out, cmd->digits + 3);
    if (!p)
        return;
    p[0] = '*';
    p[1 + cmd->digits] = '\r';
    p[2 + cmd->digits] = '\n';
    out->n += cmd->digits + 3;
}

void ls_redis_cmd_end(struct ls_redis_cmd *cmd)
{
    struct lb_buf *b = cmd->out;
    size_t digits = digits_of(cmd->n);
    size_t from = cmd->at + 1 + cmd->digits;
    size_t to = cmd->at + 1 + digits;
    if (to > from)
        (void)lb_buf_reserve(b, to - from);
    if (b->failed)
        return;
    if (to != from) {
        memmove(b->p + to, b->p + from, b->n - from);
        b->n = b->n - from + to;
    }
    (void)write_u64(b->p + to, cmd->n);
}

uint8_t *ls_redis_arg_room(struct ls_redis_cmd *cmd, size_t n)
{
    struct lb_buf *b = cmd->out;
    cmd->n++;
    size_t digits = digits_of(n);
    uint8_t *to = n < SIZE_MAX / 4 ? lb_buf_reserve(b, 5 + digits + n) : NULL;
    if (!to) {
        b->failed = true;
        return NULL;
    }
    *to++ = '$';
    (void)write_u64(to + digits, n);
    to += digits;
    *to++ = '\r';
    *to++ = '\n';
    to[n] = '\r';
    to[n + 1] = '\n';
    b->n += 5 + digits + n;
    return to;
}

void ls_redis_arg(struct ls_redis_cmd *cmd, const void *p, size_t n)
{
    uint8_t *to = ls_redis_arg_room(cmd, n);
    if (to && n > 0)
        memcpy(to, p, n);
}

void ls_redis_arg_slice(struct ls_redis_cmd *cmd, struct lb_slice s)
{
    ls_redis_arg(cmd, s.p, s.n);
}

void ls_redis_arg_str(struct ls_redis_cmd *cmd, const char *s)
{
    ls_redis_arg(cmd, s, strlen(s));
}

void ls_redis_arg_u64(struct ls_redis_cmd *cmd, uint64_t v)
{
    uint8_t text[20];
    uint8_t *p = write_u64(text + sizeof(text), v);
    ls_redis_arg(cmd, p, (size_t)(text + sizeof(text) - p));
}

void ls_redis_arg_int(struct ls_redis_cmd *cmd, int64_t v)
{
    uint8_t text[21];
    uint8_t *p = write_u64(text + sizeof(text), v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
    if (v < 0)
        *--p = '-';
    ls_redis_arg(cmd, p, (size_t)(text + sizeof(text) - p));
}
