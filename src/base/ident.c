#include "base/ident.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

#define BLOCK     LB_ULID_BLOCK
#define BLOCK_LEN (LB_ULID_LEN - 2)
#define BITS_35   ((UINT64_C(1) << 35) - 1)

struct generator {
    uint64_t s[4];
    uint64_t
        epoch; /* 0 = not seeded; older than fork_epoch = a fork copied our state, which must not repeat ids */
    /* The last id: its millisecond, 70 bits of chance that were counted up since, its place in their block. */
    uint64_t ms, high, low; /* high and low have 35 bits each */
    uint32_t place;         /* BLOCK = the block is full, or another one is wanted */
    char text[BLOCK_LEN];   /* of ms, high and low */
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
    g->ms = UINT64_MAX; /* no id yet: what a forked parent made is not counted on */
}

static void after_fork(void)
{
    atomic_fetch_add_explicit(&fork_epoch, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, after_fork);
}

static struct generator *get_generator(void)
{
    struct generator *g = &local;
    if (g->epoch != atomic_load_explicit(&fork_epoch, memory_order_relaxed)) {
        (void)pthread_once(&fork_watch, watch_forks);
        seed(g);
    }
    return g;
}

void lb_rand_seed(uint64_t seed_with)
{
    struct generator *g = get_generator();
    /* splitmix64 (Vigna, https://prng.di.unimi.it/splitmix64.c), which the generator's authors recommend for that */
    for (size_t i = 0; i < 4; i++) {
        uint64_t z = (seed_with += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        g->s[i] = z ^ (z >> 31);
    }
    g->ms = UINT64_MAX; /* the next id begins anew, too */
}

uint64_t lb_rand(void)
{
    uint64_t *s = get_generator()->s;
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

static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static void write_digits(char *out, int n, uint64_t v)
{
    for (int i = n - 1; i >= 0; i--) {
        out[i] = digit[v & 31];
        v >>= 5;
    }
}

/* The first id of a millisecond draws its block by chance; one more block in it is the next in order. */
static void begin_block(struct generator *g, uint64_t ms)
{
    if (g->ms == ms) {
        g->low = (g->low + 1) & BITS_35;
        g->high = (g->high + (g->low == 0)) & BITS_35;
    } else {
        g->ms = ms;
        g->high =
            lb_rand() >> 30; /* 34 bits: the upper half of the range is left for counting up */
        g->low = lb_rand() >> 29;
    }
    g->place = 0;
    write_digits(g->text, 10, ms);
    write_digits(g->text + 10, 7, g->high);
    write_digits(g->text + 17, 7, g->low);
}

void lb_ulid(char out[LB_ULID_LEN + 1], int64_t wall_ns)
{
    struct generator *g = get_generator();
    uint64_t ms = (uint64_t)(wall_ns / 1000000) & 0xffffffffffff;
    if (ms != g->ms || g->place == BLOCK)
        begin_block(g, ms);
    memcpy(out, g->text, BLOCK_LEN);
    out[BLOCK_LEN] = digit[g->place >> 5];
    out[BLOCK_LEN + 1] = digit[g->place & 31];
    out[LB_ULID_LEN] = 0;
    g->place++;
}

void lb_ulid_new_block(void)
{
    get_generator()->place = BLOCK;
}
