/* hall_test.c - jobs of keys in company, as more than one process puts them, and a random history with a check behind each step */
#include "store/sqlite/hall.h"

#include <errno.h>

#include "queue/job.h"
#include "support/sqlite_kit.h"

static const char *const lane = "q";

static void put_to(struct lq_store *s, const char *queue, const char *id, const char *key,
                   int level)
{
    struct lb_buf b;
    lade_job_spec spec = {.kind = "k", .priority = 4 - level, .key = {key, strlen(key)}};
    lb_buf_init(&b);
    lq_job_encode(&b, &spec, 1700000000000);
    struct lq_put it = {.queue = queue,
                        .id = lb_slice_str(id),
                        .body = lb_buf_slice(&b),
                        .level = level,
                        .key = lb_slice_str(key)};
    assert_int_equal(lq_put(s, &it, 1, &sk.err), 0);
    assert_int_equal(it.outcome, 0);
    lb_buf_fini(&b);
}

static void put(struct lq_store *s, const char *id, const char *key, int level)
{
    put_to(s, lane, id, key, level);
}

static int64_t in_hall(void)
{
    return sk_ask("SELECT hall FROM queue");
}

/* However many processes put jobs of one key, there are no more of it in the hall than two turns. */
static void many_processes_bring_no_more_of_a_key(void **state)
{
    (void)state;
    char id[32];
    struct lq_store *first = sk_open(), *second = sk_open();
    for (int i = 0; i < 3 * LQ_TURN_JOBS; i++) {
        (void)snprintf(id, sizeof(id), "a%d", i);
        put(i % 2 ? first : second, id, "A", 4);
    }
    for (int k = 0; k < 20; k++) { /* each knows nothing when it comes */
        struct lq_store *s = sk_open();
        (void)snprintf(id, sizeof(id), "b%d", k);
        put(s, id, "A", 4);
        lq_store_close(s);
    }
    assert_in_range(in_hall(), LQ_TURN_JOBS, 2 * LQ_TURN_JOBS);
    assert_int_equal(sk_count(first, LADE_STATE_READY), 3 * LQ_TURN_JOBS + 20);
    assert_int_equal(sk_check(first), 0);
    lq_store_close(second);
    lq_store_close(first);
}

/* Two that put in turns learn from the file what the other put, so both go on bringing jobs. */
static void processes_count_what_the_others_put(void **state)
{
    (void)state;
    char id[32], key[32];
    struct lq_store *s[2] = {sk_open(), sk_open()};
    for (int i = 0; i < 400; i++) {
        (void)snprintf(id, sizeof(id), "j%d", i);
        (void)snprintf(key, sizeof(key), "K%d", i % 100);
        put(s[i % 2], id, key, 4);
    }
    assert_int_equal(in_hall(), 400);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(id, sizeof(id), "x%d", i);
        put(s[i % 2], id, "K0", 4);
    }
    assert_in_range(in_hall(), 400, 400 + 2 * LQ_TURN_JOBS);
    assert_int_equal(sk_check(s[0]), 0);
    lq_store_close(s[1]);
    lq_store_close(s[0]);
}

static void settle(struct lq_store *s, const struct lq_leased *j)
{
    static const enum lq_to ends[] = {
        LQ_TO_COMPLETED, LQ_TO_COMPLETED, LQ_TO_COMPLETED, LQ_TO_RETRYING, LQ_TO_SCHEDULED,
        LQ_TO_READY,     LQ_TO_DEAD,      LQ_TO_CANCELLED, LQ_TO_GONE,     LQ_TO_THROTTLED};
    struct lq_settle it = {.queue = "q",
                           .id = lb_slice_of(j->id),
                           .fence = j->fence,
                           .delay_ms = (int64_t)sk_draw(3),
                           .to = ends[sk_draw(LB_ARRAY_LEN(ends))]};
    assert_int_equal(lq_settle_take(s, &it, 1, NULL, NULL, &sk.err), 0);
}

static void act(struct lq_store *s, unsigned last)
{
    char text[32];
    int outcome;
    (void)snprintf(text, sizeof(text), "j%u", sk_draw(last + 1));
    struct lb_slice id = lb_slice_str(text);
    enum lade_job_verb verb = (enum lade_job_verb)sk_draw(4);
    assert_true(s->ops->act(s, "q", verb, &id, 1, &outcome, &sk.err) >= 0);
}

static void change_limits(struct lq_store *s)
{
    static const struct lq_limit some[] = {
        {0}, {.concurrency = 2}, {.weight = 3}, {.order = LADE_KEY_ORDER_FIFO}};
    const struct lq_limit *l = &some[sk_draw(LB_ARRAY_LEN(some))];
    char key[8];
    (void)snprintf(key, sizeof(key), "K%u", sk_draw(5));
    if (sk_draw(3) == 0) {
        assert_int_equal(lq_key_pause(s, "q", lb_slice_str(key), sk_draw(3) == 0, &sk.err), 0);
        return;
    }
    enum lade_limit_scope scope = sk_draw(4) == 0 ? LADE_LIMIT_KEYS : LADE_LIMIT_KEY;
    assert_int_equal(lq_limit_set(s, "q", scope, lb_slice_str(key), l, &sk.err), 0);
}

static void lift_limits(struct lq_store *s)
{
    struct lq_limit none = {0};
    char key[16];
    for (int i = 0; i < 5; i++) {
        (void)snprintf(key, sizeof(key), "K%d", i);
        assert_int_equal(lq_limit_set(s, "q", LADE_LIMIT_KEY, lb_slice_str(key), &none, &sk.err),
                         0);
        assert_int_equal(lq_key_pause(s, "q", lb_slice_str(key), false, &sk.err), 0);
    }
    assert_int_equal(lq_limit_set(s, "q", LADE_LIMIT_KEYS, lb_slice_str(key), &none, &sk.err), 0);
}

static void trim(struct lq_store *s)
{
    size_t n = 0;
    assert_true(s->ops->trim(s, sk_lanes, 100, &n, &sk.err) >= 0);
}

static int64_t steps;

static int64_t tell_time(void *ctx)
{
    (void)ctx;
    return 1700000000 * LADE_SECOND + steps * 100 * LADE_MILLISECOND;
}

/* Everything that moves jobs, limits that come and go, and two handles: the file is sound behind each step. */
static void a_random_history_stays_sound(void **state)
{
    (void)state;
    sk.config.clock = tell_time;
    struct lq_store *s[2] = {sk_open(), sk_open()};
    unsigned next = 0;
    unsigned n_in_hall = 0;
    assert_int_equal(sk_try_join(s[0], "w", 36000000), 0);
    for (int step = 0; step < 600; step++) {
        struct lq_store *one = s[sk_draw(2)];
        unsigned what = sk_draw(100);
        steps++;
        if (what < 45) {
            char id[32], key[8];
            (void)snprintf(id, sizeof(id), "j%u", next++);
            (void)snprintf(key, sizeof(key), "K%u", sk_draw(4) ? sk_draw(5) : 0);
            put(one, id, key, sk_draw(5) ? 4 : (int)sk_draw(9));
        } else if (what < 80) {
            struct lq_take take = {.worker = "w", .lanes = sk_lanes, .max = 1 + sk_draw(20)};
            struct lq_leased_vec out = {0};
            assert_true(lq_settle_take(one, NULL, 0, &take, &out, &sk.err) >= 0);
            for (size_t i = 0; i < out.n; i++) {
                if (sk_draw(8))
                    settle(one, &out.job[i]);
            }
            lb_arena_fini(&out.arena);
        } else if (what < 90) {
            act(one, next);
        } else if (what < 91) {
            for (unsigned i = sk_draw(3); i > 0; i--)
                change_limits(one);
        } else if (what < 93) {
            lift_limits(one);
            trim(one);
        } else if (what < 97) {
            trim(one);
        } else {
            struct lq_key_row_vec rows = {0};
            lade_cursor cursor = {0};
            while (!cursor.done)
                assert_true(one->ops->key_list(one, "q", &cursor, 3, &rows, &sk.err) >= 0);
            lb_arena_fini(&rows.arena);
        }
        n_in_hall += in_hall() > 0;
        if (step % 5 == 0)
            assert_int_equal(sk_check(one), 0);
    }
    assert_in_range(n_in_hall, 80, 600);
    lq_store_close(s[1]);
    lq_store_close(s[0]);
}

static void a_hall_opens_again_when_the_last_limit_is_gone(void **state)
{
    (void)state;
    char id[32];
    struct lq_limit l = {.concurrency = 1}, none = {0};
    struct lq_store *s = sk_open();
    assert_int_equal(lq_limit_set(s, "q", LADE_LIMIT_KEY, lb_slice_str("A"), &l, &sk.err), 0);
    put(s, "one", "B", 4);
    assert_int_equal(in_hall(), 0);
    assert_int_equal(lq_limit_set(s, "q", LADE_LIMIT_KEY, lb_slice_str("A"), &none, &sk.err), 0);
    trim(s);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof(id), "c%d", i);
        put(s, id, "C", 4);
    }
    assert_int_equal(in_hall(), 5);
    put(s, "two", "B", 4); /* behind its other one */
    assert_int_equal(in_hall(), 5);
    lq_store_close(s);
}

/* Of more queues than are counted at a time those go that were not used for longest. */
static void a_hall_in_use_is_counted_on_however_many_queues_come(void **state)
{
    (void)state;
    char id[32], queue[32];
    struct lq_store *s = sk_open();
    for (int i = 0; i < 100; i++) {
        (void)snprintf(id, sizeof(id), "j%d", i);
        (void)snprintf(queue, sizeof(queue), "other%d", i);
        put(s, id, id, 4);
        put_to(s, queue, id, "A", 4);
    }
    assert_int_equal(in_hall(), 100);
    lq_store_close(s);
}

/* Lists keys, which cannot be written down while another process holds the write lock. */
struct listing {
    struct lq_store *s;
    int rc;
    _Atomic bool done;
};

static void list_keys(void *arg)
{
    struct listing *l = arg;
    struct lq_key_row_vec rows = {0};
    lade_cursor cursor = {0};
    l->rc = l->s->ops->key_list(l->s, lane, &cursor, 3, &rows, &sk.err);
    l->done = true;
    lb_arena_fini(&rows.arena);
}

static void a_listing_that_cannot_write_leaves_the_lock_to_other_readers(void **state)
{
    (void)state;
    (void)snprintf(sk.url, sizeof(sk.url), "sqlite:%s?busy_timeout=1000", sk.path);
    struct listing l = {.s = sk_open()};
    struct ls_sqlite *ss = ls_sqlite_of(l.s);
    struct lr_thread thread = {0};
    sqlite3 *other;
    bool led = false;
    put(l.s, "a", "A", 4);
    assert_int_equal(sqlite3_open(sk.path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(lr_thread_start(&thread, "list", list_keys, &l), 0);
    while (!led && !l.done) {
        lr_mutex_lock(&ss->writer.lock);
        led = ss->writer.led; /* it tries to write */
        lr_mutex_unlock(&ss->writer.lock);
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
    }
    lr_mutex_lock(&ss->read_lock);
    lr_thread_join(&thread);
    assert_int_equal(l.rc, -LADE_EBUSY);
    assert_int_equal(pthread_mutex_trylock(&ss->read_lock.os), EBUSY);
    lr_mutex_unlock(&ss->read_lock);
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    list_keys(&l);
    assert_int_equal(l.rc, 0);
    lq_store_close(l.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SK_TEST(many_processes_bring_no_more_of_a_key),
        SK_TEST(processes_count_what_the_others_put),
        SK_TEST(a_random_history_stays_sound),
        SK_TEST(a_hall_opens_again_when_the_last_limit_is_gone),
        SK_TEST(a_hall_in_use_is_counted_on_however_many_queues_come),
        SK_TEST(a_listing_that_cannot_write_leaves_the_lock_to_other_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
