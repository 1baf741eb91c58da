/*
 * spare.h - workers beyond the CPUs, for when all others are stuck; see spare.c
 */
#ifndef LADE_RT_SPARE_H
#define LADE_RT_SPARE_H

#include "rt/core.h"

/* Nothing when the runtime has no spares. 0 or -LADE_ENOMEM. Once rt is the process's runtime and its workers run. */
LADE_CHECKED int lr_monitor_start(struct lr_rt *rt);
/* After rt->stopping was set and before the workers are joined: no spare is added any more. */
void lr_monitor_stop(struct lr_rt *rt);
/* After the workers were joined: ends the spares and frees. */
void lr_spares_join(struct lr_rt *rt);

/* hog.c: nothing without lade_rt_opts.hog_after. 0 or -LADE_ENOMEM. */
LADE_CHECKED int lr_hogwatch_start(struct lr_rt *rt);
/* Ends and frees it, before the workers are joined or after. */
void lr_hogwatch_stop(struct lr_rt *rt);

#endif
