/*
 * contract.h - the suite that defines a store: what its tests share
 *
 * Each test gets a new, empty store in `ct.s`, and its teardown runs the store's own check: a finding fails the test. All
 * that a test allocates lies in ct, so that a failed assertion leaks nothing. Helpers assert that what they do works;
 * where the result is the point of a test, it calls the op itself.
 *
 * Time: stores with LQ_CAP_CLOCK get a stepped clock, for the others ct_step really waits. Tests therefore step
 * by some 20 ms where something must come to pass, and use an hour for what must not.
 */
#ifndef LADE_TESTS_CONTRACT_H
#define LADE_TESTS_CONTRACT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/beat.h"
#include "queue/store.h"
#include "rt/seam.h"
#include "support/redis_server.h"
#include "support/tmpdir.h"

#define CT_HOUR INT64_C(3600000)
#define CT_SOON 20

struct ct {
    const struct lq_store_ops *ops;
    struct lq_store *s;
    struct lq_store_config config; /* change it and call ct_reopen */
    char url[256], ns[32];
    unsigned n_tests;
    int64_t clock_ns;
    struct ts_tmpdir dir;
    struct ts_redis redis;
    struct lq_leased_vec got; /* of the last take or reclaim */
    struct lq_row_vec rows;
    struct lb_arena arena; /* for the length of a test */
    lade_err err;
};

extern struct ct ct;

int ct_setup(void **state);
int ct_teardown(void **state);
#define CT_TEST(f) cmocka_unit_test_setup_teardown(f, ct_setup, ct_teardown)

/* The call gives this result; otherwise its error text is printed and the test fails. */
void ct_expect(int expected, int rc, const char *call, const char *file, int line);
#define EXPECT(expected, call) ct_expect((expected), (call), #call, __FILE__, __LINE__)

/* Another handle on the same jobs; the caller closes it. */
struct lq_store *ct_open(void);
/* Closes and opens the test's store anew, empty, with ct.config as it is now. */
void ct_reopen(void);
/* True when the clock stands still between steps. */
bool ct_is_exact(void);
int64_t ct_now(void);
void ct_step(int64_t ms);

/* "a b c" as lanes, in ct.arena. */
struct lq_lanes ct_lanes(const char *names);
char *ct_format(const char *format, ...) LADE_PRINTF(1, 2);

/* A ready job of the default level whose body ends in its id. */
struct lq_put ct_item(const char *queue, const char *id);
/* With a body of its own for this level. */
struct lq_put ct_item_level(const char *queue, const char *id, int level);
void ct_put(struct lq_put *items, size_t n);
int ct_put_one(struct lq_put item);
/* One call: each of "a b c", ready; none may be there. */
void ct_add(const char *queue, const char *ids);
/* One call: `n` jobs named PREFIX0000 and up. */
void ct_add_many(const char *queue, const char *prefix, size_t n);
/* Due in ms from now. */
void ct_add_in(const char *queue, const char *id, int64_t ms);

struct lq_beat ct_beat(const char *worker, const char *lanes);
/* Registers a worker for an hour. */
void ct_join(const char *worker, const char *lanes);
/* Lets its lease run out. */
void ct_die(const char *worker, const char *lanes);

struct lq_take ct_asking(const char *worker, const char *lanes, size_t max);
/* Takes one, and is registered as idle when there is none: how many there were. */
size_t ct_look_idle(const char *worker, const char *lanes);
/* Takes into ct.got, emptied first; the number taken. */
size_t ct_take(const char *worker, const char *lanes, size_t max);
/* The same for reclaim, which may be EMPTY. */
size_t ct_reclaim(const char *worker, const char *lanes, size_t max);
/* The ids in ct.got as "a b c". */
const char *ct_got(void);
/* Takes exactly this job, which is the only ready one of its queue. A copy that lives as long as the test. */
struct lq_leased ct_take_one(const char *worker, const char *queue);

struct lq_settle ct_settling(const char *queue, const struct lq_leased *j, enum lq_to to);
/* Settles one; its outcome. */
int ct_settle(const char *queue, const struct lq_leased *j, enum lq_to to);
int ct_settle_one(struct lq_settle it);
int ct_begin(const char *worker, const char *queue, const struct lq_leased *j);
/* Puts a job and leads it into a state; worker "w" must have joined the queue and nothing else be ready there. The lease
 * is void unless the state is ACTIVE. */
struct lq_leased ct_bring(const char *queue, const char *id, enum lade_state state);

/* -1 when there is no such job. */
int ct_state(const char *queue, const char *id);
/* Asserts that it is there. */
const struct lq_row *ct_row(const char *queue, const char *id);
lade_queue_info ct_info(const char *queue);
size_t ct_count(const char *queue, enum lade_state state);
/* All ids of a state, listed in pages of `page`, as "a b c". */
const char *ct_list(const char *queue, enum lade_state state, size_t page);

int ct_act(const char *queue, enum lade_job_verb verb, const char *id);
/* Renews and gives the stop requests as "id id", in the order given. */
const char *ct_stops(const char *worker, const char *lanes, size_t max);

/* One of the files of tests. */
struct ct_group {
    const struct CMUnitTest *tests;
    size_t n;
};

extern const struct ct_group ct_put_group, ct_unique_group, ct_take_group, ct_settle_group,
    ct_retain_group, ct_lease_group, ct_act_group, ct_queue_group, ct_list_group, ct_wait_group,
    ct_share_group, ct_batch_group, ct_nomem_group, ct_note_group, ct_conflict_group, ct_dead_group,
    ct_event_group, ct_watch_group, ct_result_group, ct_say_group, ct_schedule_group,
    ct_single_group, ct_control_group, ct_bound_group, ct_bytes_group;

#define CT_GROUP(name, array) const struct ct_group name = {array, LB_ARRAY_LEN(array)}

#endif
