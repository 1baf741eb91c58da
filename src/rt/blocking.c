/*
 * blocking.c - a pool of threads for calls that block
 *
 * Threads are made when a call finds none idle, up to a bound, and stay until the runtime stops. A call is a heap object with two
 * holders, the caller and the thread: a cancelled caller leaves at once and the thread finds nobody to wake.
 */
#include "rt/blocking.h"
#include "base/mem.h"

struct call {
    struct call *next;
    void (*fn)(void *);
    void *arg;
    struct lr_task *task;
    uint64_t ticket;
    uint32_t holders; /* atomic */
    bool begun;       /* guarded by: pool lock */
};

struct lr_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct call *head, *tail;
    unsigned n_threads, n_idle, max;
    bool stop;
    pthread_t thread[];
};

/* They fail only for misuse. */
static void lock_pool(struct lr_pool *pool)
{
    LB_CHECK(pthread_mutex_lock(&pool->lock) == 0);
}

static void unlock_pool(struct lr_pool *pool)
{
    LB_CHECK(pthread_mutex_unlock(&pool->lock) == 0);
}

static void drop(struct call *c)
{
    if (__atomic_fetch_sub(&c->holders, 1, __ATOMIC_ACQ_REL) == 1)
        lb_free(c);
}

static void serve(struct call *c)
{
    c->fn(c->arg);
    if (lr_claim(c->task, c->ticket)) {
        c->task->woke = LR_WOKE;
        lr_ready(c->task);
    }
    (void)__atomic_fetch_sub(&lr_rt_get()->n_foreign, 1, __ATOMIC_SEQ_CST);
    drop(c);
}

static void sleep_idle(struct lr_pool *pool)
{
    pool->n_idle++;
    LB_CHECK(pthread_cond_wait(&pool->wake, &pool->lock) == 0);
    pool->n_idle--;
}

static void *run_pool(void *p)
{
    struct lr_pool *pool = p;
    lock_pool(pool);
    for (;;) {
        struct call *c = pool->head;
        if (!c && pool->stop)
            break;
        if (!c) {
            sleep_idle(pool);
            continue;
        }
        pool->head = c->next;
        c->begun = true;
        unlock_pool(pool);
        serve(c);
        lock_pool(pool);
    }
    unlock_pool(pool);
    return NULL;
}

int lr_pool_start(struct lr_rt *rt, unsigned max)
{
    struct lr_pool *pool = lb_calloc(1, sizeof(*pool) + max * sizeof(pthread_t));
    if (!pool)
        return -LADE_ENOMEM;
    pool->max = max;
    LB_CHECK(pthread_mutex_init(&pool->lock, NULL) == 0);
    LB_CHECK(pthread_cond_init(&pool->wake, NULL) == 0);
    rt->blocking = pool;
    return 0;
}

void lr_pool_stop(struct lr_rt *rt)
{
    struct lr_pool *pool = rt->blocking;
    if (!pool)
        return;
    lock_pool(pool);
    pool->stop = true;
    LB_CHECK(pthread_cond_broadcast(&pool->wake) == 0);
    unlock_pool(pool);
    for (unsigned i = 0; i < pool->n_threads; i++)
        LB_CHECK(pthread_join(pool->thread[i], NULL) == 0);
    LB_CHECK(pthread_cond_destroy(&pool->wake) == 0);
    LB_CHECK(pthread_mutex_destroy(&pool->lock) == 0);
    lb_free(pool);
    rt->blocking = NULL;
}

/* Under the lock. False when there is no thread at all to serve it. */
static bool call_thread(struct lr_pool *pool)
{
    if (pool->n_idle > 0) {
        LB_CHECK(pthread_cond_signal(&pool->wake) == 0);
        return true;
    }
    if (pool->n_threads == pool->max)
        return true; /* the next that is done takes it */
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&pool->thread[pool->n_threads], NULL, run_pool, pool);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        pool->n_threads++;
    return pool->n_threads > 0;
}

/* Takes a call back that no thread has begun. */
static bool withdraw(struct lr_pool *pool, struct call *c)
{
    lock_pool(pool);
    bool waits = !c->begun;
    if (waits) {
        struct call *before = NULL;
        for (struct call *it = pool->head; it != c; it = it->next)
            before = it;
        if (before)
            before->next = c->next;
        else
            pool->head = c->next;
        if (pool->tail == c)
            pool->tail = before;
    }
    unlock_pool(pool);
    return waits;
}

int lade_blocking_run(void (*fn)(void *), void *arg)
{
    if (!fn)
        return -LADE_EINVAL;
    struct lr_rt *rt = lr_rt_get();
    struct lr_task *t = lr_self_task();
    if (!t)
        return -LADE_EPERM;
    if (!rt || LR_KIND(t) != LR_FIBER) {
        fn(arg);
        return 0;
    }
    struct lr_pool *pool = rt->blocking;
    struct call *c = lb_malloc(sizeof(*c));
    if (!c)
        return -LADE_ENOMEM;
    *c = (struct call){.fn = fn, .arg = arg, .task = t, .ticket = lr_ticket(t), .holders = 2};
    lock_pool(pool);
    (void)__atomic_fetch_add(&rt->n_foreign, 1, __ATOMIC_SEQ_CST);
    bool served = call_thread(pool);
    if (served) {
        if (pool->head)
            pool->tail->next = c;
        else
            pool->head = c;
        pool->tail = c;
    }
    unlock_pool(pool);
    if (!served) {
        (void)lr_claim(t, c->ticket);
        (void)__atomic_fetch_sub(&rt->n_foreign, 1, __ATOMIC_SEQ_CST);
        lb_free(c);
        return -LADE_ENOMEM;
    }
    enum lr_woke woke = lr_park(t, c->ticket, LADE_FOREVER, LR_WAITS_BLOCKING, c);
    if (woke != LR_WOKE && withdraw(pool, c)) {
        (void)__atomic_fetch_sub(&rt->n_foreign, 1, __ATOMIC_SEQ_CST);
        drop(c);
    }
    drop(c);
    return lr_woke_result(woke);
}
