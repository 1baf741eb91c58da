/*
 * store_rig.h - what the tests of the Redis store share: a private server, stores on it, short forms of the ops
 *
 * Main thread only: asserts. Every store that srig_open gave is closed, and the queue "q" checked, by srig_teardown.
 */
#ifndef LADE_STORE_REDIS_STORE_RIG_H
#define LADE_STORE_REDIS_STORE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "queue/store.h"

#define SRIG_STORES_MAX 8
#define SRIG_BATCH      64

struct ts_redis;
struct ts_proxy;

struct srig {
    bool cluster;            /* before srig_start: of a cluster */
    struct ts_redis *server; /* support/redis_server.h, support/proxy.h */
    struct ts_proxy *proxy;
    char ns[16]; /* a new one for each test */
    struct lq_store *store[SRIG_STORES_MAX];
    size_t n_stores;
    struct lq_store_config config; /* for the next srig_open; url and ns are filled in there */
    struct lq_leased_vec got;      /* of the last take or reclaim */
    struct lb_arena arena;
    lade_err err;
};

extern struct srig rig;

/* For each program, each test. */
int srig_start(void **state);
int srig_stop(void **state);
int srig_setup(void **state);
int srig_teardown(void **state);
#define SRIG_TEST(f) cmocka_unit_test_setup_teardown(f, srig_setup, srig_teardown)

/* Fails the test with err's text unless the result is as expected. */
#define WANT(expected, call) srig_want((expected), (call), #call, __FILE__, __LINE__)
void srig_want(int expected, int rc, const char *call, const char *file, int line);

/* Repeats a call while the connection still pauses after failures, for a minute at most. */
#define AGAIN(call)                                                    \
    __extension__({                                                    \
        int rc_;                                                       \
        int64_t end_ = lb_deadline_in(LADE_MINUTE);                    \
        do {                                                           \
            rc_ = (call);                                              \
        } while (rc_ == -LADE_EUNAVAILABLE && lb_clock_mono() < end_); \
        rc_;                                                           \
    })

/* On the server directly, or through the proxy. */
struct lq_store *srig_open(void);
struct lq_store *srig_open_through_proxy(void);

/* One command line to the server; its raw reply. `%ns` in it is the namespace. */
const char *srig_ask(const char *line);

/* A plain job of queue "q". */
struct lq_put srig_item(const char *id);
/* Puts PREFIX0 ... PREFIX(n-1) in one call, which must be new. */
void srig_put(struct lq_store *s, const char *prefix, size_t n);
/* Registers for an hour. */
void srig_join(struct lq_store *s, const char *worker);
struct lq_take srig_asking(const char *worker, size_t max);
/* Into rig.got; how many. */
size_t srig_take(struct lq_store *s, const char *worker, size_t max);
/* Settles all of rig.got in one call; outcomes must all be as given. */
void srig_settle_got(struct lq_store *s, enum lq_to to, int outcome);
size_t srig_count(struct lq_store *s, enum lade_state state);
lade_queue_info srig_info(struct lq_store *s);

#endif
