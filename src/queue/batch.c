#include "queue/batch.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/mem.h"

#define EACH_NS    6000  /* how long a leader waits for each of those that were just released */
#define COMPANY_NS 80000 /* and for all of them */
#define FRESH_NS   60000 /* how long after their release they are expected */
#define FEW        16    /* single jobs of one commit that keep the ids they came with */

/* Pulses: 0 and 1 in turn, and that of the first to come. */
#define FIRST 2

enum call_state {
    AWAKE,  /* waits, but not in the pulse */
    ASLEEP, /* must be woken */
    LEADS,  /* told to lead */
    DONE    /* committed by a leader: rc is valid, and the frame may be gone */
};

/* One call, in its caller's frame. */
struct lq_batch_call {
    struct lq_batch_call
        *next; /* at the door: who came before, or `busy`; taken in: who came after */
    struct lq_put *put;
    size_t n;
    lade_id *own; /* NULL: ids stay as they are */
    lade_err *err;
    int rc;
    unsigned pulse;    /* where it sleeps */
    atomic_uint state; /* enum call_state */
};

/* The door while somebody leads and nobody came since; the end of the chain of those who did. */
static struct lq_batch_call busy;

void lq_batch_init(struct lq_batch *b, struct lq_store *store)
{
    *b = (struct lq_batch){.store = store};
}

void lq_batch_fini(struct lq_batch *b)
{
    assert(!b->oldest && !atomic_load(&b->door));
    (void)b;
}

/* A call is counted only after it came to the door: what is counted is there, and a leader may have taken what is not. */
int lq_batch_waiting(const struct lq_batch *b)
{
    unsigned taken = atomic_load_explicit(&b->n_taken, memory_order_relaxed);
    int n = (int)(atomic_load_explicit(&b->n_came, memory_order_relaxed) - taken);
    return LB_MAX(n, 0);
}

/* Puts the call at the door. True when nobody led: the caller does now. */
static bool enter(struct lq_batch *b, struct lq_batch_call *w)
{
    struct lq_batch_call *was = atomic_load_explicit(&b->door, memory_order_relaxed);
    unsigned turn = atomic_load_explicit(&b->turn, memory_order_relaxed);
    do {
        w->next = was ? was : &busy;
        w->pulse = w->next == &busy ? FIRST : turn;
    } while (!atomic_compare_exchange_weak_explicit(&b->door, &was, w, memory_order_acq_rel,
                                                    memory_order_relaxed));
    (void)atomic_fetch_add_explicit(&b->n_came, 1, memory_order_relaxed);
    return !was;
}

/* ---- the leader's ---- */

/* Takes in who stands at the door, behind those who were taken in before. */
static void take_in(struct lq_batch *b)
{
    atomic_fetch_xor_explicit(&b->turn, 1, memory_order_relaxed);
    struct lq_batch_call *newest = atomic_exchange_explicit(&b->door, &busy, memory_order_acq_rel);
    struct lq_batch_call *oldest = NULL;
    for (struct lq_batch_call *w = newest, *before; w != &busy; w = before) {
        before = w->next;
        w->next = oldest;
        oldest = w;
    }
    if (!oldest)
        return;
    if (b->oldest)
        b->newest->next = oldest;
    else
        b->oldest = oldest;
    b->newest = newest;
}

struct group {
    struct lq_batch_call *first;
    size_t calls, jobs;
};

/* What one commit carries: the oldest calls, whole. */
static struct group gather(struct lq_batch *b)
{
    struct group g = {.first = b->oldest};
    struct lq_batch_call *last = NULL;
    for (struct lq_batch_call *w = b->oldest; w && (g.jobs == 0 || g.jobs + w->n <= LQ_BATCH_JOBS);
         w = w->next) {
        g.jobs += w->n;
        g.calls++;
        last = w;
    }
    assert(last); /* a leader is itself taken in */
    b->oldest = last->next;
    last->next = NULL;
    (void)atomic_fetch_add_explicit(&b->n_taken, (unsigned)g.calls, memory_order_relaxed);
    return g;
}

static void commit_one(struct lq_batch *b, struct lq_batch_call *w)
{
    w->rc = lq_put(b->store, w->put, w->n, w->err);
}

/* True when the failure says that nothing was written and that it may be the fault of one call only. */
static bool is_worth_splitting(int rc)
{
    return rc < 0 && rc != -LADE_EUNAVAILABLE && rc != -LADE_EBUSY && rc != -LADE_ECLOSED;
}

/* It came singly, and nobody knows its id yet; nor is anything about it that a store does not keep together. */
static bool may_rename(const struct lq_batch_call *w)
{
    return w->own && w->put->when == LQ_WHEN_NOW && w->put->unique.n == 0 && w->put->key.n == 0;
}

static bool are_alike(const struct lq_put *a, const struct lq_put *b)
{
    return a->level == b->level && (a->queue == b->queue || strcmp(a->queue, b->queue) == 0);
}

/* Many single jobs of one commit get ids that follow each other: those of the queue and level of the first of them. */
static void give_ids(const struct lq_batch *b, const struct group *g)
{
    const struct lq_store_config *c = &b->store->config;
    if (g->calls <= FEW)
        return;
    const struct lq_batch_call *first = NULL;
    int64_t wall = c->clock ? c->clock(c->clock_ctx) : lb_clock_wall();
    size_t n = LQ_PACK_JOBS, bytes = 0;
    for (struct lq_batch_call *w = g->first; w; w = w->next) {
        if (!may_rename(w) || (first && !are_alike(first->put, w->put)))
            continue;
        if (n >= LQ_PACK_JOBS || bytes + w->put->body.n >= LQ_PACK_BYTES) {
            lb_ulid_new_block();
            n = bytes = 0;
        }
        first = first ? first : w;
        lb_ulid(w->own->text, wall);
        w->put->id = lb_slice(w->own->text, LB_ULID_LEN);
        n++;
        bytes += w->put->body.n + 1;
    }
}

/* Commits calls together; each gets its own items' outcomes. */
static void commit_group(struct lq_batch *b, const struct group *g)
{
    if (g->calls == 1) {
        commit_one(b, g->first);
        return;
    }
    struct lq_put *all = lb_malloc(g->jobs * sizeof(*all));
    lade_err err = {0};
    int rc = -LADE_ENOMEM;
    give_ids(b, g);
    if (all) {
        size_t at = 0;
        for (struct lq_batch_call *w = g->first; w; w = w->next) {
            memcpy(all + at, w->put, w->n * sizeof(*all));
            at += w->n;
        }
        rc = lq_put(b->store, all, g->jobs, &err);
    }
    size_t at = 0;
    for (struct lq_batch_call *w = g->first; w; w = w->next) {
        if (is_worth_splitting(rc) || rc == LADE_FULL) { /* full for all: not for each */
            commit_one(b, w);
            continue;
        }
        w->rc = rc;
        if (rc < 0 && w->err)
            *w->err = err;
        if (rc >= 0)
            memcpy(w->put, all + at, w->n * sizeof(*all));
        at += w->n;
    }
    lb_free(all);
}

/* Gives those that the last commit released a moment to come back. */
static void wait_for_company(struct lq_batch *b)
{
    if (b->expected <= 1 || lq_batch_waiting(b) >= b->expected)
        return;
    int64_t now = lb_clock_mono();
    b->company.time = (int32_t)LB_MIN(b->expected * EACH_NS, COMPANY_NS);
    if (now - b->released_at > FRESH_NS || !lb_spin_begin(&b->company, now))
        return;
    bool more;
    do {
        more = lb_spin_goes_on(&b->company, now);
        now = lb_clock_mono();
    } while (more && lq_batch_waiting(b) < b->expected);
    /* most of them are worth it */
    lb_spin_end(&b->company, now, 4 * lq_batch_waiting(b) >= 3 * b->expected);
}

/* Tells everybody of the group but `me`. Whom to wake is marked in `wake`, by pulse. Returns how many slept. */
static size_t release(const struct group *g, const struct lq_batch_call *me, bool wake[3])
{
    size_t asleep = 0;
    for (struct lq_batch_call *w = g->first, *next; w; w = next) {
        next = w->next;
        unsigned pulse = w->pulse;
        if (w == me || atomic_exchange_explicit(&w->state, DONE, memory_order_acq_rel) != ASLEEP)
            continue;
        wake[pulse] = true;
        asleep++;
    }
    return asleep;
}

/* Who leads next: the oldest that waits, or the oldest that is awake, if its turn comes with the next commit. */
static struct lq_batch_call *find_heir(const struct lq_batch *b, struct lq_batch_call *newest)
{
    if (b->oldest)
        return b->oldest;
    struct lq_batch_call *oldest = NULL, *awake = NULL;
    size_t jobs = 0;
    for (struct lq_batch_call *w = newest; w != &busy; w = w->next) {
        if (atomic_load_explicit(&w->state, memory_order_relaxed) == AWAKE)
            awake = w;
        oldest = w;
        jobs += w->n;
    }
    return awake && jobs <= LQ_BATCH_JOBS ? awake : oldest;
}

/* Gives the lead to somebody who waits, or to nobody. Nothing of the leader's may be touched after it. */
static void pass_on(struct lq_batch *b)
{
    struct lq_batch_call *newest = &busy;
    if (!b->oldest && atomic_compare_exchange_strong_explicit(
                          &b->door, &newest, NULL, memory_order_acq_rel, memory_order_acquire))
        return;
    struct lq_batch_call *heir = find_heir(b, newest);
    unsigned pulse = heir->pulse;
    if (atomic_exchange_explicit(&heir->state, LEADS, memory_order_acq_rel) == ASLEEP)
        lr_pulse_raise(&b->pulse[pulse]);
}

/* The caller's own call is among those that are committed. */
static void lead(struct lq_batch *b, const struct lq_batch_call *me)
{
    bool wake[3] = {false};
    wait_for_company(b);
    take_in(b);
    struct group g = gather(b);
    int64_t began = lb_clock_mono();
    commit_group(b, &g);
    int64_t now = lb_clock_mono();
    b->expected = lq_batch_waiting(b) + (int)g.calls;
    b->released_at = now;
    lr_patience_judge(&b->patience, began, now, g.calls - 1, release(&g, me, wake));
    pass_on(b); /* whoever leads next is woken first */
    for (unsigned i = 0; i < LB_ARRAY_LEN(wake); i++) {
        if (wake[i])
            lr_pulse_raise(&b->pulse[i]);
    }
}

/* ---- the others ---- */

/* Until a leader has committed the call, or it shall lead itself: then true. */
static bool wait_turn(struct lq_batch *b, struct lq_batch_call *w)
{
    lr_patience_wait(&b->patience, &w->state, AWAKE);
    struct lr_pulse *pulse = &b->pulse[w->pulse];
    uint32_t seen = lr_pulse_count(pulse);
    unsigned now = AWAKE;
    if (atomic_compare_exchange_strong_explicit(&w->state, &now, ASLEEP, memory_order_acq_rel,
                                                memory_order_acquire)) {
        while ((now = atomic_load_explicit(&w->state, memory_order_acquire)) == ASLEEP) {
            lr_pulse_wait(pulse, seen); /* the store call has its deadline */
            seen = lr_pulse_count(pulse);
        }
    }
    return now == LEADS;
}

int lq_batch_put(struct lq_batch *b, struct lq_put *put, size_t n, lade_id *own, lade_err *err)
{
    assert(!own || (n == 1 && put->id.p == (const uint8_t *)own->text));
    struct lq_batch_call w = {.put = put, .n = n, .own = own, .err = err};
    if (enter(b, &w) || wait_turn(b, &w))
        lead(b, &w);
    return w.rc;
}
