/*
 * guard.h - nothing a handler started outlives the worker, even when the worker is killed with SIGKILL
 *
 * A small process of its own session reads a pipe: +pgid when a handler's process group begins (written by the child
 * itself before it becomes the handler, so there is no moment in between), -pgid when the worker has ended it. The
 * pipe closes when the worker is gone, however it went; then the guard kills every group still announced and exits.
 * A handler that leaves its process group (setsid) is beyond it.
 *
 * As PID 1 of a container, or when asked, a second process stays in front: it passes signals on to the worker and reaps
 * whatever is orphaned there, which PID 1 must do and a worker that waits for its own children cannot.
 */
#ifndef LADE_CLI_GUARD_H
#define LADE_CLI_GUARD_H

#include <lade/base.h>

#include <sys/types.h>

struct cli_guard {
    int fd; /* the write end; -1 when there is none */
    pid_t pid;
};

/* Call before any thread is started. 0 or -LADE_E... */
LADE_CHECKED int cli_guard_start(struct cli_guard *g, lade_err *err);
/* Lets it go and waits for its end. */
void cli_guard_stop(struct cli_guard *g);
/* Tells the guard of a group; async-signal-safe. False when the guard is gone. */
bool cli_guard_announce(const struct cli_guard *g, pid_t pgid);
bool cli_guard_forget(const struct cli_guard *g, pid_t pgid);

/*
 * In PID 1, or when wanted: forks, returns in the child, and never returns in the parent, which exits with the child's
 * code. Does nothing in other processes. Call before any thread is started. 0 or -LADE_E...
 */
LADE_CHECKED int cli_guard_front(bool wanted, lade_err *err);

#endif
