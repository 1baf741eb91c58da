/* dead.c - the dead as an operator sees and moves them: classes, listings by filter, moves of what was seen, edits */
#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/dead_store.h"
#include "queue/fingerprint.h"
#include "queue/job.h"
#include "queue/names.h"
#include "queue/views.h"

_Static_assert(LADE_DEAD_CLASS_MAX == LQ_CLASS_MAX, "the store's bound is the public one");
_Static_assert(LADE_DEAD_CLASS_TEXT_MAX == LQ_CLASS_TEXT_MAX, "the same");
_Static_assert(LADE_DEAD_CLASSES_MAX == LQ_CLASSES_MAX, "the same");

/* `what` is asked of a store that keeps no records of deaths: Resque's. */
static int refuse_store(const lade *q, const char *where, const char *what, lade_err *err)
{
    if (q->store->ops->change)
        return 0;
    return lb_fail(err, LADE_EUNSUPPORTED, where,
                   "the %s store knows no %s; use a sqlite: or redis:// store for it",
                   q->store->ops->name, what);
}

/* classes ---------------------------------------------------------------------------------------------------------- */

void lade_dead_class_of(const char *kind, lade_bytes error, char id[LADE_DEAD_CLASS_MAX + 1])
{
    char name[LQ_FINGERPRINT_NAME + 1];
    struct lb_buf masked;
    lb_buf_init(&masked);
    lq_fingerprint_mask(&masked, lb_slice(error.data, error.size));
    lq_fingerprint_name(name, lb_slice_str(kind ? kind : ""), lb_buf_slice(&masked));
    memcpy(id, name, sizeof(name));
    lb_buf_fini(&masked);
}

static void copy_text(char *to, size_t size, struct lb_slice from)
{
    size_t n = LB_MIN(from.n, size - 1);
    if (n > 0)
        memcpy(to, from.p, n);
    to[n] = 0;
}

static int add_classes(lade *q, const char *queue, struct lb_buf *all, lade_err *err)
{
    struct lq_class_vec v = {0};
    lb_arena_init(&v.arena);
    int rc = q->store->ops->classes(q->store, queue, &v, err);
    for (size_t i = 0; rc == 0 && i < v.n; i++) {
        const struct lq_class *c = &v.class_[i];
        lade_dead_class d = {.count = c->count,
                             .first_seen = lb_ns_of_ms(c->first_ms),
                             .last_seen = lb_ns_of_ms(c->last_ms)};
        copy_text(d.id, sizeof(d.id), c->name);
        copy_text(d.queue, sizeof(d.queue), lb_slice_str(queue));
        copy_text(d.kind, sizeof(d.kind), c->kind);
        copy_text(d.text, sizeof(d.text), c->text);
        copy_text(d.sample, sizeof(d.sample), c->sample);
        lb_buf_add(all, &d, sizeof(d));
    }
    lb_arena_fini(&v.arena);
    return LB_MIN(rc, 0);
}

static int compare_classes(const void *a, const void *b)
{
    const lade_dead_class *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    int by_queue = strcmp(x->queue, y->queue);
    return by_queue ? by_queue : strcmp(x->id, y->id);
}

int lade_dead_classes(lade *q, const char *queue, lade_dead_class **out, size_t *n, lade_err *err)
{
    LQ_REFUSE_NULL(q, "classes");
    LQ_REFUSE_NULL(out, "classes");
    LQ_REFUSE_NULL(n, "classes");
    int rc = queue ? lq_queue_check(queue, "classes", err) : 0;
    if (rc == 0)
        rc = refuse_store(q, "classes", "classes of deaths", err);
    if (rc < 0)
        return rc;
    struct lb_arena arena;
    struct lb_buf all;
    const char **name = &queue;
    size_t n_queues = 1;
    lb_arena_init(&arena);
    lb_buf_init(&all);
    if (!queue)
        rc = q->store->ops->queues(q->store, &arena, &name, &n_queues, err);
    for (size_t i = 0; rc == 0 && i < n_queues; i++)
        rc = add_classes(q, name[i], &all, err);
    lb_arena_fini(&arena);
    if (rc == 0 && (all.failed || !lb_buf_reserve(&all, 1)))
        rc = lb_fail_nomem(err, "classes");
    if (rc < 0) {
        lb_buf_fini(&all);
        return rc;
    }
    *n = all.n / sizeof(lade_dead_class);
    qsort(all.p, *n, sizeof(lade_dead_class), compare_classes);
    *out = (lade_dead_class *)(void *)all.p;
    return 0;
}

/* list ------------------------------------------------------------------------------------------------------------- */

static bool is_class(const char *s)
{
    size_t n = strspn(s, "0123456789abcdefghijklmnopqrstuvwxyz");
    return n >= 1 && n <= LQ_CLASS_MAX && s[n] == 0;
}

static bool is_reason(const char *s)
{
    static const enum lq_reason all[] = {LQ_REASON_EXHAUSTED, LQ_REASON_KILLED,
                                         LQ_REASON_QUARANTINED, LQ_REASON_UNRECOVERABLE};

    bool found = false;
    for (size_t i = 0; i < LB_ARRAY_LEN(all); i++)
        found = found || strcmp(s, lq_reason_name(all[i])) == 0;
    return found;
}

int lq_dead_filter_check(const lade_dead_filter *f, const char *where, lade_err *err)
{
    if (f->class_id && !is_class(f->class_id))
        return lb_fail(err, LADE_EINVAL, where,
                       "class '%.40s' must be 1 to %d characters of a-z 0-9", f->class_id,
                       LQ_CLASS_MAX);
    if (f->kind && !lq_name_is_valid(f->kind))
        return lb_fail(err, LADE_EINVAL, where,
                       "kind '%.60s' must be 1 to %d characters of A-Z a-z 0-9 . _ : / -", f->kind,
                       LADE_NAME_MAX);
    if (f->reason && !is_reason(f->reason))
        return lb_fail(err, LADE_EINVAL, where,
                       "reason '%.40s' is unknown; give exhausted, killed, quarantined or "
                       "unrecoverable",
                       f->reason);
    if (f->from < 0 || f->before < 0 || (f->before > 0 && f->before <= f->from))
        return lb_fail(err, LADE_EINVAL, where,
                       "from %lld and before %lld are no span of time: 0 <= from < before",
                       (long long)f->from, (long long)f->before);
    return 0;
}

static bool matches(const lade_job_view *v, const lade_dead_filter *f)
{
    if (f->kind && strcmp(v->kind, f->kind) != 0)
        return false;
    if (f->reason && strcmp(v->reason, f->reason) != 0)
        return false;
    return v->finished_at >= f->from && (f->before == 0 || v->finished_at < f->before);
}

/* Keeps the views that match, at the front. */
static size_t sift(lade_job_view **v, size_t n, const lade_dead_filter *f, bool *past)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        *past = *past || (f->before > 0 && v[i]->finished_at >= f->before);
        if (matches(v[i], f))
            v[kept++] = v[i];
        else
            lade_job_view_free(v[i]);
    }
    return kept;
}

int lade_dead_list(lade *q, const char *queue, const lade_dead_filter *filter, lade_cursor *cursor,
                   size_t limit, lade_job_view **out, size_t *n, lade_err *err)
{
    static const lade_dead_filter all = {0};
    const lade_dead_filter *f = filter ? filter : &all;
    LQ_REFUSE_NULL(q, "dead");
    LQ_REFUSE_NULL(cursor, "dead");
    LQ_REFUSE_NULL(out, "dead");
    LQ_REFUSE_NULL(n, "dead");
    int rc = lq_queue_check(queue, "dead", err);
    if (rc == 0)
        rc = lq_dead_filter_check(f, "dead", err);
    if (rc == 0 && f->class_id)
        rc = refuse_store(q, "dead", "classes of deaths", err);
    if (rc < 0)
        return rc;
    if (limit == 0 || limit > 1000)
        return lb_fail(err, LADE_EINVAL, "dead", "limit %zu is not within 1 to 1000", limit);
    *n = 0;
    if (cursor->done)
        return LADE_EMPTY;
    struct lq_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    lade_cursor next = *cursor;
    struct lq_store *s = q->store;
    if (f->class_id)
        rc = s->ops->list_class(s, queue, lb_slice_str(f->class_id), f->from / LADE_MILLISECOND,
                                &next, limit, &rows, err);
    else
        rc = s->ops->list(s, queue, LADE_STATE_DEAD, &next, limit, &rows, err);
    size_t made = 0;
    rc = rc < 0 ? rc : lq_views_make(&rows, out, &made, "dead", err);
    lb_arena_fini(&rows.arena);
    if (rc < 0)
        return rc;
    bool past = false;
    *n = sift(out, made, f, &past);
    next.done = next.done || past; /* deaths come in the order of time */
    *cursor = next;
    return *n == 0 && next.done ? LADE_EMPTY : 0;
}

/* move ------------------------------------------------------------------------------------------------------------- */

/* n jobs of one queue; outcomes are theirs. */
static int move_in(lade *q, enum lq_change_verb verb, const lade_job_view *const *jobs, size_t n,
                   struct lq_change *it, int *outcomes, int *first, lade_err *err)
{
    for (size_t i = 0; i < n; i++)
        it[i] = (struct lq_change){.id = lb_slice_str(jobs[i]->id),
                                   .died_ms = jobs[i]->finished_at / LADE_MILLISECOND};
    int rc = lq_change(q->store, jobs[0]->queue, verb, it, n, err);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        if (outcomes)
            outcomes[i] = it[i].outcome;
        if (*first == 0)
            *first = it[i].outcome;
    }
    return rc;
}

int lade_dead_move(lade *q, enum lade_dead_verb verb, const lade_job_view *const *jobs, size_t n,
                   int *outcomes, lade_err *err)
{
    LQ_REFUSE_NULL(q, "move");
    if ((unsigned)verb > LADE_DEAD_REMOVE)
        return lb_fail(err, LADE_EINVAL, "move", "verb %d is unknown", (int)verb);
    if (n > 1000 || (n > 0 && !jobs))
        return lb_fail(err, LADE_EINVAL, "move", "%zu jobs; give at most 1000", n);
    for (size_t i = 0; i < n; i++) {
        if (!jobs[i] || jobs[i]->state != LADE_STATE_DEAD)
            return lb_fail(err, LADE_EINVAL, "move",
                           "job %zu is not one that a listing showed dead", i);
    }
    int rc = refuse_store(q, "move", "moves of chosen dead jobs", err);
    if (rc < 0 || n == 0)
        return rc;
    struct lq_change *it = lb_calloc(n, sizeof(*it));
    int first = 0;
    if (!it)
        return lb_fail_nomem(err, "move");
    enum lq_change_verb how = verb == LADE_DEAD_REDRIVE ? LQ_CHANGE_RETRY : LQ_CHANGE_REMOVE;
    for (size_t i = 0, k = 1; i < n && rc >= 0; i += k) {
        for (k = 1; i + k < n && strcmp(jobs[i]->queue, jobs[i + k]->queue) == 0;)
            k++;
        rc = move_in(q, how, jobs + i, k, it, outcomes ? outcomes + i : NULL, &first, err);
    }
    lb_free(it);
    return rc < 0 ? rc : first;
}

/* edit ------------------------------------------------------------------------------------------------------------- */

static int edit_in(lade *q, const char *queue, const char *id, struct lb_slice payload, bool retry,
                   lade_err *err)
{
    struct lq_row_vec rows = {0};
    struct lb_buf body;
    lb_arena_init(&rows.arena);
    lb_buf_init(&body);
    int rc = q->store->ops->get(q->store, queue, lb_slice_str(id), &rows, err);
    if (rc == 0)
        rc = lq_job_replace_payload(&body, lb_slice_of(rows.row[0].body), payload, err);
    if (rc == 0) {
        struct lq_change it = {.id = lb_slice_str(id), .body = lb_buf_slice(&body)};
        rc = lq_change(q->store, queue, retry ? LQ_CHANGE_RETRY : LQ_CHANGE_EDIT, &it, 1, err);
    }
    lb_buf_fini(&body);
    lb_arena_fini(&rows.arena);
    return rc;
}

int lade_job_edit(lade *q, const char *queue, const char *id, lade_bytes payload, bool retry,
                  lade_err *err)
{
    LQ_REFUSE_NULL(q, "edit");
    int rc = lq_id_check(id, "edit", err);
    if (rc == 0 && queue)
        rc = lq_queue_check(queue, "edit", err);
    if (rc == 0)
        rc = refuse_store(q, "edit", "new payload of a job that is there", err);
    if (rc < 0)
        return rc;
    if (payload.size > q->payload_max)
        return lb_fail(err, LADE_ETOOBIG, "edit",
                       "payload has %zu bytes; the limit is %u (lade_options.payload_max)",
                       payload.size, q->payload_max);
    if (payload.size > 0 && !payload.data)
        return lb_fail(err, LADE_EINVAL, "edit", "payload is NULL with a size");
    struct lb_slice bytes = lb_slice(payload.data, payload.size);
    if (queue)
        return edit_in(q, queue, id, bytes, retry, err);
    struct lb_arena arena;
    const char **name = NULL;
    size_t n = 0;
    lb_arena_init(&arena);
    rc = q->store->ops->queues(q->store, &arena, &name, &n, err);
    if (rc == 0)
        rc = LADE_NOT_FOUND;
    for (size_t i = 0; i < n && rc == LADE_NOT_FOUND; i++)
        rc = edit_in(q, name[i], id, bytes, retry, err);
    lb_arena_fini(&arena);
    return rc;
}
