/* model_acts.c - drawing ops and doing them on both sides: workers, operators, time */
#include "model_ops.h"

#include <string.h>

#include "base/clock.h"
#include "queue/beat.h"
#include "queue/event.h"
#include "rt/seam.h"

/* workers ---------------------------------------------------------------------------------------------------------- */

static struct lq_beat make_beat(struct world *w, const char *worker)
{
    return (struct lq_beat){
        .worker = worker,
        .name = worker,
        .lanes = tm_all_lanes(w),
        .lease_ms = w->exact ? 500 + (int64_t)tm_below(w, 4000) : 3600000,
        .started_ms = tm_now(w),
        .concurrency = 1,
    };
}

static void beat_both(struct world *w, const struct lq_beat *beat, struct lq_stop stop[][32],
                      size_t *n)
{
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_as(w, beat->worker);
    for (int i = 0; i < N_SIDES; i++) {
        n[i] = 0;
        rc[i] = lq_renew(w->s[i], beat, stop[i], 32, &n[i], &err[i]);
    }
    tm_same_result(w, "renew", rc, err);
}

void tm_join(struct world *w, int slot)
{
    struct lq_stop stop[N_SIDES][32];
    size_t n[N_SIDES];
    (void)snprintf(w->worker[slot], sizeof(w->worker[slot]), "w%u", ++w->n_incarnations);
    struct lq_beat beat = make_beat(w, w->worker[slot]);
    beat.first = true;
    tm_trace(w, "join %s", beat.worker);
    beat_both(w, &beat, stop, n);
}

/* Whether the lease is among the stop requests. */
static bool is_told(int side, const struct lq_stop *stop, size_t n, const struct lease *l)
{
    for (size_t i = 0; i < n; i++) {
        if (stop[i].fence == l->fence[side] && strcmp(stop[i].id, l->id) == 0 &&
            strcmp(stop[i].queue, tm_queue(l->queue)) == 0)
            return true;
    }
    return false;
}

static void compare_stops(struct world *w, struct lq_stop stop[][32], const size_t *n)
{
    for (size_t i = 0; i < w->n_leases && !w->failure[0]; i++) {
        const struct lease *l = &w->lease[i];
        if (l->reclaimed || (l->over && !l->removed))
            continue;
        bool model = is_told(MODEL, stop[MODEL], n[MODEL], l);
        bool store = is_told(STORE, stop[STORE], n[STORE], l);
        if (model != store)
            tm_fail(w, "stop request for %s/%s: model %d, store %d", tm_queue(l->queue), l->id,
                    model, store);
    }
}

static void op_renew(struct world *w)
{
    struct lq_stop stop[N_SIDES][32];
    size_t n[N_SIDES];
    struct lq_beat beat = make_beat(w, w->worker[tm_below(w, N_WORKERS)]);
    if (!*beat.worker)
        return;
    tm_trace(w, "renew %s", beat.worker);
    beat_both(w, &beat, stop, n);
    if (!w->failure[0])
        compare_stops(w, stop, n);
}

static void op_join(struct world *w)
{
    tm_join(w, (int)tm_below(w, N_WORKERS));
}

static void op_leave(struct world *w)
{
    char *worker = w->worker[tm_below(w, N_WORKERS)];
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    if (!*worker)
        return;
    tm_as(w, worker);
    tm_trace(w, "leave %s", worker);
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_leave(w->s[i], worker, tm_all_lanes(w), &err[i]);
    tm_same_result(w, "leave", rc, err);
    if (tm_chance(w, 50))
        *worker = 0; /* otherwise it goes on, and is refused */
}

/* Where time cannot be stepped: its last renewal is for one millisecond. */
static void op_die(struct world *w)
{
    struct lq_stop stop[N_SIDES][32];
    size_t n[N_SIDES];
    struct lq_beat beat = make_beat(w, w->worker[tm_below(w, N_WORKERS)]);
    if (!*beat.worker || w->exact)
        return;
    beat.lease_ms = 1;
    tm_trace(w, "die %s", beat.worker);
    beat_both(w, &beat, stop, n);
    if (!w->failure[0])
        compare_stops(w, stop, n);
    lr_sleep_until(lb_deadline_in(4 * LADE_MILLISECOND));
}

static void op_reclaim(struct world *w)
{
    struct lq_leased_vec got[N_SIDES] = {0};
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    struct lq_take take = {
        .worker = w->worker[tm_below(w, N_WORKERS)], .lanes = tm_all_lanes(w), .max = 1000};
    if (!*take.worker)
        return;
    tm_as(w, take.worker);
    tm_trace(w, "reclaim %s", take.worker);
    for (int i = 0; i < N_SIDES; i++) {
        rc[i] = lq_reclaim(w->s[i], &take, &got[i], &err[i]);
        tm_sort_taken(&got[i]);
    }
    tm_same_result(w, "reclaim", rc, err);
    if (!w->failure[0])
        tm_compare_taken(w, &take, got);
    for (int i = 0; i < N_SIDES; i++)
        lb_arena_fini(&got[i].arena);
}

static void op_begin(struct world *w)
{
    struct lease *l = tm_draw_lease(w);
    struct lq_lease lease[N_SIDES];
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    if (!l)
        return;
    const char *worker = tm_chance(w, 90) ? l->worker : w->worker[0];
    tm_as(w, worker);
    tm_trace(w, "begin %s/%s by %s", tm_queue(l->queue), l->id, worker);
    for (int i = 0; i < N_SIDES; i++) {
        lease[i] = (struct lq_lease){
            .queue = tm_queue(l->queue), .id = lb_slice_str(l->id), .fence = l->fence[i]};
        rc[i] = lq_begin(w->s[i], worker, &lease[i], 1, &err[i]);
    }
    tm_same_result(w, "begin", rc, err);
    tm_same(w, "outcome of begin", lease[MODEL].outcome, lease[STORE].outcome);
}

static void op_note(struct world *w)
{
    struct lease *l = tm_draw_lease(w);
    struct lq_note note[N_SIDES];
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    char text[40];
    if (!l)
        return;
    (void)snprintf(text, sizeof(text), "12345-%.*s", (int)tm_below(w, 30),
                   "of no meaning to any store, ever");
    tm_trace(w, "note %s/%s %s", tm_queue(l->queue), l->id, text);
    for (int i = 0; i < N_SIDES; i++) {
        note[i] = (struct lq_note){.queue = tm_queue(l->queue),
                                   .id = lb_slice_str(l->id),
                                   .fence = l->fence[i],
                                   .history = lb_slice_str(text)};
        rc[i] = lq_note(w->s[i], &note[i], 1, &err[i]);
    }
    tm_same_result(w, "note", rc, err);
    tm_same(w, "outcome of note", note[MODEL].outcome, note[STORE].outcome);
    if (note[MODEL].outcome == LADE_DONE)
        l->attempt = lq_history_next_attempt(lb_slice_str(text));
}

/* operators -------------------------------------------------------------------------------------------------------- */

static void note_act(struct world *w, int queue, const char *id, enum lade_job_verb verb)
{
    struct lease *l = tm_find_lease(w, queue, id);
    if (!l)
        return;
    if (verb == LADE_JOB_REMOVE)
        l->over = l->removed = true;
    else
        l->mark = (int)verb + 1;
}

static void trim_both(struct world *w)
{
    size_t total[N_SIDES] = {0};
    lade_err err = {0};
    for (int q = 0; q < N_QUEUES; q++) {
        const char *queue = tm_queue(q);
        size_t max = 1 + tm_below(w, 20);
        for (int i = 0; i < N_SIDES; i++) {
            int rc = LADE_MORE;
            for (size_t n = 0, k = 0; rc == LADE_MORE && k < 1000; k++, total[i] += n)
                rc = lq_trim(w->s[i], (struct lq_lanes){&queue, 1}, max, &n, &err);
            if (rc != LADE_DONE)
                tm_fail(w, "trim: %s %s", lade_result_name(rc), err.text);
        }
    }
    tm_same(w, "jobs trimmed", (int64_t)total[MODEL], (int64_t)total[STORE]);
}

static void op_act(struct world *w)
{
    enum lade_job_verb verb = (enum lade_job_verb)tm_below(w, 4);
    bool ends = verb == LADE_JOB_KILL || verb == LADE_JOB_CANCEL;
    size_t n = ends ? 1 : 1 + tm_below(w, 5);
    const struct lease *held = tm_chance(w, 40) ? tm_draw_lease(w) : NULL;
    int queue = held ? held->queue : (int)tm_below(w, N_QUEUES);
    int outcome[N_SIDES][5], rc[N_SIDES];
    struct lb_slice id[5];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "act %d on %s", (int)verb, tm_queue(queue));
    for (size_t i = 0; i < n; i++) {
        id[i] = lb_slice_str(i == 0 && held ? held->id : tm_draw_id(w));
        tm_trace(w, " %s", (const char *)id[i].p);
    }
    for (int i = 0; i < N_SIDES; i++) {
        rc[i] = w->s[i]->ops->act(w->s[i], tm_queue(queue), verb, id, n, outcome[i], &err[i]);
        if (rc[i] < 0)
            tm_fail(w, "act: %s", err[i].text);
    }
    for (size_t i = 0; i < n && !w->failure[0]; i++) {
        tm_same(w, "outcome of act", outcome[MODEL][i], outcome[STORE][i]);
        if (outcome[MODEL][i] == LADE_DONE)
            note_act(w, queue, (const char *)id[i].p, verb);
    }
    if (ends) /* whether a settle before the next trim already removes what is too many is left open */
        trim_both(w);
}

static void op_trim(struct world *w)
{
    tm_trace(w, "trim");
    trim_both(w);
}

static void op_purge(struct world *w)
{
    enum lade_state state = (enum lade_state)tm_below(w, LADE_N_STATES);
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    size_t total[N_SIDES] = {0}, max = 1 + tm_below(w, 10);
    lade_err err = {0};
    if (state == LADE_STATE_ACTIVE)
        return;
    tm_trace(w, "purge %s of %s", lade_state_name(state), queue);
    for (int i = 0; i < N_SIDES; i++) {
        int rc = LADE_MORE;
        for (size_t n = 0, k = 0; rc == LADE_MORE && k < 1000; k++, total[i] += n)
            rc = w->s[i]->ops->purge(w->s[i], queue, state, max, &n, &err);
        if (rc != LADE_DONE)
            tm_fail(w, "purge: %s %s", lade_result_name(rc), err.text);
    }
    tm_same(w, "jobs purged", (int64_t)total[MODEL], (int64_t)total[STORE]);
}

static void op_redrive(struct world *w)
{
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    size_t n[N_SIDES] = {0}, max = 1 + tm_below(w, 8);
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "redrive %s %zu", queue, max);
    for (int i = 0; i < N_SIDES; i++) {
        rc[i] = w->s[i]->ops->redrive(w->s[i], queue, max, &n[i], &err[i]);
        if (rc[i] < 0)
            tm_fail(w, "redrive: %s", err[i].text);
    }
    tm_same(w, "jobs redriven", (int64_t)n[MODEL], (int64_t)n[STORE]);
}

static void op_pause(struct world *w)
{
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    bool paused = tm_chance(w, 35);
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "%s %s", paused ? "pause" : "resume", queue);
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = w->s[i]->ops->pause(w->s[i], queue, paused, &err[i]);
    tm_same_result(w, "pause", rc, err);
}

static void remove_one(struct world *w, int side, int queue, const char *id)
{
    lade_err err = {0};
    int outcome = -1;
    struct lb_slice one = lb_slice_str(id);
    if (w->s[side]->ops->act(w->s[side], tm_queue(queue), LADE_JOB_REMOVE, &one, 1, &outcome,
                             &err) < 0)
        tm_fail(w, "act: %s", err.text);
}

static bool has_live_worker(struct world *w)
{
    lade_worker_info *info = NULL;
    size_t n = 0;
    lade_err err = {0};
    return w->s[MODEL]->ops->workers(w->s[MODEL], &w->arena, &info, &n, &err) == 0 && n > 0;
}

/*
 * Empties a queue first, or it would hardly ever succeed. Not while all workers are dead: whether those that nobody has reclaimed are
 * forgotten with the queue is left open.
 */
static void op_forget(struct world *w)
{
    int queue = (int)tm_below(w, N_QUEUES), rc[N_SIDES];
    bool empty = tm_chance(w, 30);
    if (!w->forgets || !has_live_worker(w))
        return;
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "forget %s%s", tm_queue(queue), empty ? ", emptied" : "");
    for (int i = 0; i < N_SIDES; i++) {
        for (int k = 0; empty && k < N_IDS; k++) {
            char id[16];
            (void)snprintf(id, sizeof(id), "j%d", k);
            remove_one(w, i, queue, id);
        }
        for (unsigned b = 0; empty && b < w->n_blocks; b++) {
            for (unsigned k = 0; k < w->made[b]; k++)
                remove_one(w, i, queue, tm_block_id(w, b, k));
        }
        rc[i] = w->s[i]->ops->forget(w->s[i], tm_queue(queue), &err[i]);
    }
    tm_same_result(w, "forget", rc, err);
    size_t kept = 0;
    for (size_t i = 0; i < w->n_leases; i++) {
        /* Fences may begin anew with the queue: what is left of old leases proves nothing. */
        if (!empty || w->lease[i].queue != queue)
            w->lease[kept++] = w->lease[i];
    }
    w->n_leases = kept;
}

/* time ------------------------------------------------------------------------------------------------------------- */

static void op_promote(struct world *w)
{
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    size_t n[N_SIDES] = {0}, max = 1 + tm_below(w, 6);
    int64_t next[N_SIDES] = {0};
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "promote %s %zu", queue, max);
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_promote(w->s[i], (struct lq_lanes){&queue, 1}, max, &n[i], &next[i], &err[i]);
    tm_same_result(w, "promote", rc, err);
    tm_same(w, "jobs promoted", (int64_t)n[MODEL], (int64_t)n[STORE]);
    if (w->exact)
        tm_same(w, "next due after promote", next[MODEL], next[STORE]);
    else
        tm_same(w, "whether more is due after promote", next[MODEL] != 0, next[STORE] != 0);
}

static void op_step(struct world *w)
{
    if (!w->exact)
        return;
    int64_t ms = tm_chance(w, 80) ? (int64_t)tm_below(w, 1500) : (int64_t)tm_below(w, 300000);
    tm_trace(w, "step %lld ms", (long long)ms);
    w->clock_ns += ms * LADE_MILLISECOND;
}

static const struct {
    void (*run)(struct world *w);
    unsigned weight;
} ops[] = {
    {tm_op_put, 18},  {tm_op_put_fresh, 12}, {tm_op_settle_run, 8}, {tm_op_settle_take, 38},
    {op_renew, 10},   {op_join, 3},          {op_leave, 1},         {op_die, 3},
    {op_reclaim, 5},  {op_begin, 3},         {op_act, 10},          {op_purge, 2},
    {op_redrive, 3},  {op_pause, 4},         {op_promote, 6},       {op_trim, 3},
    {op_step, 6},     {op_forget, 2},        {op_note, 4},          {tm_op_change, 5},
    {tm_op_limit, 4}, {tm_op_pause_key, 3},  {tm_op_trip, 16},      {tm_op_bound, 4},
    {tm_op_say, 6},   {tm_op_events, 2},
};

void tm_step(struct world *w)
{
    unsigned total = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(ops); i++)
        total += ops[i].weight;
    uint64_t at = tm_below(w, total);
    size_t i = 0;
    while (at >= ops[i].weight)
        at -= ops[i++].weight;
    ops[i].run(w);
}
