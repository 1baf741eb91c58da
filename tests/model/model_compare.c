/* model_compare.c - what both sides hold must be the same */
#include "model.h"

#include <stdarg.h>
#include <string.h>

void tm_fail(struct world *w, const char *format, ...)
{
    va_list args;
    if (w->failure[0])
        return;
    va_start(args, format);
    (void)vsnprintf(w->failure, sizeof(w->failure), format, args);
    va_end(args);
}

void tm_same(struct world *w, const char *what, int64_t model, int64_t store)
{
    if (model != store)
        tm_fail(w, "%s: model %lld, store %lld", what, (long long)model, (long long)store);
}

void tm_same_bytes(struct world *w, const char *what, struct lb_slice model, struct lb_slice store)
{
    if (!lb_slice_eq(model, store))
        tm_fail(w, "%s: model '%.*s' (%zu bytes), store '%.*s' (%zu bytes)", what,
                (int)LB_MIN(model.n, 40), (const char *)model.p, model.n, (int)LB_MIN(store.n, 40),
                (const char *)store.p, store.n);
}

static void compare_count(struct world *w, int queue)
{
    lade_queue_info info[N_SIDES];
    int rc[N_SIDES];
    lade_err err = {0};
    char what[80];
    memset(info, 0, sizeof(info));
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = w->s[i]->ops->count(w->s[i], tm_queue(queue), &info[i], &err);
    (void)snprintf(what, sizeof(what), "count of %s", tm_queue(queue));
    tm_same(w, what, rc[MODEL], rc[STORE]);
    for (int k = 0; k < LADE_N_STATES; k++) {
        (void)snprintf(what, sizeof(what), "%s %s", tm_queue(queue),
                       lade_state_name((enum lade_state)k));
        tm_same(w, what, (int64_t)info[MODEL].count[k], (int64_t)info[STORE].count[k]);
    }
#define SAME(field) \
    tm_same(w, "queue info " #field, (int64_t)info[MODEL].field, (int64_t)info[STORE].field)
    SAME(paused);
    SAME(total_enqueued);
    SAME(total_completed);
    SAME(total_failed);
    SAME(total_dead);
    SAME(n_workers);
    if (w->exact && !w->dressed) /* company is counted when it is taken apart, by the next take */
        SAME(held);
#undef SAME
}

void tm_compare_counts(struct world *w)
{
    for (int q = 0; q < N_QUEUES; q++)
        compare_count(w, q);
}

/* All rows of a state, read in pages of this size. False when a side failed. */
static bool read_all(struct world *w, int side, int queue, enum lade_state state, size_t page,
                     struct lq_row_vec *out)
{
    lade_cursor cursor = {0};
    lade_err err = {0};
    int rc = 0;
    out->arena = (struct lb_arena){0};
    out->n = 0;
    for (int i = 0; !cursor.done && rc == 0 && i < 1000; i++)
        rc = w->s[side]->ops->list(w->s[side], tm_queue(queue), state, &cursor, page, out, &err);
    if (rc < 0)
        tm_fail(w, "list: %s", err.text);
    else if (!cursor.done)
        tm_fail(w, "list of %s does not end", lade_state_name(state));
    return rc >= 0 && cursor.done;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp((const char *)((const struct lq_row *)a)->id.p,
                  (const char *)((const struct lq_row *)b)->id.p);
}

static void compare_rows(struct world *w, const struct lq_row *m, const struct lq_row *s)
{
    char what[160];
    (void)snprintf(what, sizeof(what), "row %s/%s/%s", m->queue, lade_state_name(m->state),
                   (const char *)m->id.p);
    size_t n = strlen(what);
#define SAME(field)                                             \
    do {                                                        \
        (void)snprintf(what + n, sizeof(what) - n, " " #field); \
        tm_same(w, what, (int64_t)m->field, (int64_t)s->field); \
    } while (0)
#define SAME_BYTES(field)                                                     \
    do {                                                                      \
        (void)snprintf(what + n, sizeof(what) - n, " " #field);               \
        tm_same_bytes(w, what, lb_slice_of(m->field), lb_slice_of(s->field)); \
    } while (0)
    SAME_BYTES(id);
    SAME_BYTES(body);
    SAME_BYTES(history);
    SAME(state);
    SAME(reason);
    if (m->state == LADE_STATE_COMPLETED)
        SAME_BYTES(result);
    if (m->state == LADE_STATE_ACTIVE && strcmp(m->worker, s->worker) != 0)
        tm_fail(w, "%s worker: model '%s', store '%s'", what, m->worker, s->worker);
    if (!w->exact)
        return;
    SAME(run_at_ms);
    SAME(finished_ms);
    if (m->state == LADE_STATE_ACTIVE) {
        SAME(taken_ms);
        if (m->lease_until_ms > 0) /* what is shown of a worker that left is left open */
            SAME(lease_until_ms);
    }
#undef SAME
#undef SAME_BYTES
}

static void compare_listing(struct world *w, int queue, enum lade_state state)
{
    struct lq_row_vec rows[N_SIDES] = {0};
    size_t page = 1 + (w->at * 7 + (size_t)queue * 13 + (size_t)state * 5) % 40; /* draws nothing */
    char what[80];
    bool ok = true;
    for (int i = 0; i < N_SIDES; i++)
        ok = read_all(w, i, queue, state, page, &rows[i]) && ok;
    (void)snprintf(what, sizeof(what), "rows of %s %s, pages of %zu", tm_queue(queue),
                   lade_state_name(state), page);
    tm_same(w, what, (int64_t)rows[MODEL].n, (int64_t)rows[STORE].n);
    bool any_order = state == LADE_STATE_ACTIVE || (w->keyed && state == LADE_STATE_READY);
    for (int i = 0; i < N_SIDES && any_order && rows[i].n > 0; i++)
        qsort(rows[i].row, rows[i].n, sizeof(*rows[i].row), compare_ids);
    for (size_t i = 0; ok && !w->failure[0] && i < rows[MODEL].n; i++)
        compare_rows(w, &rows[MODEL].row[i], &rows[STORE].row[i]);
    for (int i = 0; i < N_SIDES; i++)
        lb_arena_fini(&rows[i].arena);
}

static int compare_infos(const void *a, const void *b)
{
    return strcmp(((const lade_worker_info *)a)->id, ((const lade_worker_info *)b)->id);
}

static void compare_workers(struct world *w)
{
    lade_worker_info *info[N_SIDES] = {NULL, NULL};
    size_t n[N_SIDES] = {0, 0};
    lade_err err = {0};
    for (int i = 0; i < N_SIDES; i++) {
        if (w->s[i]->ops->workers(w->s[i], &w->arena, &info[i], &n[i], &err) != 0)
            tm_fail(w, "workers: %s", err.text);
        if (n[i] > 0)
            qsort(info[i], n[i], sizeof(*info[i]), compare_infos);
    }
    tm_same(w, "live workers", (int64_t)n[MODEL], (int64_t)n[STORE]);
    for (size_t i = 0; i < n[MODEL] && !w->failure[0]; i++) {
        const lade_worker_info *m = &info[MODEL][i], *s = &info[STORE][i];
        tm_same_bytes(w, "worker id", lb_slice_str(m->id), lb_slice_str(s->id));
        tm_same(w, "jobs of a worker", (int64_t)m->n_active, (int64_t)s->n_active);
        if (w->exact)
            tm_same(w, "lease of a worker", m->lease_until, s->lease_until);
    }
}

static void compare_queues(struct world *w)
{
    const char **name[N_SIDES] = {NULL, NULL};
    size_t n[N_SIDES] = {0, 0};
    lade_err err = {0};
    for (int i = 0; i < N_SIDES; i++) {
        if (w->s[i]->ops->queues(w->s[i], &w->arena, &name[i], &n[i], &err) != 0)
            tm_fail(w, "queues: %s", err.text);
    }
    tm_same(w, "number of queues", (int64_t)n[MODEL], (int64_t)n[STORE]);
    for (size_t i = 0; i < n[MODEL] && !w->failure[0]; i++)
        tm_same_bytes(w, "queue name", lb_slice_str(name[MODEL][i]), lb_slice_str(name[STORE][i]));
}

struct finding {
    struct world *w;
    const char *side;
};

static void report_finding(void *ctx, const char *queue, const char *text)
{
    const struct finding *f = ctx;
    tm_fail(f->w, "check of the %s, queue '%s': %s", f->side, queue, text);
}

void tm_compare_all(struct world *w)
{
    lade_err err = {0};
    for (int i = 0; i < N_SIDES; i++) {
        struct finding f = {w, i == MODEL ? "model" : "store"};
        if (w->s[i]->ops->check(w->s[i], report_finding, &f, &err) != 0)
            tm_fail(w, "check: %s", err.text);
    }
    for (int q = 0; q < N_QUEUES; q++) {
        for (int k = 0; k < LADE_N_STATES && !w->failure[0]; k++)
            compare_listing(w, q, (enum lade_state)k);
        if (!w->failure[0])
            tm_compare_classes(w, tm_queue(q));
        if (!w->failure[0] &&
            !w->dressed) /* a look at keys takes company apart: an op of its own */
            tm_compare_keys(w, q);
        if (!w->failure[0] && w->bounded)
            tm_compare_bounds(w, tm_queue(q));
        if (!w->failure[0] && !w->forgets)
            tm_compare_results(w, tm_queue(q));
    }
    compare_workers(w);
    compare_queues(w);
    tm_compare_schedules(w);
}
