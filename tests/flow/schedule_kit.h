/*
 * schedule_kit.h - schedules on a clock that the test steps
 *
 * Schedulers are looked with one look at a time, in the test's own thread: what a look does depends on the clock and on
 * nothing else. The store's clock can be stepped in the memory store and SQLite; how schedules fire on Redis, whose clock is the
 * server's, is in flow_schedule_live_test.c.
 */
#ifndef LADE_TESTS_FLOW_SCHEDULE_KIT_H
#define LADE_TESTS_FLOW_SCHEDULE_KIT_H

#include "support/rig_test.h"

#include "base/clock.h"
#include "queue/scheduler.h"

#define BEGIN   (INT64_C(1800000000) * LADE_SECOND) /* 2027-01-15 08:00 UTC, a Friday */
#define LOG_MAX 64

struct sk_fix {
    struct ts_rig rig;
    lade *q;
    lade_scheduler *s[3];
    size_t n_s;
    int64_t clock;
    char log[LOG_MAX][300];
    size_t n_log;
    lade_err err;
};

extern struct sk_fix fix;

int sk_start(void **state);
int sk_stop(void **state);
#define TEST(f) cmocka_unit_test_setup_teardown(f, sk_start, sk_stop)

bool has_logged(const char *text);
lade_scheduler *add_scheduler(void);
void step(int64_t ns);
/* Looks until nothing is due any more. */
void look_with(lade_scheduler *s);
void look(void);
/* Seconds, a look each. */
void pass(int seconds);
lade_schedule_spec every(int64_t ns, const char *id);
lade_schedule_spec cron(const char *text, const char *id);
enum lade_schedule_change set(lade_schedule_spec spec);
/* The caller frees. */
lade_schedule_view *get(const char *id);
int64_t next_of(const char *id);
enum lade_schedule_state state_of(const char *id);
/* The newest outcome, and its count. */
enum lade_fire_outcome outcome_of(const char *id, uint64_t *count);
uint64_t count(const char *queue, enum lade_state state);
uint64_t n_ready(void);
uint64_t n_enqueued(void);
/* Whether the job of that nominal time is there. */
bool has_job(const char *id, int64_t at);
/* Removes what is ready. */
void purge(void);

#endif
