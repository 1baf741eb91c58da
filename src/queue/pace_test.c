/* pace_test.c - a worker's trips against simulated stores; no clock is read */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lade/base.h>

#include "base/base.h"
#include "queue/pace.h"

#define US   INT64_C(1000)
#define TRIP (80 * US)

struct sim {
    struct lq_pace p;
    int64_t now;
    size_t trips, paced;
};

/* One trip as soon as it may begin. */
static void travel(struct sim *s, size_t outcomes, bool dry)
{
    int64_t next = lq_pace_next(&s->p);
    s->paced += next > s->now;
    s->now = LB_MAX(s->now, next);
    lq_pace_begin(&s->p, s->now, outcomes);
    s->now += TRIP;
    lq_pace_end(&s->p, s->now, dry);
    s->trips++;
}

/* Jobs come each `each` ns and are worked at once: how many there are since the last trip. */
static void work_stream(struct sim *s, int64_t each, size_t jobs)
{
    size_t done = 0;
    int64_t start = s->now;
    size_t held = 0;
    while (done < jobs) {
        int64_t at = LB_MAX(s->now, lq_pace_next(&s->p));
        size_t come = (size_t)((at - start) / each) - done;
        if (come == 0 && held == 0) {
            s->now = start + (int64_t)(done + 1) * each; /* asleep until the next one */
            continue;
        }
        travel(s, held, true);
        held = come;
        done += come;
    }
}

static void jobs_that_come_fast_and_singly_are_gathered(void **state)
{
    (void)state;
    struct sim s = {.now = LADE_SECOND};
    work_stream(&s, 33 * US, 30000);
    assert_in_range(s.trips, 1000, 30000 / 8);
}

/* The more come, the further apart: a thousand trips a second are enough for any rate. */
static void gap_follows_the_rate(void **state)
{
    (void)state;
    struct sim slow = {.now = LADE_SECOND}, fast = {.now = LADE_SECOND};
    work_stream(&slow, 60 * US, 60000);
    work_stream(&fast, 15 * US, 60000);
    assert_in_range(slow.trips, 60000 * 60 / 400 - 400, 60000 * 60 / 300);
    assert_in_range(fast.trips, 60000 * 15 / 1000, 60000 * 15 / 1000 + 100);
}

/* Twenty that each wait for their outcome: they are not slowed down to what the longest gap would let them. */
static void gap_stays_short_for_those_who_wait_for_outcomes(void **state)
{
    (void)state;
    struct sim s = {.now = LADE_SECOND};
    int64_t began = s.now;
    for (int i = 0; i < 2000; i++)
        travel(&s, 10, true);
    assert_true(s.now - began <= 2000 * 420 * US);
}

static void trips_are_never_further_apart_than_the_bound(void **state)
{
    (void)state;
    struct sim s = {.now = LADE_SECOND};
    for (int i = 0; i < 1000; i++) {
        assert_true(lq_pace_next(&s.p) <= s.p.began + LQ_PACE_MAX);
        lq_pace_begin(&s.p, s.now, 9);
        s.now += LADE_SECOND;
        lq_pace_end(&s.p, s.now, true);
    }
}

/* A thousand jobs a second: two trips each, as far apart as the jobs let them be. */
static void jobs_that_come_rarely_are_not_held_up(void **state)
{
    (void)state;
    struct sim s = {.now = LADE_SECOND};
    for (int i = 0; i < 5000; i++) {
        s.now = LADE_SECOND + i * LADE_MILLISECOND;
        travel(&s, 0, true);
        s.now += 10 * US;
        travel(&s, 1, true);
    }
    assert_in_range(s.paced, 0, 5000 / 50);
}

/* Enqueue, wait for the outcome, enqueue the next: pacing gains nothing, so it gives up, for longer each time. */
static void one_who_waits_for_each_outcome_is_left_alone(void **state)
{
    (void)state;
    struct sim s = {.now = LADE_SECOND};
    for (int i = 0; i < 50000; i++) {
        travel(&s, 0, true);
        travel(&s, 1, true);
        s.now += 50 * US;
    }
    assert_in_range(s.paced, 0, 500);
}

static void a_backlog_is_worked_without_pauses(void **state)
{
    (void)state;
    struct sim s = {.now = LADE_SECOND};
    for (int i = 0; i < 1000; i++)
        travel(&s, 300, false);
    assert_int_equal(s.paced, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_come_fast_and_singly_are_gathered),
        cmocka_unit_test(gap_follows_the_rate),
        cmocka_unit_test(gap_stays_short_for_those_who_wait_for_outcomes),
        cmocka_unit_test(trips_are_never_further_apart_than_the_bound),
        cmocka_unit_test(jobs_that_come_rarely_are_not_held_up),
        cmocka_unit_test(one_who_waits_for_each_outcome_is_left_alone),
        cmocka_unit_test(a_backlog_is_worked_without_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
