/*
 * op_note.c - the history of an active job, written between take and settle; lua/note.lua
 *
 * A repeat after a lost reply writes the same again, unless the job is settled by then: it was this worker's, and its settle
 * comes after this call has returned.
 */
#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/redis/op_settle.h"

struct note_call {
    struct ls_redis_settles group; /* only its grouping */
    struct lq_note *note;
};

static void encode_notes(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct note_call *call = ctx;
    const struct ls_redis_settles *g = &call->group;
    for (size_t lane = 0; lane < g->n_queues; lane++) {
        const struct ls_redis_settle_lane *l = &g->lane[lane];
        struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_NOTE, 1, 1 + 3 * l->n);
        ls_redis_key(cmd, g->s->base.config.ns, g->queue[lane], "meta");
        for (size_t i = 0; i < l->n; i++) {
            const struct lq_note *it = &call->note[g->order[l->first + i]];
            ls_redis_arg_slice(cmd, it->id);
            ls_redis_arg_u64(cmd, it->fence);
            ls_redis_arg_slice(cmd, it->history);
        }
        ls_redis_cmd_end(cmd);
    }
}

int ls_redis_note(struct lq_store *base, struct lq_note *note, size_t n, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct note_call call = {.note = note};
    if (n == 0)
        return 0;
    struct lq_settle *it = lb_calloc(n, sizeof(*it));
    if (!it)
        return lb_fail_nomem(err, "note");
    for (size_t i = 0; i < n; i++)
        it[i].queue = note[i].queue;
    int rc = ls_redis_settles_init(&call.group, s, it, n, false, err);
    if (rc == 0) {
        lr_mutex_lock(&s->work.lock);
        struct ls_redis_ask ask = {encode_notes,       &call, "note", false, call.group.queue,
                                   call.group.n_queues};
        rc = ls_redis_settles_ask(&call.group, &ask, err);
        lr_mutex_unlock(&s->work.lock);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        note[i].outcome = call.group.stale[i] ? LADE_STALE : 0;
    ls_redis_settles_fini(&call.group);
    lb_free(it);
    return rc;
}
