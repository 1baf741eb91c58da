#include "base/clock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts); /* cannot fail for these two ids */
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t lb_clock_mono(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

#ifdef LADE_FAULTS
/* How far this process's clock is off, for tests with machines that disagree: LADE_SKEW_MS. */
static int64_t skew(void)
{
    static _Atomic int64_t known = INT64_MIN;
    int64_t ns = atomic_load_explicit(&known, memory_order_relaxed);
    if (ns == INT64_MIN) {
        const char *text = getenv("LADE_SKEW_MS"); /* NOLINT(concurrency-mt-unsafe) */
        ns = text ? strtoll(text, NULL, 10) * 1000000 : 0;
        atomic_store_explicit(&known, ns, memory_order_relaxed);
    }
    return ns;
}
#else
#    define skew() 0
#endif

int64_t lb_clock_wall(void)
{
    return read_clock(CLOCK_REALTIME) + skew();
}

int64_t lb_deadline_in(int64_t delay)
{
    int64_t now = lb_clock_mono();
    if (delay <= 0)
        return now;
    return delay > LB_FOREVER - now ? LB_FOREVER : now + delay;
}
