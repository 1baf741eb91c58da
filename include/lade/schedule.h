/*
 * schedule.h - durable schedules: jobs that come again and again
 *
 * A schedule is a rule, when, and a template, what. It lives in the store, not in a program: set once, it fires as long as
 * any worker runs, whichever that is.
 *
 *     lade_schedule_spec s = {.cron = "30 2 * * mon-fri", .tz = "Europe/Berlin",
 *                             .job = {.kind = "report", .payload = LADE_STR("{\"day\":1}")}};
 *     rc = lade_schedule_set(q, &s, &id, NULL, &err);
 *
 * Firing is one atomic step of the store: the job is put and the schedule moves on to its next time, or neither. The job's
 * id is SCHEDULE:TIME, with the nominal time in ms since 1970, so that each time gives one job, whoever believes to be the
 * leader. One worker at a time looks for what is due; when it dies another goes on within 5 s, when it stops at once.
 * Times are those of the store's clock.
 *
 * Changes of the clock. A cron expression that names hours means local time: `gap` says what becomes of times that a change
 * leaves out, `fold` of those that come twice. One that names no hour (every 5 minutes) follows elapsed time.
 *
 * Thread safety: a `lade` may be used from any thread; a lade_scheduler is driven by one, stopped from any.
 */
#ifndef LADE_SCHEDULE_H
#define LADE_SCHEDULE_H

#ifndef LADE_LADE_H
#    error "include <lade/lade.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_SCHEDULE_ID_MAX  44    /* characters of A-Z a-z 0-9 . _ : - */
#define LADE_CRON_MAX         256   /* bytes of an expression */
#define LADE_TZ_MAX           64    /* bytes of a zone's name */
#define LADE_SCHEDULE_HISTORY 20    /* outcomes kept with a schedule */
#define LADE_MISSED_MAX       10000 /* most that LADE_MISSED_ALL makes up for at once */

enum lade_schedule_anchor {
    LADE_ANCHOR_EPOCH = 0, /* `every` counts from 1970-01-01 UTC: every 1 h is at the full hour */
    LADE_ANCHOR_START = 1, /* from `start`, or else from when the rule was first set */
    LADE_ANCHOR_TIME = 2   /* from `anchor_at` */
};

/* A local time that a change of the clock leaves out. */
enum lade_schedule_gap {
    LADE_GAP_SHIFT = 0, /* fires at the instant of the change */
    LADE_GAP_SKIP = 1   /* does not fire */
};

/* A local time that a change of the clock repeats. */
enum lade_schedule_fold { LADE_FOLD_FIRST = 0, LADE_FOLD_BOTH = 1, LADE_FOLD_SECOND = 2 };

/*
 * What becomes of times that nobody was there for: two or more were due at one look, or one is late by over a minute.
 * They are counted and shown in any case.
 */
enum lade_schedule_missed {
    LADE_MISSED_ONE = 0, /* the latest fires */
    LADE_MISSED_SKIP = 1,
    LADE_MISSED_ALL = 2 /* all fire, the newest missed_max of them */
};

/* When a time comes and the job of the last fire has not ended (is scheduled, ready, active or retrying). */
enum lade_schedule_overlap {
    LADE_OVERLAP_ALLOW = 0,
    LADE_OVERLAP_SKIP = 1, /* the time is passed over */
    LADE_OVERLAP_QUEUE_ONE =
        2 /* one time waits until that job has ended, further ones are passed over */
};

/* Zero means the default in every field. Everything is borrowed until the call returns. */
typedef struct lade_schedule_spec {
    /* Default: made from kind, rule, queue and payload, so that the same spec has the same id. */
    const char *id;
    const char *cron; /* five fields, six with seconds first, or @daily and the like; or... */
    int64_t every;    /* ... a distance, at least 1 s. Exactly one of both */
    enum lade_schedule_anchor anchor; /* of `every` */
    int64_t anchor_at;
    const char
        *tz; /* of cron: UTC, +02:00, Europe/Berlin; default: CRON_TZ= of the expression, UTC */
    enum lade_schedule_gap gap;
    enum lade_schedule_fold fold;
    enum lade_schedule_missed missed;
    uint32_t missed_max;   /* of LADE_MISSED_ALL: 1 to LADE_MISSED_MAX, default 100 */
    int64_t missed_window; /* times older than this are never made up for; 0 = however old */
    enum lade_schedule_overlap overlap;
    int64_t limit; /* fires in all, over all changes of the spec; then it has ended. 0 = no limit */
    int64_t start, end; /* fires within [start, end); 0 = open */
    /* Each fire is late by up to this much, always the same for the same time; below the distance of two fires. */
    int64_t jitter;
    bool paused;       /* a new schedule begins paused; one that is there stays as it is */
    lade_job_spec job; /* without id, in and at */
} lade_schedule_spec;

enum lade_schedule_change {
    LADE_SCHEDULE_UNCHANGED = 0,
    LADE_SCHEDULE_CREATED = 1,
    LADE_SCHEDULE_CHANGED = 2
};

typedef struct lade_schedule_id {
    char text[LADE_SCHEDULE_ID_MAX + 1];
} lade_schedule_id;

/*
 * Makes a schedule or changes it. The same spec again changes nothing: no time is moved. A changed rule counts from now, a
 * changed template from the next fire; what was counted stays. A new schedule does not fire at once. *id and *change may be
 * NULL. Returns 0. Failures: EINVAL and ETOOBIG with the field and the rule, before anything is written; then as lade_enqueue.
 */
LADE_API LADE_CHECKED int lade_schedule_set(lade *q, const lade_schedule_spec *spec,
                                            lade_schedule_id *id, enum lade_schedule_change *change,
                                            lade_err *err);

/* The checks of lade_schedule_set alone: writes nothing, asks no store. *id may be NULL. */
LADE_API LADE_CHECKED int lade_schedule_check(lade *q, const lade_schedule_spec *spec,
                                              lade_schedule_id *id, lade_err *err);

/* Removes a schedule; jobs that it made stay. Returns 0 or LADE_NOT_FOUND. */
LADE_API LADE_CHECKED int lade_schedule_remove(lade *q, const char *id, lade_err *err);
/* No fires until it is resumed. Returns 0, LADE_NOT_FOUND, or LADE_WRONG_STATE when it is paused or has ended. */
LADE_API LADE_CHECKED int lade_schedule_pause(lade *q, const char *id, lade_err *err);
/*
 * Goes on with the next time from now on; those of the pause are not missed. Also brings a broken one back when it can be read
 * now. Returns 0, LADE_NOT_FOUND, or LADE_WRONG_STATE when it is active or has ended.
 */
LADE_API LADE_CHECKED int lade_schedule_resume(lade *q, const char *id, lade_err *err);
/*
 * Puts its job now, beside its times, also of one that is paused or has ended; not counted by `limit`. `job` (may be NULL)
 * gets the job's id. Returns 0, LADE_NOT_FOUND, LADE_DUPLICATE when its unique key is held, or LADE_WRONG_STATE when the
 * schedule is broken.
 */
LADE_API LADE_CHECKED int lade_schedule_run(lade *q, const char *id, lade_id *job, lade_err *err);

/* ---------------------------------------------------------------------------------------------
 * Look
 * ------------------------------------------------------------------------------------------- */

enum lade_schedule_state {
    LADE_SCHEDULE_ACTIVE = 0,
    LADE_SCHEDULE_PAUSED = 1,
    LADE_SCHEDULE_ENDED = 2, /* its limit is reached or it has no more times */
    LADE_SCHEDULE_BROKEN = 3 /* what is stored cannot be read here: `error` says why */
};

#define LADE_N_SCHEDULE_STATES 4

/* "active" and so on; NULL for a value out of range. */
LADE_API const char *lade_schedule_state_name(enum lade_schedule_state state);

enum lade_fire_outcome {
    LADE_FIRE_DONE = 0,    /* the job was put */
    LADE_FIRE_MADE_UP = 1, /* put late, by the policy for missed times */
    LADE_FIRE_MISSED = 2,  /* passed over by that policy: `count` times from `at` on */
    LADE_FIRE_OVERLAP = 3, /* passed over, the last job had not ended: `count` times */
    LADE_FIRE_QUEUED = 4,  /* waits for the end of the last job */
    LADE_FIRE_DUPLICATE =
        5, /* not put: another job holds the unique key, or this time's job is there */
    LADE_FIRE_BY_HAND = 6 /* lade_schedule_run */
};

#define LADE_N_FIRE_OUTCOMES 7

/* "fired", "made up" and so on; NULL for a value out of range. */
LADE_API const char *lade_fire_outcome_name(enum lade_fire_outcome outcome);

/* One thing that happened; the newest LADE_SCHEDULE_HISTORY are kept. */
typedef struct lade_fire {
    int64_t at;      /* nominal time */
    int64_t seen_at; /* when it was done */
    enum lade_fire_outcome outcome;
    uint64_t count;
} lade_fire;

typedef struct lade_schedule_view {
    const char *id;
    enum lade_schedule_state state;
    const char *error;              /* of a broken one; else "" */
    const lade_schedule_spec *spec; /* NULL when it cannot be read */
    int64_t anchor_at;              /* what `every` counts from */
    int64_t next_at;                /* the next nominal time; 0 = none */
    int64_t due_at;                 /* when it will be looked at: with jitter */
    int64_t last_at;                /* nominal time of the last fire; 0 = none yet */
    int64_t queued_at;              /* LADE_OVERLAP_QUEUE_ONE: the time that waits; 0 = none */
    const char *last_job;           /* id of its job; "" = none yet */
    uint64_t n_fired, n_missed, n_overlaps, n_duplicates;
    int64_t created_at, changed_at;
    const char *tzdata; /* release of the zone data that next_at is from, "2026f"; "" = unknown */
    const lade_fire *history; /* oldest first */
    size_t n_history;
} lade_schedule_view;

/* One schedule. Returns 0 or LADE_NOT_FOUND. On 0 *out is the caller's, one block: lade_schedule_view_free. */
LADE_API LADE_CHECKED int lade_schedule_get(lade *q, const char *id, lade_schedule_view **out,
                                            lade_err *err);
LADE_API void lade_schedule_view_free(lade_schedule_view *view);
/*
 * Up to `limit` (1 to 1,000) schedules by id, from the cursor on. Writes *n views to out, each the caller's. Returns 0, or
 * LADE_EMPTY when the page is empty and the listing done.
 */
LADE_API LADE_CHECKED int lade_schedule_list(lade *q, lade_cursor *cursor, size_t limit,
                                             lade_schedule_view **out, size_t *n, lade_err *err);

/* Who looks for what is due. Nobody: `name` is "". */
typedef struct lade_schedule_leader {
    char name[LADE_NAME_MAX + 1];
    char id[LADE_ID_MAX + 1];
    uint64_t fence;      /* grows with every change of the leader */
    int64_t seen_at;     /* when somebody last looked; 0 = never */
    int64_t lease_until; /* when another may take over unless it looks again */
} lade_schedule_leader;

LADE_API LADE_CHECKED int lade_schedule_get_leader(lade *q, lade_schedule_leader *out,
                                                   lade_err *err);

enum lade_time_note {
    LADE_TIME_PLAIN = 0,
    LADE_TIME_SHIFTED = 1,    /* its local time was left out by a change of the clock */
    LADE_TIME_FIRST_PASS = 2, /* of a local time that comes twice */
    LADE_TIME_SECOND_PASS = 3
};

typedef struct lade_schedule_time {
    int64_t at;         /* ns since 1970 */
    int32_t utc_offset; /* of the zone then, in seconds: local = UTC + offset */
    char zone[16];      /* "CEST" */
    enum lade_time_note note;
} lade_schedule_time;

/*
 * The times that a spec names in [from, to), at most `max` of them; `limit`, `paused` and `jitter` do not matter. Asks no store,
 * `job` may be empty. LADE_ANCHOR_START without `start` counts from anchor_at, or else from `from`. Returns 0, or LADE_MORE when
 * there are more. Failures: EINVAL.
 */
LADE_API LADE_CHECKED int lade_schedule_preview(const lade_schedule_spec *spec, int64_t from,
                                                int64_t to, lade_schedule_time *out, size_t max,
                                                size_t *n, lade_err *err);

/*
 * Parts of the id of a job that a schedule made: the schedule and the nominal time (0 of a run by hand). False when it is none.
 */
LADE_API bool lade_schedule_of_job(const char *job_id, lade_schedule_id *id, int64_t *at);

/* ---------------------------------------------------------------------------------------------
 * Run
 * ------------------------------------------------------------------------------------------- */

/*
 * Every worker runs schedules unless its config says no_scheduler; this runs them without handlers. Any number may run; one
 * leads. A store without schedules is left in peace.
 */
typedef struct lade_scheduler lade_scheduler;

/* Zero means the default in every field. */
typedef struct lade_scheduler_config {
    const char *name; /* shown to operators; default host:pid */
    int64_t lease;    /* how long a leader that died is missed at most; default 5 s, 1 s to 1 min */
    void (*log)(void *ctx, const char *line); /* one line; NULL = stderr */
    void *log_ctx;
} lade_scheduler_config;

typedef struct lade_scheduler_stats {
    bool leads;
    uint64_t looks; /* at the store */
    uint64_t fired, made_up, missed, overlaps, duplicates;
    uint64_t failed;    /* fires that the store did not take; each is tried again */
    uint64_t takeovers; /* how often this one became the leader */
} lade_scheduler_stats;

/* `q` must outlive it. Failures: EINVAL, ENOMEM, EUNSUPPORTED. */
LADE_API LADE_CHECKED int lade_scheduler_open(lade_scheduler **out, lade *q,
                                              const lade_scheduler_config *config, lade_err *err);
/* Runs until stopped; then another may lead at once. Outages of the store are ridden out. Signals are the caller's matter. */
LADE_API LADE_CHECKED int lade_scheduler_run(lade_scheduler *s, lade_err *err);
/* Any thread; async-signal-safe. */
LADE_API void lade_scheduler_stop(lade_scheduler *s);
LADE_API void lade_scheduler_get_stats(lade_scheduler *s, lade_scheduler_stats *out);
/* Frees; NULL is allowed. It must not be running. */
LADE_API void lade_scheduler_close(lade_scheduler *s);

#ifdef __cplusplus
}
#endif
#endif
