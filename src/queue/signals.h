/*
 * signals.h - what signals say to the workers of this process that listen
 *
 *              lade                      resque_signals
 *   TERM INT   stop; again: at once      the same
 *   QUIT       at once                   stop when what runs is done
 *   TSTP       take no more              the same
 *   TTIN       stacks to the log         the same
 *   USR1       -                         break off what runs, go on
 *   USR2 CONT  -                         pause, resume
 *
 * Thread safety: all functions.
 */
#ifndef LADE_QUEUE_SIGNALS_H
#define LADE_QUEUE_SIGNALS_H

#include "queue/worker.h"

/* Takes the signals of the worker's table from whoever has them. -LADE_EINVAL: too many workers listen. */
LADE_CHECKED int lq_signals_listen(struct lade_worker *w, lade_err *err);
/* The last one gives them back. */
void lq_signals_forget(struct lade_worker *w);

#endif
