/*
 * flow_convert.c - from schema 10 to 11: the rows of flow_step and flow_node become parts and marks
 *
 * Runs within the migration's transaction, after 0011_flow_part.sql.
 */
#include <string.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/sqlite/flow_pack.h"
#include "store/sqlite/migrate.h"

enum statement { FLOWS, NODES, PART, MARK, RESULT, FLOW, N_STATEMENTS };

static const char nodes_of_flow[] =
    "SELECT s.queue, s.kind, s.level, s.policy, s.whn, s.when_ms, s.deps, s.next, s.body, "
    "n.state, n.missing, n.result, n.num FROM flow_step s JOIN flow_node n ON n.num = s.num "
    "WHERE s.num BETWEEN ?1 AND ?2 ORDER BY s.num";

static const char *const texts[N_STATEMENTS] = {
    "SELECT num, nodes FROM flow ORDER BY num",
    nodes_of_flow,
    "INSERT INTO flow_part (num, data) VALUES (?1, ?2)",
    "INSERT INTO flow_mark (num, data) VALUES (?1, ?2)",
    "INSERT INTO flow_result (num, result) VALUES (?1, ?2)",
    "UPDATE flow SET parts = ?2, results = ?3 WHERE num = ?1",
};

struct convert {
    struct ls_sqlite_db *db;
    lade_err *err;
    sqlite3_stmt *st[N_STATEMENTS];
    struct lb_arena arena; /* of one flow */
    struct lq_flow_node *node;
    uint8_t *marks;
    struct lb_buf part;
    uint32_t n;
    bool results;
};

static int fail(struct convert *c)
{
    return ls_sqlite_db_fail(c->db, "open", c->err);
}

static int run(struct convert *c, enum statement which)
{
    int rc = sqlite3_step(c->st[which]) == SQLITE_DONE ? 0 : fail(c);
    (void)sqlite3_reset(c->st[which]);
    return rc;
}

static struct lb_slice keep(struct convert *c, int column, bool *ok)
{
    struct lb_slice from = ls_sqlite_column(c->st[NODES], column);
    struct lb_mut m = lb_arena_copy(&c->arena, from.p, from.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

static const uint32_t *keep_numbers(struct convert *c, int column, uint32_t *n, bool *ok)
{
    struct lb_slice from = ls_sqlite_column(c->st[NODES], column);
    *n = (uint32_t)ls_sqlite_number_count(from);
    uint32_t *v = lb_arena_alloc(&c->arena, ((size_t)*n + 1) * sizeof(*v));
    *ok = *ok && v;
    for (uint32_t i = 0; v && i < *n; i++)
        v[i] = ls_sqlite_number_at(from, i);
    return v;
}

static int read_node(struct convert *c)
{
    sqlite3_stmt *st = c->st[NODES];
    struct lq_flow_node *node = &c->node[c->n];
    bool ok = true;
    *node = (struct lq_flow_node){
        .queue = (const char *)keep(c, 0, &ok).p,
        .kind = keep(c, 1, &ok),
        .level = sqlite3_column_int(st, 2),
        .policy = (enum lade_flow_policy)sqlite3_column_int(st, 3),
        .when = (enum lq_when)sqlite3_column_int(st, 4),
        .when_ms = sqlite3_column_int64(st, 5),
        .body = keep(c, 8, &ok),
    };
    node->dep = keep_numbers(c, 6, &node->n_deps, &ok);
    node->next = keep_numbers(c, 7, &node->n_next, &ok);
    if (!ok)
        return lb_fail_nomem(c->err, "open");
    ls_sqlite_mark_set(c->marks, c->n++, (enum lade_flow_step_state)sqlite3_column_int(st, 9),
                       (uint32_t)sqlite3_column_int64(st, 10));
    struct lb_slice result = ls_sqlite_column(st, 11);
    if (result.n == 0)
        return 0;
    c->results = true;
    ls_sqlite_bind(c->st[RESULT], 1, sqlite3_column_int64(st, 12));
    ls_sqlite_bind_blob(c->st[RESULT], 2, result);
    return run(c, RESULT);
}

static int read_nodes(struct convert *c, int64_t num, int64_t nodes)
{
    size_t room = (size_t)nodes + 1;
    lb_arena_reset(&c->arena);
    c->n = 0;
    c->results = false;
    c->node = lb_arena_alloc(&c->arena, room * sizeof(*c->node));
    c->marks = lb_arena_alloc(&c->arena, room * LS_SQLITE_MARK_BYTES);
    if (!c->node || !c->marks)
        return lb_fail_nomem(c->err, "open");
    ls_sqlite_bind(c->st[NODES], 1, num * LS_SQLITE_FLOW_SPAN);
    ls_sqlite_bind(c->st[NODES], 2, num * LS_SQLITE_FLOW_SPAN + nodes - 1);
    int rc = 0, step;
    while (rc == 0 && (step = sqlite3_step(c->st[NODES])) != SQLITE_DONE)
        rc = step == SQLITE_ROW && (int64_t)c->n < nodes ? read_node(c) : fail(c);
    (void)sqlite3_reset(c->st[NODES]);
    return rc;
}

static int write_row(struct convert *c, enum statement which, int64_t num, struct lb_slice data)
{
    ls_sqlite_bind(c->st[which], 1, num);
    ls_sqlite_bind_blob(c->st[which], 2, data);
    return run(c, which);
}

static int write_flow(struct convert *c, int64_t num)
{
    int64_t parts = 0;
    int rc = 0;
    for (uint32_t i = 0, n = 0; i < c->n && rc == 0; i += n, parts++) {
        n = ls_sqlite_part_measure(&c->node[i], c->n - i);
        lb_buf_clear(&c->part);
        ls_sqlite_part_pack(&c->part, &c->node[i], n);
        if (c->part.failed)
            return lb_fail_nomem(c->err, "open");
        rc = write_row(c, PART, num * LS_SQLITE_FLOW_SPAN + i, lb_buf_slice(&c->part));
        if (rc == 0)
            rc = write_row(c, MARK, num * LS_SQLITE_FLOW_SPAN + i,
                           lb_slice(c->marks + LS_SQLITE_MARK_BYTES * (size_t)i,
                                    LS_SQLITE_MARK_BYTES * (size_t)n));
        LB_FAULT("sqlite.flow.convert");
    }
    if (rc < 0)
        return rc;
    ls_sqlite_bind(c->st[FLOW], 1, num);
    ls_sqlite_bind(c->st[FLOW], 2, parts);
    ls_sqlite_bind(c->st[FLOW], 3, c->results);
    return run(c, FLOW);
}

static int convert_all(struct convert *c)
{
    int rc = 0, step;
    for (size_t i = 0; i < N_STATEMENTS && rc == 0; i++) {
        if (sqlite3_prepare_v2(c->db->h, texts[i], -1, &c->st[i], NULL) != SQLITE_OK)
            rc = fail(c);
    }
    while (rc == 0 && (step = sqlite3_step(c->st[FLOWS])) != SQLITE_DONE) {
        if (step != SQLITE_ROW)
            return fail(c);
        int64_t num = sqlite3_column_int64(c->st[FLOWS], 0);
        rc = read_nodes(c, num, sqlite3_column_int64(c->st[FLOWS], 1));
        if (rc == 0)
            rc = write_flow(c, num);
    }
    return rc;
}

int ls_sqlite_flow_convert(struct ls_sqlite_db *db, lade_err *err)
{
    struct convert c = {.db = db, .err = err};
    lb_arena_init(&c.arena);
    lb_buf_init(&c.part);
    int rc = convert_all(&c);
    for (size_t i = 0; i < N_STATEMENTS; i++)
        (void)sqlite3_finalize(c.st[i]);
    lb_buf_fini(&c.part);
    lb_arena_fini(&c.arena);
    return rc < 0
               ? rc
               : ls_sqlite_db_exec(db, "DROP TABLE flow_step; DROP TABLE flow_node", "open", err);
}
