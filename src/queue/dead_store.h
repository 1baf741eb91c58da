/*
 * dead_store.h - classes of deaths, and changes of jobs by who has seen them
 *
 * Thread safety, results and times: as store.h.
 */
#ifndef LADE_QUEUE_DEAD_STORE_H
#define LADE_QUEUE_DEAD_STORE_H

#include "queue/store.h"

/* A class of deaths. The bytes lie in the arena of the vec. */
struct lq_class {
    struct lb_slice name, kind, text;
    struct lb_slice sample; /* id of the job in it that died last */
    uint64_t count;
    int64_t first_ms, last_ms; /* deaths since the class was made */
};

struct lq_class_vec {
    struct lb_arena arena; /* as in lq_leased_vec */
    struct lq_class *class_;
    size_t n;
};

struct lq_change {
    struct lb_slice id;
    /* Only a job that is dead and died at this time: so of two who saw the same death one acts. 0: as the verb says. */
    int64_t died_ms;
    struct lb_slice body; /* of the same level; empty = as it is */
    int outcome;          /* out: 0, LADE_NOT_FOUND or LADE_WRONG_STATE */
};

#endif
