/* outer.c - plain OS threads as waiters: they sleep on a futex word of their own */
#include "rt/task.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static __thread struct lr_outer own;
static __thread bool attached;
static uint64_t n_outer; /* atomic */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void forget(void *p)
{
    (void)p;
    (void)__atomic_fetch_sub(&n_outer, 1, __ATOMIC_SEQ_CST);
}

static void make_key(void)
{
    LB_CHECK(pthread_key_create(&key, forget) == 0);
}

/* A plain thread never becomes a task, so its thread-locals may be touched directly. */
struct lr_task *lr_outer_self(void)
{
    if (!attached) {
        LB_CHECK(pthread_once(&key_once, make_key) == 0);
        LB_CHECK(pthread_setspecific(key, &own) == 0);
        own.task.kind = LR_OUTER;
        own.task.claim = 1;
        attached = true;
        (void)__atomic_fetch_add(&n_outer, 1, __ATOMIC_SEQ_CST);
    }
    return &own.task;
}

uint64_t lr_outer_count(void)
{
    return __atomic_load_n(&n_outer, __ATOMIC_ACQUIRE);
}

void lr_futex_wait(uint32_t *word, uint32_t expected, int64_t until)
{
    struct timespec ts = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                  until == LADE_FOREVER ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);
}

void lr_futex_wake(uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, NULL, NULL, 0);
}

enum lr_woke lr_outer_park(struct lr_task *t, uint64_t ticket, int64_t until)
{
    struct lr_outer *o = (struct lr_outer *)(void *)t;
    while (!__atomic_load_n(&o->futex, __ATOMIC_ACQUIRE)) {
        lr_futex_wait(&o->futex, 0, until);
        if (until != LADE_FOREVER && lb_clock_mono() >= until && lr_claim(t, ticket))
            return LR_WOKE_TIMEDOUT;
        if (until != LADE_FOREVER && lb_clock_mono() >= until)
            until = LADE_FOREVER; /* claimed by another: he is about to wake us */
    }
    __atomic_store_n(&o->futex, 0, __ATOMIC_RELAXED);
    return t->woke;
}

void lr_outer_wake(struct lr_task *t)
{
    struct lr_outer *o = (struct lr_outer *)(void *)t;
    __atomic_store_n(&o->futex, 1, __ATOMIC_RELEASE);
    lr_futex_wake(&o->futex); /* the thread may be gone by now: then nobody waits at that address */
}
