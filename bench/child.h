/*
 * child.h - one run of another program: output caught, deadline kept, nothing left of it
 *
 * The child leads a process group of its own and dies with this process; when it has ended, is too late, or the user stops
 * the whole, the group is ended (SIGTERM, 2 s later SIGKILL) and the child is reaped. Thread safety: the main thread.
 */
#ifndef LADE_BENCH_CHILD_H
#define LADE_BENCH_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BN_CHILD_OUT_MAX (1U << 20) /* of standard output; more is an error */
#define BN_CHILD_ERR_MAX 4096       /* of standard error, the last of it */

struct bn_child {
    const char *const *argv;
    const char *const *env; /* NAME=VALUE on top of this process's, NULL-ended; NULL = none */
    const char *dir;        /* NULL = this process's */
    int n_cpus;             /* pinned to the first so many of bn_machine_cpus; 0 = not */
    int64_t deadline_ns;
    const volatile sig_atomic_t *stop; /* ends it when it becomes true; NULL = none */
    bool show;                         /* output goes to this process's own streams */
};

struct bn_child_end {
    char *out; /* NUL-terminated; bn_child_free */
    size_t n_out;
    char err[BN_CHILD_ERR_MAX + 1];
    int code; /* exit status, 128 + signal, or 127 when it could not be started */
    bool timed_out, stopped, too_much;
    double cpu_s; /* of it and the children it reaped */
    int64_t rss_bytes;
    double wall_s;
};

/* Runs it to its end. False when out of memory or descriptors, with the reason in end->err. */
bool bn_child_run(const struct bn_child *c, struct bn_child_end *end);
void bn_child_free(struct bn_child_end *end);
/* What went wrong, in words; "" when it ended with 0 in time. Returns out. */
char *bn_child_problem(const struct bn_child_end *end, char *out, size_t size);

#endif
