/*
 * trial.h - one mode and one number of workers: warm-up, drain, idle, pickup, open loop
 *
 * Thread safety: the main thread.
 */
#ifndef LADE_RESQUE_BENCH_TRIAL_H
#define LADE_RESQUE_BENCH_TRIAL_H

#include "resque_bench/rb_server.h"

/* *out is the caller's for rb_result_fini, also after a failure. */
LADE_CHECKED int rb_trial_run(struct rb_server *s, enum rb_mode mode, size_t workers,
                              struct rb_result *out, lade_err *err);
void rb_result_fini(struct rb_result *r);
/* Nothing went wrong in it: what decides the exit code. */
bool rb_result_is_fine(const struct rb_result *r);

/* native.c: the same for RB_NATIVE */
LADE_CHECKED int rb_native_run(struct rb_server *s, struct rb_result *r, lade_err *err);

/* Cost of a phase, from rb_cost_begin to rb_cost_end. */
struct rb_cost_from {
    struct rb_server_state server;
    double cpu_s;
    int64_t at;
};

void rb_cost_begin(struct rb_server *s, struct rb_cost_from *from);
void rb_cost_end(struct rb_server *s, const struct rb_cost_from *from, struct rb_cost *out);

/* series.c: what a drain tells by the second */
struct rb_ticker {
    struct rb_result *r;
    const struct rb_options *o;
    struct lb_hdr *second;
    int64_t from;          /* of this second */
    uint64_t jobs, errors; /* at its start */
    bool dots;
};

void rb_tick(struct rb_ticker *t, int64_t now, uint64_t jobs, uint64_t errors);

#endif
