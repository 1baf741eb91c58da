/*
 * model_company.c - takes of dressed runs, in which stores may let jobs of keys wait in company (ADR 0044)
 *
 * In which order jobs of several keys come is then left open within a bound (contract/company). So a take either takes all that there is
 * and is compared as a set; or, from one queue, the model takes all, the store some, as many as it may, each of which the model
 * must have had, and the model hands the others back. In such a run nothing that a take uses up is drawn: no rates, and no limit
 * of a whole queue.
 */
#include <stdlib.h>
#include <string.h>

#include "model_ops.h"

static int compare_leased_ids(const void *a, const void *b)
{
    const struct lq_leased *x = a, *y = b;
    int order = (x->lane > y->lane) - (x->lane < y->lane);
    return order ? order : strcmp((const char *)x->id.p, (const char *)y->id.p);
}

void tm_sort_taken(struct lq_leased_vec *got)
{
    if (got->n > 0)
        qsort(got->job, got->n, sizeof(*got->job), compare_leased_ids);
}

void tm_draw_extent(struct world *w, struct lq_take *take)
{
    if (!w->dressed)
        return;
    if (w->told || tm_chance(w, 30))
        take->max = LQ_TAKE_MAX;
    else
        take->lanes.n = 1;
}

struct lq_take tm_extent_of(const struct world *w, int side, const struct lq_take *take)
{
    struct lq_take t = *take;
    if (w->dressed && side == MODEL)
        t.max = LQ_TAKE_MAX;
    return t;
}

/* The model gives this one back: it is the first of its level again. */
static void hand_back(struct world *w, const char *queue, const struct lq_leased *job)
{
    lade_err err = {0};
    struct lq_settle it = {.queue = queue,
                           .id = lb_slice_of(job->id),
                           .fence = job->fence,
                           .to = LQ_TO_READY,
                           .reason = LQ_REASON_NONE};
    if (lq_settle_take(w->s[MODEL], &it, 1, NULL, NULL, &err) < 0 || it.outcome != LADE_DONE)
        tm_fail(w, "the model took %s and cannot hand it back: %s", (const char *)job->id.p,
                err.text);
}

static bool has(const struct lq_leased_vec *got, const struct lq_leased *job)
{
    for (size_t i = 0; i < got->n; i++) {
        if (got->job[i].lane == job->lane &&
            lb_slice_eq(lb_slice_of(got->job[i].id), lb_slice_of(job->id)))
            return true;
    }
    return false;
}

/* In the reverse order of taking, so that all stand again as they did. */
void tm_follow(struct world *w, const struct lq_take *take, struct lq_leased_vec *got)
{
    struct lq_leased_vec *m = &got[MODEL];
    size_t kept = 0, most = LB_MIN(m->n, take->max);
    if (!w->dressed)
        return;
    tm_same(w, "jobs taken of those there are", (int64_t)most, (int64_t)got[STORE].n);
    for (size_t i = m->n; i > 0; i--) {
        if (!has(&got[STORE], &m->job[i - 1]))
            hand_back(w, take->lanes.queue[m->job[i - 1].lane], &m->job[i - 1]);
    }
    for (size_t i = 0; i < m->n; i++) {
        if (has(&got[STORE], &m->job[i]))
            m->job[kept++] = m->job[i];
    }
    m->n = kept;
    tm_sort_taken(m);
    tm_sort_taken(&got[STORE]);
}
