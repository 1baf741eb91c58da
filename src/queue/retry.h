/* retry.h - how long to wait before the next attempt. Thread safety: functions of their arguments. */
#ifndef LADE_QUEUE_RETRY_H
#define LADE_QUEUE_RETRY_H

#include <stdint.h>

#include "queue/job.h"

/*
 * Milliseconds before the attempt after `attempt` (>= 1, the one that just failed), within 0 and the cap.
 * `chance` in [0, 2^32) chooses within the jitter, so that a test can choose for it.
 *
 * The default is attempt^4 + 15 s with up to 10% more, at most a day: the curve that asynq's and Sidekiq's users know.
 */
int64_t lq_retry_delay_ms(const struct lq_backoff *b, int attempt, uint32_t chance);

#endif
