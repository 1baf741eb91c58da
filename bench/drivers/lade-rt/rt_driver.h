/* rt_driver.h - what the workloads share: parameters, result, clock */
#ifndef LADE_BENCH_RT_DRIVER_H
#define LADE_BENCH_RT_DRIVER_H

#include <lade/rt.h>

#include <stdbool.h>
#include <stdint.h>

struct params {
    const char *workload, *scenario; /* scenario: the contract's name of it */
    unsigned threads;
    uint64_t size;
    unsigned capacity, producers, consumers, workers, tasks, rounds, sample_every, settle_ms;
    bool contract;   /* lade-bench's form of the command line, so of the result */
    bool own_kernel; /* cpu: several items in flight instead of the shared scalar kernel */
    bool fibers;     /* idle: tasks with stacks instead of steps */
};

struct result {
    uint64_t ops, wall_ns, checksum;
    int64_t *sample; /* sorted latencies in ns, owned by main; NULL = none */
    uint64_t n_samples;
    int64_t rss_delta_kb;
    double bytes_per_task;
    bool failed; /* a call that cannot fail did */
};

/* sorted[min(floor(n * q), n - 1)]; there must be a sample. */
static inline int64_t percentile(const struct result *r, double q)
{
    uint64_t i = (uint64_t)((double)r->n_samples * q);
    return r->sample[i < r->n_samples ? i : r->n_samples - 1];
}

/* Each runs inside the runtime's first task. */
void run_channels(const struct params *p, struct result *r); /* spsc, mpsc, mpmc */
void run_pingpong(const struct params *p, struct result *r);
void run_select(const struct params *p, struct result *r);
void run_spawn(const struct params *p, struct result *r);
void run_cpu(const struct params *p, struct result *r);
void run_mutex(const struct params *p, struct result *r);
void run_idle(const struct params *p, struct result *r);

#endif
