#include "base/spin.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/base.h"

#define MICROSECOND 1000

#define WARM(time) ((time) / 2 * 5) /* of a call that is not judged */
#define WARM_CALLS 4
#define ROBBED_NS  (25 * MICROSECOND) /* asking a socket takes a fiftieth of that */
#define TRIAL      6                  /* credit of a trial */
#define CREDIT_MAX 16
#define MISSED     2
#define ROBBED     3
#define REST_MIN   16
#define REST_MAX   1024

static atomic_int spinning;
static atomic_int places = -1; /* -1: not counted yet */

static int count_places(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) - 1 : 0;
    atomic_store_explicit(&places, n, memory_order_relaxed);
    return n;
}

bool lb_spin_enter(void)
{
    int n = atomic_load_explicit(&places, memory_order_relaxed);
    if (n < 0)
        n = count_places();
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

bool lb_spin_begin(struct lb_spin *s, int64_t now)
{
    if (s->credit <= 0) {
        if (s->rest > 0) {
            s->rest--;
            return false;
        }
        s->credit = TRIAL;
        s->warm = WARM_CALLS;
    }
    if (!lb_spin_enter())
        return false;
    s->last = now;
    int64_t time = s->time > 0 ? s->time : LB_SPIN_NS;
    s->end = now + (s->warm > 0 ? WARM(time) : time);
    s->robbed = false;
    return true;
}

bool lb_spin_goes_on(struct lb_spin *s, int64_t now)
{
    s->robbed = s->robbed || now - s->last > ROBBED_NS;
    s->last = now;
    return now < s->end;
}

void lb_spin_yield(void)
{
    (void)sched_yield();
}

void lb_spin_end(struct lb_spin *s, int64_t now, bool hit)
{
    lb_spin_leave();
    int change = hit ? 1 : -MISSED;
    if (s->robbed || now - s->last > ROBBED_NS)
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
