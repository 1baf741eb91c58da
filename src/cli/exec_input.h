/*
 * exec_input.h - the results of the steps before, for a handler that is a program
 *
 * Of a step of a workflow the environment says LADE_FLOW, its id, and LADE_INPUTS, how many steps it runs after. Their results lie in
 * files without a name, which end with the handler: LADE_INPUT is a path to the first, bytes as they are, and LADE_INPUTS_FILE one to
 * all of them, a line of JSON each: id, state and result as in `lade job show -o json`.
 */
#ifndef LADE_CLI_EXEC_INPUT_H
#define LADE_CLI_EXEC_INPUT_H

#include <lade/lade.h>

#include "base/buf.h"

/* In the child: the descriptors on which it finds them. */
#define CLI_EXEC_INPUT_FD  4
#define CLI_EXEC_INPUTS_FD 5

struct cli_exec_inputs {
    int first, all; /* -1: the job is of no workflow, or runs after no step. The caller's: close */
    size_t n;
};

/* False with the job's error text set. */
bool cli_exec_inputs_open(struct cli_exec_inputs *in, lade_job *job);
void cli_exec_inputs_close(struct cli_exec_inputs *in);
/* Adds NAME=VALUE and a NUL for each variable; how many. */
size_t cli_exec_inputs_variables(const struct cli_exec_inputs *in, struct lb_buf *text,
                                 lade_job *job);

#endif
