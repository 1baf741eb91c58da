/* rig_role.h - the processes of a rig: see rig.h for what they do. Thread safety: main of the process. */
#ifndef LADE_TESTS_SUPPORT_RIG_ROLE_H
#define LADE_TESTS_SUPPORT_RIG_ROLE_H

#include "support/ledger.h"

/* argv: PROGRAM --role worker|producer NAME=VALUE... The exit status. */
int ts_role_main(int argc, char **argv);

/* What the handlers of the kinds in rig.h need: where to leave marks, and where to write. */
struct ts_role {
    const char *dir;
    struct ts_ledger_file *ledger;
};

/* Set before ts_rig_main: what runs kinds that begin with "own". */
extern lade_outcome (*ts_role_own)(const struct ts_role *r, lade_job *job);

/* A lade_handler for "*"; ctx is a struct ts_role. */
lade_outcome ts_role_handle(lade_job *job, void *ctx);

#endif
