#include "flow_kit.h"

#define NODES_MAX 2000

static uint32_t read_number(char **at)
{
    char *end = NULL;
    unsigned long v = strtoul(*at, &end, 10);
    LB_CHECK(end != *at);
    *at = end;
    return (uint32_t)v;
}

/* One node of the drawing; returns where the next begins. */
static char *draw_node(char *at, struct lq_flow_node *node, uint32_t *dep)
{
    size_t n = strcspn(at, " <+");
    const char *queue = ct_format("%.*s", (int)n, at);
    *node = (struct lq_flow_node){.queue = queue,
                                  .kind = lb_slice_str("kind"),
                                  .level = LQ_LEVEL_DEFAULT,
                                  .policy = LADE_FLOW_FAIL,
                                  .dep = dep};
    at += n;
    while (*at && *at != ' ') {
        bool is_delay = *at++ == '+'; /* else '<' or ',' */
        uint32_t v = read_number(&at);
        if (is_delay) {
            node->when = LQ_WHEN_IN;
            node->when_ms = v;
        } else {
            dep[node->n_deps++] = v;
        }
    }
    return at + (*at == ' ');
}

static void reverse_edges(struct lq_flow_node *node, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *next = lb_arena_alloc(&ct.arena, (n + 1) * sizeof(*next));
        LB_CHECK(next);
        node[i].next = next;
        for (uint32_t j = 0; j < n; j++) {
            for (uint32_t k = 0; k < node[j].n_deps; k++) {
                if (node[j].dep[k] == i)
                    next[node[i].n_next++] = j;
            }
        }
    }
}

struct lq_flow fl_draw(const char *id, const char *nodes)
{
    char *at = ct_format("%s", nodes);
    struct lq_flow_node *node = lb_arena_alloc(&ct.arena, NODES_MAX * sizeof(*node));
    uint32_t n = 0;
    bool has_handler = false;
    LB_CHECK(node);
    while (*at) {
        uint32_t *dep = lb_arena_alloc(&ct.arena, (strlen(at) + 1) * sizeof(*dep));
        LB_CHECK(dep && n < NODES_MAX && !has_handler);
        has_handler = *at == '!';
        at = draw_node(at + has_handler, &node[n], dep);
        node[n].body = lb_slice_str(ct_format("\x01%db%u", LQ_LEVEL_DEFAULT, n));
        if (has_handler)
            node[n].policy = LADE_FLOW_WAIT;
        n++;
    }
    reverse_edges(node, n);
    return (struct lq_flow){.id = lb_slice_str(id),
                            .name = lb_slice_str("drawn"),
                            .node = node,
                            .n = n,
                            .n_steps = n - has_handler};
}

void fl_policy(struct lq_flow *flow, uint32_t node, enum lade_flow_policy policy)
{
    struct lq_flow_node *copy = lb_arena_alloc(&ct.arena, flow->n * sizeof(*copy));
    LB_CHECK(copy && node < flow->n);
    memcpy(copy, flow->node, flow->n * sizeof(*copy));
    copy[node].policy = policy;
    flow->node = copy;
}

int fl_put(struct lq_flow flow)
{
    EXPECT(0, lq_flow_put(ct.s, &flow, &ct.err));
    return flow.outcome;
}

void fl_add(const char *id, const char *nodes)
{
    assert_int_equal(fl_put(fl_draw(id, nodes)), LADE_DONE);
}

struct lq_leased fl_take(const char *queue, const char *id)
{
    assert_int_equal(ct_take("w", queue, 1), 1);
    struct lq_leased j = ct.got.job[0];
    j.id = lb_arena_copy(&ct.arena, j.id.p, j.id.n);
    assert_string_equal((const char *)j.id.p, id);
    return j;
}

int fl_settle(const char *queue, const struct lq_leased *j, enum lq_to to)
{
    struct lq_settle it = ct_settling(queue, j, to);
    if (to == LQ_TO_COMPLETED)
        it.result = lb_slice_of(j->id);
    return ct_settle_one(it);
}

void fl_end(const char *queue, const char *id, enum lq_to to)
{
    struct lq_leased j = fl_take(queue, id);
    assert_int_equal(fl_settle(queue, &j, to), LADE_DONE);
}

const char *fl_show(const char *id)
{
    struct lq_flow_row_vec rows = {0};
    const char *text = "absent";
    lb_arena_init(&rows.arena);
    int rc = ct.s->ops->flow_get(ct.s, lb_slice_str(id), &rows, &ct.err);
    if (rc == LADE_DONE) {
        const struct lq_flow_row *f = &rows.row[0];
        char nodes[NODES_MAX + 2];
        for (uint32_t i = 0; i < f->n; i++)
            nodes[i] = "wqcdxs"[f->node[i].state];
        nodes[f->n] = 0;
        text = ct_format("%s: %.*s%s%s", lade_flow_state_name(f->state), (int)f->n_steps, nodes,
                         f->n > f->n_steps ? "!" : "", nodes + f->n_steps);
        if ((f->state == LADE_FLOW_RUNNING) != (f->finished_ms == 0))
            text = "finished_ms and state do not agree";
    }
    lb_arena_fini(&rows.arena);
    EXPECT(strcmp(text, "absent") == 0 ? LADE_NOT_FOUND : LADE_DONE, rc);
    return text;
}

const char *fl_inputs(const char *id, uint32_t node)
{
    const char *text = "";
    size_t total = 1;
    struct lb_arena arena;
    lb_arena_init(&arena);
    for (size_t first = 0; first < total;) {
        struct lq_input_vec vec = {.arena = &arena};
        EXPECT(0, ct.s->ops->flow_inputs(ct.s, lb_slice_str(id), node, first, 3, &vec, &ct.err));
        total = vec.total;
        if (vec.n == 0)
            break;
        for (size_t i = 0; i < vec.n; i++)
            text = ct_format("%s%s%u:%.*s", text, first + i ? " " : "", vec.input[i].node,
                             vec.input[i].result.n > 0 ? (int)vec.input[i].result.n : 1,
                             vec.input[i].result.n > 0 ? (const char *)vec.input[i].result.p : "-");
        first += vec.n;
    }
    lb_arena_fini(&arena);
    return text;
}

int fl_act(enum lade_flow_verb verb, const char *id)
{
    int rc = lq_flow_act(ct.s, lb_slice_str(id), verb, &ct.err);
    if (rc < 0)
        EXPECT(LADE_DONE, rc);
    return rc;
}

const char *fl_list(size_t page)
{
    lade_cursor cursor = {0};
    const char *text = "";
    while (!cursor.done) {
        struct lq_flow_row_vec rows = {0};
        lb_arena_init(&rows.arena);
        int rc = ct.s->ops->flow_list(ct.s, &cursor, page, &rows, &ct.err);
        for (size_t i = 0; i < rows.n; i++)
            text = ct_format("%s%s%s", text, *text ? " " : "", (const char *)rows.row[i].id.p);
        bool fits = rc == (rows.n > 0 ? LADE_DONE : LADE_EMPTY) && rows.n <= page &&
                    (rc != LADE_EMPTY || cursor.done);
        lb_arena_fini(&rows.arena);
        assert_true(fits);
    }
    return text;
}
