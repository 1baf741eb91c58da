/* result.h - the result of a job whose record is gone (--result-ttl). Thread safety: none. */
#ifndef LADE_CLI_RESULT_H
#define LADE_CLI_RESULT_H

#include "cli/cli.h"

/* Writes it as it is, of the queue said or of any, and sets *found. */
LADE_CHECKED int cli_result_of_gone(struct cli *c, const char *id, bool *found, lade_err *err);
/* Sets *found alone. */
LADE_CHECKED int cli_result_look(struct cli *c, const char *id, bool *found, lade_err *err);

#endif
