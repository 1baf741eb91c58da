#include "store/sqlite/waiters.h"

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

/* How often a worker looks by itself that nobody else can ring: see the bounds of bell.h. */
#define LOOK_EVERY (100 * LADE_MILLISECOND)

struct waiter {
    char worker[LADE_ID_MAX + 1];
    int seat;   /* -1 = none was free */
    bool idle;  /* registered, and not rung or woken since */
    bool woken; /* by wake() */
    bool waits; /* a thread is in wait */
    bool left;  /* to be freed by the thread that waits */
    uint64_t lane[LS_SQLITE_BELL_LANES];
    size_t n_lanes;
    struct lr_cond changed;
};

int ls_sqlite_waiters_init(struct ls_sqlite_waiters *w, const char *path, lade_err *err)
{
    int rc = ls_sqlite_bell_open(&w->bell, path, err);
    if (rc < 0)
        return rc;
    lr_mutex_init(&w->lock);
    lb_map_init(&w->map);
    return 0;
}

static void free_waiter(struct ls_sqlite_waiters *w, struct waiter *wt)
{
    (void)lb_map_del(&w->map, lb_slice_str(wt->worker));
    ls_sqlite_bell_rise(&w->bell, wt->seat);
    lr_cond_fini(&wt->changed);
    lb_free(wt);
}

void ls_sqlite_waiters_fini(struct ls_sqlite_waiters *w)
{
    __atomic_store_n(&w->closing, true, __ATOMIC_SEQ_CST);
    ls_sqlite_bell_kick(&w->bell);
    lr_thread_join(&w->listener);
    for (;;) {
        size_t at = 0;
        struct waiter *wt = lb_map_next(&w->map, &at);
        if (!wt)
            break;
        assert(!wt->waits);
        free_waiter(w, wt);
    }
    lb_map_fini(&w->map);
    lr_mutex_fini(&w->lock);
    ls_sqlite_bell_close(&w->bell);
}

/* With the lock held: wakes the waiters whose seats were rung. */
static void wake_rung(struct ls_sqlite_waiters *w)
{
    size_t at = 0;
    for (struct waiter *wt; (wt = lb_map_next(&w->map, &at));) {
        if (wt->idle && wt->seat >= 0 && ls_sqlite_bell_is_rung(&w->bell, wt->seat))
            lr_cond_wake_all(&wt->changed);
    }
}

static void listen(void *arg)
{
    struct ls_sqlite_waiters *w = arg;
    while (!__atomic_load_n(&w->closing, __ATOMIC_SEQ_CST)) {
        uint32_t word = ls_sqlite_bell_word(&w->bell);
        lr_mutex_lock(&w->lock);
        wake_rung(w);
        lr_mutex_unlock(&w->lock);
        if (!__atomic_load_n(&w->closing, __ATOMIC_SEQ_CST))
            ls_sqlite_bell_sleep(&w->bell, word);
    }
}

/* With the lock held. NULL when out of memory. */
static struct waiter *find_or_make(struct ls_sqlite_waiters *w, const char *worker)
{
    struct waiter *wt = lb_map_get(&w->map, lb_slice_str(worker));
    size_t n = strlen(worker);
    if (wt || n > LADE_ID_MAX)
        return wt;
    wt = lb_calloc(1, sizeof(*wt));
    if (!wt)
        return NULL;
    memcpy(wt->worker, worker, n);
    if (lb_map_put(&w->map, lb_slice_str(wt->worker), wt) < 0) {
        lb_free(wt);
        return NULL;
    }
    lr_cond_init(&wt->changed);
    wt->seat = ls_sqlite_bell_sit(&w->bell);
    return wt;
}

void ls_sqlite_waiters_idle(struct ls_sqlite_waiters *w, const char *worker, struct lq_lanes lanes)
{
    lr_mutex_lock(&w->lock);
    struct waiter *wt = find_or_make(w, worker);
    if (!w->listener.started && w->bell.shared &&
        lr_thread_start(&w->listener, "lade-bell", listen, w) < 0)
        w->bell.shared = false; /* others ring, but nobody here listens: look by ourselves */
    if (wt) {
        wt->n_lanes = lanes.n;
        for (size_t i = 0; i < LB_MIN(lanes.n, (size_t)LS_SQLITE_BELL_LANES); i++)
            wt->lane[i] = ls_sqlite_bell_hash(lanes.queue[i]);
        if (wt->seat >= 0)
            ls_sqlite_bell_idle(&w->bell, wt->seat, wt->lane, lanes.n);
        wt->idle = true;
    }
    lr_mutex_unlock(&w->lock);
}

void ls_sqlite_waiters_set_due(struct ls_sqlite_waiters *w, const char *worker, int64_t due_ms)
{
    lr_mutex_lock(&w->lock);
    struct waiter *wt = lb_map_get(&w->map, lb_slice_str(worker));
    if (wt && wt->idle && wt->seat >= 0)
        ls_sqlite_bell_set_due(&w->bell, wt->seat, due_ms);
    lr_mutex_unlock(&w->lock);
}

/* With the lock held: out of the seat's idle state. True when it was rung. */
static bool stop_idling(struct ls_sqlite_waiters *w, struct waiter *wt)
{
    bool rung = wt->idle && wt->seat >= 0 && ls_sqlite_bell_quiet(&w->bell, wt->seat);
    wt->idle = false;
    return rung;
}

/* With the lock held: a ring that this worker does not answer is another's. */
static void pass_on(struct ls_sqlite_waiters *w, const struct waiter *wt)
{
    size_t mine = 0;
    if (wt->n_lanes > LS_SQLITE_BELL_LANES)
        mine += ls_sqlite_bell_ring(&w->bell, 0, 1);
    else /* which queue the ring was for is not known: one for each that we serve */
        for (size_t i = 0; i < wt->n_lanes; i++)
            mine += ls_sqlite_bell_ring(&w->bell, wt->lane[i], 1);
    if (mine > 0)
        wake_rung(w);
}

void ls_sqlite_waiters_busy(struct ls_sqlite_waiters *w, const char *worker)
{
    lr_mutex_lock(&w->lock);
    struct waiter *wt = lb_map_get(&w->map, lb_slice_str(worker));
    if (wt && stop_idling(w, wt))
        pass_on(w, wt);
    lr_mutex_unlock(&w->lock);
}

void ls_sqlite_waiters_leave(struct ls_sqlite_waiters *w, const char *worker)
{
    lr_mutex_lock(&w->lock);
    struct waiter *wt = lb_map_get(&w->map, lb_slice_str(worker));
    if (wt && stop_idling(w, wt))
        pass_on(w, wt);
    if (wt && wt->waits) {
        wt->left = wt->woken = true;
        lr_cond_wake_all(&wt->changed);
    } else if (wt) {
        free_waiter(w, wt);
    }
    lr_mutex_unlock(&w->lock);
}

static void wake_mine(struct ls_sqlite_waiters *w, size_t mine)
{
    if (mine == 0)
        return;
    lr_mutex_lock(&w->lock);
    wake_rung(w);
    lr_mutex_unlock(&w->lock);
}

void ls_sqlite_waiters_ring(struct ls_sqlite_waiters *w, const char *queue, size_t n)
{
    wake_mine(w, ls_sqlite_bell_ring(&w->bell, ls_sqlite_bell_hash(queue), n));
}

void ls_sqlite_waiters_ring_due(struct ls_sqlite_waiters *w, const char *queue, int64_t due_ms)
{
    wake_mine(w, ls_sqlite_bell_ring_due(&w->bell, ls_sqlite_bell_hash(queue), due_ms));
}

/* With the lock held. */
static int wait_locked(struct ls_sqlite_waiters *w, struct waiter *wt, int64_t deadline)
{
    bool alone = wt->seat < 0 || !w->bell.shared;
    int64_t look_at = alone ? lb_clock_mono() + LOOK_EVERY : LB_FOREVER;
    for (;;) {
        if (wt->woken || w->wake_all ||
            (wt->idle && wt->seat >= 0 && ls_sqlite_bell_is_rung(&w->bell, wt->seat)))
            return 0;
        int64_t now = lb_clock_mono();
        if (deadline != LB_FOREVER && now >= deadline)
            return LADE_EMPTY;
        if (now >= look_at)
            return 0;
        (void)lr_cond_wait(&wt->changed, &w->lock, LB_MIN(deadline, look_at));
    }
}

int ls_sqlite_waiters_wait(struct ls_sqlite_waiters *w, const char *worker, int64_t deadline,
                           lade_err *err)
{
    lr_mutex_lock(&w->lock);
    struct waiter *wt = find_or_make(w, worker);
    if (!wt) {
        lr_mutex_unlock(&w->lock);
        return lb_fail_nomem(err, "wait");
    }
    wt->waits = true;
    int rc = wait_locked(w, wt, deadline);
    wt->waits = wt->woken = w->wake_all = false;
    if (stop_idling(w, wt))
        rc = 0; /* rung just now: that ring is ours to answer */
    if (wt->left)
        free_waiter(w, wt);
    lr_mutex_unlock(&w->lock);
    return rc;
}

void ls_sqlite_waiters_wake(struct ls_sqlite_waiters *w, const char *worker)
{
    lr_mutex_lock(&w->lock);
    struct waiter *wt = find_or_make(w, worker);
    if (wt) {
        wt->woken = true;
        lr_cond_wake_all(&wt->changed);
    } else {
        w->wake_all = true;
        size_t at = 0;
        for (struct waiter *other; (other = lb_map_next(&w->map, &at));)
            lr_cond_wake_all(&other->changed);
    }
    lr_mutex_unlock(&w->lock);
}
