/*
 * model.h - a store and the reference model in lockstep
 *
 * A run draws ops from a seed and does each on both sides, the memory store (MODEL) and the store under test (STORE). What
 * they answer and what they then hold must be the same, but for what the contract leaves open:
 * - fences: each side has its own numbers, kept with each lease; only their validity is compared;
 * - the order of what falls due or ends in the same millisecond: due times are drawn so that no two are equal, at most
 *   one job of a queue enters an ended state in one op, and time passes after each op;
 * - when jobs that operators ended are held to the bounds of retention: a trim follows at once;
 * - which jobs a bounded purge removes first: purges are repeated until nothing is left;
 * - where in a listing of READY the jobs of a key stand;
 * - in which order jobs are taken whose keys their envelopes tell: see model_company.c;
 * - exact times, when the store has a clock of its own: delays are then 0 or hours that lie minutes apart, and a worker
 *   dies by a renewal for one millisecond.
 */
#ifndef LADE_TESTS_MODEL_MODEL_H
#define LADE_TESTS_MODEL_MODEL_H

#include "base/arena.h"
#include "base/base.h"
#include "queue/store.h"

#define N_QUEUES  3
#define N_WORKERS 4
#define N_IDS     120
#define N_LEASES  4000
#define N_BLOCKS  512 /* of ids made by chance, as the client makes them */
#define BLOCK_MAX 1024
#define N_DUES    65536
#define TRACE     24
#define N_PLANS   6
#define N_LEADERS 4

enum side { MODEL = 0, STORE = 1, N_SIDES = 2 };

struct lease {
    int queue;
    char id[28];
    uint64_t fence[N_SIDES];
    char worker[LADE_ID_MAX + 1];
    uint32_t attempt; /* as its history has it */
    size_t n_kind;    /* of the job's body, as an engine reads it */
    uint8_t kind[255];
    bool over;      /* settled, reclaimed or removed: every use must be refused */
    bool removed;   /* over, by an operator: the owner must be told */
    bool reclaimed; /* whether the mark of a reclaimed job is told again is left open */
    int mark;       /* 0, or the verb of the operator who wants it stopped, plus 1 */
};

/* What schedulers have in their hands. */
struct tm_plans {
    uint64_t revision[N_PLANS]
                     [N_SIDES];         /* of a record as it was read at some time; 0 = not there */
    uint64_t fence[N_LEADERS][N_SIDES]; /* of the last lead */
    unsigned n_memos;
};

struct world {
    struct lq_store *s[N_SIDES];
    /* Of the store, as two processes have it; the second only in shared runs. s[STORE] is one of them. */
    struct lq_store *handle[2];
    bool exact; /* both sides have the stepped clock */
    bool
        forgets; /* this run forgets queues and has no keys UNTIL_TTL, whose fate is then left open */
    bool keyed;   /* jobs have keys, in every other run */
    bool dressed; /* their envelopes tell the keys: stores may let them wait in company */
    bool shared; /* two handles do the ops of the store, each worker's by one, in every third run */
    bool scheduled;                   /* there are schedules, in every other run */
    bool bounded;                     /* queues get bounds, in every other run */
    bool told;                        /* there are streams of events, in some runs */
    uint64_t seen[N_SIDES][N_QUEUES]; /* the last event read */
    int64_t clock_ns;
    uint64_t random;
    struct lb_arena arena;                   /* of one op */
    char worker[N_WORKERS][LADE_ID_MAX + 1]; /* "" = none */
    unsigned n_incarnations, n_delays;
    unsigned n_blocks, made[N_BLOCKS]; /* ids made in each block */
    struct lease lease[N_LEASES];
    size_t n_leases;
    int64_t due[N_DUES]; /* due times drawn, by their low bits */
    struct tm_plans plans;
    size_t at; /* number of the op */
    char trace[TRACE][300];
    char failure[700]; /* "" = none so far */
};

/* What a run needs to know of the store under test. */
struct subject {
    const struct lq_store_ops *ops;
    const char *dir;       /* for files */
    const char *redis_url; /* for servers */
};

/*
 * Does `ops` ops from `seed`, with a full comparison after every `every` ops and at the end. Returns ops, or the number
 * of the op after which the sides differ; then w->failure says how and w->trace what was done last. The caller's
 * world needs no preparation.
 */
size_t tm_run(struct world *w, const struct subject *subject, uint64_t seed, size_t ops,
              size_t every);

/* model_ops.c: draws one op and does it. */
void tm_step(struct world *w);
void tm_join(struct world *w, int slot);

/* model_compare.c */
/* The first difference is kept; where = the op and what was compared. */
void tm_fail(struct world *w, const char *format, ...) LADE_PRINTF(2, 3);
void tm_same(struct world *w, const char *what, int64_t model, int64_t store);
void tm_same_bytes(struct world *w, const char *what, struct lb_slice model, struct lb_slice store);
void tm_compare_counts(struct world *w);
void tm_compare_keys(struct world *w, int queue);
void tm_compare_all(struct world *w);
/* model_dead.c */
void tm_compare_classes(struct world *w, const char *queue);

/* model_schedules.c */
void tm_compare_schedules(struct world *w);

/* model_extra.c */
void tm_compare_bounds(struct world *w, const char *queue);
void tm_compare_results(struct world *w, const char *queue);
/* What was told since the last time. */
void tm_compare_events(struct world *w);

/* What this worker does is done by its own handle. */
void tm_as(struct world *w, const char *worker);
void tm_trace(struct world *w, const char *format, ...) LADE_PRINTF(2, 3);
uint64_t tm_below(struct world *w, uint64_t bound);
bool tm_chance(struct world *w, unsigned percent);
const char *tm_queue(int i);
int64_t tm_now(struct world *w);

#endif
