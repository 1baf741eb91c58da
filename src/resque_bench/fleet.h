/*
 * fleet.h - simulated workers: connections, and what each waits for
 *
 *           +------------------------------- hit -----------------------------+
 *           v                                                                 |
 *   start -> [pause key] -> [names of queues] -> pop queue 0 .. N-1 --miss--> [state] -> [names] -> sleep -> start
 *                                                   |
 *                                                  hit -> [SET, GET, then DEL and two INCRBY, as a Ruby worker]
 *
 * In brackets what only the profile resque sends; each command waits for its answer, as Ruby's do. Blocking modes have a
 * blocking command for "pop" and no sleep. A connection that is lost is dialed again; while the server is away only one is tried at
 * a time.
 *
 * Thread safety: one thread.
 */
#ifndef LADE_RESQUE_BENCH_FLEET_H
#define LADE_RESQUE_BENCH_FLEET_H

#include "resque_bench/rb_server.h"

struct rb_worker;
struct rb_lane;

/* What a phase counts; zeroed by the phase. */
struct rb_counts {
    uint64_t hits;          /* ours */
    uint64_t errors;        /* entries that are no jobs, refused commands, lost connections */
    uint64_t broken;        /* of those, entries */
    uint64_t foreign;       /* jobs of others */
    uint64_t polls;         /* pops that were sent */
    uint64_t misses;        /* and answered with nothing */
    uint64_t lost_commands; /* sent, and the connection broke before the answer */
    uint64_t reconnects;
    uint64_t cycles;          /* that found nothing */
    int64_t cycle_ns;         /* from their first command to their last answer, together */
    uint64_t sum, mix;        /* of the numbers of our jobs: proves that each came once */
    uint64_t sent[RB_N_CMDS]; /* answered */
};

/* Jobs put one by one while the fleet runs. */
struct rb_arrivals {
    uint64_t n;   /* how many; 0 = none */
    int64_t gap;  /* ns between two */
    int64_t from; /* mono: when the first is due */
    bool
        jitter; /* each somewhere within its gap, so that arrivals do not keep step with the polls */
    uint64_t sent, acked;
};

struct rb_fleet {
    struct rb_server *server;
    const struct rb_options *o;
    enum rb_mode mode;
    struct rb_worker *worker; /* n, and the producer */
    size_t n;
    struct rb_lane *lane; /* n_lanes, and the producer's */
    size_t n_lanes;
    int epoll;

    struct rb_worker **heap; /* those that sleep, the first to wake on top */
    size_t n_heap;

    struct lb_buf key;   /* being put together */
    int64_t wall_offset; /* wall - mono, taken once: a clock that steps does not change a latency */

    bool quiet;         /* no new commands: what is on its way is awaited */
    size_t outstanding; /* workers that wait for an answer */
    bool overflow;      /* more entries of others than can be held: the run must end */
    int64_t down_until; /* the server is away: the next try to reach it */
    int64_t last_hit;   /* mono */

    struct rb_counts count;
    struct lb_hdr *latency; /* put to got, ns; NULL = not wanted */
    struct lb_hdr *second;  /* the same, of this second; NULL */
    struct lb_hdr *rtt;     /* of pops that do not block */
    struct rb_arrivals arrivals;
    struct rb_worker *producer;
};

/* Connects n workers. 0, or the failure of the first that could not. */
LADE_CHECKED int rb_fleet_open(struct rb_fleet *f, struct rb_server *s, enum rb_mode mode, size_t n,
                               lade_err *err);
void rb_fleet_close(struct rb_fleet *f);

/* Every worker begins its first cycle now, or spread over one interval (--poll-start). */
void rb_fleet_start(struct rb_fleet *f, bool spread);
/* When arrival i is due, mono. */
int64_t rb_due_at(const struct rb_arrivals *a, uint64_t i);
/* Begins jobs at f->arrivals. */
LADE_CHECKED int rb_fleet_produce(struct rb_fleet *f, lade_err *err);
/* Waits for events until `until` (mono) at most and handles them. */
void rb_fleet_step(struct rb_fleet *f, int64_t until);
/* No more commands; waits for answers that are due until `until`. Blocked pops are given up at once: their queues are empty. */
void rb_fleet_settle(struct rb_fleet *f, int64_t until);
/* Whether an answer is due that was asked for before `at`. */
bool rb_fleet_waits_since(const struct rb_fleet *f, int64_t at);
/* Every worker has its connection. */
bool rb_fleet_is_whole(const struct rb_fleet *f);
void rb_fleet_reset_counts(struct rb_fleet *f);

#endif
