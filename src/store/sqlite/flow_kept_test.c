/* flow_kept_test.c - flows in parts and in memory: the same as the file says, whoever else writes to it */
#include "store/sqlite/flow_kept.h"

#include "support/sqlite_kit.h"

#define BODY "\0014"

/* A flow of n nodes, each after one or two of those before it; the last one is on_failure when `handler`. */
struct made {
    struct lq_flow flow;
    struct lq_flow_node node[400];
    uint32_t dep[400][2], next[400][400];
};

static void make(struct made *m, const char *id, uint32_t n, bool handler, struct lb_slice body)
{
    memset(m, 0, sizeof(*m));
    m->flow = (struct lq_flow){.id = lb_slice_str(id),
                               .node = m->node,
                               .n = n,
                               .n_steps = handler ? n - 1 : n,
                               .cancel_siblings = sk_draw(4) == 0};
    for (uint32_t i = 0; i < n; i++) {
        struct lq_flow_node *node = &m->node[i];
        *node = (struct lq_flow_node){.queue = "q",
                                      .kind = lb_slice_str("k"),
                                      .body = body,
                                      .level = LQ_LEVEL_DEFAULT,
                                      .policy = (enum lade_flow_policy)(1 + sk_draw(3)),
                                      .dep = m->dep[i],
                                      .next = m->next[i]};
        if (i >= m->flow.n_steps)
            node->policy = LADE_FLOW_WAIT; /* as the engine has it of on_failure */
        if (i == 0 || i >= m->flow.n_steps)
            continue;
        for (uint32_t k = 0; k < 1 + sk_draw(2); k++) {
            uint32_t dep = sk_draw(i);
            if (k == 1 && dep == m->dep[i][0])
                break;
            m->dep[i][node->n_deps++] = dep;
            m->next[dep][m->node[dep].n_next++] = i;
        }
    }
}

static void put(struct lq_store *s, const char *id, uint32_t n, bool handler, struct lb_slice body)
{
    static struct made m;
    make(&m, id, n, handler, body);
    assert_int_equal(lq_flow_put(s, &m.flow, &sk.err), 0);
    assert_int_equal(m.flow.outcome, 0);
}

static void assert_bytes_are_in_file(sqlite3 *h, const char *sql, int64_t num, struct lb_slice is)
{
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &st, NULL), SQLITE_OK);
    ls_sqlite_bind(st, 1, num);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_true(lb_slice_eq(ls_sqlite_column(st, 0), is));
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
}

static void assert_flow_is_in_file(sqlite3 *h, const struct ls_sqlite_flow *f)
{
    const struct ls_sqlite_flow_row *r = &f->row;
    char sql[400];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM flow WHERE num = %lld AND id = '%s' AND state = %lld AND "
                   "open = %lld AND failed = %lld AND finished = %lld AND parts = %lld AND "
                   "results = %d AND steps = %lld AND nodes = %lld",
                   (long long)r->num, f->id, (long long)r->state, (long long)r->open,
                   (long long)r->failed, (long long)r->finished_ms, (long long)r->parts, r->results,
                   (long long)r->steps, (long long)r->nodes);
    assert_int_equal(sk_ask_on(h, sql), 1);
    for (size_t i = 0; i < f->n_parts; i++) {
        const struct ls_sqlite_part *p = f->part[i];
        int64_t num = r->num * LS_SQLITE_FLOW_SPAN + p->first;
        assert_false(p->dirty);
        assert_bytes_are_in_file(h, "SELECT data FROM flow_part WHERE num = ?1", num, p->data);
        assert_bytes_are_in_file(h, "SELECT data FROM flow_mark WHERE num = ?1", num,
                                 lb_slice(p->marks, LS_SQLITE_MARK_BYTES * (size_t)p->n));
    }
}

static void assert_shelf_is_in_file(struct lq_store *s, sqlite3 *h)
{
    struct ls_sqlite_tx *tx = &ls_sqlite_of(s)->writer.tx;
    size_t bytes = 0;
    lb_list_each (it, &tx->shelf.used) {
        const struct ls_sqlite_flow *f = LB_CONTAINER_OF(it, struct ls_sqlite_flow, node);
        assert_flow_is_in_file(h, f);
        bytes += f->bytes;
    }
    assert_int_equal(bytes, tx->shelf.bytes);
    for (int state = LADE_FLOW_COMPLETED; state < LADE_N_FLOW_STATES; state++) {
        char sql[80];
        (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM flow WHERE state = %d", state);
        if (tx->n_flows[state] >= 0)
            assert_int_equal(tx->n_flows[state], sk_ask_on(h, sql));
    }
}

static void work(struct lq_store *s)
{
    static const enum lq_to to[] = {LQ_TO_COMPLETED, LQ_TO_COMPLETED, LQ_TO_COMPLETED,
                                    LQ_TO_COMPLETED, LQ_TO_DEAD,      LQ_TO_CANCELLED,
                                    LQ_TO_RETRYING,  LQ_TO_GONE};

    assert_true(sk_try_work(s, "w", 1 + sk_draw(8), to[sk_draw(8)]) >= 0);
}

static void change_something(struct lq_store *s)
{
    static unsigned serial;
    static const char *const lane = "q";
    char id[32];
    size_t n = 0;
    int64_t next = 0;
    (void)snprintf(id, sizeof(id), "f%u", sk_draw(10) < 4 ? serial : sk_draw(serial + 1));
    switch (sk_draw(12)) {
    case 0:
    case 1:
        (void)snprintf(id, sizeof(id), "f%u", ++serial);
        put(s, id, 2 + sk_draw(sk_draw(5) == 0 ? 90 : 12), sk_draw(2) == 0, lb_slice_str(BODY));
        break;
    case 2:
        assert_true(s->ops->flow_act(s, lb_slice_str(id),
                                     (enum lade_flow_verb)(LADE_FLOW_CANCEL + sk_draw(2)),
                                     &sk.err) >= 0);
        break;
    case 3:
        if (sk_draw(4) == 0)
            assert_true(s->ops->flow_act(s, lb_slice_str(id), LADE_FLOW_REMOVE, &sk.err) >= 0);
        break;
    case 4:
        assert_true(s->ops->redrive(s, lane, 3, &n, &sk.err) >= 0);
        break;
    case 5:
        assert_true(s->ops->purge(s, lane, LADE_STATE_RETRYING, 3, &n, &sk.err) >= 0);
        assert_int_equal(s->ops->promote(s, sk_lanes, 3, &n, &next, &sk.err), 0);
        break;
    default:
        work(s);
        break;
    }
}

static void flows_kept_are_what_the_file_says(void **state)
{
    (void)state;
    sqlite3 *h;
    sk.config.keep_completed.count = 5;
    sk.config.keep_dead.count = 7;
    struct lq_store *s = sk_open();
    assert_int_equal(sqlite3_open(sk.path, &h), SQLITE_OK);
    assert_int_equal(sk_try_join(s, "w", 3600000), 0);
    for (int i = 0; i < 800; i++) {
        change_something(s);
        assert_shelf_is_in_file(s, h);
        if (i % 50 == 0)
            assert_int_equal(sk_check(s), 0);
    }
    assert_int_equal(sk_check(s), 0);
    assert_true(sk_ask_on(h, "SELECT count(*) FROM flow WHERE state = 1") <= 5);
    assert_true(sk_ask_on(h, "SELECT count(*) FROM flow WHERE state = 2") <= 7);
    assert_int_equal(sqlite3_close(h), SQLITE_OK);
    lq_store_close(s);
}

static void handles_that_move_flows_in_turn_see_each_others_steps(void **state)
{
    (void)state;
    sk_change_in_turn(change_something, 600, 40);
}

/* A long body. */
static void fill(char *bytes, size_t n)
{
    memset(bytes, 'x', n);
    bytes[0] = BODY[0];
    bytes[1] = BODY[1];
}

/* 350 nodes with bodies of 200 bytes, 5000 and 100,000 in turn: parts of many nodes, of a few and of one. */
static void a_long_flow_of_bodies_of_all_sizes_runs_to_its_end(void **state)
{
    (void)state;
    static char bytes[100000];
    static struct made m;
    static const size_t sizes[] = {200, 5000, 200, 100000};
    fill(bytes, sizeof(bytes));
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 3600000), 0);
    make(&m, "long", 350, true, lb_slice(bytes, 200));
    for (uint32_t i = 0; i < 350; i++)
        m.node[i].body.n = sizes[(i / 70) % 4];
    assert_int_equal(lq_flow_put(s, &m.flow, &sk.err), 0);
    while (sk_try_work(s, "w", 7, LQ_TO_COMPLETED) > 0)
        ;
    struct lq_flow_row_vec rows = {0};
    lb_arena_init(&rows.arena);
    assert_int_equal(s->ops->flow_get(s, lb_slice_str("long"), &rows, &sk.err), 0);
    assert_int_equal(rows.row[0].state, LADE_FLOW_COMPLETED);
    for (uint32_t i = 0; i < 349; i++) {
        assert_int_equal(rows.row[0].node[i].n_deps, m.node[i].n_deps);
        assert_memory_equal(rows.row[0].node[i].dep, m.dep[i], 4 * (size_t)m.node[i].n_deps);
    }
    lb_arena_fini(&rows.arena);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

/* Bound: what is kept between transactions. */
static void flows_kept_have_a_bound_and_go_on_when_they_left_it(void **state)
{
    (void)state;
    static char bytes[300000];
    fill(bytes, sizeof(bytes));
    struct lq_store *s = sk_open();
    assert_int_equal(sk_try_join(s, "w", 3600000), 0);
    for (int i = 0; i < 40; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "f%d", i);
        put(s, id, 3, false, lb_slice(bytes, sizeof(bytes)));
        assert_true(ls_sqlite_of(s)->writer.tx.shelf.bytes <= LS_SQLITE_FLOWS_BYTES);
    }
    while (sk_try_work(s, "w", 20, LQ_TO_COMPLETED) > 0)
        assert_true(ls_sqlite_of(s)->writer.tx.shelf.bytes <= LS_SQLITE_FLOWS_BYTES);
    assert_int_equal(sk_count(s, LADE_STATE_COMPLETED), 120);
    assert_int_equal(sk_check(s), 0);
    lq_store_close(s);
}

static void a_part_that_is_cut_is_told_not_followed(void **state)
{
    (void)state;
    struct lb_buf b;
    struct ls_sqlite_step step;
    static struct made m;
    make(&m, "f", 5, false, lb_slice_str(BODY));
    lb_buf_init(&b);
    ls_sqlite_part_pack(&b, m.node, 5);
    struct lb_slice whole = lb_buf_slice(&b);
    assert_int_equal(ls_sqlite_part_count(whole), 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(ls_sqlite_part_get(whole, i, &step));
        assert_string_equal(step.queue, "q");
        assert_true(lb_slice_eq(step.body, lb_slice_str(BODY)));
    }
    assert_false(ls_sqlite_part_get(whole, 5, &step));
    for (size_t n = 0; n < whole.n; n++)
        assert_false(ls_sqlite_part_get(lb_slice(whole.p, n), 4, &step));
    for (size_t at = 0; at < whole.n;
         at++) { /* nothing outside of it is read: the sanitizer sees */
        uint8_t was = b.p[at];
        b.p[at] = 0xff;
        for (uint32_t i = 0; i < 5; i++)
            (void)ls_sqlite_part_get(whole, i, &step);
        b.p[at] = was;
    }
    lb_buf_fini(&b);
}

static void check_finds_what_is_wrong_with_parts_and_marks(void **state)
{
    (void)state;
    struct lq_store *s = sk_open();
    put(s, "f", 6, false, lb_slice_str(BODY));
    assert_int_equal(sk_check(s), 0);
    sk_sql("UPDATE flow_mark SET data = x'0000'");
    assert_int_equal(sk_check(s), 1);
    sk_sql("UPDATE flow_mark SET data = zeroblob(18)");
    assert_true(sk_check(s) > 0);
    sk_sql("DELETE FROM flow_part");
    assert_int_equal(sk_check(s), 1);
    sk_sql("DELETE FROM flow; INSERT INTO flow_result VALUES (99, x'01')");
    assert_int_equal(sk_check(s), 2);
    lq_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(flows_kept_are_what_the_file_says),
        SK_TEST(handles_that_move_flows_in_turn_see_each_others_steps),
        SK_TEST(a_long_flow_of_bodies_of_all_sizes_runs_to_its_end),
        SK_TEST(flows_kept_have_a_bound_and_go_on_when_they_left_it),
        SK_TEST(a_part_that_is_cut_is_told_not_followed),
        SK_TEST(check_finds_what_is_wrong_with_parts_and_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
