/* fleet_inner.h - what fleet.c (time and connections), fleet_step.c (commands and answers) share. Thread safety: one thread. */
#ifndef LADE_RESQUE_BENCH_FLEET_INNER_H
#define LADE_RESQUE_BENCH_FLEET_INNER_H

#include "resque_bench/fleet.h"

enum rb_stage {
    RB_ASLEEP,  /* in the heap */
    RB_STOPPED, /* nothing to do any more */
    RB_DOWN,    /* in the heap, to dial */
    RB_PAUSE,   /* GET pause-all-workers */
    RB_NAMES,   /* SMEMBERS queues */
    RB_POP,     /* LPOP, BLPOP, BLMOVE */
    RB_DOING,   /* SET worker:<id> */
    RB_DOING_2, /* GET worker:<id> */
    RB_DONE,    /* DEL, INCRBY, INCRBY */
    RB_STATE,   /* GET worker:<id> after a miss */
    RB_NAMES_2, /* SMEMBERS queues, for the title of the process */
    RB_PUTTING  /* the producer: RPUSH */
};

struct rb_worker {
    struct ls_redis_conn *conn;
    int fd; /* known to epoll; -1 */
    enum rb_stage stage;
    uint32_t queue;  /* being popped */
    uint32_t number; /* slot */
    bool behind;     /* the pop stands behind an LREM */
    int64_t sent_at, wake_at;
    int64_t cycle_at; /* when this cycle's first command went out */
    int64_t planned;  /* when this cycle was due: lateness of ours does not slow the fleet */
    size_t heap_at;   /* SIZE_MAX = not in it */
    size_t putting;   /* the producer: jobs on their way */
    struct rq_pace pace;
    struct lb_buf entry; /* of profile resque and blmove: the job in hand */
};

void rb_heap_add(struct rb_fleet *f, struct rb_worker *w, int64_t at);
void rb_heap_remove(struct rb_fleet *f, struct rb_worker *w);

/* Sends the commands of a stage, which becomes the worker's. */
void rb_send(struct rb_fleet *f, struct rb_worker *w, enum rb_stage stage);
/* The first stage of a cycle. */
void rb_begin(struct rb_fleet *f, struct rb_worker *w);
/* All replies of what was sent are there. */
void rb_answered(struct rb_fleet *f, struct rb_worker *w, int64_t now);
/* The connection is gone. */
void rb_lost(struct rb_fleet *f, struct rb_worker *w);
void rb_put_due(struct rb_fleet *f, int64_t now);

#endif
