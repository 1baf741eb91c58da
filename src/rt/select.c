/*
 * select.c - waiting for the first of several channel operations
 *
 * First each case is tried by itself, from a random start; most selects end there. Else all channels are locked, in the order of
 * their addresses, every case is tried once more, and if none can be done a node goes into each list under one ticket. Whoever
 * serves one node claims the ticket, and with it all of them. All locks are held while the nodes go in, so that nobody
 * can serve one before the last is there: a selecting task never has to take back a claim, and two selects that meet each
 * other cannot wait in a circle. After waking the other nodes are taken out one by one.
 */
#include "rt/chan.h"

#include "rt/task.h"

static uint32_t draw(uint32_t below)
{
    struct lr_worker *w = lr_worker();
    static uint64_t foreign_seed; /* plain threads share one; a lost update does no harm */
    uint64_t s = w ? w->seed : __atomic_load_n(&foreign_seed, __ATOMIC_RELAXED);
    s = s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if (w)
        w->seed = s;
    else
        __atomic_store_n(&foreign_seed, s, __ATOMIC_RELAXED);
    return (uint32_t)(((s >> 32) * below) >> 32);
}

static bool is_live(const lade_case *k)
{
    return k->op != LADE_CASE_DEFAULT && k->chan != NULL;
}

/* Under the channel's lock. True when the case is done. */
static bool try_case(lade_case *k, struct lr_task **ready)
{
    unsigned got = 1;
    enum lr_tried tried = k->op == LADE_CASE_SEND
                              ? lr_chan_put(k->chan, k->value, ready)
                              : lr_chan_take(k->chan, k->value, k->max, &got, ready);
    if (tried == LR_TRIED_WAIT)
        return false;
    k->rc = tried == LR_TRIED_CLOSED ? -LADE_ECLOSED : 0;
    if (k->got)
        *k->got = k->rc == 0 ? got : 0;
    return true;
}

/*
 * A look without the lock: false when it would have had to wait at some moment just now. Only a hint, so that it may race with those
 * who have the lock; ThreadSanitizer is told to leave it alone.
 */
static __attribute__((noinline, no_sanitize("thread"))) bool may_be_ready(const lade_case *k)
{
    const volatile struct lade_chan *c = k->chan;
    uint64_t n = c->tail - c->head;
    if (c->closed)
        return true;
    if (k->op == LADE_CASE_SEND)
        return n < c->cap || c->recv.head;
    return n > 0 || c->send.head;
}

/* The position of a case that could be done at once, or -1. */
static int try_each(lade_case *cases, int n, uint32_t start)
{
    for (int j = 0; j < n; j++) {
        int i = (int)start + j < n ? (int)start + j : (int)start + j - n;
        lade_case *k = &cases[i];
        if (!is_live(k) || !may_be_ready(k))
            continue;
        struct lr_task *ready = NULL;
        lr_chan_lock(k->chan);
        bool done = try_case(k, &ready);
        lr_chan_unlock(k->chan);
        if (ready)
            lr_ready_all(ready);
        if (done)
            return i;
    }
    return -1;
}

/* The different channels, sorted by address. */
static int sort_channels(const lade_case *cases, int n, struct lade_chan **sorted)
{
    int m = 0;
    for (int i = 0; i < n; i++) {
        if (!is_live(&cases[i]))
            continue;
        struct lade_chan *c = cases[i].chan;
        int at = m;
        while (at > 0 && (uintptr_t)sorted[at - 1] > (uintptr_t)c)
            at--;
        if (at > 0 && sorted[at - 1] == c)
            continue;
        for (int j = m; j > at; j--)
            sorted[j] = sorted[j - 1];
        sorted[at] = c;
        m++;
    }
    return m;
}

static void unlock_all(struct lade_chan **sorted, int m)
{
    while (m-- > 0)
        lr_chan_unlock(sorted[m]);
}

static lade_waitlist *list_of(const lade_case *k)
{
    return k->op == LADE_CASE_SEND ? &k->chan->send : &k->chan->recv;
}

/* Under all locks: the position of a case that could be done, or -1 and a node in each list. */
static int try_or_enlist(lade_case *cases, int n, struct lr_wait *nodes, struct lr_task *t,
                         uint64_t *ticket, struct lr_task **ready)
{
    uint32_t start = n > 0 ? draw((uint32_t)n) : 0;
    for (int j = 0; j < n; j++) {
        int i = (int)((start + (uint32_t)j) % (uint32_t)n);
        if (is_live(&cases[i]) && try_case(&cases[i], ready))
            return i;
    }
    *ticket = lr_ticket(t);
    for (int i = 0; i < n; i++) {
        nodes[i].linked = false;
        nodes[i].index = 0;
        if (!is_live(&cases[i]))
            continue;
        nodes[i].task = t;
        nodes[i].ticket = *ticket;
        nodes[i].slot = cases[i].value;
        lr_waitlist_link(list_of(&cases[i]), &nodes[i]);
    }
    return -1;
}

/* Takes the nodes out. The position of the case that another task has done for us, or -1. */
static int collect(lade_case *cases, int n, struct lr_wait *nodes)
{
    int fired = -1;
    for (int i = 0; i < n; i++) {
        lade_case *k = &cases[i];
        if (!is_live(k))
            continue;
        if (nodes[i].index & LR_CHAN_FIRED) { /* written before we were made ready */
            fired = i;
            continue;
        }
        lr_chan_lock(k->chan);
        if (nodes[i].linked)
            lr_waitlist_unlink(list_of(k), &nodes[i]);
        lr_chan_unlock(k->chan);
    }
    return fired;
}

/* A value was handed over to the case; takes what else is there. */
static void fill_up(lade_case *k)
{
    unsigned more = 0;
    if (k->op == LADE_CASE_RECV && k->max > 1) {
        struct lr_task *ready = NULL;
        lr_chan_lock(k->chan);
        (void)lr_chan_take(k->chan, (char *)k->value + k->chan->elem, k->max - 1, &more, &ready);
        lr_chan_unlock(k->chan);
        lr_ready_all(ready);
    }
    k->rc = 0;
    if (k->got)
        *k->got = 1 + more;
}

static __attribute__((noinline)) int wait_for_one(lade_case *cases, int n, int64_t until)
{
    struct lr_task *t = lr_self_task();
    if (!t)
        return -LADE_EPERM;
    struct lade_chan *sorted[LADE_SELECT_MAX];
    struct lr_wait nodes[LADE_SELECT_MAX];
    int m = sort_channels(cases, n, sorted);
    for (;;) {
        struct lr_task *ready = NULL;
        for (int i = 0; i < m; i++)
            lr_chan_lock(sorted[i]);
        uint64_t ticket = 0;
        int fired = try_or_enlist(cases, n, nodes, t, &ticket, &ready);
        unlock_all(sorted, m);
        LR_CHAOS();
        lr_ready_all(ready);
        if (fired >= 0)
            return fired;
        enum lr_woke woke = lr_park(t, ticket, until, LR_WAITS_SELECT, m > 0 ? sorted[0] : NULL);
        fired = collect(cases, n, nodes);
        if (fired >= 0) {
            fill_up(&cases[fired]);
            return fired;
        }
        if (woke != LR_WOKE_CLOSED)
            return lr_woke_result(woke);
        /* a channel was closed: the next round finds which */
    }
}

static bool is_valid(const lade_case *cases, int n, int *other)
{
    *other = -1;
    if (n < 0 || n > LADE_SELECT_MAX || (n > 0 && !cases))
        return false;
    for (int i = 0; i < n; i++) {
        if (cases[i].op == LADE_CASE_DEFAULT)
            *other = i;
        else if (cases[i].op > LADE_CASE_DEFAULT ||
                 (cases[i].chan && (!cases[i].value || cases[i].max == 0)))
            return false;
    }
    return true;
}

int lade_chan_select(lade_case *cases, int n, int64_t until)
{
    int other;
    if (!is_valid(cases, n, &other))
        return -LADE_EINVAL;
    if (n > 0) {
        int i = try_each(cases, n, draw((uint32_t)n));
        if (i >= 0) {
            struct lr_worker *w = lr_worker();
            if (w && (++w->n_selects & (LR_CHAN_BUDGET / 16 - 1)) == 0)
                lr_chan_give_way(); /* a branch that is always ready must not keep the worker */
            return i;
        }
    }
    if (other >= 0) {
        cases[other].rc = 0;
        return other;
    }
    if (lr_is_past(until))
        return -LADE_ETIMEDOUT;
    return wait_for_one(cases, n, until);
}
