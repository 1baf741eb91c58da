/*
 * limit.h - what stores share about keys: when a key may run, and whose turn it is
 *
 * Every store keeps the same few numbers of a key and applies the same rules, so that they serve in the same order:
 *
 *     IDLE      nothing ready
 *     RING      may run: in the queue's ring, sorted by (at, bytes of the key), `at` being its virtual time
 *     TIMED     may run from `at` on, microseconds of the store's clock: a token comes, or a pause ends
 *     PARKED    waits for something to happen: a slot, a resume, another limit
 *
 * Turns are stride scheduling (Waldspurger and Weihl, MIT/LCS/TM-528, 1995): the key with the least `at` gives one job and moves on
 * by LQ_STRIDE / weight. The queue's `v` is the `at` of the last turn. Who comes into the ring, for the first time or after a hold,
 * comes to v + its stride: behind all who wait there for their next turn, so nobody gains by being away. Jobs without a key
 * have one virtual time together (free_at, the empty key).
 *
 * Rates are the generic cell rate algorithm (ITU-T I.371): one number, the time at which the bucket would be full again.
 *
 * Placing is a function of the numbers, done after each change of them by lq_key_room; a take asks again before it serves,
 * so a key in the ring that may not run costs one look and is moved. A store that changes the default limit puts all that
 * are TIMED or PARKED to 0 in the ring; a turn from below `v` counts as one at `v`.
 *
 * Thread safety: functions of their arguments.
 */
#ifndef LADE_QUEUE_LIMIT_H
#define LADE_QUEUE_LIMIT_H

#include "queue/key_store.h"
#include "queue/store.h"

#define LQ_STRIDE      (INT64_C(1) << 20)
#define LQ_LIMIT_TEXT  160
#define LQ_NOT_BY_TIME INT64_MAX
#define LQ_TURN_JOBS \
    16 /* what a key has waiting up to so many jobs may be served as it came, with others: see docs/limits.md */
#define LQ_KEY_LEVELS \
    16 /* ready jobs stand by number of their key * this + level; 0 is the number of those without */

enum lq_key_place { LQ_KEY_IDLE = 0, LQ_KEY_RING = 1, LQ_KEY_TIMED = 2, LQ_KEY_PARKED = 3 };

/* What a key may do depends on. */
struct lq_key_facts {
    bool paused;
    int64_t until_us; /* paused until then; 0 = not */
    int64_t tat_us;   /* of its rate */
    int64_t ready, active;
    int64_t away; /* jobs that were active and wait to come back: retrying, or snoozed */
};

bool lq_limit_is_zero(const struct lq_limit *l);
/* What holds for a key: its own fields, and the default's where they are 0. Weight 1 and ANY at the end. */
struct lq_limit lq_limit_join(const struct lq_limit *own, const struct lq_limit *usual);

static inline int64_t lq_limit_stride(const struct lq_limit *joined)
{
    return LQ_STRIDE / (joined->weight > 0 ? joined->weight : 1);
}

/* "concurrency count period burst weight order", numbers; what stores keep. Reading "" gives zeros; false: damaged. */
void lq_limit_write(const struct lq_limit *l, char text[LQ_LIMIT_TEXT]);
bool lq_limit_read(struct lb_slice text, struct lq_limit *out);

/* How many tokens there are; INT64_MAX without a rate. When none, *at is when the next one comes. */
int64_t lq_rate_room(const struct lq_limit *l, int64_t tat_us, int64_t now_us, int64_t *at_us);
/* The new tat after n jobs have started. */
int64_t lq_rate_spend(const struct lq_limit *l, int64_t tat_us, int64_t now_us, int64_t n);

/*
 * How many of a key's ready jobs may be taken now, not more than there are. When 0, *at is when that changes by itself, or
 * LQ_NOT_BY_TIME, and *why the reason (NOT when nothing is ready). `joined` is what holds for it.
 */
int64_t lq_key_room(const struct lq_limit *joined, const struct lq_key_facts *k, int64_t now_us,
                    int64_t *at_us, enum lade_key_hold *why);

/* The same for a queue with `active` jobs; INT64_MAX = no limit. */
int64_t lq_queue_room(const struct lq_limit *l, int64_t active, int64_t tat_us, int64_t now_us,
                      int64_t *at_us);

/* The cursor of a listing of keys: the last one listed, its length in front. Of one that is not ours some key comes out. */
void lq_key_to_cursor(lade_cursor *cursor, struct lb_slice key);
/* Its length; 0 at the start. */
size_t lq_key_of_cursor(const lade_cursor *cursor, uint8_t key[LADE_KEY_MAX]);

/* How many turns in a row a key has before `next`, whose key comes behind in the order of bytes or not. At least 1. */
static inline int64_t lq_key_turns(int64_t at, int64_t stride, int64_t next, bool is_before)
{
    int64_t ahead = next - at;
    if (ahead < 0 || stride <= 0)
        return 1;
    int64_t n = ahead / stride + (ahead % stride != 0 || is_before ? 1 : 0);
    return n > 0 ? n : 1;
}

#endif
