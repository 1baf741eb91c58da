/*
 * scheduler.h - the thread that fires schedules; one in each worker, and lade_scheduler
 *
 *     tick -> leads: plan and fire what is due, one atomic step of the store each
 *          -> does not: nothing
 *     wait -> until the next is due, the lead is to be kept (leader) or may be free (others), or somebody rings
 *
 * A schedule that fails does not stop the others: one that cannot be read is written back as BROKEN, with the reason; one
 * that the store does not take is due again at the next look.
 */
#ifndef LADE_QUEUE_SCHEDULER_H
#define LADE_QUEUE_SCHEDULER_H

#include <stdatomic.h>

#include "base/ident.h"
#include "base/list.h"
#include "queue/client.h"
#include "queue/schedule.h"
#include "rt/seam.h"

#define LQ_SCHEDULER_LEASE (5 * LADE_SECOND)

struct lade_scheduler {
    lade *q;
    char holder[LB_ULID_LEN + 1];
    char name[LADE_NAME_MAX + 1];
    int64_t lease;
    void (*log)(void *ctx, const char *line);
    void *log_ctx;
    struct lr_mutex lock;
    atomic_bool stop;
    struct lr_event control;    /* raised with stop, for lade_scheduler_run */
    bool running, ticked;       /* guarded by: lock; ticked: the store may know the holder */
    lade_scheduler_stats stats; /* guarded by: lock */
    struct lr_thread thread;    /* of a worker's; started by lq_scheduler_rouse. guarded by: lock */
    bool is_workers;
    bool
        is_run; /* its worker runs: without that, nobody would end a thread of it. guarded by: lock */
    struct lb_list in_client; /* guarded by: q->schedulers_lock */

    /* the thread's own */
    uint64_t fence;
    char tzdata[16];
    int failures;     /* of ticks, in a row */
    bool fire_failed; /* complained of */
    int64_t next_ms;  /* on the store's clock: when the last look said to look again; 0 = never */
};

/* 0 or EUNSUPPORTED. */
LADE_CHECKED int lq_schedules_check(const lade *q, lade_err *err);

/* For workers, when they run: from now on a thread may be started. NULL is allowed. */
void lq_scheduler_allow(struct lade_scheduler *s);
/* For workers. Starts the thread unless it runs; nothing after a stop. Any thread. */
void lq_scheduler_rouse(struct lade_scheduler *s);
/* Makes it end and waits for that. */
void lq_scheduler_join(struct lade_scheduler *s);
/* All of this handle: there is a new schedule, and those that run were rung by the store. */
void lq_schedulers_rouse(lade *q);

/* A clock set back by less is waited for, so that no time comes twice. */
#define LQ_BACK_MS 60000

static inline bool lq_scheduler_is_stopping(struct lade_scheduler *s)
{
    return atomic_load(&s->stop);
}

/* One line to the log. */
void lq_scheduler_say(struct lade_scheduler *s, const char *format, ...) LADE_PRINTF(2, 3);

/*
 * schedule_act.c: writes another memo over `was`, in a step of its own: what the store said of a fire after it was written. It is for
 * people: when the record has changed meanwhile, it is left out. 0 or a failure.
 */
int lq_schedule_mend_memo(lade *q, struct lb_slice id, uint64_t fence, struct lb_slice was,
                          const struct lq_memo *memo);

/* scheduler_fire.c: fires the rows of a tick; looks through all schedules. */
void lq_scheduler_fire(struct lade_scheduler *s, struct lq_schedule_vec *vec, int64_t now_ms);
LADE_CHECKED int lq_scheduler_audit(struct lade_scheduler *s, int64_t now_ms, lade_err *err);

/* One look at the store; until when to wait (lb_clock_mono) in *until. The tick's result. */
LADE_CHECKED int lq_scheduler_look(struct lade_scheduler *s, int64_t *until, lade_err *err);

#endif
