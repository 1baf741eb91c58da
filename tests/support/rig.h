/*
 * rig.h - a test written once and run on every store, with processes that can be killed
 *
 * A program's main hands over to ts_rig_main: executed with "--role" it is one of the processes below, otherwise
 * argv[1] names the store ("sqlite", "redis", "memory") and the tests run. Each test makes a rig: a directory, a store,
 * a ledger directory; workers and producers are this program executed again.
 *
 *     struct ts_rig r;
 *     ts_rig_start(&r, TS_PLAIN);
 *     ts_rig_worker(&r, &a, &(struct ts_worker_args){.name = "a"});
 *     ts_rig_producer(&r, &p, &(struct ts_producer_args){.kind = "ok", .n = 100});
 *     ...
 *     ts_rig_stop(&r);
 *
 * Kinds that the worker role knows, each run written to the ledger before and after; `payload` in words:
 *     ok                  completes
 *     sleep MS            completes after MS, deaf to cancellation
 *     nap MS              the same, but returns LADE_RETRY when told to stop
 *     gate FILE           completes when FILE exists; returns LADE_RETRY when told to stop
 *     deaf FILE           completes when FILE exists, deaf to cancellation
 *     flaky N             LADE_RETRY on the first N attempts, then completes
 *     fail                LADE_RETRY with an error text
 *     flip FILE           LADE_RETRY when FILE exists, deaf, on its first run; then completes
 *     dead cancel discard the outcome of that name
 *     snooze MS           LADE_SNOOZE for MS on its first run, then completes
 *     poison              kills its process (SIGKILL)
 *     poison1             the same on its first run only, then completes
 *
 * Thread safety: the main thread only.
 */
#ifndef LADE_TESTS_SUPPORT_RIG_H
#define LADE_TESTS_SUPPORT_RIG_H

#include <lade/lade.h>

#include "support/ledger.h"
#include "support/proc.h"
#include "support/proxy.h"
#include "support/redis_server.h"
#include "support/tmpdir.h"

#define TS_LEASE_MS 1000  /* one that a test waits for to end */
#define TS_CALM_MS  15000 /* one that a busy machine does not lose; renewed each 5 s */
#define TS_SWEEP_MS 200
#define TS_SOON \
    (30 * LADE_SECOND) /* deadline of waits that should end at once, on a slow machine too */

enum ts_store { TS_SQLITE = 0, TS_REDIS = 1, TS_MEMORY = 2 };

enum ts_rig_way {
    TS_PLAIN = 0,
    TS_PROXIED = 1
}; /* PROXIED: Redis only; the same as PLAIN on others */

struct ts_rig {
    enum ts_store store;
    struct ts_tmpdir dir;
    char ledger_dir[TS_DIR_MAX + 16];
    char url[256];    /* what the roles use: through the proxy when there is one */
    char direct[256]; /* past the proxy */
    struct ts_redis redis;
    struct ts_proxy *proxy;
    struct ts_ledger_file ledger; /* the test's own: kills and acts */
};

/* The store of this run, from argv. */
enum ts_store ts_rig_store(void);
/* The base times the environment's ROUNDS (default 1). */
int ts_rig_rounds(int base);

/* Runs a role and exits, or reads argv and returns. */
void ts_rig_main(int argc, char **argv);

/* Aborts the program with a reason when something cannot be made: a test without its rig proves nothing. */
void ts_rig_start(struct ts_rig *r, enum ts_rig_way way);
void ts_rig_stop(struct ts_rig *r);
/* A handle past the proxy that keeps all completed jobs. The caller's: lade_close. */
lade *ts_rig_open(const struct ts_rig *r);
/* The options of ts_rig_open and of the roles. */
lade_options ts_rig_options(void);
/* DIR/name, in a buffer of the caller's. */
char *ts_rig_path(const struct ts_rig *r, const char *name, char *out, size_t size);
/* Makes an empty file: opens a gate. */
void ts_rig_touch(const char *path);

/* Zero = the default in every field. */
struct ts_worker_args {
    const char *name;   /* "w" */
    const char *queues; /* comma separated; "default" */
    int concurrency;    /* 4 */
    int lease_ms, sweep_ms;
    int grace_ms; /* 5,000; -1 = none */
    int prefetch; /* the library's default; -1 = none */
    int max_crashes;
    int timeout_ms; /* lade_options.timeout; 10,000 */
    int backoff_ms; /* every retry waits so long; 0 = the job's own */
    int produce; /* enqueue so many mixed jobs and two workflows first, in the same process, and drain */
    bool drain;
    bool no_sync;       /* ledger without fsync */
    const char *url;    /* the rig's */
    const char *env[4]; /* NAME=VALUE, NULL-ended: LADE_FAULT=... */
};

void ts_rig_worker(struct ts_rig *r, struct ts_proc *p, const struct ts_worker_args *w);

struct ts_producer_args {
    const char *kind;    /* "ok" */
    const char *queue;   /* "default" */
    const char *payload; /* "" */
    int n, batch;        /* 1, 1 */
    int in_ms;
    int max_attempts;
    int pause_ms; /* between calls */
    /* Ids are PREFIX-0, PREFIX-1, ..., and a failed call is repeated until it succeeds. NULL: the library's own ids,
     * and a failed call is counted as "refused". */
    const char *prefix;
    bool once; /* a failed call with a prefix is not repeated: its ids are recorded as "refused" */
    int size;  /* of the payload, instead of `payload` */
    bool no_sync; /* ledger without fsync */
    const char *url;
    const char *env[4];
};

void ts_rig_producer(struct ts_rig *r, struct ts_proc *p, const struct ts_producer_args *w);

/* Enqueues from the test itself and writes the id to its ledger. */
void ts_rig_enqueue(struct ts_rig *r, lade *q, const lade_job_spec *spec, lade_id *id);

/* SIGKILL with its line in the ledger before it; stop and go on alike. */
void ts_rig_kill(struct ts_rig *r, struct ts_proc *p);
void ts_rig_freeze(struct ts_rig *r, struct ts_proc *p);
void ts_rig_thaw(struct ts_rig *r, struct ts_proc *p);
/* SIGTERM, waits, returns the exit code; -1 when it did not end in TS_SOON. */
int ts_rig_term(struct ts_proc *p);

/* Until the store lists a live worker of that name. */
bool ts_rig_wait_worker(lade *q, const char *name, int64_t ns);
/* The state of a job, -1 when it is gone. */
int ts_rig_state(lade *q, const char *id);
/* Jobs in a state over all queues. */
uint64_t ts_rig_count(lade *q, enum lade_state state);
/* Until nothing is scheduled, ready, active or retrying. */
bool ts_rig_wait_quiet(lade *q, int64_t ns);
/* Runs of a job, and those among them that ended, as the ledgers say now. */
size_t ts_rig_runs(const struct ts_rig *r, const char *id);
size_t ts_rig_ends(const struct ts_rig *r, const char *id);

#endif
