/* fleet_inner.h - what fleet.c (time and connections), fleet_step.c (commands and answers) share. Thread safety: one thread. */
#ifndef LADE_RESQUE_BENCH_FLEET_INNER_H
#define LADE_RESQUE_BENCH_FLEET_INNER_H

#include "resque_bench/fleet.h"

enum rb_stage {
    RB_ASLEEP,  /* in the heap */
    RB_STOPPED, /* nothing to do any more */
    RB_DOWN,    /* a lane's dialer: in the heap, to dial */
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

/* Workers one behind the other. */
struct rb_line {
    struct rb_worker *first, *last;
};

struct rb_worker {
    struct rb_lane *lane;
    struct rb_worker *next; /* in a line */
    enum rb_stage stage;
    uint32_t replies; /* of what is on its way */
    size_t reply;     /* the first of them, among those of the lane */
    uint32_t queue;   /* being popped */
    uint32_t number;  /* slot */
    bool behind;      /* the pop stands behind an LREM */
    int64_t sent_at, wake_at;
    int64_t cycle_at; /* when this cycle's first command went out */
    int64_t planned;  /* when this cycle was due: lateness of ours does not slow the fleet */
    size_t heap_at;   /* SIZE_MAX = not in it */
    size_t putting;   /* the producer: jobs on their way */
    struct rq_pace pace;
    struct lb_buf entry; /* of profile resque and blmove: the job in hand */
};

/*
 * A connection and its workers: one, or with --connections several, which then share its writes and reads. What is ready while
 * answers are due waits for the last of them: a round is one write and, mostly, one read.
 */
struct rb_lane {
    struct ls_redis_conn *conn;
    int fd; /* known to epoll; -1 = down, the dialer is in the heap */
    bool
        reached; /* always false before a dial, so that a server that is not there is told at once */
    bool
        answering; /* in the middle of a round's answers: what becomes ready goes out behind them */
    struct rb_line ready, flight;
    struct rb_worker dialer;
};

void rb_heap_add(struct rb_fleet *f, struct rb_worker *w, int64_t at);
void rb_heap_remove(struct rb_fleet *f, struct rb_worker *w);

/* Makes a stage the worker's, whose commands go out with the next round of its lane: at once, unless answers are due. */
void rb_send(struct rb_fleet *f, struct rb_worker *w, enum rb_stage stage);
/* The first stage of a cycle. */
void rb_begin(struct rb_fleet *f, struct rb_worker *w);
void rb_line_add(struct rb_line *l, struct rb_worker *w);
struct rb_worker *rb_line_take(struct rb_line *l);
/* Sends what is ready, unless answers are due. */
void rb_lane_flush(struct rb_fleet *f, struct rb_lane *lane);
/* All answers of a round are there. */
void rb_lane_answered(struct rb_fleet *f, struct rb_lane *lane, int64_t now);
/* The connection is gone. */
void rb_lane_lost(struct rb_fleet *f, struct rb_lane *lane);
void rb_put_due(struct rb_fleet *f, int64_t now);

#endif
