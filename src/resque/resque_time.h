/*
 * resque_time.h - times as Resque writes them: whole seconds, UTC, each place in a form of its own
 *
 * Thread safety: all functions; pure.
 */
#ifndef LADE_RESQUE_TIME_H
#define LADE_RESQUE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum rq_time_form {
    RQ_TIME_STARTED,   /* 2026-11-30 09:57:20 +0000    worker:<id>:started, Time#to_s */
    RQ_TIME_HEARTBEAT, /* 2026-11-30T09:57:20+00:00    workers:heartbeat, of the server's clock */
    RQ_TIME_RUN_AT,    /* 2026-11-30T09:57:20Z         worker:<id> */
    RQ_TIME_FAILED     /* 2026/11/30 09:57:20 UTC      failed */
};

#define RQ_TIME_LEN 26 /* bytes of the longest with its NUL */

/* Writes the time and a NUL. `seconds` since 1970, years 0 to 9999. */
void rq_time_write(char out[RQ_TIME_LEN], enum rq_time_form form, int64_t seconds);

/*
 * Reads any of these forms, with any offset and with a fraction of a second, which is dropped. False for all else: a time that is not
 * understood must never be taken for an old one.
 */
bool rq_time_read(int64_t *seconds, struct lb_slice text);

#endif
