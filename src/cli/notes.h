/* notes.h - progress and log lines of a job, as lade job show gives them. Thread safety: none. */
#ifndef LADE_CLI_NOTES_H
#define LADE_CLI_NOTES_H

#include "cli/out.h"

/* For people, below the card of the job: nothing when it never said anything. */
LADE_CHECKED int cli_notes_print(const struct cli *c, const lade_job_view *v, lade_err *err);
/* "progress" (null when never said) and "log_lines", how many there are. */
LADE_CHECKED int cli_notes_add(const struct cli *c, struct cli_row *row, const lade_job_view *v,
                               lade_err *err);
/* One line for people: its time and its text with control characters as '?'. */
void cli_notes_print_line(const lade_log_line *line);

#endif
