/*
 * model_schedules.c - schedules: several schedulers that set, remove, look and fire, some with what they read long ago
 *
 * Revisions and fences are each side's own, kept as they were read.
 */
#include <string.h>

#include "model_ops.h"
#include "queue/schedule_store.h"

#define FIRES   4
#define HOUR_MS INT64_C(3600000)

static const struct lq_schedule_ops *ops_of(const struct world *w, int side)
{
    return w->s[side]->ops->schedules;
}

static struct lb_slice plan_id(int i)
{
    static const char *const name[N_PLANS] = {"s", "s:1", "S", "t", "daily", "a.b"};

    return lb_slice_str(name[i]);
}

static const char *leader_id(int i)
{
    static const char *const name[N_LEADERS] = {"one", "two", "three", "four"};

    return name[i];
}

/* Reads the record, and keeps its revisions. */
static void read_plan(struct world *w, int plan)
{
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    for (int i = 0; i < N_SIDES; i++) {
        struct lq_schedule_vec v = {0};
        rc[i] = ops_of(w, i)->get(w->s[i], plan_id(plan), &v, &err[i]);
        w->plans.revision[plan][i] = rc[i] == 0 && v.n > 0 ? v.row[0].revision : 0;
        lb_arena_fini(&v.arena);
    }
    tm_same_result(w, "get of a schedule", rc, err);
}

static struct lb_slice draw_memo(struct world *w)
{
    char *text = tm_alloc(w, 24);
    (void)snprintf(text, 24, "memo %u", ++w->plans.n_memos);
    return lb_slice_str(text);
}

/* Where time cannot be stepped: long ago, or hours ahead. */
static int64_t draw_due(struct world *w, enum lade_schedule_state state)
{
    if (state != LADE_SCHEDULE_ACTIVE)
        return 0;
    if (tm_chance(w, 40))
        return w->exact ? tm_now(w) - (int64_t)tm_below(w, 1000) : 1 + (int64_t)tm_below(w, 1000);
    return tm_now(w) +
           (w->exact ? (int64_t)tm_below(w, 4000) : HOUR_MS * (1 + (int64_t)tm_below(w, 20)));
}

static enum lade_schedule_state draw_state(struct world *w)
{
    static const enum lade_schedule_state others[] = {LADE_SCHEDULE_PAUSED, LADE_SCHEDULE_ENDED,
                                                      LADE_SCHEDULE_BROKEN};

    return tm_chance(w, 75) ? LADE_SCHEDULE_ACTIVE : others[tm_below(w, LB_ARRAY_LEN(others))];
}

/* records ---------------------------------------------------------------------------------------------------------- */

static void set_plan(struct world *w, int plan)
{
    struct lq_schedule_put it = {.id = plan_id(plan),
                                 .spec = tm_draw_result(w),
                                 .memo = draw_memo(w),
                                 .state = draw_state(w)};
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    it.due_ms = draw_due(w, it.state);
    bool anew = tm_chance(w, 10);
    tm_trace(w, "set %s to %d due %lld%s", (const char *)it.id.p, (int)it.state,
             (long long)it.due_ms, anew ? " as a new one" : "");
    for (int i = 0; i < N_SIDES; i++) {
        it.revision = anew ? 0 : w->plans.revision[plan][i];
        rc[i] = lq_schedule_put(w->s[i], &it, &err[i]);
    }
    tm_same_result(w, "set of a schedule", rc, err);
}

static void remove_plan(struct world *w, int plan)
{
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "remove %s", (const char *)plan_id(plan).p);
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = ops_of(w, i)->remove(w->s[i], plan_id(plan), &err[i]);
    tm_same_result(w, "remove of a schedule", rc, err);
}

static void compare_plans(struct world *w, const struct lq_schedule_vec *v)
{
    tm_same(w, "number of schedules", (int64_t)v[MODEL].n, (int64_t)v[STORE].n);
    for (size_t i = 0; i < v[MODEL].n && !w->failure[0]; i++) {
        const struct lq_schedule_row *m = &v[MODEL].row[i], *s = &v[STORE].row[i];
        tm_same_bytes(w, "schedule", m->id, s->id);
        tm_same_bytes(w, "spec of a schedule", m->spec, s->spec);
        tm_same_bytes(w, "memo of a schedule", m->memo, s->memo);
        tm_same(w, "state of a schedule", m->state, s->state);
        tm_same(w, "due time of a schedule", m->due_ms, s->due_ms);
    }
}

static void compare_leaders(struct world *w)
{
    lade_schedule_leader is[N_SIDES];
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    memset(is, 0, sizeof(is));
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = ops_of(w, i)->leader(w->s[i], &is[i], &err[i]);
    tm_same_result(w, "leader", rc, err);
    tm_same_bytes(w, "leader", lb_slice_str(is[MODEL].id), lb_slice_str(is[STORE].id));
    tm_same_bytes(w, "name of the leader", lb_slice_str(is[MODEL].name),
                  lb_slice_str(is[STORE].name));
    if (w->exact) {
        tm_same(w, "lease of the leader", is[MODEL].lease_until, is[STORE].lease_until);
        tm_same(w, "last look of the leader", is[MODEL].seen_at, is[STORE].seen_at);
    }
}

void tm_compare_schedules(struct world *w)
{
    struct lq_schedule_vec v[N_SIDES] = {0};
    lade_err err = {0};
    if (!w->scheduled)
        return;
    for (int i = 0; i < N_SIDES; i++) {
        lade_cursor cursor = {0};
        while (!cursor.done && !w->failure[0]) {
            if (ops_of(w, i)->list(w->s[i], &cursor, 1 + w->at % 3, &v[i], &err) < 0)
                tm_fail(w, "list of schedules: %s", err.text);
        }
    }
    compare_plans(w, v);
    for (int i = 0; i < N_SIDES; i++)
        lb_arena_fini(&v[i].arena);
    compare_leaders(w);
}

/* leading ---------------------------------------------------------------------------------------------------------- */

static void compare_ticks(struct world *w, const struct lq_tick *t, const struct lq_schedule_vec *v)
{
    tm_same(w, "any", t[MODEL].any, t[STORE].any);
    tm_same(w, "leads", t[MODEL].leads, t[STORE].leads);
    tm_same(w, "took over", t[MODEL].took_over, t[STORE].took_over);
    tm_same(w, "next", t[MODEL].next_ms, t[STORE].next_ms);
    tm_same(w, "clock behind", t[MODEL].back_ms, t[STORE].back_ms);
    if (w->exact) {
        tm_same(w, "time of a tick", t[MODEL].now_ms, t[STORE].now_ms);
        tm_same(w, "lease of a tick", t[MODEL].until_ms, t[STORE].until_ms);
    }
    compare_plans(w, v);
}

static void tick(struct world *w)
{
    struct lq_schedule_vec v[N_SIDES] = {0};
    struct lq_tick t[N_SIDES];
    int rc[N_SIDES], who = (int)tm_below(w, N_LEADERS);
    lade_err err[N_SIDES] = {0};
    struct lq_tick it = {.holder = leader_id(who),
                         .name = leader_id(who),
                         .lease_ms = w->exact           ? 1 + (int64_t)tm_below(w, 3000)
                                     : tm_chance(w, 60) ? HOUR_MS
                                                        : 1,
                         .max = 1 + tm_below(w, N_PLANS)};
    tm_trace(w, "tick of %s for %lld ms, %zu", it.holder, (long long)it.lease_ms, it.max);
    for (int i = 0; i < N_SIDES; i++) {
        t[i] = it;
        rc[i] = lq_schedule_tick(w->s[i], &t[i], &v[i], &err[i]);
    }
    tm_same_result(w, "tick", rc, err);
    compare_ticks(w, t, v);
    for (size_t k = 0; k < v[MODEL].n && !w->failure[0]; k++) {
        for (int p = 0; p < N_PLANS; p++) {
            for (int i = 0; i < N_SIDES && lb_slice_eq(plan_id(p), v[MODEL].row[k].id); i++)
                w->plans.revision[p][i] = v[i].row[k].revision;
        }
    }
    for (int i = 0; i < N_SIDES; i++) {
        if (t[MODEL].leads)
            w->plans.fence[who][i] = t[i].fence;
        lb_arena_fini(&v[i].arena);
    }
}

static void resign(struct world *w)
{
    int rc[N_SIDES], who = (int)tm_below(w, N_LEADERS);
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "resign %s", leader_id(who));
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_schedule_resign(w->s[i], leader_id(who), &err[i]);
    tm_same_result(w, "resign", rc, err);
}

/* firing ----------------------------------------------------------------------------------------------------------- */

/* The jobs of a fire are of one queue, and have no verdict on conflicts. */
static size_t draw_fired(struct world *w, struct lq_put *put)
{
    size_t n = tm_below(w, FIRES + 1);
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    for (size_t i = 0; i < n; i++) {
        tm_draw_put(w, &put[i]);
        put[i].queue = queue;
        put[i].conflict = LQ_CONFLICT_KEEP;
    }
    if (n > 0)
        tm_trace(w, " in %s", queue);
    return n;
}

static struct lq_schedule_half draw_half(struct world *w)
{
    struct lq_schedule_half half = {draw_memo(w), draw_state(w), 0};
    half.due_ms = draw_due(w, half.state);
    return half;
}

static void fire(struct world *w, int plan)
{
    struct lq_put put[N_SIDES][FIRES];
    struct lq_fire it = {.id = plan_id(plan), .fired = draw_half(w), .held = draw_half(w)},
                   f[N_SIDES];
    int rc[N_SIDES], who = (int)tm_below(w, N_LEADERS);
    lade_err err[N_SIDES] = {0};
    bool by_hand = tm_chance(w, 30);
    tm_trace(w, "fire %s by %s", (const char *)it.id.p, by_hand ? "hand" : leader_id(who));
    if (tm_chance(w, 40)) {
        it.busy_queue = tm_queue((int)tm_below(w, N_QUEUES));
        it.busy_id = lb_slice_str(tm_draw_id(w));
        tm_trace(w, " unless %s/%s has not ended", it.busy_queue, (const char *)it.busy_id.p);
    }
    it.n = draw_fired(w, put[MODEL]);
    memcpy(put[STORE], put[MODEL], it.n * sizeof(put[0][0]));
    for (int i = 0; i < N_SIDES; i++) {
        f[i] = it;
        f[i].put = put[i];
        f[i].revision = w->plans.revision[plan][i];
        f[i].fence = by_hand ? 0 : w->plans.fence[who][i];
        rc[i] = lq_schedule_fire(w->s[i], &f[i], &err[i]);
    }
    tm_same_result(w, "fire", rc, err);
    if (w->failure[0] || rc[MODEL] != 0)
        return;
    tm_same(w, "busy", f[MODEL].busy, f[STORE].busy);
    for (size_t i = 0; i < it.n && !f[MODEL].busy && !w->failure[0]; i++) {
        tm_same(w, "outcome of a fire", put[MODEL][i].outcome, put[STORE][i].outcome);
        if (put[MODEL][i].outcome != LADE_DONE)
            tm_same_bytes(w, "holder", lb_slice_str(put[MODEL][i].holder),
                          lb_slice_str(put[STORE][i].holder));
    }
}

void tm_op_schedule(struct world *w)
{
    if (!w->scheduled)
        return;
    int plan = (int)tm_below(w, N_PLANS);
    uint64_t verb = tm_below(w, 100);
    if (verb < 90 && tm_chance(w, 75))
        read_plan(w, plan); /* otherwise what was read long ago counts */
    if (verb < 30)
        set_plan(w, plan);
    else if (verb < 36)
        remove_plan(w, plan);
    else if (verb < 70)
        fire(w, plan);
    else if (verb < 95)
        tick(w);
    else
        resign(w);
}
