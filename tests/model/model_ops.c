/* model_ops.c - drawing ops and doing them on both sides: put, take, settle, workers. The others are in model_acts.c */
#include "model_ops.h"

#include "queue/event.h"

#include <stdlib.h>
#include <string.h>

struct lq_lanes tm_draw_lanes(struct world *w)
{
    const char **queue = tm_alloc(w, N_QUEUES * sizeof(*queue));
    size_t n = 0;
    int start = (int)tm_below(w, N_QUEUES);
    for (int i = 0; i < N_QUEUES; i++) {
        if (n == 0 || tm_chance(w, 70))
            queue[n++] = tm_queue((start + i) % N_QUEUES);
    }
    return (struct lq_lanes){queue, n};
}

struct lq_lanes tm_all_lanes(struct world *w)
{
    const char **queue = tm_alloc(w, N_QUEUES * sizeof(*queue));
    for (int i = 0; i < N_QUEUES; i++)
        queue[i] = tm_queue(i);
    return (struct lq_lanes){queue, N_QUEUES};
}

void *tm_alloc(struct world *w, size_t size)
{
    void *p = lb_arena_alloc(&w->arena, size);
    LB_CHECK(p);
    return p;
}

/* A time-ordered id: the block in its middle, the place in its last two characters. */
char *tm_block_id(struct world *w, unsigned block, unsigned place)
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    char *id = tm_alloc(w, 28);
    (void)snprintf(id, 28, "01HF7YAT00%014u%c%c", block, digit[place / 32], digit[place % 32]);
    return id;
}

char *tm_draw_id(struct world *w)
{
    if (w->n_blocks > 0 && tm_chance(w, 40)) { /* a young one that a pack had */
        unsigned back = (unsigned)tm_below(w, LB_MIN(w->n_blocks, 6));
        unsigned block = w->n_blocks - 1 - back;
        return tm_block_id(w, block, (unsigned)tm_below(w, LB_MAX(w->made[block], 1)));
    }
    char *id = tm_alloc(w, 12);
    (void)snprintf(id, 12, "j%u", (unsigned)tm_below(w, N_IDS));
    return id;
}

/* Both sides gave the same result, which is no failure. */
void tm_same_result(struct world *w, const char *op, const int *rc, const lade_err *err)
{
    for (int i = 0; i < N_SIDES; i++) {
        if (rc[i] < 0)
            tm_fail(w, "%s on the %s: %s", op, i == MODEL ? "model" : "store", err[i].text);
    }
    tm_same(w, op, rc[MODEL], rc[STORE]);
}

/* A delay whose due time is no other's. */
static int64_t draw_delay(struct world *w)
{
    if (!w->exact) /* hours, and minutes apart: 7919 is prime to 100003, so that none comes twice */
        return INT64_C(7200000) + INT64_C(60000) * (w->n_delays++ * 7919 % 100003);
    int64_t now = tm_now(w), delay = (int64_t)tm_below(w, 3000);
    while (delay < N_DUES && w->due[(now + delay) % N_DUES] == now + delay)
        delay++;
    w->due[(now + delay) % N_DUES] = now + delay;
    return delay;
}

/* put ------------------------------------------------------------------------------------------------------------ */

void tm_draw_put(struct world *w, struct lq_put *p)
{
    int level = tm_chance(w, 50) ? LQ_LEVEL_DEFAULT : (int)tm_below(w, LQ_N_LEVELS);
    char *key = tm_alloc(w, 8);
    *p = (struct lq_put){
        .queue = tm_queue((int)tm_below(w, N_QUEUES)),
        .id = lb_slice_str(tm_draw_id(w)),
        .level = level,
        .when = tm_chance(w, 65)   ? LQ_WHEN_NOW
                : tm_chance(w, 70) ? LQ_WHEN_IN
                                   : LQ_WHEN_AT,
    };
    if (p->when != LQ_WHEN_NOW)
        p->when_ms = draw_delay(w);
    if (p->when == LQ_WHEN_AT)
        p->when_ms = tm_chance(w, 30) ? 1 + (int64_t)tm_below(w, 1000) : p->when_ms + tm_now(w);
    if (tm_chance(w, 25)) {
        (void)snprintf(key, 8, "k%u", (unsigned)tm_below(w, 6));
        p->unique = lb_slice_str(key);
        p->unique_ttl_ms = w->exact ? 1 + (int64_t)tm_below(w, 4000) : 7200000;
        p->until = (enum lade_unique_until)tm_below(w, w->forgets ? 2 : 3);
        if (w->dressed && p->until == LADE_UNTIL_START) /* what a take uses up */
            p->until = LADE_UNTIL_DONE;
        if ((w->s[STORE]->ops->caps & LQ_CAP_CONFLICT) && tm_chance(w, 60))
            p->conflict = LQ_CONFLICT_REPLACE;
    }
    if (p->conflict == LQ_CONFLICT_KEEP)
        p->key = tm_draw_key(w);
    p->body = tm_draw_body(w, level, p->key);
    tm_trace(w, " %s/%.*s", p->queue, (int)p->id.n, (const char *)p->id.p);
    if (p->key.n > 0)
        tm_trace(w, "(%.*s)", (int)p->key.n, (const char *)p->key.p);
    if (p->unique.n > 0)
        tm_trace(w, "[%.*s until %d%s]", (int)p->unique.n, (const char *)p->unique.p, (int)p->until,
                 p->conflict ? " replacing" : "");
}

void tm_op_put(struct world *w)
{
    struct lq_put put[N_SIDES][6];
    size_t n = 1 + tm_below(w, 6);
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "put");
    for (size_t i = 0; i < n; i++) {
        tm_draw_put(w, &put[MODEL][i]);
        put[STORE][i] = put[MODEL][i];
    }
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_put(w->s[i], put[i], n, &err[i]);
    tm_same_result(w, "put", rc, err);
    for (size_t i = 0; i < n && !w->failure[0]; i++) {
        if (put[MODEL][i].outcome != put[STORE][i].outcome)
            tm_trace(w, " ?%s by %s%s", (const char *)put[STORE][i].id.p, put[MODEL][i].holder,
                     put[STORE][i].holder);
        tm_same(w, "outcome of a put", put[MODEL][i].outcome, put[STORE][i].outcome);
        if (put[MODEL][i].outcome != LADE_DONE)
            tm_same_bytes(w, "holder", lb_slice_str(put[MODEL][i].holder),
                          lb_slice_str(put[STORE][i].holder));
    }
}

/*
 * Jobs as a client makes them: fresh ids that follow each other, in a block of their own or behind the last ones; or apart, as those
 * of callers who share a commit.
 */
void tm_op_put_fresh(struct world *w)
{
    struct lq_put put[N_SIDES][24];
    bool apart = tm_chance(w, 50);
    size_t n = apart ? 1 + tm_below(w, 4) : 2 + tm_below(w, tm_chance(w, 20) ? 23 : 8);
    size_t span = apart ? 2 * n : n;
    const char *queue = tm_queue((int)tm_below(w, N_QUEUES));
    int level = tm_chance(w, 80) ? LQ_LEVEL_DEFAULT : (int)tm_below(w, LQ_N_LEVELS);
    bool mixed = tm_chance(w, 15), late = tm_chance(w, 20);
    struct lb_slice key = tm_draw_key(w);
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    if (w->n_blocks == 0 || tm_chance(w, 70) || w->made[w->n_blocks - 1] + span > BLOCK_MAX)
        w->n_blocks += w->n_blocks < N_BLOCKS;
    unsigned block = w->n_blocks - 1;
    if (w->made[block] + span > BLOCK_MAX)
        return;
    tm_trace(w, "put %zu fresh%s in %s, block %u from %u%s%s, key %.*s", n, apart ? " apart" : "",
             queue, block, w->made[block], mixed ? ", levels mixed" : "", late ? ", late" : "",
             (int)key.n, (const char *)key.p);
    for (size_t i = 0; i < n; i++) {
        level = mixed && tm_chance(w, 25) ? (int)tm_below(w, LQ_N_LEVELS) : level;
        put[MODEL][i] = (struct lq_put){.queue = mixed && tm_chance(w, 5) ? tm_queue(0) : queue,
                                        .id = lb_slice_str(tm_block_id(w, block, w->made[block]++)),
                                        .fresh = true,
                                        .when = late ? LQ_WHEN_IN : LQ_WHEN_NOW,
                                        .when_ms = late ? draw_delay(w) : 0,
                                        .level = level,
                                        .key = mixed ? tm_draw_key(w) : key};
        put[MODEL][i].body = tm_draw_body(w, level, put[MODEL][i].key);
        put[STORE][i] = put[MODEL][i];
        w->made[block] += apart;
    }
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_put(w->s[i], put[i], n, &err[i]);
    tm_same_result(w, "put of fresh jobs", rc, err);
    for (size_t i = 0; i < n && !w->failure[0]; i++)
        tm_same(w, "outcome of a put", put[MODEL][i].outcome, put[STORE][i].outcome);
}

/* leases ----------------------------------------------------------------------------------------------------------- */

struct lease *tm_find_lease(struct world *w, int queue, const char *id)
{
    for (size_t i = 0; i < w->n_leases; i++) {
        struct lease *l = &w->lease[i];
        if (!l->over && l->queue == queue && strcmp(l->id, id) == 0)
            return l;
    }
    return NULL;
}

/* Forgets one that is over to make room; every lease that is not over fits, since there are fewer ids. */
static struct lease *make_lease(struct world *w)
{
    if (w->n_leases < N_LEASES)
        return &w->lease[w->n_leases++];
    for (size_t i = tm_below(w, N_LEASES);; i = (i + 1) % N_LEASES) {
        if (w->lease[i].over)
            return &w->lease[i];
    }
}

static int find_queue(const char *name)
{
    int i = 0;
    while (i < N_QUEUES && strcmp(tm_queue(i), name) != 0)
        i++;
    LB_CHECK(i < N_QUEUES);
    return i;
}

void tm_add_lease(struct world *w, const struct lq_take *take, const struct lq_leased *m,
                  const struct lq_leased *s)
{
    int queue = find_queue(take->lanes.queue[m->lane]);
    struct lease *old = tm_find_lease(w, queue, (const char *)m->id.p);
    int mark = old ? old->mark : 0;
    if (old)
        old->over = true;
    struct lease *l = make_lease(w);
    *l = (struct lease){
        .queue = queue, .fence = {m->fence, s->fence}, .reclaimed = old != NULL, .mark = mark};
    memcpy(l->id, m->id.p, m->id.n + 1);
    l->attempt = lq_history_next_attempt(lb_slice_of(m->history));
    struct lb_slice kind = lq_body_kind(lb_slice_of(m->body));
    l->n_kind = LB_MIN(kind.n, sizeof(l->kind));
    if (l->n_kind > 0)
        memcpy(l->kind, kind.p, l->n_kind);
    memcpy(l->worker, take->worker, strlen(take->worker) + 1);
    tm_trace(w, " got %s/%s", tm_queue(queue), l->id);
}

static void compare_leased(struct world *w, const struct lq_leased *m, const struct lq_leased *s)
{
    tm_same_bytes(w, "id taken", lb_slice_of(m->id), lb_slice_of(s->id));
    tm_same_bytes(w, "body taken", lb_slice_of(m->body), lb_slice_of(s->body));
    tm_same_bytes(w, "history taken", lb_slice_of(m->history), lb_slice_of(s->history));
    tm_same_bytes(w, "former owner", lb_slice_str(m->former), lb_slice_str(s->former));
    tm_same(w, "lane", m->lane, s->lane);
    tm_same(w, "begun", m->begun, s->begun);
    tm_same(w, "oversize", m->oversize, s->oversize);
}

void tm_compare_taken(struct world *w, const struct lq_take *take, const struct lq_leased_vec *got)
{
    tm_same(w, "jobs taken", (int64_t)got[MODEL].n, (int64_t)got[STORE].n);
    for (size_t i = 0; i < got[MODEL].n && !w->failure[0]; i++) {
        compare_leased(w, &got[MODEL].job[i], &got[STORE].job[i]);
        tm_add_lease(w, take, &got[MODEL].job[i], &got[STORE].job[i]);
    }
}

/* settle and take -------------------------------------------------------------------------------------------------- */

/* What an op may still do without two jobs of a queue ending, or being due, at the same time. */
struct budget {
    bool ended[N_QUEUES][LADE_N_STATES];
    bool due_now;
};

/* Where the settle will end, which an operator may have decided; LADE_N_STATES when it is not kept as ended. */
static int find_end(const struct lease *l, enum lq_to to)
{
    if (l->mark && to != LQ_TO_COMPLETED)
        return l->mark - 1 == LADE_JOB_KILL ? LADE_STATE_DEAD : LADE_STATE_CANCELLED;
    if (to == LQ_TO_COMPLETED)
        return LADE_STATE_COMPLETED;
    if (to == LQ_TO_DEAD)
        return LADE_STATE_DEAD;
    return to == LQ_TO_CANCELLED ? LADE_STATE_CANCELLED : LADE_N_STATES;
}

static struct lb_slice draw_history(struct world *w)
{
    size_t n = tm_chance(w, 10) ? 1 + tm_below(w, 6) : 6 + tm_below(w, 30);
    uint8_t *h = tm_alloc(w, n);
    for (size_t i = 0; i < n; i++)
        h[i] = (uint8_t)tm_below(w, 256);
    return tm_chance(w, 40) ? (struct lb_slice){0} : lb_slice(h, n);
}

/* False when this lease cannot be settled in this op. */
static bool draw_settle(struct world *w, struct lease *l, struct budget *b, struct lq_settle *it)
{
    static const enum lq_reason reason[] = {LQ_REASON_EXHAUSTED, LQ_REASON_UNRECOVERABLE,
                                            LQ_REASON_QUARANTINED};
    enum lq_to to = (enum lq_to)tm_below(w, w->keyed ? LQ_TO_THROTTLED + 1 : LQ_TO_GONE + 1);
    int end = find_end(l, to);
    bool waits = to == LQ_TO_RETRYING || to == LQ_TO_SCHEDULED;
    int64_t delay = waits ? draw_delay(w) : 0;
    if (waits && !b->due_now && tm_chance(w, 15)) {
        b->due_now = true;
        delay = 0;
        w->due[tm_now(w) % N_DUES] = tm_now(w);
    }
    if (to == LQ_TO_THROTTLED)
        delay = w->exact ? (int64_t)tm_below(w, 1500) : tm_chance(w, 90) ? 0 : 36000000;
    if (end < LADE_N_STATES) {
        if (b->ended[l->queue][end])
            return false;
        b->ended[l->queue][end] = true;
    }
    *it = (struct lq_settle){
        .queue = tm_queue(l->queue),
        .id = lb_slice_str(l->id),
        .to = to,
        .delay_ms = delay,
        .history = draw_history(w),
        .result = to == LQ_TO_COMPLETED ? tm_draw_result(w) : (struct lb_slice){0},
        .reason = to == LQ_TO_DEAD ? reason[tm_below(w, 3)] : LQ_REASON_NONE,
        .death = to == LQ_TO_DEAD ? tm_draw_death(w) : NULL,
        .failed = tm_chance(w, 30),
        .result_ttl_ms = to == LQ_TO_COMPLETED ? tm_draw_result_ttl(w) : 0,
        .attempt = l->attempt,
        .took_us = (int64_t)tm_below(w, 5000),
        .kind = lb_slice(l->kind, l->n_kind),
    };
    if (it->failed)
        it->error = lb_slice_str("no luck");
    return true;
}

/* One that is not over, as a rule. NULL when there are none at all. */
struct lease *tm_draw_lease(struct world *w)
{
    if (w->n_leases == 0)
        return NULL;
    size_t start = tm_below(w, w->n_leases);
    bool over = tm_chance(w, 10);
    for (size_t i = 0; i < w->n_leases; i++) {
        struct lease *l = &w->lease[(start + i) % w->n_leases];
        if (l->over == over)
            return l;
    }
    return &w->lease[start];
}

#define SETTLE_MAX 5

static size_t draw_settles(struct world *w, struct lq_settle it[N_SIDES][SETTLE_MAX],
                           struct lease **of)
{
    struct budget budget = {0};
    size_t n = 0, want = tm_below(w, SETTLE_MAX + 1);
    for (size_t i = 0; i < want; i++) {
        struct lease *l = tm_draw_lease(w);
        bool again = false;
        for (size_t k = 0; k < n; k++)
            again = again || (of[k]->queue == l->queue && strcmp(of[k]->id, l->id) == 0);
        if (!l || again || !draw_settle(w, l, &budget, &it[MODEL][n]))
            continue;
        it[STORE][n] = it[MODEL][n];
        uint64_t wrong = tm_chance(w, 4) ? 1000000 : 0;
        for (int s = 0; s < N_SIDES; s++)
            it[s][n].fence = l->fence[s] + wrong;
        tm_trace(w, " %s/%s>%d%s", tm_queue(l->queue), l->id, (int)it[MODEL][n].to,
                 l->over || wrong ? "!" : "");
        of[n++] = l;
    }
    return n;
}

void tm_op_settle_take(struct world *w)
{
    struct lq_settle it[N_SIDES][SETTLE_MAX];
    struct lease *of[SETTLE_MAX];
    struct lq_leased_vec got[N_SIDES] = {0};
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    tm_trace(w, "settle");
    size_t n = draw_settles(w, it, of);
    struct lq_take take = {.worker = w->worker[tm_below(w, N_WORKERS)],
                           .lanes = tm_draw_lanes(w),
                           .max = 1 + tm_below(w, tm_chance(w, 20) ? 40 : 6),
                           .register_idle = tm_chance(w, 50)};
    tm_draw_extent(w, &take);
    bool takes = *take.worker && (n == 0 || tm_chance(w, 60));
    if (n == 0 && !takes)
        return;
    if (takes)
        tm_as(w, take.worker);
    if (takes)
        tm_trace(w, " take %s %zu from %s", take.worker, take.max, take.lanes.queue[0]);
    for (int i = 0; i < N_SIDES; i++) {
        struct lq_take of_side = tm_extent_of(w, i, &take);
        rc[i] = lq_settle_take(w->s[i], it[i], n, takes ? &of_side : NULL, &got[i], &err[i]);
    }
    tm_same_result(w, "settle and take", rc, err);
    tm_follow(w, &take, got);
    for (size_t i = 0; i < n && !w->failure[0]; i++) {
        tm_same(w, "outcome of a settle", it[MODEL][i].outcome, it[STORE][i].outcome);
        of[i]->over = of[i]->over || it[MODEL][i].outcome == LADE_DONE;
    }
    if (!w->failure[0])
        tm_compare_taken(w, &take, got);
    if (!w->failure[0] && takes && rc[MODEL] == 0 && got[MODEL].n == 0 && w->exact) {
        tm_same(w, "next due after a take", got[MODEL].next_due_ms, got[STORE].next_due_ms);
        tm_same(w, "the time of a take", got[MODEL].now_ms, got[STORE].now_ms);
    }
    for (int i = 0; i < N_SIDES; i++)
        lb_arena_fini(&got[i].arena);
}

#define RUN_MAX 40

struct lease *tm_next_lease(struct world *w, const struct lease *l)
{
    static const char digit[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    if (strncmp(l->id, "01HF7YAT00", 10) != 0)
        return NULL;
    char number[15] = "";
    memcpy(number, l->id + 10, 14);
    unsigned block = (unsigned)strtoul(number, NULL, 10);
    unsigned place =
        (unsigned)(32 * (strchr(digit, l->id[24]) - digit) + (strchr(digit, l->id[25]) - digit)) +
        1;
    if (place >= BLOCK_MAX)
        return NULL;
    struct lease *next = tm_find_lease(w, l->queue, tm_block_id(w, block, place));
    return next && next->fence[STORE] == l->fence[STORE] && next->fence[MODEL] == l->fence[MODEL]
               ? next
               : NULL;
}

/* Completes jobs of one take whose ids follow each other, in their order. */
void tm_op_settle_run(struct world *w)
{
    struct lq_settle it[N_SIDES][RUN_MAX];
    struct lease *of[RUN_MAX], *l = tm_draw_lease(w);
    int rc[N_SIDES];
    lade_err err[N_SIDES] = {0};
    size_t n = 0, want = 1 + tm_below(w, RUN_MAX);
    tm_trace(w, "settle run");
    for (; l && n < want; l = tm_next_lease(w, l)) {
        of[n] = l;
        for (int i = 0; i < N_SIDES; i++)
            it[i][n] = (struct lq_settle){.queue = tm_queue(l->queue),
                                          .id = lb_slice_str(l->id),
                                          .fence = l->fence[i],
                                          .to = LQ_TO_COMPLETED,
                                          .attempt = l->attempt,
                                          .kind = lb_slice(l->kind, l->n_kind),
                                          .reason = LQ_REASON_NONE};
        tm_trace(w, " %s/%s%s", tm_queue(l->queue), l->id, l->over ? "!" : "");
        n++;
    }
    if (n == 0)
        return;
    for (int i = 0; i < N_SIDES; i++)
        rc[i] = lq_settle_take(w->s[i], it[i], n, NULL, NULL, &err[i]);
    tm_same_result(w, "settle of a run", rc, err);
    for (size_t i = 0; i < n && !w->failure[0]; i++) {
        tm_same(w, "outcome of a settle", it[MODEL][i].outcome, it[STORE][i].outcome);
        of[i]->over = of[i]->over || it[MODEL][i].outcome == LADE_DONE;
    }
}
