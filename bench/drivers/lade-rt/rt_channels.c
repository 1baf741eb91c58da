/* rt_channels.c - spsc, mpsc, mpmc, pingpong, select: messages are u64 values 0..n-1, checked by their sum */
#include <stdlib.h>

#include "bench/drivers/lade-rt/rt_driver.h"

#define BATCH 256

struct lane {
    lade_chan *chan, *back;
    uint64_t from, to, sum;
    lade_waitgroup *senders;
    int64_t *sample;
    uint64_t n_samples, every;
};

static int produce(void *arg)
{
    struct lane *l = arg;
    for (uint64_t i = l->from; i < l->to; i++) {
        if (lade_chan_send(l->chan, &i) < 0)
            return -LADE_ECLOSED;
    }
    return lade_waitgroup_done(l->senders);
}

static int consume(void *arg)
{
    struct lane *l = arg;
    uint64_t buf[BATCH];
    uint64_t sum = 0;
    long n;
    while ((n = lade_chan_recv_n(l->chan, buf, BATCH)) > 0) {
        for (long i = 0; i < n; i++)
            sum += buf[i];
    }
    l->sum = sum;
    return 0;
}

static int close_after(void *arg)
{
    struct lane *l = arg;
    (void)lade_waitgroup_wait_until(l->senders, LADE_FOREVER);
    return lade_chan_close(l->chan);
}

void run_channels(const struct params *p, struct result *r)
{
    bool mpmc = p->workload[1] == 'p' && p->workload[2] == 'm';
    bool spsc = p->workload[0] == 's';
    unsigned np = spsc ? 1 : p->producers;
    unsigned nc = mpmc ? p->consumers : 1;
    uint64_t each = p->size / np;
    lade_waitgroup senders = {0};
    lade_taskgroup g = {0};
    lade_chan *c = lade_chan_new(spsc   ? LADE_CHAN_SPSC
                                 : mpmc ? LADE_CHAN_MPMC
                                        : LADE_CHAN_MPSC,
                                 sizeof(uint64_t), p->capacity);
    struct lane *lane = calloc(np + nc + 1, sizeof(*lane));
    if (!c || !lane) {
        free(lane);
        r->failed = true;
        return;
    }
    (void)lade_waitgroup_add(&senders, (int)np);
    int64_t t0 = lade_clock_now();
    int rc = 0;
    for (unsigned i = 0; i < nc && !spsc; i++) {
        lane[np + i] = (struct lane){.chan = c};
        rc |= lade_taskgroup_start(&g, NULL, consume, &lane[np + i]);
    }
    for (unsigned i = 0; i < np; i++) {
        lane[i] =
            (struct lane){.chan = c, .from = i * each, .to = (i + 1) * each, .senders = &senders};
        rc |= lade_taskgroup_start(&g, NULL, produce, &lane[i]);
    }
    if (spsc) {
        lane[np] = (struct lane){.chan = c};
        rc |= lade_taskgroup_start(&g, NULL, consume, &lane[np]);
    }
    lane[np + nc] = (struct lane){.chan = c, .senders = &senders};
    rc |= close_after(&lane[np + nc]);
    rc |= lade_taskgroup_wait_until(&g, LADE_FOREVER);
    r->wall_ns = (uint64_t)(lade_clock_now() - t0);
    for (unsigned i = 0; i < nc; i++)
        r->checksum += lane[np + i].sum;
    r->ops = each * np;
    r->failed = rc != 0 || lade_chan_unref(c) != 0;
    free(lane);
}

static int ping(void *arg)
{
    struct lane *l = arg;
    uint64_t v = 0;
    for (uint64_t i = 0; i < l->to; i++) {
        bool timed = i % l->every == 0;
        int64_t t0 = timed ? lade_clock_now() : 0;
        uint64_t next = v + 1;
        if (lade_chan_send(l->chan, &next) < 0 || lade_chan_recv(l->back, &v) < 0)
            return -LADE_ECLOSED;
        if (timed)
            l->sample[l->n_samples++] = lade_clock_now() - t0;
    }
    l->sum = v;
    return lade_chan_close(l->chan);
}

static int pong(void *arg)
{
    struct lane *l = arg;
    uint64_t v;
    while (lade_chan_recv(l->chan, &v) == 0) {
        v++;
        if (lade_chan_send(l->back, &v) < 0)
            return -LADE_ECLOSED;
    }
    return 0;
}

static int order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

void run_pingpong(const struct params *p, struct result *r)
{
    struct lane l = {.to = p->size, .every = p->sample_every};
    l.chan = lade_chan_new(LADE_CHAN_SPSC, sizeof(uint64_t), 1);
    l.back = lade_chan_new(LADE_CHAN_SPSC, sizeof(uint64_t), 1);
    l.sample = calloc(p->size / p->sample_every + 1, sizeof(*l.sample));
    if (!l.chan || !l.back || !l.sample) {
        free(l.sample);
        r->failed = true;
        return;
    }
    lade_taskgroup g = {0};
    int64_t t0 = lade_clock_now();
    int rc = lade_taskgroup_start(&g, NULL, pong, &l);
    rc |= lade_taskgroup_start(&g, NULL, ping, &l);
    rc |= lade_taskgroup_wait_until(&g, LADE_FOREVER);
    r->wall_ns = (uint64_t)(lade_clock_now() - t0);
    r->ops = p->size;
    r->checksum = l.sum;
    qsort(l.sample, l.n_samples, sizeof(*l.sample), order);
    r->sample = l.sample;
    r->n_samples = l.n_samples;
    r->failed = rc != 0 || lade_chan_unref(l.chan) != 0 || lade_chan_unref(l.back) != 0;
}

static int produce_and_close(void *arg)
{
    struct lane *l = arg;
    for (uint64_t i = l->from; i < l->to; i++) {
        if (lade_chan_send(l->chan, &i) < 0)
            return -LADE_ECLOSED;
    }
    return lade_chan_close(l->chan);
}

static int consume_both(void *arg)
{
    struct lane *l = arg;
    uint64_t buf[BATCH];
    uint64_t sum = 0;
    unsigned got;
    lade_case cases[2] = {LADE_RECV_N(l[0].chan, buf, BATCH, &got),
                          LADE_RECV_N(l[1].chan, buf, BATCH, &got)};
    for (int open = 2; open > 0;) {
        int i = lade_chan_select(cases, 2, LADE_FOREVER);
        if (i < 0)
            return i;
        if (cases[i].rc < 0) {
            cases[i].chan = NULL;
            open--;
            continue;
        }
        for (unsigned j = 0; j < got; j++)
            sum += buf[j];
    }
    l->sum = sum;
    return 0;
}

void run_select(const struct params *p, struct result *r)
{
    uint64_t each = p->size / 2;
    struct lane l[2];
    int rc = 0;
    for (unsigned i = 0; i < 2; i++) {
        l[i] = (struct lane){.chan = lade_chan_new(LADE_CHAN_SPSC, sizeof(uint64_t), p->capacity),
                             .from = i * each,
                             .to = (i + 1) * each};
        r->failed |= !l[i].chan;
    }
    if (r->failed)
        return;
    lade_taskgroup g = {0};
    int64_t t0 = lade_clock_now();
    for (unsigned i = 0; i < 2; i++)
        rc |= lade_taskgroup_start(&g, NULL, produce_and_close, &l[i]);
    rc |= lade_taskgroup_start(&g, NULL, consume_both, l);
    rc |= lade_taskgroup_wait_until(&g, LADE_FOREVER);
    r->wall_ns = (uint64_t)(lade_clock_now() - t0);
    r->ops = each * 2;
    r->checksum = l[0].sum;
    r->failed = rc != 0 || lade_chan_unref(l[0].chan) != 0 || lade_chan_unref(l[1].chan) != 0;
}
