#include "base/ident.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

struct generator {
    uint64_t s[4];
    uint64_t
        epoch; /* 0 = not seeded; older than fork_epoch = a fork copied our state, which must not repeat ids */
};

static _Thread_local struct generator local;
static _Atomic uint64_t fork_epoch = 1;
static pthread_once_t fork_watch = PTHREAD_ONCE_INIT;

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static void seed(struct generator *g)
{
    uint8_t bytes[sizeof(g->s)];
    size_t n = 0;
    while (n < sizeof(bytes)) {
        ssize_t got = getrandom(bytes + n, sizeof(bytes) - n, 0);
        if (got <= 0)
            break; /* only before the kernel has its entropy or under a filter: time and address must do */
        n += (size_t)got;
    }
    memcpy(g->s, bytes, n);
    g->s[0] ^= (uint64_t)lb_clock_mono();
    g->s[1] ^= (uint64_t)(uintptr_t)g ^ ((uint64_t)getpid() << 32);
    g->s[3] |= 1; /* the state must not be all zero */
    g->epoch = atomic_load_explicit(&fork_epoch, memory_order_relaxed);
}

static void after_fork(void)
{
    atomic_fetch_add_explicit(&fork_epoch, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, after_fork);
}

uint64_t lb_rand(void)
{
    struct generator *g = &local;
    if (g->epoch != atomic_load_explicit(&fork_epoch, memory_order_relaxed)) {
        (void)pthread_once(&fork_watch, watch_forks);
        seed(g);
    }
    uint64_t *s = g->s;
    uint64_t result = rotl(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t lb_rand_below(uint64_t bound)
{
    return lb_rand() % bound; /* the bias is bound / 2^64: nothing, for jitter and weights */
}

void lb_ulid(char out[LB_ULID_LEN + 1], int64_t wall_ns)
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t ms = (uint64_t)(wall_ns / 1000000) & 0xffffffffffff;
    uint64_t hi = lb_rand();
    uint64_t lo = lb_rand();
    for (int i = 9; i >= 0; i--) {
        out[i] = digit[ms & 31];
        ms >>= 5;
    }
    for (int i = 10; i < 18; i++) {
        out[i] = digit[hi & 31];
        hi >>= 5;
    }
    for (int i = 18; i < 26; i++) {
        out[i] = digit[lo & 31];
        lo >>= 5;
    }
    out[LB_ULID_LEN] = 0;
}
