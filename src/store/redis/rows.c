#include "store/redis/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "store/redis/slots.h"

static void encode_rows(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct ls_redis_rows *r = ctx;
    const char *ns = r->s->base.config.ns;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_ROWS, 2, r->n + 3);
    ls_redis_key_shared(cmd, r->s, r->queue, "workers");
    ls_redis_key(cmd, ns, r->queue, "meta");
    ls_redis_arg_int(cmd, LS_REDIS_ANSWER_BYTES);
    for (size_t i = 0; i < r->n; i++)
        ls_redis_arg_slice(cmd, r->id[i]);
    ls_redis_cmd_end(cmd);
}

static int state_of(struct lb_slice letter)
{
    static const char letters[] = "sratcdx"; /* by enum lade_state */
    const char *at = letter.n == 1 && letter.p[0] ? strchr(letters, letter.p[0]) : NULL;
    return at ? (int)(at - letters) : -1;
}

static struct lb_mut copy(struct lq_row_vec *out, struct lb_slice s)
{
    return lb_arena_copy(&out->arena, s.n > 0 ? s.p : (const uint8_t *)"", s.n);
}

/* "c4x 1700000000000 result": letter, level, reason. */
static void read_end(struct lq_row *row, struct lb_slice where, struct lb_slice *result)
{
    if (where.n < 5)
        return;
    row->reason = (enum lq_reason)where.p[2];
    *result = lb_slice(where.p + 4, where.n - 4);
    row->finished_ms = ls_redis_take_number(result);
}

/* "fence level worker" and what renew wrote about the worker: the name stands behind four numbers and its length. */
static bool read_lease(struct lq_row *row, struct lq_row_vec *out, struct lb_slice where,
                       struct lb_slice about)
{
    row->fence = (uint64_t)ls_redis_take_number(&where);
    row->taken_ms = (int64_t)(row->fence / 1000); /* a fence is the time of the take in us */
    struct lb_slice name = where.n > 0 ? lb_slice(where.p + 1, where.n - 1) : where;
    name.n -= name.n > 0 && name.p[name.n - 1] == '!';
    for (int i = 0; i < 4; i++)
        (void)ls_redis_take_number(&about);
    int64_t n = ls_redis_take_number(&about);
    if (n > 0 && (size_t)n <= about.n)
        name = lb_slice(about.p, (size_t)n);
    row->worker = (const char *)lb_arena_copy(&out->arena, name.p, name.n).p;
    return row->worker != NULL;
}

/* 1 when the row is wanted, 0 when not. */
static int read_row(const struct ls_redis_rows *r, size_t i, struct ls_redis_cursor *c,
                    struct lq_row_vec *out, struct lq_row *row)
{
    if (ls_redis_read_array(c) == 0)
        return 0;
    int state = state_of(ls_redis_read_bytes(c));
    struct lb_slice body = ls_redis_read_bytes(c), history = ls_redis_read_bytes_or_null(c);
    struct lb_slice lock = ls_redis_read_bytes_or_null(c), where = ls_redis_read_bytes(c);
    int64_t till = ls_redis_read_int(c);
    struct lb_slice about = ls_redis_read_bytes_or_null(c), result = {NULL, 0};
    c->bad |= state < 0;
    if (c->bad || (r->state >= 0 && state != r->state))
        return 0;
    *row = (struct lq_row){.queue = r->queue, .state = (enum lade_state)state, .worker = ""};
    row->reason = LQ_REASON_NONE;
    if (state == LADE_STATE_COMPLETED || state == LADE_STATE_DEAD || state == LADE_STATE_CANCELLED)
        read_end(row, where, &result);
    if (state == LADE_STATE_DEAD) /* what stands there is its class */
        result = (struct lb_slice){NULL, 0};
    if (state == LADE_STATE_SCHEDULED || state == LADE_STATE_RETRYING) {
        char number[32] = "";
        memcpy(number, where.p, LB_MIN(where.n, sizeof(number) - 1));
        row->run_at_ms = (int64_t)strtod(number, NULL);
    }
    bool ok = state != LADE_STATE_ACTIVE || read_lease(row, out, where, about);
    row->lease_until_ms = state == LADE_STATE_ACTIVE ? LB_MAX(till, 0) : 0;
    row->queue = lb_arena_strdup(&out->arena, r->queue);
    row->id = copy(out, r->id[i]);
    row->body = copy(out, body);
    row->history = copy(out, history);
    row->result = copy(out, result);
    row->unique = copy(out, lock.n > 0 ? lb_slice(lock.p + 1, lock.n - 1) : lock);
    ok = ok && row->queue && row->id.p && row->body.p && row->history.p && row->result.p &&
         row->unique.p;
    return ok ? 1 : -LADE_ENOMEM;
}

int ls_redis_rows_read(struct ls_redis_rows *r, struct ls_redis_conn *c, struct lq_row_vec *out,
                       lade_err *err)
{
    struct ls_redis_ask ask = {encode_rows, r, "get", false, &r->queue, 1};
    int rc = ls_redis_ask(r->s, c, &ask, 1, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t there = ls_redis_read_array(&cur);
    if (cur.bad || there > r->n || there == 0)
        return ls_redis_conn_fail_reply(c, "get", err);
    struct lq_row *all = lb_arena_alloc(&out->arena, (out->n + there) * sizeof(*all));
    if (!all)
        return lb_fail_nomem(err, "get");
    if (out->n > 0)
        memcpy(all, out->row, out->n * sizeof(*all));
    size_t n = out->n;
    for (size_t i = 0; i < there; i++) {
        int got = read_row(r, i, &cur, out, &all[n]);
        if (got < 0)
            return lb_fail_nomem(err, "get");
        if (cur.bad)
            return ls_redis_conn_fail_reply(c, "get", err);
        n += (size_t)got;
    }
    r->looked = there;
    out->row = all;
    out->n = n;
    return 0;
}
