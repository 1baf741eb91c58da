/*
 * exec.h - a shell command as handler: one process for each job
 *
 * `sh -c CMD` runs in a process group of its own with the payload on stdin and the job in LADE_* variables; its stdout
 * is the result, the end of its stderr the error text. Exit codes:
 *
 *     0    OK                       103  SNOOZE
 *     100  DEAD                     101  DISCARD                   102  CANCEL
 *     any other, or a signal: RETRY
 *
 * What it writes to descriptor 3 (LADE_NOTES_FD) is said of the job while it runs, a line at a time: `progress 40 half way` is its progress, any
 * other line goes to its log.
 *
 * When the job is to stop (timeout, cancel, lease lost, worker ending) the group gets TERM, and what is left of it five
 * seconds later KILL, also when `sh` itself has long ended; the outcome is given when the whole group is gone. Exit 0
 * after TERM is no success, since programs that tidy up at TERM end with it. When the process ends by itself, what is left of its group has a moment to close stdout and is then killed, so a handler cannot leave anything behind
 * nor hold its slot through a grandchild.
 *
 * Thread safety: cli_exec_run from any number of slots at once on the same struct cli_exec.
 */
#ifndef LADE_CLI_EXEC_H
#define LADE_CLI_EXEC_H

#include <lade/lade.h>

#include "cli/guard.h"

struct cli_exec {
    const char *command;
    const struct cli_guard *guard;
};

/* A lade_handler; ctx is a struct cli_exec. */
lade_outcome cli_exec_run(lade_job *job, void *ctx);

#endif
