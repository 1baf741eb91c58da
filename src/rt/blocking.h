/* blocking.h - the pool of threads behind lade_blocking_run */
#ifndef LADE_RT_BLOCKING_H
#define LADE_RT_BLOCKING_H

#include "rt/task.h"

/* Makes no thread yet. -LADE_ENOMEM. */
int lr_pool_start(struct lr_rt *rt, unsigned max);
/* Waits for the calls that run. */
void lr_pool_stop(struct lr_rt *rt);

#endif
