/*
 * key_store.h - limits and keys as the engine gives them to a store and gets them back
 *
 * The ready jobs of a queue are served by turns of their keys, as limit.h in this folder defines; those without a key by level, then
 * first in, first out, and so those of one key among each other. A queue that has neither keys nor limits does without all of that.
 * What counts for a key (ready, active, waiting) changes in the step that moves the job. A key is known while it has jobs in any
 * state, a limit of its own or a pause, or while its rate remembers it; then trim forgets it.
 *
 * Thread safety, results and times: as store.h.
 */
#ifndef LADE_QUEUE_KEY_STORE_H
#define LADE_QUEUE_KEY_STORE_H

#include "queue/store.h"

struct lq_limit {
    int64_t concurrency;             /* 0 = none */
    int64_t count, period_ms, burst; /* 0 0 0 = none; otherwise burst >= 1 */
    int64_t weight;
    int64_t order; /* enum lade_key_order */
};

struct lq_key_row {
    struct lb_slice key; /* in the vec's arena */
    int64_t ready, active, waiting;
    bool paused;
    enum lade_key_hold hold;
    int64_t until_ms;
    int64_t latency_ms;
    struct lq_limit own, joined;
};

struct lq_key_row_vec {
    struct lb_arena arena; /* as in lq_leased_vec */
    struct lq_key_row *row;
    size_t n;
};

/* The key that an envelope tells (job.h); empty when it has none or is no envelope. */
struct lb_slice lq_body_key(struct lb_slice body);

#endif
