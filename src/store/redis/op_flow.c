/*
 * op_flow.c - flows, looked at and acted on; lua/flow.lua and lua/fold.lua tell of their keys, and move them when jobs end
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "queue/flow.h"
#include "queue/flow_store.h"
#include "store/redis/homes.h"
#include "store/redis/outbox.h"
#include "store/redis/slots.h"

/* One script with the set of queues as its key. */
struct flow_call {
    struct ls_redis_store *s;
    const char *home; /* in slots */
    enum ls_redis_lua script;
    struct lb_slice *arg;
    size_t n_args;
    char found[LADE_NAME_MAX + 1]; /* home */
};

static const char *const no_queue = "";

/* the others ------------------------------------------------------------------------------------------------------- */

static void encode_args(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct flow_call *fc = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, fc->script, 1, 1 + fc->n_args);
    ls_redis_key_shared(cmd, fc->s, fc->home, "queues");
    for (size_t i = 0; i < fc->n_args; i++)
        ls_redis_arg_slice(cmd, fc->arg[i]);
    ls_redis_cmd_end(cmd);
}

/* *cur is at the answer of the script then; the link is held. */
static int ask_script(struct flow_call *fc, bool once, struct ls_redis_conn *c,
                      struct ls_redis_cursor *cur, lade_err *err)
{
    struct ls_redis_ask ask = {encode_args, fc, "flow", once, &no_queue, 1};
    int rc = ls_redis_ask(fc->s, c, &ask, 1, err);
    if (rc == 0)
        *cur = ls_redis_conn_reply(c, 0);
    return rc;
}

/* Holds the admin link from here until `end_call`; on 0 *cur is at the answer. In slots NOT_FOUND when no home has this flow. */
static int begin_call(struct flow_call *fc, struct lb_slice id, bool once, struct ls_redis_conn **c,
                      struct ls_redis_cursor *cur, lade_err *err)
{
    lr_mutex_lock(&fc->s->admin.lock);
    int rc = ls_redis_link_conn(fc->s, &fc->s->admin, c, err);
    if (rc == 0 && ls_redis_in_slots(fc->s)) {
        rc = ls_redis_find_home(fc->s, *c, id, fc->found, err);
        fc->home = fc->found;
    }
    return rc == 0 ? ask_script(fc, once, *c, cur, err) : rc;
}

static int end_call(struct flow_call *fc, const struct ls_redis_conn *c,
                    const struct ls_redis_cursor *cur, int rc, lade_err *err)
{
    if (rc == 0 && cur->bad)
        rc = ls_redis_conn_fail_reply(c, "flow", err);
    lr_mutex_unlock(&fc->s->admin.lock);
    return rc;
}

/* A retry or a cancel whose answer is lost is not repeated, as an act on jobs is not. */
int ls_redis_flow_act(struct lq_store *base, struct lb_slice id, enum lade_flow_verb verb,
                      lade_err *err)
{
    static const int meaning[] = {0, LADE_NOT_FOUND, LADE_WRONG_STATE};
    char digit = (char)('0' + (int)verb);
    struct lb_slice arg[] = {lb_slice(&digit, 1), id};
    struct flow_call fc = {.s = ls_redis_of(base),
                           .script = LS_REDIS_LUA_FLOW_ACT,
                           .arg = arg,
                           .n_args = LB_ARRAY_LEN(arg)};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    int64_t answer = 0;
    int rc = begin_call(&fc, id, true, &c, &cur, err);
    if (rc == 0) {
        answer = ls_redis_read_int(&cur);
        ls_redis_ship(fc.s, c, &fc.home, 1);
    }
    rc = end_call(&fc, c, &cur, rc, err);
    return rc != 0 ? rc : meaning[answer >= 0 && answer < 3 ? answer : 0];
}

/* look ------------------------------------------------------------------------------------------------------------- */

struct look {
    struct lb_arena *arena;
    bool no_memory;
};

static struct lb_slice keep(struct look *l, struct lb_slice from)
{
    struct lb_mut m = lb_arena_copy(l->arena, from.p, from.n);
    l->no_memory = l->no_memory || !m.p;
    return lb_slice_of(m);
}

static int64_t read_number(struct ls_redis_cursor *cur)
{
    struct lb_slice text = ls_redis_read_bytes_or_null(cur);
    char digits[24] = "";
    if (text.n < sizeof(digits) && text.n > 0)
        memcpy(digits, text.p, text.n);
    return strtoll(digits, NULL, 10);
}

/* name, state, n, steps, sib, at, till */
static void read_head(struct look *l, struct ls_redis_cursor *cur, struct lb_slice id,
                      struct lq_flow_row *row)
{
    *row = (struct lq_flow_row){.id = keep(l, id)};
    row->name = keep(l, ls_redis_read_bytes_or_null(cur));
    row->state = (enum lade_flow_state)read_number(cur);
    row->n = (uint32_t)read_number(cur);
    row->n_steps = (uint32_t)read_number(cur);
    row->cancel_siblings = read_number(cur) != 0;
    row->created_ms = read_number(cur);
    row->finished_ms = read_number(cur);
}

/* "level when policy ms queue kind ..." of a node; an unreadable one stays empty. */
static void read_static(struct look *l, struct lb_slice text, struct lq_flow_node_row *node)
{
    const uint8_t *p = text.p, *end = text.p + text.n;
    struct lb_slice word[4] = {{0}};
    for (size_t i = 0; i < LB_ARRAY_LEN(word) && p < end; i++) {
        const uint8_t *blank = memchr(p, ' ', (size_t)(end - p));
        word[i] = lb_slice(p, (size_t)((blank ? blank : end) - p));
        p = blank ? blank + 1 : end;
    }
    node->policy = word[0].n == 3 ? (enum lade_flow_policy)(word[0].p[2] - '0') : LADE_FLOW_FAIL;
    node->queue = (const char *)keep(l, word[2]).p;
    node->kind = keep(l, word[3]);
}

/* "0,1,2" */
static void read_deps(struct look *l, struct lb_slice text, struct lq_flow_node_row *node)
{
    uint32_t n = text.n > 0;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == ',';
    uint32_t *dep = lb_arena_alloc(l->arena, (n + 1) * sizeof(*dep));
    l->no_memory = l->no_memory || !dep;
    for (size_t i = 0, k = 0; dep && i < text.n; k++) {
        dep[k] = 0;
        for (; i < text.n && text.p[i] != ','; i++)
            dep[k] = 10 * dep[k] + (uint32_t)(text.p[i] - '0');
        i++;
    }
    node->dep = dep;
    node->n_deps = n;
}

static void read_nodes(struct look *l, struct ls_redis_cursor *cur, struct lq_flow_row *row,
                       size_t n_answers)
{
    struct lb_slice states = ls_redis_read_bytes(cur);
    row->n = (uint32_t)states.n;
    if (cur->bad || n_answers != 8 + 2 * states.n) {
        cur->bad = true;
        return;
    }
    struct lq_flow_node_row *node = lb_arena_alloc(l->arena, (row->n + 1) * sizeof(*node));
    l->no_memory = l->no_memory || !node;
    for (uint32_t i = 0; node && i < row->n; i++) {
        node[i] =
            (struct lq_flow_node_row){.state = (enum lade_flow_step_state)LB_MIN(
                                          (unsigned)(states.p[i] - '0'), LADE_N_STEP_STATES - 1U)};
        read_static(l, ls_redis_read_bytes(cur), &node[i]);
    }
    for (uint32_t i = 0; node && i < row->n; i++)
        read_deps(l, ls_redis_read_bytes(cur), &node[i]);
    row->node = node;
}

/* Room for n more rows. */
static int reserve(struct lq_flow_row_vec *out, size_t n, lade_err *err)
{
    struct lq_flow_row *row = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*row));
    if (!row)
        return lb_fail_nomem(err, "flow");
    if (out->n > 0)
        memcpy(row, out->row, out->n * sizeof(*row));
    out->row = row;
    return 0;
}

int ls_redis_flow_get(struct lq_store *base, struct lb_slice id, struct lq_flow_row_vec *out,
                      lade_err *err)
{
    struct lb_slice arg[] = {lb_slice_str("get"), id};
    struct flow_call fc = {.s = ls_redis_of(base),
                           .script = LS_REDIS_LUA_FLOW_LOOK,
                           .arg = arg,
                           .n_args = LB_ARRAY_LEN(arg)};
    struct look l = {.arena = &out->arena};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    bool found = false;
    int rc = reserve(out, 1, err);
    if (rc < 0)
        return rc;
    rc = begin_call(&fc, id, false, &c, &cur, err);
    if (rc == 0 && ls_redis_peek(&cur) != LS_REDIS_NULL) {
        size_t n = ls_redis_read_array(&cur);
        read_head(&l, &cur, id, &out->row[out->n]);
        read_nodes(&l, &cur, &out->row[out->n], n);
        found = true;
    }
    rc = end_call(&fc, c, &cur, rc, err);
    if (rc == 0 && l.no_memory)
        rc = lb_fail_nomem(err, "flow");
    if (rc < 0)
        return rc;
    out->n += found;
    return found ? 0 : LADE_NOT_FOUND;
}

/* A row, and its place among all: by the time it was made, the newest first, then by its home's number. */
struct placed {
    struct lq_flow_row row;
    int64_t score;
    uint32_t home;
};

/* So that a cursor has room for it: FNV-1a of its name; 0 of none. */
static uint32_t number_of(const char *home)
{
    uint32_t h = *home ? UINT32_C(0x811c9dc5) : 0;
    for (; *home; home++)
        h = (h ^ (uint8_t)*home) * UINT32_C(0x01000193);
    return h;
}

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->home > y->home) - (x->home < y->home);
}

struct page {
    struct look look;
    struct placed *row;
    size_t n, limit;
    int64_t below;  /* score; 0: from the newest on */
    uint32_t after; /* of the flows with that score those of later homes are still to come */
};

/* Up to `limit` of one home, or of all; then those beyond the limit go. The link is held. */
static int read_home(struct flow_call *fc, struct ls_redis_conn *c, struct page *p, lade_err *err)
{
    char most[24], below[24] = "+inf";
    bool with = number_of(fc->home) > p->after;
    (void)snprintf(most, sizeof(most), "%zu", p->limit);
    if (p->below > 0)
        (void)snprintf(below, sizeof(below), "%" PRId64, p->below + (with ? 1 : 0));
    struct lb_slice arg[] = {lb_slice_str("list"), lb_slice_str(below), lb_slice_str(most)};
    struct ls_redis_cursor cur;
    fc->arg = arg;
    fc->n_args = LB_ARRAY_LEN(arg);
    int rc = ask_script(fc, false, c, &cur, err);
    if (rc < 0)
        return rc;
    size_t found = ls_redis_read_array(&cur) / 3;
    found = LB_MIN(found, p->limit);
    for (size_t i = 0; i < found && !cur.bad; i++) {
        struct placed *to = &p->row[p->n++];
        struct lb_slice id = ls_redis_read_bytes(&cur), score = ls_redis_read_bytes(&cur);
        to->score = ls_redis_take_number(&score);
        to->home = number_of(fc->home);
        (void)ls_redis_read_array(&cur);
        read_head(&p->look, &cur, id, &to->row);
    }
    if (cur.bad)
        return ls_redis_conn_fail_reply(c, "flow", err);
    qsort(p->row, p->n, sizeof(*p->row), compare_placed);
    p->n = LB_MIN(p->n, p->limit);
    return 0;
}

static int read_homes(struct flow_call *fc, struct page *p, lade_err *err)
{
    static const char *const none[] = {""};
    const char **home = NULL;
    size_t n = 0;
    struct ls_redis_conn *c;
    int rc = ls_redis_link_conn(fc->s, &fc->s->admin, &c, err);
    if (rc == 0 && ls_redis_in_slots(fc->s))
        rc = ls_redis_homes(fc->s, c, p->look.arena, &home, &n, err);
    else if (rc == 0)
        n = 1;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        fc->home = home ? home[i] : none[0];
        rc = read_home(fc, c, p, err);
    }
    return rc;
}

/* The cursor is the score of the last row and the number of its home. */
int ls_redis_flow_list(struct lq_store *base, lade_cursor *cursor, size_t limit,
                       struct lq_flow_row_vec *out, lade_err *err)
{
    struct flow_call fc = {.s = ls_redis_of(base), .script = LS_REDIS_LUA_FLOW_LOOK};
    struct page p = {.look = {.arena = &out->arena}, .limit = LB_MAX(limit, (size_t)1)};
    struct lb_slice at = lb_slice_str(cursor->at);
    p.below = ls_redis_take_number(&at);
    p.after = (uint32_t)ls_redis_take_number(&at);
    int rc = reserve(out, limit, err);
    p.row = lb_arena_alloc(&out->arena, (2 * limit + 1) * sizeof(*p.row));
    if (!p.row)
        return lb_fail_nomem(err, "flow");
    if (rc < 0)
        return rc;
    lr_mutex_lock(&fc.s->admin.lock);
    rc = read_homes(&fc, &p, err);
    lr_mutex_unlock(&fc.s->admin.lock);
    if (rc == 0 && p.look.no_memory)
        rc = lb_fail_nomem(err, "flow");
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < p.n; i++)
        out->row[out->n++] = p.row[i].row;
    cursor->done = p.n < limit;
    if (p.n > 0) {
        const struct placed *last = &p.row[p.n - 1];
        (void)snprintf(cursor->at, sizeof(cursor->at), "%" PRId64 " %" PRIu32, last->score,
                       last->home);
    }
    return p.n == 0 ? LADE_EMPTY : 0;
}

static void read_inputs(struct look *l, struct ls_redis_cursor *cur, size_t n_answers, size_t max,
                        struct lq_input_vec *out)
{
    out->total = (size_t)ls_redis_read_int(cur);
    for (size_t i = 0; i < (n_answers - 1) / 3 && i < max && !cur->bad; i++) {
        int64_t node = ls_redis_read_int(cur), state = ls_redis_read_int(cur);
        struct lb_slice result = ls_redis_read_bytes(cur);
        out->input[out->n++] =
            (struct lq_input){(uint32_t)node, (enum lade_flow_step_state)state, keep(l, result)};
    }
}

int ls_redis_flow_inputs(struct lq_store *base, struct lb_slice id, uint32_t node, size_t first,
                         size_t max, struct lq_input_vec *out, lade_err *err)
{
    char text[4][24];
    (void)snprintf(text[0], sizeof(text[0]), "%u", node);
    (void)snprintf(text[1], sizeof(text[1]), "%zu", first);
    (void)snprintf(text[2], sizeof(text[2]), "%zu", max);
    (void)snprintf(text[3], sizeof(text[3]), "%u", LQ_INPUT_BYTES);
    struct lb_slice arg[] = {lb_slice_str("inputs"), id,
                             lb_slice_str(text[0]),  lb_slice_str(text[1]),
                             lb_slice_str(text[2]),  lb_slice_str(text[3])};
    struct flow_call fc = {.s = ls_redis_of(base),
                           .script = LS_REDIS_LUA_FLOW_LOOK,
                           .arg = arg,
                           .n_args = LB_ARRAY_LEN(arg)};
    struct look l = {.arena = out->arena};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    bool found = false;
    out->n = out->total = 0;
    out->input = lb_arena_alloc(out->arena, (max + 1) * sizeof(*out->input));
    if (!out->input)
        return lb_fail_nomem(err, "inputs");
    int rc = begin_call(&fc, id, false, &c, &cur, err);
    if (rc == 0 && ls_redis_peek(&cur) != LS_REDIS_NULL) {
        size_t n = ls_redis_read_array(&cur);
        read_inputs(&l, &cur, n, max, out);
        found = true;
    }
    rc = end_call(&fc, c, &cur, rc, err);
    if (rc == 0 && l.no_memory)
        rc = lb_fail_nomem(err, "inputs");
    return rc < 0 ? rc : found ? 0 : LADE_NOT_FOUND;
}

/* check ------------------------------------------------------------------------------------------------------------ */

static int check_flow(struct lq_store *base, struct lb_slice id, lq_finding_fn report, void *ctx,
                      lade_err *err)
{
    struct flow_call fc = {
        .s = ls_redis_of(base), .script = LS_REDIS_LUA_FLOW_CHECK, .arg = &id, .n_args = 1};
    struct ls_redis_conn *c = NULL;
    struct ls_redis_cursor cur = {0};
    int rc = begin_call(&fc, id, false, &c, &cur, err);
    size_t n = rc == 0 ? ls_redis_read_array(&cur) : 0;
    for (size_t i = 0; i < n; i++) {
        char line[256];
        struct lb_slice text = ls_redis_read_bytes(&cur);
        (void)snprintf(line, sizeof(line), "%.*s", (int)LB_MIN(text.n, sizeof(line) - 1),
                       text.n ? (const char *)text.p : "");
        if (!cur.bad)
            report(ctx, "", line);
    }
    return end_call(&fc, c, &cur, rc, err);
}

int ls_redis_flows_check(struct lq_store *base, lq_finding_fn report, void *ctx, lade_err *err)
{
    lade_cursor cursor = {0};
    int rc = 0;
    while (rc == 0 && !cursor.done) {
        struct lq_flow_row_vec rows = {0};
        lb_arena_init(&rows.arena);
        rc = ls_redis_flow_list(base, &cursor, 100, &rows, err);
        for (size_t i = 0; rc == 0 && i < rows.n; i++)
            rc = check_flow(base, rows.row[i].id, report, ctx, err);
        lb_arena_fini(&rows.arena);
    }
    return LB_MIN(rc, 0);
}
