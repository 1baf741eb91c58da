/*
 * schedule_store.h - what the engine asks of a store for schedules
 *
 * A store keeps records: an id, two blobs of the engine's (spec: what the user set; memo: what has happened so far), a state
 * and a due time. What a rule means only the engine knows. Every change gives the record a revision that no record had
 * before; who changes one says which revision it has read, and gets STALE when that is no longer the record's. Firing is the
 * put of the jobs and the change of the record in one atomic step. So a time fires once, whatever anybody believes of leaders;
 * the leader is there for economy, and its fence keeps one that was asleep for long from acting at all.
 *
 * Thread safety, results and times: as store.h.
 */
#ifndef LADE_QUEUE_SCHEDULE_STORE_H
#define LADE_QUEUE_SCHEDULE_STORE_H

#include "queue/store.h"

#define LQ_FIRE_MAX      100        /* jobs of one fire */
#define LQ_DUE_MAX       100        /* records of one tick */
#define LQ_SCHEDULES_MAX 100000     /* more are not taken */
#define LQ_SPEC_BYTES    (66 << 20) /* longest spec: a payload and what goes with it */

struct lq_schedule_row {
    struct lb_slice id, spec, memo;
    enum lade_schedule_state state;
    int64_t due_ms; /* > 0 when ACTIVE, else 0 */
    uint64_t revision;
};

struct lq_schedule_vec {
    struct lb_arena
        arena; /* the caller inits and finis it; ops append. The bytes are the caller's, each followed by a NUL */
    struct lq_schedule_row *row;
    size_t n;
};

/* A change of a record, or a new one. */
struct lq_schedule_put {
    struct lb_slice id, spec, memo; /* id 1..LADE_SCHEDULE_ID_MAX */
    enum lade_schedule_state state;
    int64_t due_ms;
    uint64_t revision; /* that was read; 0: the id must be free */
};

/* What a fire leaves; spec stays. */
struct lq_schedule_half {
    struct lb_slice memo;
    enum lade_schedule_state state;
    int64_t due_ms;
};

struct lq_fire {
    struct lb_slice id;
    uint64_t revision;
    uint64_t fence;     /* the leader's; 0: by hand */
    struct lq_put *put; /* to one queue; outcomes as in put */
    size_t n;           /* 0..LQ_FIRE_MAX */
    const char *busy_queue;
    struct lb_slice
        busy_id; /* empty: does not matter. While that job has not ended, nothing is put, and `held` is what is left */
    struct lq_schedule_half fired, held;
    bool busy; /* out */
};

struct lq_tick {
    const char *holder; /* [A-Za-z0-9]{1,LADE_ID_MAX} */
    const char *name;   /* for operators */
    int64_t lease_ms;
    size_t max; /* records; 1..LQ_DUE_MAX */
    /* out */
    bool any;         /* a record is ACTIVE. When none is, nobody leads */
    bool leads;       /* the holder does */
    bool took_over;   /* since this call */
    uint64_t fence;   /* leads: of this leadership */
    int64_t now_ms;   /* the store's */
    int64_t until_ms; /* when the leader's lease ends */
    int64_t next_ms;  /* leads: when the earliest record that was not returned is due; 0 = none */
    int64_t
        back_ms; /* leads: by how much the clock is behind the last look of a leader; 0 = it is not */
};

struct lq_schedule_ops {
    /* 0; LADE_STALE when the record has another revision, is not there, or (revision 0) is; LADE_FULL. Rings all who watch. */
    int (*put)(struct lq_store *s, const struct lq_schedule_put *it, lade_err *err);
    /* 0 or NOT_FOUND. */
    int (*remove)(struct lq_store *s, struct lb_slice id, lade_err *err);
    /* Appends one row; NOT_FOUND. */
    int (*get)(struct lq_store *s, struct lb_slice id, struct lq_schedule_vec *out, lade_err *err);
    /* Up to limit rows in the order of their ids' bytes, from the cursor on; as list of store.h. */
    int (*list)(struct lq_store *s, lade_cursor *cursor, size_t limit, struct lq_schedule_vec *out,
                lade_err *err);
    /*
     * Leads when nobody else does, keeps the lead, and gets what is due, earliest first, with the rows' bytes. A lease that ends
     * later than lease_ms from now (the clock was set back) is cut to that. Registers the holder to be rung, see wait.
     */
    int (*tick)(struct lq_store *s, struct lq_tick *tick, struct lq_schedule_vec *due,
                lade_err *err);
    /* 0, or LADE_STALE: the revision is another, the record not there, or the fence older than the leader's. Nothing was done. */
    int (*fire)(struct lq_store *s, struct lq_fire *fire, lade_err *err);
    /* The holder leads no more and is forgotten; rings all who watch when it did. */
    int (*resign)(struct lq_store *s, const char *holder, lade_err *err);
    /* id and name "" when nobody leads. */
    int (*leader)(struct lq_store *s, lade_schedule_leader *out, lade_err *err);
    /*
     * Blocks until a put, a resign, wake() or the deadline (lb_clock_mono) since the holder's last tick; may return early. 0 or
     * LADE_EMPTY. Whoever has waited is rung again after its next tick only. One thread for each holder.
     */
    int (*wait)(struct lq_store *s, const char *holder, int64_t deadline, lade_err *err);
    /* Any thread. */
    void (*wake)(struct lq_store *s, const char *holder);
};

/* As the engine calls them: fault points NAME.before and NAME.after, as in store.h. */
LADE_CHECKED int lq_schedule_put(struct lq_store *s, const struct lq_schedule_put *it,
                                 lade_err *err);
LADE_CHECKED int lq_schedule_tick(struct lq_store *s, struct lq_tick *tick,
                                  struct lq_schedule_vec *due, lade_err *err);
LADE_CHECKED int lq_schedule_fire(struct lq_store *s, struct lq_fire *fire, lade_err *err);
LADE_CHECKED int lq_schedule_resign(struct lq_store *s, const char *holder, lade_err *err);

#endif
