/*
 * history.h - what happened to a job so far: counts, and a record of each of the last 32 attempts
 *
 *     byte 0      version, LQ_HISTORY_VERSION
 *     byte 1      zero
 *     byte 2..3   attempts spent, little endian
 *     byte 4..5   crashes, little endian
 *     then        records, oldest first, each one MessagePack array:
 *                 [number, started ms, ended ms, event, worker str, error bin]
 *
 * Among the records are those of effects (lade/effect.h): number and started are 0, worker is the key and error the value. They
 * stay as long as the job, whatever comes after them, and are not counted among the 32.
 *
 * A job that never failed has no history at all (n = 0). Law of the format: as in job.h.
 */
#ifndef LADE_QUEUE_HISTORY_H
#define LADE_QUEUE_HISTORY_H

#include <lade/lade.h>

#include "base/buf.h"
#include "base/slice.h"

#define LQ_HISTORY_VERSION 1
#define LQ_HISTORY_KEEP    32
#define LQ_HISTORY_HEAD    6

/* How an attempt ended; the number is stored, the name is shown. */
enum lq_event {
    LQ_EVENT_RETRY = 0,   /* failed, will run again */
    LQ_EVENT_DEAD = 1,    /* failed, will not */
    LQ_EVENT_TIMEOUT = 2, /* overran its timeout */
    LQ_EVENT_CRASH = 3,   /* its worker died or stopped renewing */
    LQ_EVENT_SNOOZE = 4,
    LQ_EVENT_UNROUTABLE = 5, /* no handler for the kind */
    LQ_EVENT_CORRUPT = 6,    /* the envelope could not be read */
    LQ_EVENT_CANCEL = 7,
    LQ_EVENT_EFFECT = 8, /* no attempt: an effect that the job has had */
    LQ_N_EVENTS = 9
};

const char *lq_event_name(enum lq_event e);

struct lq_record {
    int number; /* 0 when it spends no attempt */
    int64_t started_ms, ended_ms;
    enum lq_event event;
    struct lb_slice worker;
    struct lb_slice error; /* cut at LADE_ERROR_TEXT_MAX by the writer */
};

/* Zero for an empty or unreadable history. */
int lq_history_attempts(struct lb_slice h);
int lq_history_crashes(struct lb_slice h);

/*
 * Appends to `out` the history `old` with one more record and new counts. Drops the oldest records beyond
 * LQ_HISTORY_KEEP. An unreadable `old` counts as empty.
 */
void lq_history_append(struct lb_buf *out, struct lb_slice old, const struct lq_record *r,
                       int attempts, int crashes);

/* The same history with one more effect, under a key that it has not. The counts stay. */
void lq_history_add_effect(struct lb_buf *out, struct lb_slice old, struct lb_slice key,
                           struct lb_slice value, int64_t at_ms);
/* The effect of that key; `n`, unless NULL, receives how many effects there are. */
bool lq_history_effect(struct lb_slice h, struct lb_slice key, struct lq_record *out, size_t *n);

/* Walks the records: *at starts at 0. False at the end or at the first unreadable one. */
bool lq_history_next(struct lb_slice h, size_t *at, struct lq_record *out);

#endif
