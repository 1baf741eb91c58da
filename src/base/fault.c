#include "base/fault.h"

#ifdef LADE_FAULTS

#    include <pthread.h>
#    include <signal.h>
#    include <stdint.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <unistd.h>

enum action { NOTHING, KILL, FAIL, FAIL_ON, COUNT };

#    define NAMES_MAX 256 /* distinct points of a count; more are only in the total */

static struct {
    pthread_mutex_t lock;
    bool armed; /* the environment has been read */
    char point[64];
    uint64_t at;
    uint64_t seen; /* all below guarded by: lock */
    enum action action;

    struct {
        const char *point;
        uint64_t seen;
    } name[NAMES_MAX]; /* filled by count only */

    size_t n_names;
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void print_count(void)
{
    for (size_t i = 0; i < fault.n_names; i++)
        (void)fprintf(stderr, "lade: fault %s %llu\n", fault.name[i].point,
                      (unsigned long long)fault.name[i].seen);
    (void)fprintf(stderr, "lade: faults %llu\n", (unsigned long long)fault.seen);
}

static void count_locked(const char *point)
{
    for (size_t i = 0; i < fault.n_names; i++) {
        if (strcmp(fault.name[i].point, point) == 0) {
            fault.name[i].seen++;
            return;
        }
    }
    if (fault.n_names < NAMES_MAX) {
        fault.name[fault.n_names].point = point;
        fault.name[fault.n_names++].seen = 1;
    }
}

/* POINT:AT:ACTION; a malformed value ends the program, since a test that arms nothing proves nothing. */
static void arm_locked(const char *spec)
{
    static const char *const names[] = {"", "kill", "fail", "fail+", "count"};
    fault.armed = true;
    fault.action = NOTHING;
    fault.seen = 0;
    fault.n_names = 0;
    if (!spec || !*spec)
        return;
    const char *colon = strchr(spec, ':');
    const char *last = strrchr(spec, ':');
    if (colon && last > colon && (size_t)(colon - spec) < sizeof(fault.point)) {
        memcpy(fault.point, spec, (size_t)(colon - spec));
        fault.point[colon - spec] = 0;
        fault.at = strtoull(colon + 1, NULL, 10);
        for (int i = KILL; i <= COUNT; i++) {
            if (strcmp(last + 1, names[i]) == 0)
                fault.action = (enum action)i;
        }
    }
    if (fault.action == NOTHING) {
        (void)fprintf(stderr, "lade: LADE_FAULT is not POINT:N:kill|fail|fail+|count: %s\n", spec);
        _exit(2);
    }
    if (fault.action == COUNT)
        (void)atexit(print_count);
}

void lb_fault_arm(const char *spec)
{
    (void)pthread_mutex_lock(&fault.lock);
    arm_locked(spec);
    (void)pthread_mutex_unlock(&fault.lock);
}

bool lb_fault_reached(const char *point)
{
    bool fails = false;
    (void)pthread_mutex_lock(&fault.lock);
    if (!fault.armed)
        arm_locked(
            getenv("LADE_FAULT")); /* NOLINT(concurrency-mt-unsafe): nothing in lade calls setenv */
    if (fault.action != NOTHING &&
        (strcmp(fault.point, "*") == 0 || strcmp(fault.point, point) == 0)) {
        fault.seen++;
        if (fault.action == COUNT)
            count_locked(point);
        if (fault.action == KILL && fault.seen == fault.at)
            (void)kill(getpid(), SIGKILL);
        fails = (fault.action == FAIL && fault.seen == fault.at) ||
                (fault.action == FAIL_ON && fault.seen >= fault.at);
    }
    (void)pthread_mutex_unlock(&fault.lock);
    return fails;
}

#else
typedef int lb_fault_is_off; /* ISO C wants a declaration in every file */
#endif
