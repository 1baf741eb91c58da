/*
 * op_schedule.c - schedules: records, the leader, firing
 *
 * What can fail comes first: copies of the new bytes, then the put; after that nothing fails. Records lie in a list in the order
 * of their ids, which is walked for what is due: this is the model, not a store for many.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

struct record {
    struct lb_list in_home;
    char id[LADE_SCHEDULE_ID_MAX + 1];
    struct lb_mut spec, memo;
    enum lade_schedule_state state;
    int64_t due_ms;
    uint64_t revision;
};

struct watcher {
    struct lb_list in_home;
    char id[LADE_ID_MAX + 1];
    bool woken;
};

static struct record *record_at(struct lb_list *it)
{
    return LB_CONTAINER_OF(it, struct record, in_home);
}

static struct record *find(const struct ls_memory_home *h, struct lb_slice id)
{
    return lb_map_get(&h->schedules, id);
}

static bool copy(struct lb_mut *to, struct lb_slice from)
{
    to->p = lb_malloc(from.n + 1);
    if (!to->p)
        return false;
    if (from.n > 0)
        memcpy(to->p, from.p, from.n);
    to->n = from.n;
    return true;
}

/* watchers --------------------------------------------------------------------------------------------------------- */

static struct watcher *find_watcher(struct ls_memory_home *h, const char *id)
{
    lb_list_each (it, &h->schedule_watchers) {
        struct watcher *w = LB_CONTAINER_OF(it, struct watcher, in_home);
        if (strcmp(w->id, id) == 0)
            return w;
    }
    return NULL;
}

/* NULL when out of memory. */
static struct watcher *watch(struct ls_memory_home *h, const char *id)
{
    struct watcher *w = find_watcher(h, id);
    if (w)
        return w;
    w = lb_calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    (void)snprintf(w->id, sizeof(w->id), "%s", id);
    lb_list_push_back(&h->schedule_watchers, &w->in_home);
    return w;
}

static void ring(struct ls_memory_home *h)
{
    lb_list_each (it, &h->schedule_watchers) {
        LB_CONTAINER_OF(it, struct watcher, in_home)->woken = true;
    }
    lr_cond_wake_all(&h->woken);
}

/* records ---------------------------------------------------------------------------------------------------------- */

bool ls_memory_schedules_any(const struct ls_memory_home *h)
{
    const struct lb_list *list = &h->schedules_list;
    for (struct lb_list *it = list->next; it != list; it = it->next) {
        if (record_at(it)->state == LADE_SCHEDULE_ACTIVE)
            return true;
    }
    return false;
}

static void drop(struct ls_memory_home *h, struct record *r)
{
    lb_list_del(&r->in_home);
    (void)lb_map_del(&h->schedules, lb_slice_str(r->id));
    lb_free(r->spec.p);
    lb_free(r->memo.p);
    lb_free(r);
}

/* In its place, empty. NULL when out of memory. */
static struct record *make(struct ls_memory_home *h, struct lb_slice id)
{
    LB_CHECK(id.n >= 1 && id.n <= LADE_SCHEDULE_ID_MAX);
    struct record *r = lb_calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    memcpy(r->id, id.p, id.n);
    if (lb_map_put(&h->schedules, lb_slice(r->id, id.n), r) < 0) {
        lb_free(r);
        return NULL;
    }
    struct lb_list *before = h->schedules_list.prev;
    while (before != &h->schedules_list && strcmp(record_at(before)->id, r->id) > 0)
        before = before->prev;
    lb_list_insert_after(before, &r->in_home);
    return r;
}

static int put_record(struct ls_memory_home *h, const struct lq_schedule_put *it)
{
    struct record *r = find(h, it->id);
    if (r ? r->revision != it->revision : it->revision != 0)
        return LADE_STALE;
    if (!r && h->schedules.n >= LQ_SCHEDULES_MAX)
        return LADE_FULL;
    struct lb_mut spec = {0}, memo = {0};
    bool ok = copy(&spec, it->spec) && copy(&memo, it->memo);
    if (ok && !r)
        r = make(h, it->id);
    if (!ok || !r) {
        lb_free(spec.p);
        lb_free(memo.p);
        return -LADE_ENOMEM;
    }
    lb_free(r->spec.p);
    lb_free(r->memo.p);
    r->spec = spec;
    r->memo = memo;
    r->state = it->state;
    r->due_ms = it->due_ms;
    r->revision = ++h->revision;
    ring(h);
    return LADE_DONE;
}

static int put(struct lq_store *s, const struct lq_schedule_put *it, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    int rc = put_record(h, it);
    lr_mutex_unlock(&h->lock);
    return rc < 0 ? lb_fail_nomem(err, "schedule") : rc;
}

static int remove_record(struct lq_store *s, struct lb_slice id, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct record *r = find(h, id);
    if (r)
        drop(h, r);
    lr_mutex_unlock(&h->lock);
    return r ? LADE_DONE : LADE_NOT_FOUND;
}

/* Room for n more rows. */
static bool reserve(struct lq_schedule_vec *out, size_t n)
{
    struct lq_schedule_row *row = lb_arena_alloc(&out->arena, (out->n + n + 1) * sizeof(*row));
    if (!row)
        return false;
    if (out->n > 0)
        memcpy(row, out->row, out->n * sizeof(*row));
    out->row = row;
    return true;
}

static bool add_row(struct lq_schedule_vec *out, const struct record *r)
{
    struct lb_mut id = lb_arena_copy(&out->arena, r->id, strlen(r->id));
    struct lb_mut spec = lb_arena_copy(&out->arena, r->spec.p, r->spec.n);
    struct lb_mut memo = lb_arena_copy(&out->arena, r->memo.p, r->memo.n);
    out->row[out->n++] = (struct lq_schedule_row){
        lb_slice_of(id), lb_slice_of(spec), lb_slice_of(memo), r->state, r->due_ms, r->revision};
    return id.p && spec.p && memo.p;
}

static int get(struct lq_store *s, struct lb_slice id, struct lq_schedule_vec *out, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct record *r = find(h, id);
    bool ok = !r || (reserve(out, 1) && add_row(out, r));
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "schedule");
    return r ? LADE_DONE : LADE_NOT_FOUND;
}

static int list(struct lq_store *s, lade_cursor *cursor, size_t limit, struct lq_schedule_vec *out,
                lade_err *err)
{
    int64_t now;
    size_t before = out->n;
    if (!reserve(out, limit))
        return lb_fail_nomem(err, "schedules");
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    bool ok = true, more = false;
    lb_list_each (it, &h->schedules_list) {
        const struct record *r = record_at(it);
        if (strcmp(r->id, cursor->at) <= 0)
            continue;
        more = out->n - before == limit;
        if (more)
            break;
        ok = add_row(out, r) && ok;
    }
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "schedules");
    cursor->done = !more;
    if (out->n > before)
        (void)snprintf(cursor->at, sizeof(cursor->at), "%s",
                       (const char *)out->row[out->n - 1].id.p);
    return out->n > before ? LADE_DONE : LADE_EMPTY;
}

/* leading ---------------------------------------------------------------------------------------------------------- */

/* The lease, which may have changed hands. */
static void lead(struct ls_memory_home *h, struct lq_tick *t, int64_t now)
{
    bool mine = strcmp(h->leader.id, t->holder) == 0;
    if (h->leader.until_ms > now + t->lease_ms)
        h->leader.until_ms = now + t->lease_ms;
    t->leads = mine || !h->leader.id[0] || h->leader.until_ms <= now;
    t->took_over = t->leads && !mine;
    t->back_ms = t->leads ? LB_MAX(h->leader.seen_ms - now, 0) : 0;
    if (t->took_over) {
        (void)snprintf(h->leader.id, sizeof(h->leader.id), "%s", t->holder);
        h->leader.fence++;
    }
    if (t->leads) {
        (void)snprintf(h->leader.name, sizeof(h->leader.name), "%s", t->name);
        h->leader.until_ms = now + t->lease_ms;
        h->leader.seen_ms = now;
    }
    t->until_ms = h->leader.until_ms;
    t->fence = t->leads ? h->leader.fence : 0;
}

static int compare_due(const void *a, const void *b)
{
    const struct record *x = *(struct record *const *)a, *y = *(struct record *const *)b;
    int by_id = strcmp(x->id, y->id);
    return x->due_ms != y->due_ms ? (x->due_ms > y->due_ms) - (x->due_ms < y->due_ms) : by_id;
}

/* False when out of memory. */
static bool collect_due(struct ls_memory_home *h, struct lq_tick *t, struct lq_schedule_vec *out)
{
    size_t n = 0;
    struct record **all = lb_malloc((h->schedules.n + 1) * sizeof(struct record *));
    bool ok = all && reserve(out, t->max);
    for (struct lb_list *it = h->schedules_list.next; ok && it != &h->schedules_list; it = it->next)
        if (record_at(it)->state == LADE_SCHEDULE_ACTIVE)
            all[n++] = record_at(it);
    if (ok && n > 0)
        qsort(all, n, sizeof(struct record *), compare_due);
    for (size_t i = 0; ok && i < n; i++) {
        if (out->n < t->max && all[i]->due_ms <= t->now_ms) {
            ok = add_row(out, all[i]);
            continue;
        }
        t->next_ms = all[i]->due_ms;
        break;
    }
    lb_free(all);
    return ok;
}

static int tick(struct lq_store *s, struct lq_tick *t, struct lq_schedule_vec *due, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct watcher *w = watch(h, t->holder);
    bool ok = w != NULL;
    if (w)
        w->woken = false;
    t->now_ms = now;
    t->any = ls_memory_schedules_any(h);
    t->leads = t->took_over = false;
    t->fence = 0;
    t->until_ms = t->next_ms = t->back_ms = 0;
    if (ok && t->any) {
        lead(h, t, now);
        ok = !t->leads || collect_due(h, t, due);
    } else if (ok && strcmp(h->leader.id, t->holder) == 0) {
        h->leader.id[0] = 0;
    }
    lr_mutex_unlock(&h->lock);
    return ok ? LADE_DONE : lb_fail_nomem(err, "schedule");
}

static int resign(struct lq_store *s, const char *holder, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct watcher *w = find_watcher(h, holder);
    if (w) {
        lb_list_del(&w->in_home);
        lb_free(w);
    }
    if (strcmp(h->leader.id, holder) == 0) {
        h->leader.id[0] = 0;
        ring(h);
    }
    lr_mutex_unlock(&h->lock);
    return LADE_DONE;
}

static int leader(struct lq_store *s, lade_schedule_leader *out, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    bool leads = h->leader.id[0] && h->leader.until_ms > now;
    *out = (lade_schedule_leader){.fence = h->leader.fence,
                                  .seen_at = lb_ns_of_ms(h->leader.seen_ms),
                                  .lease_until = leads ? lb_ns_of_ms(h->leader.until_ms) : 0};
    if (leads) {
        memcpy(out->id, h->leader.id, sizeof(out->id));
        memcpy(out->name, h->leader.name, sizeof(out->name));
    }
    lr_mutex_unlock(&h->lock);
    return LADE_DONE;
}

/* firing ----------------------------------------------------------------------------------------------------------- */

static bool is_busy(struct ls_memory_home *h, const struct lq_fire *f)
{
    if (f->busy_id.n == 0)
        return false;
    const struct ls_memory_queue *q = ls_memory_queue_find(h, f->busy_queue);
    const struct ls_memory_job *j = q ? ls_memory_job_find(q, f->busy_id) : NULL;
    return j && !ls_memory_state_is_ended(j->state);
}

/* The jobs that were put, as the schedule's. */
static void tell_fired(struct ls_memory_home *h, const struct lq_fire *f, int64_t now)
{
    struct ls_memory_queue *q = ls_memory_queue_find(h, f->put[0].queue);
    for (size_t i = 0; q && i < f->n; i++) {
        struct lq_ev e = {.type = LADE_EVENT_FIRED,
                          .job = f->put[i].id,
                          .kind = lq_body_kind(f->put[i].body),
                          .reason = f->id};
        if (f->put[i].outcome == LADE_DONE)
            ls_memory_event(h, q, &e, now);
    }
}

static int fire_locked(struct ls_memory_home *h, struct lq_fire *f, int64_t now)
{
    struct record *r = find(h, f->id);
    if (!r || r->revision != f->revision || (f->fence != 0 && f->fence < h->leader.fence))
        return LADE_STALE;
    f->busy = is_busy(h, f);
    const struct lq_schedule_half *half = f->busy ? &f->held : &f->fired;
    struct lb_mut memo;
    if (!copy(&memo, half->memo))
        return -LADE_ENOMEM;
    if (!f->busy && f->n > 0 && ls_memory_put_locked(h, f->put, f->n, false, now) < 0) {
        lb_free(memo.p);
        return -LADE_ENOMEM;
    }
    if (!f->busy && f->n > 0)
        tell_fired(h, f, now);
    lb_free(r->memo.p);
    r->memo = memo;
    r->state = half->state;
    r->due_ms = half->due_ms;
    r->revision = ++h->revision;
    return LADE_DONE;
}

static int fire(struct lq_store *s, struct lq_fire *f, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    int rc = fire_locked(h, f, now);
    ls_memory_leave_op(h, now);
    return rc < 0 ? lb_fail_nomem(err, "schedule") : rc;
}

/* waiting ---------------------------------------------------------------------------------------------------------- */

static int wait(struct lq_store *s, const char *holder, int64_t deadline, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    int rc = watch(h, holder) ? LADE_EMPTY : -LADE_ENOMEM;
    for (struct watcher *w; rc == LADE_EMPTY && (w = find_watcher(h, holder));) {
        if (w->woken) {
            w->woken = false;
            rc = LADE_DONE;
        } else if (lb_clock_mono() >= deadline) {
            break;
        } else {
            (void)lr_cond_wait(&h->woken, &h->lock, deadline);
        }
    }
    lr_mutex_unlock(&h->lock);
    return rc < 0 ? lb_fail_nomem(err, "schedule") : rc;
}

static void wake(struct lq_store *s, const char *holder)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct watcher *w = watch(h, holder);
    if (w)
        w->woken = true;
    lr_cond_wake_all(&h->woken);
    lr_mutex_unlock(&h->lock);
}

/* the whole -------------------------------------------------------------------------------------------------------- */

void ls_memory_schedules_clear(struct ls_memory_home *h)
{
    while (!lb_list_is_empty(&h->schedules_list))
        drop(h, record_at(h->schedules_list.next));
    lb_map_fini(&h->schedules);
    for (struct lb_list *it; (it = lb_list_pop(&h->schedule_watchers));)
        lb_free(LB_CONTAINER_OF(it, struct watcher, in_home));
}

void ls_memory_schedules_check(struct ls_memory_home *h, lq_finding_fn report, void *ctx)
{
    char text[128];
    size_t n = 0;
    lb_list_each (it, &h->schedules_list) {
        struct record *r = record_at(it);
        n++;
        if ((r->state == LADE_SCHEDULE_ACTIVE) == (r->due_ms > 0) && r->revision > 0)
            continue;
        (void)snprintf(text, sizeof(text), "schedule's state and due time do not agree: %s", r->id);
        report(ctx, "", text);
    }
    if (n != h->schedules.n)
        report(ctx, "", "schedules by id and in order differ");
}

const struct lq_schedule_ops ls_memory_schedule_ops = {
    .put = put,
    .remove = remove_record,
    .get = get,
    .list = list,
    .tick = tick,
    .fire = fire,
    .resign = resign,
    .leader = leader,
    .wait = wait,
    .wake = wake,
};
