#include "store/memory/memory_flow.h"

#include <string.h>

#include "base/mem.h"

struct ls_memory_flow *ls_memory_flow_find(const struct ls_memory_home *h, struct lb_slice id)
{
    return lb_map_get(&h->flows, id);
}

/* The flow and node of a job's id; NULL when there is none. */
static struct ls_memory_flow *find_node(const struct ls_memory_home *h, struct lb_slice id,
                                        uint32_t *node)
{
    struct lb_slice flow;
    if (!lq_flow_split(id, &flow, node))
        return NULL;
    struct ls_memory_flow *f = ls_memory_flow_find(h, flow);
    return f && *node < f->n ? f : NULL;
}

/* making ----------------------------------------------------------------------------------------------------------- */

static struct lb_slice keep_bytes(struct lb_arena *a, struct lb_slice s, bool *ok)
{
    struct lb_mut m = lb_arena_copy(a, s.p, s.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

static const uint32_t *keep_numbers(struct lb_arena *a, const uint32_t *v, uint32_t n, bool *ok)
{
    return (const uint32_t *)(const void *)keep_bytes(a, lb_slice(v, n * sizeof(*v)), ok).p;
}

static bool fill_steps(struct ls_memory_flow *f, const struct lq_flow *spec)
{
    bool ok = true;
    for (uint32_t i = 0; i < spec->n; i++) {
        const struct lq_flow_node *from = &spec->node[i];
        f->step[i] = (struct ls_memory_step){
            .queue = (const char *)keep_bytes(&f->arena, lb_slice_str(from->queue), &ok).p,
            .kind = keep_bytes(&f->arena, from->kind, &ok),
            .body = keep_bytes(&f->arena, from->body, &ok),
            .level = from->level,
            .when = from->when,
            .when_ms = from->when_ms,
            .policy = from->policy,
            .dep = keep_numbers(&f->arena, from->dep, from->n_deps, &ok),
            .next = keep_numbers(&f->arena, from->next, from->n_next, &ok),
            .n_deps = from->n_deps,
            .n_next = from->n_next,
            .missing = from->n_deps,
        };
        f->open += i < spec->n_steps && from->n_next == 0;
    }
    return ok;
}

static void free_flow(struct ls_memory_flow *f)
{
    for (uint32_t i = 0; f->step && i < f->n; i++)
        lb_free(f->step[i].result.p);
    lb_arena_fini(&f->arena);
    lb_free(f);
}

struct ls_memory_flow *ls_memory_flow_make(struct ls_memory_home *h, const struct lq_flow *spec,
                                           int64_t now_ms)
{
    LB_CHECK(spec->id.n >= 1 && spec->id.n <= LADE_FLOW_ID_MAX);
    struct ls_memory_flow *f = lb_calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    lb_arena_init(&f->arena);
    lb_list_init(&f->in_home);
    lb_list_init(&f->in_state);
    memcpy(f->id, spec->id.p, spec->id.n);
    f->created_ms = now_ms;
    f->cancel_siblings = spec->cancel_siblings;
    f->n_steps = spec->n_steps;
    bool ok = true;
    f->name = keep_bytes(&f->arena, spec->name, &ok);
    f->step = lb_arena_alloc(&f->arena, spec->n * sizeof(*f->step));
    ok = ok && f->step && fill_steps(f, spec);
    f->n = ok ? spec->n : 0;
    if (!ok || lb_map_put(&h->flows, lb_slice(f->id, spec->id.n), f) < 0) {
        free_flow(f);
        return NULL;
    }
    f->sequence = ++h->sequence;
    lb_list_push_back(&h->flows_list, &f->in_home);
    return f;
}

static void leave_state(struct ls_memory_home *h, struct ls_memory_flow *f)
{
    if (!lb_list_is_empty(&f->in_state))
        h->flows_in[f->state].n--;
    lb_list_del(&f->in_state);
}

void ls_memory_flow_drop(struct ls_memory_home *h, struct ls_memory_flow *f)
{
    leave_state(h, f);
    lb_list_del(&f->in_home);
    (void)lb_map_del(&h->flows, lb_slice_str(f->id));
    free_flow(f);
}

void ls_memory_flow_enter(struct ls_memory_home *h, struct ls_memory_flow *f,
                          enum lade_flow_state state, int64_t now_ms)
{
    leave_state(h, f);
    f->state = state;
    f->finished_ms = state == LADE_FLOW_RUNNING ? 0 : now_ms;
    lb_list_push_back(&h->flows_in[state].list, &f->in_state);
    h->flows_in[state].n++;
}

static bool is_over(const struct lq_store *s, const struct ls_memory_home *h,
                    enum lade_flow_state state, int64_t now_ms, bool by_age)
{
    const struct lq_keep *keep =
        state == LADE_FLOW_FAILED ? &s->config.keep_dead : &s->config.keep_completed;
    if (h->flows_in[state].n == 0)
        return false;
    const struct ls_memory_flow *oldest =
        LB_CONTAINER_OF(h->flows_in[state].list.next, struct ls_memory_flow, in_state);
    return h->flows_in[state].n > (size_t)keep->count ||
           (by_age && now_ms - oldest->finished_ms > keep->age_ms);
}

size_t ls_memory_flow_retain(struct lq_store *s, int64_t now_ms, bool by_age, size_t max,
                             bool *more)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    size_t n = 0;
    *more = false;
    for (int state = LADE_FLOW_COMPLETED; state < LADE_N_FLOW_STATES; state++) {
        for (; n < max && is_over(s, h, (enum lade_flow_state)state, now_ms, by_age); n++)
            ls_memory_flow_drop(
                h, LB_CONTAINER_OF(h->flows_in[state].list.next, struct ls_memory_flow, in_state));
        *more = *more || is_over(s, h, (enum lade_flow_state)state, now_ms, by_age);
    }
    return n;
}

/* births ----------------------------------------------------------------------------------------------------------- */

static struct ls_memory_job *find_job(struct ls_memory_home *h, const struct ls_memory_flow *f,
                                      uint32_t node)
{
    char id[LADE_ID_MAX + 1];
    size_t n = lq_flow_join(id, lb_slice_str(f->id), node);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, f->step[node].queue);
    return q ? ls_memory_job_find(q, lb_slice(id, n)) : NULL;
}

/* Made, but in no state: its key in the order of a state is still zero. */
static bool is_unborn(const struct ls_memory_job *j)
{
    return j->node.key.major == 0 && j->node.key.minor == 0;
}

static bool grow(struct ls_memory_births *b)
{
    if (b->n < b->cap)
        return true;
    size_t cap = b->cap ? 2 * b->cap : 16;
    void *p = lb_realloc(b->birth, cap * sizeof(*b->birth));
    if (!p)
        return false;
    b->birth = p;
    b->cap = cap;
    return true;
}

bool ls_memory_flow_bear(struct ls_memory_home *h, struct ls_memory_births *b,
                         const struct ls_memory_flow *f, uint32_t node)
{
    const struct ls_memory_step *step = &f->step[node];
    if (find_job(h, f, node))
        return true;
    if (!grow(b))
        return false;
    char id[LADE_ID_MAX + 1];
    struct lq_put put = {.queue = step->queue, .body = step->body, .level = step->level};
    put.id = lb_slice(id, lq_flow_join(id, lb_slice_str(f->id), node));
    struct ls_memory_birth birth = {.made_queue = !ls_memory_queue_find(h, step->queue)};
    birth.queue = ls_memory_queue_make(h, step->queue);
    birth.job = birth.queue ? ls_memory_job_make(birth.queue, &put) : NULL;
    if (!birth.job) {
        if (birth.queue && birth.made_queue)
            birth.queue->made = false;
        return false;
    }
    b->birth[b->n++] = birth;
    return true;
}

bool ls_memory_flow_prepare(struct ls_memory_home *h, struct ls_memory_births *b,
                            struct lb_slice id, size_t others)
{
    uint32_t node;
    const struct ls_memory_flow *f = find_node(h, id, &node);
    if (!f || lq_node_has_passed(f->step[node].state))
        return true;
    const struct ls_memory_step *step = &f->step[node];
    bool ok = true;
    for (uint32_t i = 0; ok && i < step->n_next; i++) {
        if (f->step[step->next[i]].missing <= others + 1)
            ok = ls_memory_flow_bear(h, b, f, step->next[i]);
    }
    return ok && (f->n == f->n_steps || ls_memory_flow_bear(h, b, f, f->n_steps));
}

void ls_memory_flow_forget_birth(struct ls_memory_births *b, const struct ls_memory_job *job)
{
    for (size_t i = 0; i < b->n; i++) {
        struct ls_memory_birth *birth = &b->birth[(b->at + i) % b->n];
        if (birth->job != job)
            continue;
        birth->job = NULL;
        b->at += i + 1;
        return;
    }
}

void ls_memory_flow_finish(struct ls_memory_births *b)
{
    for (size_t i = b->n; i-- > 0;) {
        struct ls_memory_birth *birth = &b->birth[i];
        if (!birth->job || !is_unborn(birth->job))
            continue;
        ls_memory_job_unmake(birth->job);
        if (birth->made_queue && birth->queue->jobs.n == 0)
            birth->queue->made = false;
    }
    lb_free(b->birth);
    *b = (struct ls_memory_births){0};
}

/* changes ---------------------------------------------------------------------------------------------------------- */

static int64_t add_ms(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void ls_memory_flow_launch(struct ls_memory_home *h, struct ls_memory_flow *f, uint32_t node,
                           int64_t now_ms)
{
    struct ls_memory_step *step = &f->step[node];
    struct ls_memory_job *j = find_job(h, f, node);
    LB_CHECK(j);
    step->state = LADE_STEP_ENQUEUED;
    if (!is_unborn(j))
        return;
    struct ls_memory_queue *q = j->queue;
    int64_t next = ls_memory_queue_next_due(q);
    int64_t run_at = step->when == LQ_WHEN_IN ? add_ms(now_ms, step->when_ms) : step->when_ms;
    q->total_enqueued++;
    if (step->when == LQ_WHEN_NOW || run_at <= now_ms) {
        ls_memory_job_move(h, j, LADE_STATE_READY, 0, now_ms);
        ls_memory_queue_wake(h, q, 1);
        return;
    }
    ls_memory_job_move(h, j, LADE_STATE_SCHEDULED, run_at, now_ms);
    if (next == 0 || run_at < next)
        ls_memory_queue_wake(h, q, 1);
}

static void pass(struct ls_memory_home *h, struct ls_memory_flow *f, uint32_t node, int64_t now_ms)
{
    const struct ls_memory_step *step = &f->step[node];
    for (uint32_t i = 0; i < step->n_next; i++) {
        struct ls_memory_step *next = &f->step[step->next[i]];
        if (--next->missing == 0 && next->state == LADE_STEP_WAITING)
            ls_memory_flow_launch(h, f, step->next[i], now_ms);
    }
    if (node >= f->n_steps || step->n_next > 0)
        return;
    if (--f->open == 0 && f->state == LADE_FLOW_RUNNING)
        ls_memory_flow_enter(h, f, LADE_FLOW_COMPLETED, now_ms);
}

void ls_memory_flow_stop_job(struct ls_memory_home *h, const struct ls_memory_flow *f,
                             uint32_t node, int64_t now_ms)
{
    struct ls_memory_job *j = find_job(h, f, node);
    if (!j || ls_memory_state_is_ended(j->state) || is_unborn(j))
        return;
    if (j->state != LADE_STATE_ACTIVE)
        ls_memory_job_move(h, j, LADE_STATE_CANCELLED, 0, now_ms);
    else if (j->mark == LS_MEMORY_UNMARKED)
        j->mark = LS_MEMORY_CANCEL;
}

static void fail(struct ls_memory_home *h, struct ls_memory_flow *f, int64_t now_ms)
{
    ls_memory_flow_enter(h, f, LADE_FLOW_FAILED, now_ms);
    if (f->n > f->n_steps && f->step[f->n_steps].state == LADE_STEP_WAITING)
        ls_memory_flow_launch(h, f, f->n_steps, now_ms);
    for (uint32_t i = 0; f->cancel_siblings && i < f->n_steps; i++) {
        if (f->step[i].state != LADE_STEP_ENQUEUED)
            continue;
        f->step[i].state = LADE_STEP_CANCELLED;
        f->failed += f->step[i].policy == LADE_FLOW_FAIL;
        ls_memory_flow_stop_job(h, f, i, now_ms);
    }
}

static void apply(struct ls_memory_home *h, struct ls_memory_flow *f, uint32_t node,
                  struct lq_node_change c, int64_t now_ms)
{
    f->step[node].state = c.to;
    f->failed += (uint32_t)c.failed;
    if (f->state == LADE_FLOW_FAILED && f->failed == 0)
        ls_memory_flow_enter(h, f, LADE_FLOW_RUNNING, now_ms);
    if (c.passes)
        pass(h, f, node, now_ms);
    if (f->state == LADE_FLOW_RUNNING && f->failed > 0)
        fail(h, f, now_ms);
}

void ls_memory_flow_ended(struct lq_store *s, struct lb_slice id, enum lade_flow_step_state how,
                          struct lb_mut *result, int64_t now_ms)
{
    struct ls_memory_home *h = ls_memory_home_of(s);
    uint32_t node;
    struct ls_memory_flow *f = find_node(h, id, &node);
    if (!f)
        return;
    struct ls_memory_step *step = &f->step[node];
    if (how == LADE_STEP_COMPLETED && step->state != LADE_STEP_COMPLETED && result) {
        step->result = *result;
        *result = (struct lb_mut){0};
    }
    apply(h, f, node, lq_node_ended(step->state, step->policy, how), now_ms);
    bool more;
    (void)ls_memory_flow_retain(s, now_ms, false, LQ_TAKE_MAX, &more);
}

void ls_memory_flow_revived(struct ls_memory_home *h, struct lb_slice id, int64_t now_ms)
{
    uint32_t node;
    struct ls_memory_flow *f = find_node(h, id, &node);
    if (!f)
        return;
    const struct ls_memory_step *step = &f->step[node];
    apply(h, f, node, lq_node_revived(step->state, step->policy), now_ms);
}

/* going on --------------------------------------------------------------------------------------------------------- */

/* The node that follows this one and nothing else, in the same queue and level and at once; NULL: none, or it does not wait for it. */
static const struct ls_memory_step *next_step(const struct ls_memory_flow *f, uint32_t node,
                                              uint32_t *next)
{
    const struct ls_memory_step *step = &f->step[node];
    if (step->n_next != 1)
        return NULL;
    *next = step->next[0];
    const struct ls_memory_step *to = &f->step[*next];
    bool plain = to->n_deps == 1 && to->when == LQ_WHEN_NOW && to->level == step->level &&
                 strcmp(to->queue, step->queue) == 0;
    return plain && to->state == LADE_STEP_WAITING && to->missing == 1 ? to : NULL;
}

void ls_memory_flow_follow(struct lq_store *s, struct lb_slice id, struct lb_arena *arena,
                           struct lq_leased *out)
{
    uint32_t node;
    const struct ls_memory_flow *f = find_node(ls_memory_home_of(s), id, &node);
    const struct ls_memory_step *to = f ? next_step(f, node, &node) : NULL;
    struct lq_follow *all =
        to ? lb_arena_alloc(arena, LQ_FOLLOW_MAX * sizeof(struct lq_follow)) : NULL;
    size_t bytes = 0;
    out->follow = all;
    for (; all && to && out->n_follow < LQ_FOLLOW_MAX; to = next_step(f, node, &node)) {
        char text[LADE_ID_MAX + 1];
        struct lq_follow next = {
            .id = lb_arena_copy(arena, text, lq_flow_join(text, lb_slice_str(f->id), node)),
            .body = lb_arena_copy(arena, to->body.p, to->body.n)};
        bytes += to->body.n;
        if (!next.id.p || !next.body.p || bytes > LQ_PACK_BYTES || to->body.n > s->config.body_max)
            break;
        all[out->n_follow++] = next;
    }
}

const struct ls_memory_step *ls_memory_flow_next(struct ls_memory_home *h, struct lb_slice id,
                                                 struct ls_memory_job **job)
{
    uint32_t node;
    const struct ls_memory_flow *f = find_node(h, id, &node);
    const struct ls_memory_step *to = f ? next_step(f, node, &node) : NULL;
    *job = to ? find_job(h, f, node) : NULL;
    return *job && is_unborn(*job) ? to : NULL;
}
