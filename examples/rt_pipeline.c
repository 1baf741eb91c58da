/* A pipeline: numbers, their squares, their sum; each stage a task, each arrow a channel. Closing runs downhill. */
#include <lade/rt.h>

#include <stdio.h>

struct stage {
    lade_chan *in, *out;
    long sum;
};

static int count(void *arg)
{
    struct stage *s = arg;
    for (long i = 1; i <= 1000; i++) {
        if (lade_chan_send(s->out, &i) < 0)
            return -LADE_ECLOSED;
    }
    return lade_chan_close(s->out);
}

static int square(void *arg)
{
    struct stage *s = arg;
    long v[64];
    long n;
    while ((n = lade_chan_recv_n(s->in, v, 64)) > 0) {
        for (long i = 0; i < n; i++)
            v[i] *= v[i];
        if (lade_chan_send_n(s->out, v, (unsigned)n) < n)
            return -LADE_ECLOSED;
    }
    return lade_chan_close(s->out);
}

static int run(void *arg)
{
    (void)arg;
    lade_chan *a = lade_chan_new(LADE_CHAN_SPSC, sizeof(long), 32);
    lade_chan *b = lade_chan_new(LADE_CHAN_SPSC, sizeof(long), 32);
    struct stage first = {.out = a};
    struct stage second = {.in = a, .out = b};
    lade_taskgroup g = {0};
    if (!a || !b || lade_taskgroup_start(&g, NULL, count, &first) < 0 ||
        lade_taskgroup_start(&g, NULL, square, &second) < 0)
        return 1;
    long sum = 0;
    for (long v; lade_chan_recv(b, &v) == 0;)
        sum += v;
    if (lade_taskgroup_wait_until(&g, LADE_FOREVER) < 0)
        return 1;
    printf("the squares up to 1000 sum up to %ld\n", sum);
    return lade_chan_unref(a) < 0 || lade_chan_unref(b) < 0 || sum != 333833500L;
}

int main(void)
{
    return lade_rt_run(NULL, run, NULL);
}
