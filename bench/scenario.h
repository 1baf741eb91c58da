/*
 * scenario.h - what lade-bench measures of one store
 *
 * Every scenario does a fixed amount of work, checks that all of it was done (counts, and a sum over the payloads that the
 * handlers saw), and gives a rate. A run whose check fails is an error, never a number.
 */
#ifndef LADE_BENCH_SCENARIO_H
#define LADE_BENCH_SCENARIO_H

#include <lade/lade.h>

struct lb_bench {
    const char *url;
    size_t jobs;     /* of one run */
    size_t payload;  /* bytes each */
    int concurrency; /* slots */
    char error[300]; /* why a run failed */
};

/* Jobs per second, or < 0 with error set. Each leaves the store empty but for what it says. */
typedef double (*lb_scenario_fn)(struct lb_bench *b);

double lb_enqueue_batch(struct lb_bench *b);  /* one thread, 100 jobs a call; leaves them ready */
double lb_enqueue_single(struct lb_bench *b); /* one thread, one job a call, one in flight */
double lb_enqueue_shared(struct lb_bench *b); /* four threads, one job a call: group commit */
double lb_work(struct lb_bench *b); /* drains what is ready, from first take to all settled */
double lb_end_to_end(
    struct lb_bench *b); /* a producer of batches of 100 and a worker at once, until all settled */

/* Removes every job of the default queue. False with error set. */
bool lb_empty(struct lb_bench *b);

/* One operation at a given depth; us each, or < 0. */
struct lb_depth {
    const char *name;
    double us;
};

#define LB_DEPTH_OPS 8
/* Fills `out` with the median time of each operation while `waiting` jobs wait. False with error set. */
bool lb_measure_depth(struct lb_bench *b, size_t waiting, struct lb_depth out[LB_DEPTH_OPS]);

#endif
