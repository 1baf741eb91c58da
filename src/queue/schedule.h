/*
 * schedule.h - schedules as the engine keeps them in a record of the store
 *
 *     spec   byte 0 version, then one MessagePack array: the rule (when), the policies, and the template (what)
 *     memo   byte 0 version, then one MessagePack array: what has happened so far
 *
 * Law of the format: as in job.h. Both are golden in schedule_test.c.
 *
 *     spec   [cron str, every ms, anchor, anchor ms, tz str, gap, fold, start ms, end ms, jitter ms,
 *             missed, missed_max, window ms, overlap, limit, queue str, body bin, unique ttl ms]
 *             body is the job's envelope (job.h) with an enqueue time of 0
 *     memo   [created ms, changed ms, anchor ms, next ms, computed ms, last ms, epoch, fired, missed, overlaps, duplicates,
 *             pending ms, last queue str, last job str, tzdata str, error str, [at ms, seen ms, outcome, count, ...]]
 *
 * Thread safety: functions of their arguments.
 */
#ifndef LADE_QUEUE_SCHEDULE_H
#define LADE_QUEUE_SCHEDULE_H

#include "base/arena.h"
#include "base/buf.h"
#include "queue/calendar.h"
#include "queue/job.h"
#include "queue/schedule_store.h"

#define LQ_SCHEDULE_VERSION 1

/* A spec as stored. Strings lie in the record or the arena it was read into. */
struct lq_schedule_spec {
    const char *cron; /* "" = every */
    int64_t every_ms;
    enum lade_schedule_anchor anchor;
    int64_t anchor_ms; /* LADE_ANCHOR_TIME */
    const char *tz;
    enum lade_schedule_gap gap;
    enum lade_schedule_fold fold;
    int64_t start_ms, end_ms, jitter_ms;
    enum lade_schedule_missed missed;
    int64_t missed_max, window_ms;
    enum lade_schedule_overlap overlap;
    int64_t limit;
    const char *queue;
    struct lb_mut body;
    int64_t unique_ttl_ms;
};

struct lq_memo {
    int64_t created_ms, changed_ms;
    int64_t anchor_ms;   /* what every counts from */
    int64_t next_ms;     /* nominal; 0 = none */
    int64_t computed_ms; /* the store's now when next_ms was found */
    int64_t last_ms;     /* nominal, of the last fire */
    int64_t epoch; /* how often the store's clock was set back by much: part of the jobs' ids */
    uint64_t fired, missed, overlaps, duplicates;
    int64_t pending_ms; /* LADE_OVERLAP_QUEUE_ONE: the nominal time that waits */
    char last_queue[LADE_NAME_MAX + 1];
    char last_job[LADE_ID_MAX + 1];
    char tzdata[16];
    char error[256];
    size_t n_history;

    struct lq_memo_fire {
        int64_t at_ms, seen_ms;
        enum lade_fire_outcome outcome;
        uint64_t count;
    } history[LADE_SCHEDULE_HISTORY]; /* oldest first */
};

/* schedule_spec.c */

/* Every rule for a spec. EINVAL and ETOOBIG name the field. */
LADE_CHECKED int lq_schedule_check(const lade_schedule_spec *spec, uint32_t payload_max,
                                   lade_err *err);
/* The calendar of a user's rule, which it checks; the caller finis it. */
LADE_CHECKED int lq_schedule_open(const lade_schedule_spec *spec, struct lq_calendar *out,
                                  lade_err *err);
/* The id of a checked spec that has none. */
void lq_schedule_make_id(const lade_schedule_spec *spec, char out[LADE_SCHEDULE_ID_MAX + 1]);
/* Appends a checked spec. */
void lq_schedule_encode(struct lb_buf *out, const lade_schedule_spec *spec);
/* Decodes in place, as lq_job_decode: one byte behind it must be writable. EFORMAT. */
LADE_CHECKED int lq_schedule_decode(struct lb_mut bytes, struct lq_schedule_spec *out,
                                    lade_err *err);
/* The calendar of a stored spec; the caller finis it. */
LADE_CHECKED int lq_schedule_calendar(const struct lq_schedule_spec *spec, int64_t anchor_ms,
                                      struct lq_calendar *out, lade_err *err);
/* Whether both fire at the same times. */
bool lq_schedule_same_rule(const struct lq_schedule_spec *a, const struct lq_schedule_spec *b);
/*
 * A put of the template, without id and body. `scratch` is a copy of its envelope, which is decoded in place and to which the
 * put points. False when it is damaged.
 */
bool lq_schedule_put_of(struct lq_put *put, const struct lq_schedule_spec *spec,
                        struct lb_mut scratch);
/* Appends the template's envelope, enqueued at now_ms. False when it is damaged. */
bool lq_schedule_body(struct lb_buf *out, struct lb_mut body, int64_t now_ms);
bool lq_schedule_id_is_valid(const char *id);

/* schedule_memo.c */
void lq_memo_encode(struct lb_buf *out, const struct lq_memo *m);
LADE_CHECKED int lq_memo_decode(struct lb_mut bytes, struct lq_memo *out, lade_err *err);
/* Adds to the history, dropping the oldest. One of the same outcome and seen time as the newest is added to it. */
void lq_memo_note(struct lq_memo *m, int64_t at_ms, int64_t seen_ms, enum lade_fire_outcome outcome,
                  uint64_t count);
/* Appends the id of the job of a nominal time. */
void lq_memo_job_id(char out[LADE_ID_MAX + 1], const char *schedule, int64_t at_ms, int64_t epoch);

/* schedule_plan.c */

/* When the store is to look at it again. */
struct lq_schedule_end {
    enum lade_schedule_state state;
    int64_t due_ms;
};

/* How late a fire of this nominal time is made. */
int64_t lq_plan_jitter(const char *id, int64_t at_ms, int64_t jitter_ms);

/* What a look at a schedule that is due comes to. */
struct lq_plan {
    int64_t at_ms[LQ_FIRE_MAX]; /* nominal times to be fired, in order */
    size_t n;
    bool asks;            /* fires only when the last job has ended; else `held` */
    bool made_up;         /* they are late */
    uint64_t n_missed;    /* passed over, counted in both memos */
    struct lq_memo fired; /* what is left then */
    struct lq_memo held;
    struct lq_schedule_end fired_end, held_end;
};

/* `memo` is the record's, ACTIVE and due; its tzdata that of the calendar. Pure. */
void lq_plan_make(struct lq_plan *plan, const char *id, const struct lq_schedule_spec *spec,
                  const struct lq_calendar *calendar, const struct lq_memo *memo, int64_t now_ms);
/* Sets next and computed for a schedule that begins, or begins anew, at now_ms; where it ends up. */
struct lq_schedule_end lq_plan_begin(const char *id, const struct lq_schedule_spec *spec,
                                     const struct lq_calendar *calendar, struct lq_memo *memo,
                                     int64_t now_ms);

/* Where a memo whose next time stands comes to. */
struct lq_schedule_end lq_plan_end(const char *id, const struct lq_schedule_spec *spec,
                                   const struct lq_calendar *calendar, struct lq_memo *memo,
                                   int64_t now_ms);

#endif
