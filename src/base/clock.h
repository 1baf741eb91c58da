/* clock.h - the two clocks, in nanoseconds. Thread safety: all functions. */
#ifndef LADE_BASE_CLOCK_H
#define LADE_BASE_CLOCK_H

#include <stdint.h>

/* Never steps; for deadlines and durations. */
int64_t lb_clock_mono(void);
/* Since 1970-01-01 UTC; may step. */
int64_t lb_clock_wall(void);

#define LB_FOREVER   INT64_MAX /* a deadline that never comes */
/* 2262-01-01: a time from here on is none. int64_t ends some months later, with room for what is added to times. */
#define LB_CLOCK_END INT64_C(9214646400000000000)

/* now + delay without overflow; delay < 0 counts as 0. */
int64_t lb_deadline_in(int64_t delay);

/* ns to ms, up: a positive duration never becomes 0. */
static inline int64_t lb_ms_up(int64_t ns)
{
    return ns / 1000000 + (ns % 1000000 > 0);
}

/* ms to ns; times that ns cannot hold (beyond 2262) become the last or first that it can. */
static inline int64_t lb_ns_of_ms(int64_t ms)
{
    if (ms > INT64_MAX / 1000000)
        return INT64_MAX;
    return ms < INT64_MIN / 1000000 ? INT64_MIN : ms * 1000000;
}

#endif
