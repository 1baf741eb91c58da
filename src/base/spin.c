#include "base/spin.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/base.h"

#define WARM(time) ((time) / 2 * 5) /* of a call that is not judged */
#define WARM_CALLS 4
#define TRIAL      6 /* credit of a trial */
#define CREDIT_MAX 16
#define MISSED     2
#define REST_MIN   16
#define REST_MAX   1024

#define SLICE_NS    1000000 /* the least that a scheduler gives to one who computes */
#define PENALTY_MIN 8
#define PENALTY_MAX 256

static atomic_int cpus; /* 0: not counted yet */

static int count_cpus(void)
{
    int n = atomic_load_explicit(&cpus, memory_order_relaxed);
    if (n > 0)
        return n;
    cpu_set_t set;
    n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    atomic_store_explicit(&cpus, n, memory_order_relaxed);
    return n;
}

void lb_spin_set_cpus(int n)
{
    atomic_store(&cpus, n);
}

/* Out of credit: when to try again. */
static void give_up(struct lb_spin *s)
{
    s->credit = 0;
    s->pause = (uint16_t)LB_MIN(LB_MAX(2 * s->pause, REST_MIN), REST_MAX);
    s->rest = s->pause;
}

bool lb_spin_wanted(struct lb_spin *s, int64_t now)
{
    if (count_cpus() == 1)
        return false;
    if (s->credit > 0)
        return true;
    if (s->rest > 0) {
        s->rest--;
        return false;
    }
    if (now < s->not_before)
        return false;
    s->credit = TRIAL;
    s->warm = WARM_CALLS;
    return true;
}

int64_t lb_spin_time(const struct lb_spin *s)
{
    int64_t time = s->time > 0 ? s->time : LB_SPIN_NS;
    return s->warm > 0 ? WARM(time) : time;
}

void lb_spin_judge(struct lb_spin *s, int64_t now, bool hit, int64_t gap)
{
    bool warm = s->warm > 0;
    s->warm = (uint8_t)(s->warm - warm);
    if (gap > SLICE_NS) {
        s->penalty = (uint16_t)LB_MIN(LB_MAX(2 * s->penalty, PENALTY_MIN), PENALTY_MAX);
        s->not_before = now + s->penalty * LB_MIN(gap, 100 * SLICE_NS);
        s->credit = 0;
        return;
    }
    if (!warm)
        s->credit = (int8_t)LB_MIN(s->credit + (hit ? 1 : -MISSED), CREDIT_MAX);
    if (s->credit <= 0)
        give_up(s);
    else if (s->credit == CREDIT_MAX)
        s->pause = s->penalty = 0;
}

bool lb_spin_begin(struct lb_spin *s, int64_t now)
{
    if (!lb_spin_wanted(s, now))
        return false;
    s->last = now;
    s->end = now + lb_spin_time(s);
    s->gap = 0;
    return true;
}

void lb_spin_yield(void)
{
    (void)sched_yield();
}

static void look(struct lb_spin *s, int64_t now)
{
    s->gap = LB_MAX(s->gap, now - s->last);
    s->last = now;
}

bool lb_spin_goes_on(struct lb_spin *s, int64_t now)
{
    look(s, now);
    if (now >= s->end)
        return false;
    lb_spin_yield();
    return true;
}

void lb_spin_end(struct lb_spin *s, int64_t now, bool hit)
{
    look(s, now);
    lb_spin_judge(s, now, hit, s->gap);
}
