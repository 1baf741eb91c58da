#include "base/clock.h"

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

int64_t lb_clock_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t lb_deadline_in(int64_t delay)
{
    int64_t now = lb_clock_mono();
    if (delay <= 0)
        return now;
    return delay > LB_FOREVER - now ? LB_FOREVER : now + delay;
}
