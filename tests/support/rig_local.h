/*
 * rig_local.h - a worker on a thread of the test's own process
 *
 *     struct ts_local w;
 *     ts_local_open(&w, &rig, q, &(lade_worker_config){.concurrency = 2});
 *     lade_worker_handle(w.w, "mail", mail, &seen);
 *     ts_local_run(&w);
 *     ...
 *     assert_int_equal(ts_local_stop(&w), 0);
 *
 * Thread safety: the main thread only.
 */
#ifndef LADE_TESTS_SUPPORT_RIG_LOCAL_H
#define LADE_TESTS_SUPPORT_RIG_LOCAL_H

#include <pthread.h>

#include "support/rig.h"
#include "support/rig_role.h"

struct ts_local {
    lade_worker *w;
    struct ts_role role;
    struct ts_rig *rig;
    pthread_t thread;
    int rc; /* of lade_worker_run */
    bool running;
    bool ended; /* atomic: lade_worker_run has returned */
    lade_err err;
};

/* Opens with a short sweep, without signals and with its log in the ledger unless the config says otherwise.
 * Aborts when it cannot. */
void ts_local_open(struct ts_local *l, struct ts_rig *r, lade *q, const lade_worker_config *config);
/* Registers the kinds of rig.h. */
void ts_local_handle_all(struct ts_local *l);
void ts_local_run(struct ts_local *l);
/* True when lade_worker_run has returned, waiting for it. */
bool ts_local_wait(struct ts_local *l, int64_t ns);
/* Stops, joins and closes; what lade_worker_run returned. */
int ts_local_stop(struct ts_local *l);
lade_worker_stats ts_local_stats(const struct ts_local *l);

#endif
