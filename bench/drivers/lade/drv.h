/*
 * drv.h - what the scenarios of lade's driver share: parameters, the window, jobs with numbers, a worker on a thread
 *
 * A scenario fills drv.result and returns 0, or fails by drv_fail. Uses the public API only, and the server's INFO for its account.
 */
#ifndef LADE_BENCH_DRV_H
#define LADE_BENCH_DRV_H

#include <lade/lade.h>

#include <jansson.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/hdr.h"
#include "bench/info.h"

struct drv_result {
    uint64_t n;     /* units of work in the window */
    double seconds; /* of the window */
    bool no_rate;
    double printed_rate;   /* 0 = as rate */
    uint64_t count, check; /* verified */
    struct lb_hdr *hdr;    /* NULL = no latency */
    json_t *extra;
};

/* What the process and the server used between begin and end. */
struct drv_meter {
    int64_t at;
    double cpu_s;
    struct bn_usage usage;
};

struct drv {
    const char *scenario;
    char url[300];
    json_t *params;
    bool on_redis;
    struct bn_info info;
    struct drv_meter begin, end;
    double part; /* of the metered work that was in the window; 0 = all */
    struct drv_result result;
    char error[400];
    bool unsupported; /* the failure is that this store cannot do it: exit status 2 */
};

int64_t drv_int(const struct drv *d, const char *name, int64_t otherwise);
const char *drv_text(const struct drv *d, const char *name, const char *otherwise);
/* Always -1. `err` NULL: the work was not what it must be. */
int drv_fail(struct drv *d, const char *what, const lade_err *err);
void drv_begin(struct drv *d);
void drv_end(struct drv *d);
void drv_extra(struct drv *d, const char *name, double v);
/* 0 + 1 + ... + n-1 */
uint64_t drv_sum(uint64_t n);
void drv_nap_until(int64_t mono_ns);

/* Jobs that handlers ran. Each scenario's handler calls drv_ran with the number it read. */
struct drv_sink {
    _Atomic uint64_t runs, sum;
    uint64_t mark,
        want; /* runs at which `marked_at` and `ended_at` are set; `done` is posted at want */
    _Atomic int64_t marked_at, ended_at;
    sem_t done;
    struct lb_hdr *hdr; /* NULL = no latency wanted */
};

bool drv_sink_init(struct drv_sink *s, uint64_t mark, uint64_t want, bool latency);
void drv_ran(struct drv_sink *s, uint64_t number);
/* False when they were not all run within the minutes that a run may take. */
bool drv_sink_wait(struct drv_sink *s);

/* A worker on a thread of its own. */
struct drv_worker {
    lade *q;
    lade_worker *w;
    pthread_t thread;
    int rc;
    lade_err err;
    bool is_running;
};

/* Opens a handle of its own and a worker on it. */
int drv_worker_open(struct drv *d, struct drv_worker *w, int concurrency, lade_handler fn,
                    void *ctx);
/* Starts it, and waits until the store knows it. */
int drv_worker_start(struct drv *d, struct drv_worker *w);
int drv_worker_stop(struct drv *d, struct drv_worker *w);
/* Waits until nothing of the queue "default" is ready, active, scheduled or retrying. */
int drv_wait_settled(struct drv *d, lade *q);
int drv_open(struct drv *d, lade **q);

typedef int (*drv_scenario_fn)(struct drv *d);

struct drv_scenario {
    const char *name;
    drv_scenario_fn run;
};

/* NULL-ended. */
extern const struct drv_scenario drv_chronos[], drv_chasqui[], drv_idle[], drv_growth[],
    drv_flows[], drv_raw[], drv_stores[], drv_kill[], drv_resque[];

/* The pad of a payload of `size`: 12 hex digits of the number, then x; `cap` bytes at most. */
void drv_pad(char *out, size_t cap, uint64_t number, int64_t size);
/* {"ts":T,"pad":"P"} of table chronos, `size` - 40 characters of pad. The length written. */
size_t drv_pad_payload(char *out, size_t cap, int64_t ts, uint64_t number, int64_t size);
/* Reads it again, as JSON. */
bool drv_pad_read(lade_bytes payload, int64_t *ts, uint64_t *number);

#endif
