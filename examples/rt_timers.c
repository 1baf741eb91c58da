/* Ten thousand things that wait for their time: steps of some hundred bytes instead of tasks with stacks. */
#include <lade/rt.h>

#include <stdio.h>
#include <stdlib.h>

struct alarm {
    lade_step step; /* first */
    lade_timer timer;
    int64_t at;
    unsigned *rung;
};

static lade_step_next ring(lade_step *s)
{
    struct alarm *a = (struct alarm *)(void *)s;
    LADE_STEP_BEGIN(s);
    LADE_STEP_AWAIT(s, lade_timer_wait_step(&a->timer, a->at, s));
    (void)__atomic_fetch_add(a->rung, 1, __ATOMIC_RELAXED);
    LADE_STEP_END(s);
}

static int run(void *arg)
{
    enum { N = 10000 };

    (void)arg;
    struct alarm *a = calloc(N, sizeof(*a));
    unsigned rung = 0;
    lade_taskgroup g = {0};
    int64_t now = lade_clock_now();
    for (int i = 0; a && i < N; i++) {
        a[i].at = now + (i * 37 % 100) * LADE_MILLISECOND;
        a[i].rung = &rung;
        if (lade_step_start(&a[i].step, ring, &g) < 0)
            return 1;
    }
    if (!a || lade_taskgroup_wait_until(&g, LADE_FOREVER) < 0)
        return 1;
    printf("%u alarms rang within %lld ms\n", rung,
           (long long)((lade_clock_now() - now) / LADE_MILLISECOND));
    free(a);
    return rung != N;
}

int main(void)
{
    return lade_rt_run(NULL, run, NULL);
}
