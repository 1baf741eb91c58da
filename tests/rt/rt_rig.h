/*
 * rt_rig.h - what the runtime's tests share
 *
 * cmocka's asserts work on the main thread only, so tasks note the first expectation that fails and the main thread asserts that
 * there is none. LADE_RT_ROUNDS in the environment multiplies the rounds of stress tests (long mode: 100).
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

/*
 * For bounds on time: the machine may be busy with other things, so one run of a few has to keep them. What does not work at all
 * breaks them each time.
 */
#define RIG_TRIES 8

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

/* Waits until *word reaches at least n; false after 20 s. */
static inline bool rig_reaches(uint64_t *word, uint64_t n)
{
    int64_t until = rig_in_ms(20000);
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
