/*
 * proc.h - other processes of a test: started, watched, stopped, killed, always reaped
 *
 *     struct ts_proc p;
 *     ts_proc_start(&p, (const char *[]){ts_proc_self(), "--role", "worker", NULL}, NULL, "DIR/worker.log");
 *     ts_proc_signal(&p, SIGSTOP);
 *     ts_proc_kill(&p);                       SIGKILL, and waits
 *
 * A child dies with the process that started it (PR_SET_PDEATHSIG; start it from the main thread), and those still
 * there at exit or at ts_proc_kill_all are killed by their own pid. Output goes to a file, since a pipe that nobody
 * reads would block the child.
 *
 * Thread safety: the main thread only.
 */
#ifndef LADE_TESTS_SUPPORT_PROC_H
#define LADE_TESTS_SUPPORT_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

#define TS_PROC_MAX 64 /* alive at once; one more is a failure to start */

/* Waits, in steps of 2 ms, until the condition holds or `ns` have passed. The value is the condition. */
#define TS_UNTIL(ns, cond)                                                 \
    __extension__({                                                        \
        int64_t until_deadline_ = lb_deadline_in(ns);                      \
        bool until_ok_ = false;                                            \
        while (!(until_ok_ = (cond)) && lb_clock_mono() < until_deadline_) \
            ts_nap_ms(2);                                                  \
        until_ok_;                                                         \
    })

void ts_nap_ms(int ms);

struct ts_proc {
    pid_t pid;  /* 0 = never started */
    bool ended; /* reaped: status is set */
    int status; /* as waitpid gives it */
    int slot;   /* in the table of living children */
};

/* The path of this program, to be executed again in another role. */
const char *ts_proc_self(void);

/*
 * Starts argv[0] (NULL-ended, looked up in PATH) with this process's environment and the NAME=VALUE strings of `env`
 * (NULL-ended; NULL = none) on top. stdin is empty; stdout and stderr are appended to the file `log` (NULL: this
 * process's own). False, with the reason on stderr.
 */
bool ts_proc_start(struct ts_proc *p, const char *const *argv, const char *const *env,
                   const char *log);

/* True when it has ended; waits up to timeout_ns for that. */
bool ts_proc_wait(struct ts_proc *p, int64_t timeout_ns);
/* The exit status of an ended process, or 128 + the signal that killed it; -1 when it still runs. */
int ts_proc_code(const struct ts_proc *p);

/* Nothing when it has ended. */
void ts_proc_signal(struct ts_proc *p, int signum);
/* SIGKILL (also when stopped) and waits for the end. Nothing when never started or ended. */
void ts_proc_kill(struct ts_proc *p);
/* Kills whatever this module started and has not seen end. */
void ts_proc_kill_all(void);

/* Open descriptors and resident bytes of a living process; -1 when unknown. */
int ts_proc_n_fds(pid_t pid);
int64_t ts_proc_rss(pid_t pid);

#endif
