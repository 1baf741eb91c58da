/*
 * rt_rig.h - what the runtime's tests share
 *
 * cmocka's asserts work on the main thread only, so tasks note the first expectation that fails and the main thread asserts that
 * there is none.
 *
 * No assertion depends on how fast the machine is: tests wait for the event, with RIG_PATIENCE for what never comes. What the
 * specification bounds by time (rig_in_time) is asserted only with LADE_RT_QUIET in the environment, on a machine that does
 * nothing else. LADE_RT_ROUNDS multiplies the rounds of stress tests (long mode: 100). docs/runtime-parity.md has the table.
 */
#ifndef LADE_TESTS_RT_RIG_H
#define LADE_TESTS_RT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lade/rt.h>

static const char *rig_failed; /* atomic: the first */
static char rig_failed_at[32];

static inline void rig_note(const char *what, int line)
{
    const char *none = NULL;
    if (__atomic_compare_exchange_n(&rig_failed, &none, what, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
        (void)snprintf(rig_failed_at, sizeof(rig_failed_at), "line %d", line);
}

#define EXPECT(cond)                   \
    do {                               \
        if (!(cond))                   \
            rig_note(#cond, __LINE__); \
    } while (0)

static inline void rig_check(void)
{
    const char *failed = __atomic_exchange_n(&rig_failed, NULL, __ATOMIC_SEQ_CST);
    if (failed)
        fail_msg("in a task: %s (%s)", failed, rig_failed_at);
}

/* Runs fn in a runtime of its own and asserts what the tasks noted. */
static inline int rig_run(unsigned workers, int (*fn)(void *), void *arg)
{
    lade_rt_opts opts = {.workers = workers};
    int rc = lade_rt_run(&opts, fn, arg);
    rig_check();
    return rc;
}

#define RIG_PATIENCE (120 * LADE_SECOND) /* after which something is taken for lost */

static inline bool rig_is_quiet(void)
{
    return getenv("LADE_RT_QUIET") != NULL;
}

/* True when it took no longer than that, or when this machine makes no promises. */
static inline bool rig_in_time(int64_t took, int64_t ms)
{
    return !rig_is_quiet() || took <= ms * LADE_MILLISECOND;
}

static inline unsigned rig_rounds(unsigned n)
{
    const char *by = getenv("LADE_RT_ROUNDS");
    unsigned long factor = by ? strtoul(by, NULL, 10) : 1;
    return factor > 0 ? n * (unsigned)factor : n;
}

static inline int64_t rig_in_ms(int64_t ms)
{
    return lade_clock_now() + ms * LADE_MILLISECOND;
}

/* The time after which something that should have come is lost. */
static inline int64_t rig_patience(void)
{
    return lade_clock_now() + RIG_PATIENCE;
}

/* Waits until *word reaches at least n; false when it never does. */
static inline bool rig_reaches(uint64_t *word, uint64_t n)
{
    int64_t until = rig_patience();
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < n) {
        if (lade_clock_now() > until)
            return false;
        (void)lade_task_sleep_until(lade_clock_now() + LADE_MILLISECOND / 5);
    }
    return true;
}

static inline uint64_t rig_add(uint64_t *word, uint64_t n)
{
    return __atomic_add_fetch(word, n, __ATOMIC_SEQ_CST);
}

static inline uint64_t rig_get(uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

#endif
