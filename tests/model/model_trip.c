/* model_trip.c - what a worker of one queue does all the time: completes what it holds and takes what is ready there, in one call */
#include "model.h"
#include "model_ops.h"

#include <stdlib.h>
#include <string.h>

#define TRIP_MAX 24

static int compare_ids(const void *a, const void *b)
{
    return strcmp((*(struct lease *const *)a)->id, (*(struct lease *const *)b)->id);
}

/*
 * Most of what this worker holds in this queue from one of its takes. Not two that follow each other: the order in which such runs, and
 * jobs of several takes, end is left open.
 */
static size_t find_held(struct world *w, const char *worker, int queue, struct lease **of)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_leases && n < TRIP_MAX; i++) {
        struct lease *l = &w->lease[i];
        bool ours = !l->over && l->queue == queue && strcmp(l->worker, worker) == 0;
        bool alike = n == 0 || (l->fence[MODEL] == of[0]->fence[MODEL] &&
                                l->fence[STORE] == of[0]->fence[STORE]);
        if (ours && alike && tm_chance(w, 90))
            of[n++] = l;
    }
    qsort(of, n, sizeof(*of), compare_ids);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || tm_next_lease(w, of[kept - 1]) != of[i])
            of[kept++] = of[i];
    }
    return kept;
}

void tm_op_trip(struct world *w)
{
    struct lq_settle it[N_SIDES][TRIP_MAX];
    struct lease *of[TRIP_MAX];
    struct lq_leased_vec got[N_SIDES] = {0};
    int rc[N_SIDES], queue = (int)tm_below(w, N_QUEUES);
    lade_err err[N_SIDES] = {0};
    const char *worker = w->worker[tm_below(w, N_WORKERS)], *name = tm_queue(queue);
    if (!*worker)
        return;
    tm_as(w, worker);
    struct lq_take take = {.worker = worker,
                           .lanes = {&name, 1},
                           .max = 1 + tm_below(w, 40),
                           .register_idle = tm_chance(w, 50)};
    tm_draw_extent(w, &take);
    size_t n = find_held(w, worker, queue, of);
    tm_trace(w, "trip of %s to %s, takes %zu, completes", worker, name, take.max);
    for (size_t i = 0; i < n; i++) {
        uint64_t wrong = tm_chance(w, 2) ? 1000000 : 0;
        for (int s = 0; s < N_SIDES; s++)
            it[s][i] = (struct lq_settle){.queue = name,
                                          .id = lb_slice_str(of[i]->id),
                                          .fence = of[i]->fence[s] + wrong,
                                          .to = LQ_TO_COMPLETED,
                                          .attempt = of[i]->attempt,
                                          .kind = lb_slice(of[i]->kind, of[i]->n_kind),
                                          .reason = LQ_REASON_NONE};
        tm_trace(w, " %s%s", of[i]->id, wrong ? "!" : "");
    }
    for (int s = 0; s < N_SIDES; s++) {
        struct lq_take of_side = tm_extent_of(w, s, &take);
        rc[s] = lq_settle_take(w->s[s], it[s], n, &of_side, &got[s], &err[s]);
    }
    tm_same_result(w, "trip", rc, err);
    tm_follow(w, &take, got);
    for (size_t i = 0; i < n && !w->failure[0]; i++) {
        tm_same(w, "outcome of a settle", it[MODEL][i].outcome, it[STORE][i].outcome);
        of[i]->over = of[i]->over || it[MODEL][i].outcome == LADE_DONE;
    }
    if (!w->failure[0])
        tm_compare_taken(w, &take, got);
    for (int s = 0; s < N_SIDES; s++)
        lb_arena_fini(&got[s].arena);
}
