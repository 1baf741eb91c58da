/*
 * settle.h - what a store is told of the end of a lease (store.h)
 */
#ifndef LADE_QUEUE_SETTLE_H
#define LADE_QUEUE_SETTLE_H

#include <lade/lade.h>

#include "base/slice.h"

#define LQ_FOLLOW_MAX     31   /* steps handed out behind a leased one */
#define LQ_GOES_ON_RESULT 4096 /* bytes of the result of a step that goes on */

enum lq_to {
    LQ_TO_COMPLETED = 0,
    LQ_TO_RETRYING = 1,  /* due delay_ms from the store's now */
    LQ_TO_SCHEDULED = 2, /* the same, snoozed */
    LQ_TO_READY = 3,     /* handed back: first of its level */
    LQ_TO_DEAD = 4,
    LQ_TO_CANCELLED = 5,
    LQ_TO_GONE = 6,     /* nothing is kept */
    LQ_TO_THROTTLED = 7 /* as READY, and nothing of its key is taken for delay_ms from now */
};

/* Why a job is dead; stored as one character. */
enum lq_reason {
    LQ_REASON_NONE = ' ',
    LQ_REASON_EXHAUSTED = 'x',
    LQ_REASON_KILLED = 'k',
    LQ_REASON_QUARANTINED = 'q',
    LQ_REASON_UNRECOVERABLE = 'u'
};

/*
 * Deaths of a queue are counted by class: what killed the job, as the engine sees it (fingerprint.h). The step that moves a job
 * into the dead or out of them counts. A queue has at most LQ_CLASSES_MAX classes with a job in them; a death that would make
 * one more is of the class LQ_CLASS_OTHER, and so is one whose class there is no memory for. A class without a job is gone.
 */
#define LQ_CLASS_MAX      32  /* bytes of its name, a-z 0-9 */
#define LQ_CLASS_TEXT_MAX 200 /* bytes of its text; longer is cut by the engine */
#define LQ_CLASSES_MAX    512
#define LQ_CLASS_OTHER    "other"

struct lq_death {
    struct lb_slice name;       /* of the class */
    struct lb_slice kind, text; /* for show, of the death that made the class */
};

/* The word of a reason, which also names the class of a death without a class; "" for none. */
static inline const char *lq_reason_word(enum lq_reason reason)
{
    switch (reason) {
    case LQ_REASON_EXHAUSTED:
        return "exhausted";
    case LQ_REASON_KILLED:
        return "killed";
    case LQ_REASON_QUARANTINED:
        return "quarantined";
    case LQ_REASON_UNRECOVERABLE:
        return "unrecoverable";
    case LQ_REASON_NONE:
    default:
        return "";
    }
}

struct lq_settle {
    const char *queue;
    struct lb_slice id;
    uint64_t fence;
    enum lq_to to;
    int64_t delay_ms;
    struct lb_slice history; /* the whole new history; {NULL,0} = leave what is there */
    struct lb_slice result;  /* COMPLETED; may be empty */
    /*
     * COMPLETED with a result: > 0: it is kept so long, whatever becomes of the record of its job; only the op REMOVE takes it along.
     * 0: as long as that record. While both are there the record shows it.
     */
    int64_t result_ttl_ms;
    enum lq_reason reason; /* DEAD */
    const struct lq_death
        *death;      /* DEAD; NULL: the class is named as the reason, so it is of a kill */
    bool failed;     /* counts into total_failed */
    bool unroutable; /* SCHEDULED because no handler here knows its kind */
    bool broken_off; /* its handler ran, and the worker stopped it */
    /* For the queue's stream of events, when it has one: what the store cannot know. All may be empty. */
    uint32_t attempt;
    int64_t took_us;
    struct lb_slice kind, error; /* the error of `failed`, at most LQ_EVENT_REASON_MAX bytes */
    /*
     * COMPLETED, without history and `failed`, with at most LQ_GOES_ON_RESULT bytes of a result that goes with the record; else it may be
     * ignored. The step that follows (lq_leased.follow) is in the caller's hands already: when it may begin by this, it is leased to the
     * owner of this lease, under the same fence, and not put into the ready ones. A pause or a limit that came since the take does
     * not matter. Items of a call are settled in their order, so a later one may settle that step.
     */
    bool goes_on;
    /* out */
    bool went_on; /* of goes_on: it is the caller's; a repeat of the call answers alike */
    int outcome; /* 0 or LADE_STALE. A job an operator cancelled or killed while active ends cancelled or dead
                  * whatever `to` says, but LQ_TO_COMPLETED stays completed; that is 0. */
};

#endif
