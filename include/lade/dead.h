/*
 * dead.h - the dead: why jobs died, by class; and bringing them back with care
 *
 * Included by lade.h. Every dead job is in one class: a fingerprint of its kind and of its last error with what differs from one
 * error to the next masked (numbers, ids, quotes, addresses). The store counts each class exactly, in the step that moves a job
 * into the dead or out of them. docs/dead.md has the rules.
 *
 * Everything here is bounded: a call looks at no more jobs than its caller says, moves each in one atomic step, and only when it is
 * still the same death that was looked at. So operators may work beside each other: of two who want the same job moved one gets
 * it. Threads: as lade.h says of `lade`; a lade_redrive belongs to one thread.
 */
#ifndef LADE_DEAD_H
#define LADE_DEAD_H

#include <lade/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lade;
struct lade_job_view;
struct lade_cursor;

#define LADE_DEAD_CLASS_MAX      32  /* characters of a class */
#define LADE_DEAD_CLASS_TEXT_MAX 200 /* bytes of its text; longer is cut */
#define LADE_DEAD_CLASSES_MAX \
    512 /* with a job in them, in a queue; what is beyond is in the class "other" */
#define LADE_DEAD_CANARY_MAX 100

/* A class of deaths in one queue. */
typedef struct lade_dead_class {
    char id[LADE_DEAD_CLASS_MAX + 1]; /* 12 hex digits; or "killed", and "other" */
    char queue[129];
    char kind[129]; /* of the death that made the class; "" for killed and other */
    char text[LADE_DEAD_CLASS_TEXT_MAX + 1]; /* its masked error */
    char sample[65];                         /* id of the job in it that died last */
    uint64_t count;                          /* dead now: exact */
    int64_t first_seen, last_seen;           /* deaths since the class came to be, ns since 1970 */
} lade_dead_class;

/*
 * The classes of a queue, or of all with `queue` NULL; the largest first. Costs O(classes), however many jobs are dead.
 * Returns 0, *n = 0 when nothing is dead. *out is one array, the caller's: lade_free.
 * Failures: EINVAL, EUNSUPPORTED (a store without classes), EUNAVAILABLE, ENOMEM.
 */
LADE_API LADE_CHECKED int lade_dead_classes(struct lade *q, const char *queue,
                                            lade_dead_class **out, size_t *n, lade_err *err);

/* The class that a death of `kind` with `error` has (unless its queue has too many: "other"). */
LADE_API void lade_dead_class_of(const char *kind, lade_bytes error,
                                 char id[LADE_DEAD_CLASS_MAX + 1]);

/* Which dead jobs: all of what is set must hold. Zero = all. Strings are borrowed. */
typedef struct lade_dead_filter {
    const char *class_id;
    const char *kind;
    const char *reason;   /* "exhausted", "killed", "quarantined", "unrecoverable" */
    int64_t from, before; /* time of death, ns since 1970: from <= death < before; 0 = open */
} lade_dead_filter;

/*
 * Looks at up to `limit` (1 to 1,000) dead jobs from the cursor on, oldest death first, and writes those that match: *n views,
 * each the caller's (lade_job_view_free). None may match and more be there: go on until cursor->done. By class it costs O(limit)
 * whatever else is dead; with kind and reason the jobs of the class, or of the queue, are looked through.
 * Returns 0, or LADE_EMPTY when nothing was written and the listing is done. `filter` NULL = all.
 * Failures: EINVAL, EUNSUPPORTED, EUNAVAILABLE, ENOMEM.
 */
LADE_API LADE_CHECKED int lade_dead_list(struct lade *q, const char *queue,
                                         const lade_dead_filter *filter, struct lade_cursor *cursor,
                                         size_t limit, struct lade_job_view **out, size_t *n,
                                         lade_err *err);

enum lade_dead_verb {
    LADE_DEAD_REDRIVE = 0, /* back to ready, with all attempts again */
    LADE_DEAD_REMOVE = 1   /* gone */
};

/*
 * Moves n jobs that a listing showed, each only when it has not moved since. outcomes[i] (may be NULL) is 0, LADE_NOT_FOUND or
 * LADE_WRONG_STATE: somebody else moved it, perhaps it is dead once more. Returns 0 when all are 0, else the first outcome.
 * n is at most 1,000. Failures: EINVAL, EUNSUPPORTED, EUNAVAILABLE, ENOMEM.
 */
LADE_API LADE_CHECKED int lade_dead_move(struct lade *q, enum lade_dead_verb verb,
                                         const struct lade_job_view *const *jobs, size_t n,
                                         int *outcomes, lade_err *err);

enum lade_redrive_phase {
    LADE_REDRIVE_CANARY = 0,   /* the first jobs are being moved */
    LADE_REDRIVE_WATCHING = 1, /* they run; nothing else is moved */
    LADE_REDRIVE_MOVING = 2,
    LADE_REDRIVE_DONE = 3,          /* none is left, or the limit is reached */
    LADE_REDRIVE_CANARY_FAILED = 4, /* one of them failed again of its class */
    LADE_REDRIVE_CANARY_OPEN = 5,   /* canary_wait is over, and one of them has not run */
    LADE_REDRIVE_STOPPED = 6        /* stop_on */
};

/* What to bring back, or remove, and how carefully. Zero = off, or the default. Strings are copied by open. */
typedef struct lade_redrive_plan {
    const char *queue; /* required */
    /*
     * before = 0 becomes now: what dies again is not moved twice. A run that was interrupted, by SIGKILL too, is taken up by
     * another with the same filter and the `before` that its report named.
     */
    lade_dead_filter filter;
    enum lade_dead_verb verb;
    uint64_t limit; /* most jobs to move */
    int64_t rate;   /* jobs a second, in fifths of a second; at most 1,000,000 */
    size_t
        canary; /* so many first, at most LADE_DEAD_CANARY_MAX; the rest when all of them ended, or failed otherwise */
    int64_t canary_wait; /* how long they may take; 0 = 5 min; at least 1 ms */
    uint64_t
        stop_on; /* stop when so many died since the start, of the class when there is one; at most 1,000 */
} lade_redrive_plan;

typedef struct lade_redrive_report {
    enum lade_redrive_phase phase;
    uint64_t matched, moved;
    uint64_t lost;       /* matched, but somebody else moved them first */
    uint64_t died_again; /* as far as canary and stop_on looked */
    int64_t before;      /* the moment that the run is about the deaths before */
    int64_t wait;        /* LADE_MORE: ns until the next step has something to do; 0 = at once */
} lade_redrive_report;

typedef struct lade_redrive lade_redrive;

/*
 * Begins a run; nothing is moved yet. Several may run at once, also over the same jobs: each job is moved once, by one of them.
 * On 0 *out is the caller's: lade_redrive_close. Failures: EINVAL, EUNSUPPORTED, EUNAVAILABLE, ENOMEM.
 */
LADE_API LADE_CHECKED int lade_redrive_open(lade_redrive **out, struct lade *q,
                                            const lade_redrive_plan *plan, lade_err *err);
/*
 * One bounded step: looks at up to 100 dead jobs and moves those that match. Does not sleep: the caller waits report->wait.
 * Returns LADE_MORE while there is more to do, and 0 when the run has ended: the phase says how. `report` may be NULL.
 * After a failure the step may be repeated.
 */
LADE_API LADE_CHECKED int lade_redrive_step(lade_redrive *r, lade_redrive_report *report,
                                            lade_err *err);
/* Ends the run where it is; NULL is allowed. */
LADE_API void lade_redrive_close(lade_redrive *r);

/*
 * Gives a job another payload, and with `retry` makes it ready in the same step, as lade_job_act does. Scheduled, ready, retrying,
 * dead and cancelled jobs; everything else of the job stays as it was enqueued. `queue` NULL looks in every queue.
 * Returns 0, LADE_NOT_FOUND or LADE_WRONG_STATE (active, completed; with retry: ready, too).
 * Failures: EINVAL, ETOOBIG, EFORMAT (its envelope cannot be read), EUNSUPPORTED, EUNAVAILABLE, ENOMEM.
 */
LADE_API LADE_CHECKED int lade_job_edit(struct lade *q, const char *queue, const char *id,
                                        lade_bytes payload, bool retry, lade_err *err);

#ifdef __cplusplus
}
#endif

#endif
