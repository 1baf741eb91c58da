/* resque_move.c - see resque_move.h */
#include "store/resque/resque_move.h"

bool ls_resque_keep(struct lb_arena *arena, struct lb_slice bytes, struct lb_slice *out)
{
    *out = lb_slice_of(lb_arena_copy(arena, bytes.p, bytes.n));
    return out->p;
}

static void encode_moves(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct ls_resque_moves *m = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_RESQUE_LUA_MOVE, 0, 4 + 4 * m->n);
    ls_redis_arg(cmd, m->s->keys.prefix, m->s->keys.n);
    ls_redis_arg_str(cmd, m->lock ? m->lock : "");
    ls_redis_arg_str(cmd, m->lock ? m->value : "");
    ls_redis_arg_str(cmd, m->s->multi ? "1" : "0");
    for (size_t i = 0; i < m->n; i++) {
        ls_redis_arg_slice(cmd, m->move[i].list);
        ls_redis_arg_slice(cmd, m->move[i].value);
        ls_redis_arg_slice(cmd, m->move[i].queue);
        ls_redis_arg_slice(cmd, m->move[i].entry);
    }
    ls_redis_cmd_end(cmd);
}

int ls_resque_move(const struct ls_resque_moves *moves, int *outcome, size_t *n_moved,
                   lade_err *err)
{
    struct ls_resque_moves m = *moves;
    struct ls_resque_ask ask = {encode_moves, &m, "move", false};
    struct ls_redis_conn *c;
    int rc = ls_resque_ask(m.s, &m.s->admin, &ask, 1, &c, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    bool whole = ls_redis_read_array(&cur) == m.n;
    *n_moved = 0;
    for (size_t i = 0; whole && i < m.n; i++) {
        bool moved = ls_redis_read_int(&cur) == 0;
        *n_moved += moved;
        if (outcome)
            outcome[i] = moved ? 0 : LADE_NOT_FOUND;
    }
    return whole && !cur.bad ? 0 : ls_redis_conn_fail_reply(c, "move", err);
}
