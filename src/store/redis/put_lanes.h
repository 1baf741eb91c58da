/*
 * put_lanes.h - the items of one put, sorted by queue, and which of them go as packs
 *
 * Thread safety: as the put they belong to, under the admin link.
 */
#ifndef LADE_STORE_REDIS_PUT_LANES_H
#define LADE_STORE_REDIS_PUT_LANES_H

#include "store/redis/company.h"
#include "store/redis/store_inner.h"

struct ls_redis_put_lane {
    const char *queue;
    size_t first, n; /* in `order` */
    size_t n_special;
    size_t longest;
    bool untimed;    /* some ids are not time-ordered */
    bool known;      /* some ids were given by the caller: the queue may have them already */
    int level;       /* of all of them; -1 when they are not plain */
    bool odd;        /* one is not plain, or its level cannot be read */
    uint32_t levels; /* in use, a bit for each */
};

/* A key, and how many jobs of the call it has. */
struct ls_redis_put_key {
    struct lb_slice key;
    uint64_t hash;
    uint32_t n;
    bool own; /* counted by this store, not at the server */
};

struct ls_redis_put_call {
    struct ls_redis_store *s;
    struct lq_put *put;
    size_t n;
    uint32_t *order; /* items, lane by lane */
    uint32_t *run;   /* at the place of the first item of a run in `order`, its length */
    size_t n_packs;  /* runs of more than one */
    bool inbox;      /* by RPUSHX, while the queue is there */
    bool quick;      /* by lua/packs_put.lua, while nothing is unusual */
    char company_list;
    bool company;                  /* quick, by lua/company_put.lua */
    struct ls_redis_put_key *keys; /* of those in company */
    size_t n_keys;
    struct ls_redis_company *mine;           /* what of the queue is counted here; NULL: nothing */
    int64_t time;                            /* that it is counted in, or 0 */
    size_t n_own;                            /* jobs that are */
    size_t n_counted;                        /* keys that are not */
    bool later;                              /* by lua/later_put.lua, while nothing is unusual */
    bool asks;                               /* in slots: only for room */
    bool sent_inbox, sent_quick, sent_later; /* the last time */
    struct ls_redis_put_lane *lane;
    size_t n_lanes;
};

static inline bool ls_redis_put_is_special(const struct lq_put *p)
{
    return p->when != LQ_WHEN_NOW || p->unique.n > 0 || p->key.n > 0;
}

/* All of them are fresh and plain: they go as packs, and those that follow no other singly. */
static inline bool ls_redis_put_is_packed(const struct ls_redis_put_lane *l)
{
    return !l->odd && !l->known && !l->untimed;
}

/*
 * Sorts pc's items into lanes and finds the runs among them. 0, -LADE_ENOMEM or -LADE_ETOOBIG; order, run and lane are the caller's
 * to free in either case.
 */
LADE_CHECKED int ls_redis_put_group(struct ls_redis_put_call *pc, lade_err *err);
/*
 * Then: whether they may wait in company (lua/company.lua), as far as the items tell; their runs and keys, which are the caller's to free in
 * either case. 0 or -LADE_ENOMEM.
 */
LADE_CHECKED int ls_redis_put_company(struct ls_redis_put_call *pc, lade_err *err);

/* How many items from `at` on make one pack: their ids follow each other, their level is the same, bounded. */
uint32_t ls_redis_measure_run(const struct ls_redis_put_call *pc, size_t at, size_t end);

#endif
