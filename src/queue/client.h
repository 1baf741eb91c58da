/*
 * client.h - the open handle: a store, its options and the group commit in front of it
 *
 * Thread safety: as lade.h says of `lade`.
 */
#ifndef LADE_QUEUE_CLIENT_H
#define LADE_QUEUE_CLIENT_H

#include "base/buf.h"
#include "queue/batch.h"
#include "queue/store.h"
#include "queue/watch.h"

struct lade {
    struct lq_store *store;
    struct lq_batch batch;
    struct lq_hub hub;
    char *url;
    char *ns;
    uint32_t payload_max;
    int64_t (*clock)(void *); /* never NULL */
    void *clock_ctx;
    struct lr_mutex schedulers_lock;
    struct lb_list schedulers; /* guarded by: schedulers_lock; scheduler.h */
};

/*
 * lade_open with the stores to choose from; `url` is not NULL. The composition file (src/lade.c) names them, so that the
 * engine knows none.
 */
LADE_CHECKED int lq_client_open(lade **out, const struct lq_store_ops *const *stores, size_t n,
                                const char *url, const lade_options *opts, lade_err *err);

/*
 * Checks a spec and makes the put of it, without putting it. `put` borrows from spec, id and body; body is the caller's: lb_buf_fini
 * it whatever the result.
 */
LADE_CHECKED int lq_client_draft(lade *q, const lade_job_spec *spec, struct lq_put *put,
                                 lade_id *id, struct lb_buf *body, lade_err *err);
/* limit_api.c: 0, or -LADE_EUNSUPPORTED when the store has no keys. */
LADE_CHECKED int lq_keys_check(const lade *q, const char *where, lade_err *err);

/*
 * bound.c, after a put that was LADE_FULL. refuse: fills `err` and returns LADE_FULL, every outcome being that. wait: as the bound says, the
 * same, or waits and repeats the put; other results as of the put.
 */
LADE_CHECKED int lq_bound_refuse(lade *q, struct lq_put *put, size_t n, lade_err *err);
LADE_CHECKED int lq_bound_wait(lade *q, struct lq_put *put, size_t n, lade_err *err);

/* The producer's clock in ms. */
int64_t lq_client_now_ms(const lade *q);

/* What a public function asks first, with its own `err`: the text names the argument that is NULL. */
#define LQ_REFUSE_NULL(arg, where)                                         \
    do {                                                                   \
        if (!(arg))                                                        \
            return lb_fail(err, LADE_EINVAL, (where), "%s is NULL", #arg); \
    } while (0)

#endif
