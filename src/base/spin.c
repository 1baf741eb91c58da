#include "base/spin.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/base.h"

#define MICROSECOND 1000

#define WARM(time) ((time) / 2 * 5) /* of a call that is not judged */
#define WARM_CALLS 4
#define ROBBED_NS  (25 * MICROSECOND) /* asking a socket takes a fiftieth of that */
#define SLICE_NS \
    (300 * MICROSECOND) /* and threads that wait for each other seldom run for that long */
#define TRIAL      6    /* credit of a trial */
#define CREDIT_MAX 16
#define MISSED     2
#define ROBBED     3
#define REST_MIN   16
#define REST_MAX   1024

static atomic_int spinning;
static atomic_int places = -1; /* -1: not counted yet */

static int count_places(void)
{
    int n = atomic_load_explicit(&places, memory_order_relaxed);
    if (n >= 0)
        return n;
    cpu_set_t set;
    n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) - 1 : 0;
    atomic_store_explicit(&places, n, memory_order_relaxed);
    return n;
}

bool lb_spin_enter(void)
{
    int n = count_places();
    if (atomic_fetch_add_explicit(&spinning, 1, memory_order_relaxed) < n)
        return true;
    lb_spin_leave();
    return false;
}

void lb_spin_leave(void)
{
    (void)atomic_fetch_sub_explicit(&spinning, 1, memory_order_relaxed);
}

void lb_spin_set_places(int n)
{
    atomic_store(&places, n);
}

/* Out of credit: when to try again. */
static void give_up(struct lb_spin *s)
{
    s->credit = 0;
    s->pause = (uint16_t)LB_MIN(LB_MAX(2 * s->pause, REST_MIN), REST_MAX);
    s->rest = s->pause;
}

bool lb_spin_wanted(struct lb_spin *s)
{
    if (count_places() == 0)
        return false;
    if (s->credit > 0)
        return true;
    if (s->rest > 0) {
        s->rest--;
        return false;
    }
    s->credit = TRIAL;
    s->warm = WARM_CALLS;
    return true;
}

int64_t lb_spin_time(const struct lb_spin *s)
{
    int64_t time = s->time > 0 ? s->time : LB_SPIN_NS;
    return s->warm > 0 ? WARM(time) : time;
}

void lb_spin_judge(struct lb_spin *s, bool hit, bool robbed)
{
    int change = hit ? 1 : -MISSED;
    if (robbed)
        change = -ROBBED;
    else if (s->warm > 0)
        change = 0;
    s->warm = (uint8_t)(s->warm - (s->warm > 0));
    s->credit = (int8_t)LB_MIN(s->credit + change, CREDIT_MAX);
    if (s->credit <= 0)
        give_up(s);
    else if (s->credit == CREDIT_MAX)
        s->pause = 0;
}

bool lb_spin_begin(struct lb_spin *s, int64_t now)
{
    if (!lb_spin_wanted(s) || (!s->polite && !lb_spin_enter()))
        return false;
    s->last = now;
    s->end = now + lb_spin_time(s);
    s->robbed = false;
    return true;
}

bool lb_spin_is_robbed(int64_t last, int64_t now)
{
    return now - last > SLICE_NS;
}

void lb_spin_yield(void)
{
    (void)sched_yield();
}

/* Since the last look. */
static bool is_robbed(const struct lb_spin *s, int64_t now)
{
    return s->polite ? lb_spin_is_robbed(s->last, now) : now - s->last > ROBBED_NS;
}

bool lb_spin_goes_on(struct lb_spin *s, int64_t now)
{
    s->robbed = s->robbed || is_robbed(s, now);
    s->last = now;
    if (now >= s->end)
        return false;
    if (s->polite)
        lb_spin_yield();
    return true;
}

void lb_spin_end(struct lb_spin *s, int64_t now, bool hit)
{
    if (!s->polite)
        lb_spin_leave();
    lb_spin_judge(s, hit, s->robbed || is_robbed(s, now));
}
