/* company.c - see company.h */
#include "store/redis/company.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/tally.h"
#include "queue/key_store.h"
#include "queue/limit.h"
#include "store/redis/put_lanes.h"

#define COMPANY_MAX 1000 /* jobs of one call; their keys are the arguments of one command */
#define SLOTS_MAX   2048 /* a power of two, twice that */
#define QUEUES_MAX  32   /* that are counted at a time */
#define CLEAR_MAX   4096 /* slots that are rather cleared than given back */

struct ls_redis_company {
    struct ls_redis_company *next;
    int64_t time; /* 0: this store counts nothing by itself */
    struct lb_tally jobs;
    char queue[LADE_NAME_MAX + 1];
};

/* a call ---------------------------------------------------------------------------------------------------------- */

/* Counts the job to its key; false when there are too many of it. slot: numbers of keys by hash, from 1 on. */
static bool count_key(struct ls_redis_put_call *pc, uint16_t *slot, size_t mask,
                      struct lb_slice key)
{
    uint64_t hash = lb_tally_hash(key);
    size_t i = (hash >> 20) & mask;
    for (; slot[i]; i = (i + 1) & mask) {
        struct ls_redis_put_key *k = &pc->keys[slot[i] - 1];
        if (k->hash == hash && lb_slice_eq(k->key, key))
            return ++k->n <= LQ_TURN_JOBS;
    }
    pc->keys[pc->n_keys++] = (struct ls_redis_put_key){.key = key, .hash = hash, .n = 1};
    slot[i] = (uint16_t)pc->n_keys;
    return true;
}

/* Nothing is special about it but its key, which its envelope tells. The lane tells of its id. */
static bool is_plain_but_key(const struct lq_put *p)
{
    return p->when == LQ_WHEN_NOW && p->unique.n == 0 && p->key.n > 0 && p->fresh &&
           p->body.n > LQ_BODY_LEVEL_AT && p->body.n <= LS_REDIS_BIG_BODY &&
           lb_slice_eq(lq_body_key(p->body), p->key);
}

int ls_redis_put_company(struct ls_redis_put_call *pc, lade_err *err)
{
    struct ls_redis_put_lane *l = &pc->lane[0];
    if (pc->n_lanes != 1 || l->known || l->untimed || pc->n > COMPANY_MAX || l->n_special != pc->n)
        return 0;
    uint8_t level = pc->put[0].body.n > LQ_BODY_LEVEL_AT ? pc->put[0].body.p[LQ_BODY_LEVEL_AT] : 0;
    if (level < '0' || level >= '0' + LQ_N_LEVELS)
        return 0;
    for (size_t at = 0; at < pc->n; at += pc->run[at])
        pc->run[at] = ls_redis_measure_run(pc, at, pc->n); /* also of one */
    pc->keys = lb_malloc(pc->n * sizeof(*pc->keys));
    if (!pc->keys)
        return lb_fail_nomem(err, "put");
    uint16_t slot[SLOTS_MAX];
    size_t slots = 8;
    while (slots < 2 * pc->n)
        slots *= 2;
    memset(slot, 0, slots * sizeof(*slot));
    pc->company = true;
    for (size_t i = 0; pc->company && i < pc->n; i++) {
        const struct lq_put *p = &pc->put[i];
        pc->company = is_plain_but_key(p) && p->body.p[LQ_BODY_LEVEL_AT] == level &&
                      count_key(pc, slot, slots - 1, p->key);
    }
    pc->company_list = (char)('A' + level - '0');
    pc->n_counted = pc->n_keys;
    return 0;
}

/* counting here ---------------------------------------------------------------------------------------------------- */

void ls_redis_companies_free(struct ls_redis_company *c)
{
    while (c) {
        struct ls_redis_company *next = c->next;
        lb_tally_fini(&c->jobs);
        lb_free(c);
        c = next;
    }
}

/* That of the queue, made when there is none; NULL when out of memory. The one looked for least lately is the last. */
static struct ls_redis_company *company_of(struct ls_redis_store *s, const char *queue)
{
    struct ls_redis_company **at = &s->companies, *c;
    for (size_t n = 1; *at && strcmp((*at)->queue, queue) != 0 && n < QUEUES_MAX; n++)
        at = &(*at)->next;
    c = *at;
    if (c)
        *at = c->next;
    if (c && strcmp(c->queue, queue) != 0) {
        c->next = NULL;
        ls_redis_companies_free(c);
        c = NULL;
    }
    if (!c)
        c = lb_calloc(1, sizeof(*c));
    if (c) {
        (void)snprintf(c->queue, sizeof(c->queue), "%s", queue);
        c->next = s->companies;
        s->companies = c;
    }
    return c;
}

static bool count_here(struct ls_redis_company *c, const struct ls_redis_put_key *k)
{
    uint32_t *n = lb_tally_at(&c->jobs, k->hash);
    if (!n || *n + k->n > LS_REDIS_OWN_JOBS)
        return false;
    *n += k->n;
    return true;
}

void ls_redis_company_count(struct ls_redis_put_call *pc)
{
    struct ls_redis_company *c = company_of(pc->s, pc->lane[0].queue);
    pc->mine = c;
    pc->time = c ? c->time : 0;
    for (size_t i = 0; pc->time > 0 && i < pc->n_keys; i++) {
        struct ls_redis_put_key *k = &pc->keys[i];
        k->own = count_here(c, k);
        pc->n_own += k->own ? k->n : 0;
        pc->n_counted -= k->own;
    }
}

/* A new time: of it there is this call. */
static void begin_time(struct ls_redis_put_call *pc, int64_t time)
{
    struct ls_redis_company *c = pc->mine;
    if (c->jobs.cap > CLEAR_MAX)
        lb_tally_fini(&c->jobs);
    else
        lb_tally_clear(&c->jobs);
    c->time = time;
    for (size_t i = 0; i < pc->n_keys; i++) {
        if (pc->keys[i].own && !count_here(c, &pc->keys[i]))
            c->time = 0; /* no memory */
    }
}

bool ls_redis_company_note(struct ls_redis_put_call *pc, int64_t answer)
{
    if (answer > 1) {
        if (pc->mine && answer != pc->mine->time)
            begin_time(pc, answer);
        return true;
    }
    if (pc->mine)
        pc->mine->time = 0;
    if (answer == 1)
        return true;
    for (size_t i = 0; i < pc->n_keys; i++)
        pc->keys[i].own = false;
    pc->time = 0;
    pc->n_own = 0;
    pc->n_counted = pc->n_keys;
    return false;
}
