/*
 * inv.h - INV: what must hold after any crash, whatever was killed and when
 *
 * Compares the ledgers with the store:
 *   - each acknowledged id had a handler end, or is in the store in a state that is not the end, or was removed,
 *     cancelled or put to the dead by a recorded act, by its handler or by quarantine;
 *   - each run after a finished one is explained: its predecessor's process was killed or stopped in between, and the
 *     fence grew;
 *   - lade_check finds nothing, and the queues' counters add up.
 */
#ifndef LADE_TESTS_SUPPORT_INV_H
#define LADE_TESTS_SUPPORT_INV_H

#include <lade/lade.h>

#include "support/ledger.h"

#define TS_INV_BROKEN_MAX 8

enum ts_inv_when {
    TS_INV_QUIET = 0,  /* nothing may be left in a state that is not the end */
    TS_INV_RUNNING = 1 /* something may */
};

struct ts_inv {
    size_t jobs;       /* acknowledged ids */
    size_t runs, ends; /* handler calls started and ended */
    size_t duplicates; /* runs of a job after one that was not a retry or snooze */
    size_t explained;  /* of those, by the kill or stop of the process before */
    size_t lost;       /* acknowledged, and nowhere */
    size_t waiting;    /* in a state that is not the end */
    size_t completed, dead, cancelled;
    uint64_t stale; /* settles refused to workers that ended in order */
    size_t n_broken;
    char broken[TS_INV_BROKEN_MAX][256]; /* the first of them, as sentences */
};

/* True when it holds. Prints what is broken to stderr. */
bool ts_inv_check(const char *ledger_dir, lade *q, enum ts_inv_when when, struct ts_inv *out);

#endif
