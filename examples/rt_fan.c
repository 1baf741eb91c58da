/* Fan-out and fan-in: a group of tasks, each with a part of the work, and one wait for all of them. */
#include <lade/rt.h>

#include <stdio.h>

struct part {
    unsigned from, to;
    unsigned long sum;
};

static int add(void *arg)
{
    struct part *p = arg;
    for (unsigned i = p->from; i < p->to; i++)
        p->sum += i;
    return 0; /* a code < 0 would be what the group's wait returns */
}

static int sum_up(void *arg)
{
    (void)arg;
    struct part part[100];
    lade_taskgroup g = {0};
    for (unsigned i = 0; i < 100; i++) {
        part[i] = (struct part){.from = i * 10000, .to = (i + 1) * 10000};
        if (lade_taskgroup_start(&g, NULL, add, &part[i]) < 0)
            return 1;
    }
    if (lade_taskgroup_wait_until(&g, LADE_FOREVER) < 0)
        return 1;
    unsigned long sum = 0;
    for (unsigned i = 0; i < 100; i++)
        sum += part[i].sum;
    printf("the sum below a million is %lu\n", sum);
    return sum != 499999500000UL;
}

int main(void)
{
    return lade_rt_run(NULL, sum_up, NULL);
}
