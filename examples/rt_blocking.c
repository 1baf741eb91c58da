/* A library that blocks its thread is called on a thread of the pool; the tasks run on. */
#include <lade/rt.h>

#include <stdio.h>
#include <unistd.h>

static void foreign(void *arg)
{
    (void)usleep(20000); /* a database, a name look-up, a file */
    *(int *)arg = 1;
}

struct beat {
    int n, stop;
};

static int beat(void *arg)
{
    struct beat *b = arg;
    while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) {
        b->n++;
        if (lade_task_sleep_until(lade_clock_now() + LADE_MILLISECOND) < 0)
            break;
    }
    return 0;
}

static int run(void *arg)
{
    (void)arg;
    int done = 0;
    struct beat b = {0};
    lade_taskgroup g = {0};
    if (lade_taskgroup_start(&g, NULL, beat, &b) < 0 || lade_blocking_run(foreign, &done) < 0)
        return 1;
    __atomic_store_n(&b.stop, 1, __ATOMIC_RELAXED);
    (void)lade_taskgroup_wait_until(&g, LADE_FOREVER);
    printf("the call came back; meanwhile the other task beat%s\n", b.n > 1 ? " on" : " once");
    return !done || b.n < 1;
}

int main(void)
{
    return lade_rt_run(NULL, run, NULL);
}
