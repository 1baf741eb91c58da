/*
 * op_put.c - new -> ready | scheduled, all or none
 *
 * First everything that can fail: each item's job and lock are made, in no state yet. Then the items take their places,
 * which cannot fail. When the first half does fail, what it made is unmade.
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

struct made {
    struct ls_memory_queue *queue;
    struct ls_memory_job *job;   /* NULL = duplicate */
    struct ls_memory_lock *lock; /* NULL = not unique */
    struct lb_mut body; /* of an item whose key is held, and that wants more than to be told */
    bool made_queue, conflict;
};

static int64_t add_ms(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void refuse(struct lq_put *put, const char *holder)
{
    put->outcome = LADE_DUPLICATE;
    memcpy(put->holder, holder, strlen(holder) + 1);
}

/* What ls_memory_conflict will need. False when out of memory. */
static bool prepare_conflict(const struct lq_put *put, struct made *m)
{
    m->conflict = true;
    m->body = (struct lb_mut){lb_malloc(put->body.n), put->body.n};
    if (!m->body.p)
        return false;
    memcpy(m->body.p, put->body.p, put->body.n);
    if (put->conflict == LQ_CONFLICT_TRAIL)
        m->job = ls_memory_job_make(m->queue, put);
    return m->job || put->conflict != LQ_CONFLICT_TRAIL;
}

/* False when out of memory. */
static bool make_one(struct ls_memory_home *h, struct lq_put *put, int64_t now_ms, struct made *m)
{
    m->made_queue = !ls_memory_queue_find(h, put->queue);
    m->queue = ls_memory_queue_make(h, put->queue);
    if (!m->queue)
        return false;
    ls_memory_lock_expire(m->queue, now_ms);
    const struct ls_memory_job *same = ls_memory_job_find(m->queue, put->id);
    if (same) {
        refuse(put, same->id);
        return true;
    }
    struct ls_memory_lock *held =
        put->unique.n > 0 ? ls_memory_lock_find(m->queue, put->unique) : NULL;
    if (held) {
        refuse(put, held->holder);
        return put->conflict == LQ_CONFLICT_KEEP || prepare_conflict(put, m);
    }
    m->job = ls_memory_job_make(m->queue, put);
    if (!m->job)
        return false;
    put->outcome = LADE_DONE;
    put->holder[0] = 0;
    if (put->unique.n == 0)
        return true;
    if (!ls_memory_lock_make(h, m->queue, put, now_ms))
        return false;
    m->lock = ls_memory_lock_find(m->queue, put->unique);
    return true;
}

static void unmake(struct made *m, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        if (m[i].lock)
            ls_memory_lock_drop(m[i].queue, m[i].lock);
        if (m[i].job)
            ls_memory_job_unmake(m[i].job);
        if (m[i].queue && m[i].made_queue)
            m[i].queue->made = false;
    }
}

void ls_memory_job_place(struct ls_memory_home *h, struct ls_memory_job *j, int64_t due_ms,
                         int64_t now_ms)
{
    struct ls_memory_queue *q = j->queue;
    int64_t next = ls_memory_queue_next_due(q);
    if (due_ms <= now_ms) {
        ls_memory_job_move(h, j, LADE_STATE_READY, 0, now_ms);
        ls_memory_queue_wake(h, q, 1);
        return;
    }
    ls_memory_job_move(h, j, LADE_STATE_SCHEDULED, due_ms, now_ms);
    if (next == 0 || due_ms < next)
        ls_memory_queue_wake(h, q, 1);
}

static void place(struct ls_memory_home *h, struct lq_put *put, struct made *m, int64_t now_ms)
{
    if (m->conflict) {
        ls_memory_conflict(h, m->queue, put, m->job, &m->body, now_ms);
        m->queue->total_enqueued += put->outcome == LADE_DONE;
        return;
    }
    int64_t run_at = put->when == LQ_WHEN_IN ? add_ms(now_ms, put->when_ms) : put->when_ms;
    m->queue->total_enqueued++;
    ls_memory_job_place(h, m->job, put->when == LQ_WHEN_NOW ? now_ms : run_at, now_ms);
}

/* Whether an item that was looked at adds a job. */
static bool is_new(const struct made *m)
{
    return m->job != NULL; /* of one that trails, too */
}

static bool has_room(const struct ls_memory_queue *q)
{
    return ls_memory_bound_fits(q, q->needs, q->needs_bytes);
}

/* After all items were made: whether they fit. If not, the outcomes say which do not. */
static bool fits(struct lq_put *put, struct made *m, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n; i++)
        m[i].queue->needs = m[i].queue->needs_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        m[i].queue->needs += is_new(&m[i]);
        m[i].queue->needs_bytes += is_new(&m[i]) ? (int64_t)put[i].body.n : 0;
    }
    for (size_t i = 0; i < n; i++)
        all = all && has_room(m[i].queue);
    for (size_t i = 0; !all && i < n; i++) {
        put[i].outcome = has_room(m[i].queue) ? LADE_DONE : LADE_FULL;
        put[i].holder[0] = 0;
    }
    return all;
}

int ls_memory_put_locked(struct ls_memory_home *h, struct lq_put *put, size_t n, bool bounded,
                         int64_t now_ms)
{
    size_t done = 0;
    int rc = LADE_DONE;
    struct made *m = lb_calloc(n + 1, sizeof(*m));
    if (!m)
        return -LADE_ENOMEM;
    while (done < n && make_one(h, &put[done], now_ms, &m[done]))
        done++;
    if (done < n)
        rc = -LADE_ENOMEM;
    else if (bounded && !fits(put, m, n))
        rc = LADE_FULL;
    if (rc != LADE_DONE)
        unmake(m, LB_MIN(done + 1, n));
    for (size_t i = 0; rc == LADE_DONE && i < n; i++) {
        if (m[i].job && !m[i].conflict)
            place(h, &put[i], &m[i], now_ms);
    }
    for (size_t i = 0; rc == LADE_DONE && i < n; i++) { /* behind what is new */
        if (m[i].conflict)
            place(h, &put[i], &m[i], now_ms);
    }
    for (size_t i = 0; i < n; i++)
        lb_free(m[i].body.p);
    lb_free(m);
    return rc;
}

int ls_memory_put(struct lq_store *s, struct lq_put *put, size_t n, lade_err *err)
{
    if (n == 0)
        return LADE_DONE;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    int rc = ls_memory_put_locked(h, put, n, true, now);
    ls_memory_leave_op(h, now);
    return rc < 0 ? lb_fail_nomem(err, "put") : rc;
}
