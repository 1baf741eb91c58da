/*
 * said.h - what a running handler says of its progress, on its way to the store
 *
 * Made at the first word. What is said gathers and is written by the handler's own call when the last write is long enough ago, by
 * sweep.c when nothing is said for that long, and at the end by the slot, before the outcome. So a job writes at most four times a second, and
 * nothing waits longer than that for a store that answers.
 *
 * Thread safety: as lade_job. Lock order: the worker's lock is never taken under that of a said.
 */
#ifndef LADE_QUEUE_SAID_H
#define LADE_QUEUE_SAID_H

#include "queue/worker.h"

/* The handler has returned: writes what is left and frees. NULL is allowed. */
void lq_said_close(struct lade_job *job);
/* Writes what is due, of all jobs of the worker. */
void lq_said_flush(struct lade_worker *w, int64_t now);

#endif
