/*
 * A user's program, for the builds of R29: what compilers like to keep in registers must be right after a switch. File-local
 * statics are changed by other tasks meanwhile, and errno is another thread's after a park, so a user copies it before.
 */
#include <lade/rt.h>

#include <errno.h>
#include <stdio.h>

enum { ROUNDS = 20000 };

static uint64_t turns, last_writer, wrong;
static lade_mutex lock;
static lade_chan *there, *back;

static int player(void *arg)
{
    const uint64_t me = (uint64_t)(uintptr_t)arg;
    lade_chan *in = me == 1 ? back : there;
    lade_chan *out = me == 1 ? there : back;
    double sum = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t v;
        if (lade_chan_recv(in, &v) < 0)
            return -LADE_ECLOSED;
        wrong += v != turns;        /* the other has counted since our last turn */
        wrong += last_writer == me; /* and it was the other */
        turns++;
        last_writer = me;
        sum += (double)i * 0.5; /* a value in a vector register */
        errno = (int)me;
        int before = errno;
        v = turns;
        if (lade_chan_send(out, &v) < 0)
            return -LADE_ECLOSED;
        wrong += before != (int)me;
    }
    wrong += sum != 0.25 * ROUNDS * (ROUNDS - 1);
    return 0;
}

static int locker(void *arg)
{
    uint64_t *n = arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (lade_mutex_lock(&lock) < 0)
            return -LADE_EPERM;
        ++*n;
        if (i % 100 == 0)
            lade_task_yield();
        if (lade_mutex_unlock(&lock) < 0)
            return -LADE_EPERM;
    }
    return 0;
}

static int start(void *arg)
{
    lade_taskgroup g = {0};
    uint64_t v = 0;
    there = lade_chan_new(LADE_CHAN_MPMC, sizeof(v), 1);
    back = lade_chan_new(LADE_CHAN_MPMC, sizeof(v), 1);
    if (!there || !back || lade_chan_send(back, &v) < 0)
        return -LADE_ENOMEM;
    int rc = lade_taskgroup_start(&g, NULL, player, (void *)1);
    if (rc == 0)
        rc = lade_taskgroup_start(&g, NULL, player, (void *)2);
    for (int i = 0; i < 4 && rc == 0; i++)
        rc = lade_taskgroup_start(&g, NULL, locker, arg);
    if (rc == 0)
        rc = lade_taskgroup_wait_until(&g, LADE_FOREVER);
    return rc < 0 ? rc : lade_chan_unref(there) + lade_chan_unref(back);
}

int main(void)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        uint64_t locked = 0;
        turns = last_writer = 0;
        lade_rt_opts o = {.workers = workers};
        int rc = lade_rt_run(&o, start, &locked);
        if (rc != 0 || wrong != 0 || turns != 2 * ROUNDS || locked != 4 * ROUNDS) {
            (void)fprintf(stderr, "%u workers: rc %d, wrong %d, turns %d, locked %d\n", workers, rc,
                          (int)wrong, (int)turns, (int)locked);
            return 1;
        }
    }
    return 0;
}
