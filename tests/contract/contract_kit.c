/* contract_kit.c - the helpers of contract.h */
#include "contract.h"

#define PATIENCE_MS \
    300000 /* no verdict by speed: whoever answers on a busy machine has not failed */

struct ct ct;

static int64_t read_clock(void *ctx)
{
    return *(const int64_t *)ctx;
}

void ct_expect(int expected, int rc, const char *call, const char *file, int line)
{
    if (rc == expected)
        return;
    print_error("%s gives %s, expected %s\n", call, lade_result_name(rc),
                lade_result_name(expected));
    if (rc < 0)
        print_error("    %s: %s\n", ct.err.where ? ct.err.where : "", ct.err.text);
    _fail(file, line);
}

struct lq_store *ct_open(void)
{
    const struct lq_store_ops *const table[] = {ct.ops};
    struct lq_store *s = NULL;
    EXPECT(0, lq_store_open(&s, table, 1, &ct.config, &ct.err));
    return s;
}

static void name_store(void)
{
    ct.n_tests++;
    (void)snprintf(ct.ns, sizeof(ct.ns), "t%u", ct.n_tests);
    if (strcmp(ct.ops->name, "redis") == 0)
        (void)snprintf(ct.url, sizeof(ct.url), "%s", ct.redis.url);
    else if (strcmp(ct.ops->name, "sqlite") == 0)
        (void)snprintf(ct.url, sizeof(ct.url), "sqlite:%s/%u.db", ct.dir.path, ct.n_tests);
    else
        (void)snprintf(ct.url, sizeof(ct.url), "%s:t%u", ct.ops->name, ct.n_tests);
}

int ct_setup(void **state)
{
    (void)state;
    ct.clock_ns = INT64_C(1700000000) * LADE_SECOND;
    name_store();
    ct.config = (struct lq_store_config){
        .url = ct.url,
        .ns = ct.ns,
        .timeout_ms = PATIENCE_MS,
        .connect_timeout_ms = PATIENCE_MS,
        .keep_completed = {24 * CT_HOUR, 5000},
        .keep_dead = {24 * CT_HOUR, 5000},
        .body_max = (1U << 20) + 4096,
        .clock = ct_is_exact() ? read_clock : NULL,
        .clock_ctx = &ct.clock_ns,
    };
    lb_arena_init(&ct.arena);
    lb_arena_init(&ct.got.arena);
    lb_arena_init(&ct.rows.arena);
    ct.s = ct_open();
    return 0;
}

static void report_finding(void *ctx, const char *queue, const char *text)
{
    print_error("check: queue '%s': %s\n", queue, text);
    ++*(int *)ctx;
}

int ct_teardown(void **state)
{
    (void)state;
    int findings = 0;
    int rc = ct.s->ops->check(ct.s, report_finding, &findings, &ct.err);
    if (rc != 0)
        print_error("check: %s: %s\n", lade_result_name(rc), ct.err.text);
    lq_store_close(ct.s);
    lb_arena_fini(&ct.arena);
    lb_arena_fini(&ct.got.arena);
    lb_arena_fini(&ct.rows.arena);
    ct.s = NULL;
    ct.got = (struct lq_leased_vec){0};
    ct.rows = (struct lq_row_vec){0};
    return rc != 0 || findings > 0;
}

void ct_reopen(void)
{
    lq_store_close(ct.s);
    ct.s = NULL;
    name_store();
    ct.s = ct_open();
}

bool ct_is_exact(void)
{
    return ct.ops->caps & LQ_CAP_CLOCK;
}

int64_t ct_now(void)
{
    int64_t now = 0;
    EXPECT(0, ct.s->ops->now(ct.s, &now, &ct.err));
    return now;
}

void ct_step(int64_t ms)
{
    if (ct_is_exact()) {
        ct.clock_ns += ms * LADE_MILLISECOND;
        return;
    }
    int64_t until = ct_now() + ms;
    while (ct_now() < until)
        lr_sleep_until(lb_deadline_in(LADE_MILLISECOND));
}

char *ct_format(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *s = lb_arena_alloc(&ct.arena, (size_t)n + 1);
    LB_CHECK(n >= 0 && s);
    va_start(args, format);
    (void)vsnprintf(s, (size_t)n + 1, format, args);
    va_end(args);
    return s;
}

/* Cuts "a b c" into words; at most max. */
static size_t split_words(const char *text, const char **word, size_t max)
{
    char *copy = lb_arena_strdup(&ct.arena, text), *rest = NULL;
    size_t n = 0;
    LB_CHECK(copy);
    for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        LB_CHECK(n < max);
        word[n++] = w;
    }
    return n;
}

struct lq_lanes ct_lanes(const char *names)
{
    const char **queue = lb_arena_alloc(&ct.arena, LQ_LANES_MAX * sizeof(*queue));
    LB_CHECK(queue);
    size_t n = split_words(names, queue, LQ_LANES_MAX);
    return (struct lq_lanes){queue, n};
}

/* put ------------------------------------------------------------------------------------------------------------ */

struct lq_put ct_item_level(const char *queue, const char *id, int level)
{
    const char *body = ct_format("\x01%d%s", level, id);
    return (struct lq_put){
        .queue = queue,
        .id = lb_slice_str(id),
        .body = lb_slice_str(body),
        .level = level,
    };
}

struct lq_put ct_item(const char *queue, const char *id)
{
    return ct_item_level(queue, id, LQ_LEVEL_DEFAULT);
}

void ct_put(struct lq_put *items, size_t n)
{
    EXPECT(0, lq_put(ct.s, items, n, &ct.err));
}

int ct_put_one(struct lq_put item)
{
    ct_put(&item, 1);
    return item.outcome;
}

static void add_all(const char *queue, const char *const *id, size_t n)
{
    struct lq_put *items = lb_arena_alloc(&ct.arena, n * sizeof(*items));
    LB_CHECK(items);
    for (size_t i = 0; i < n; i++)
        items[i] = ct_item(queue, id[i]);
    ct_put(items, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(items[i].outcome, LADE_DONE);
}

void ct_add(const char *queue, const char *ids)
{
    const char *id[64];
    add_all(queue, id, split_words(ids, id, LB_ARRAY_LEN(id)));
}

void ct_add_many(const char *queue, const char *prefix, size_t n)
{
    const char **id = lb_arena_alloc(&ct.arena, n * sizeof(*id));
    LB_CHECK(id);
    for (size_t i = 0; i < n; i++)
        id[i] = ct_format("%s%04zu", prefix, i);
    add_all(queue, id, n);
}

void ct_add_in(const char *queue, const char *id, int64_t ms)
{
    struct lq_put item = ct_item(queue, id);
    item.when = LQ_WHEN_IN;
    item.when_ms = ms;
    assert_int_equal(ct_put_one(item), LADE_DONE);
}

/* workers and leases ----------------------------------------------------------------------------------------------- */

struct lq_beat ct_beat(const char *worker, const char *lanes)
{
    return (struct lq_beat){
        .worker = worker,
        .name = ct_format("host:%s", worker),
        .lanes = ct_lanes(lanes),
        .lease_ms = CT_HOUR,
        .started_ms = ct_now(),
        .concurrency = 3,
        .first = true,
    };
}

void ct_join(const char *worker, const char *lanes)
{
    struct lq_beat beat = ct_beat(worker, lanes);
    size_t n = 0;
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err));
}

void ct_die(const char *worker, const char *lanes)
{
    struct lq_beat beat = ct_beat(worker, lanes);
    size_t n = 0;
    beat.first = false;
    beat.lease_ms = 1;
    EXPECT(0, lq_renew(ct.s, &beat, NULL, 0, &n, &ct.err));
    ct_step(3);
}

struct lq_take ct_asking(const char *worker, const char *lanes, size_t max)
{
    return (struct lq_take){.worker = worker, .lanes = ct_lanes(lanes), .max = max};
}

size_t ct_look_idle(const char *worker, const char *lanes)
{
    struct lq_take take = ct_asking(worker, lanes, 1);
    struct lq_leased_vec found = {0};
    take.register_idle = true;
    EXPECT(0, lq_settle_take(ct.s, NULL, 0, &take, &found, &ct.err));
    size_t n = found.n;
    lb_arena_fini(&found.arena);
    return n;
}

static void empty_got(void)
{
    lb_arena_reset(&ct.got.arena);
    ct.got.n = 0;
    ct.got.job = NULL;
    ct.got.next_due_ms = 0;
    ct.got.now_ms = 0;
}

size_t ct_take(const char *worker, const char *lanes, size_t max)
{
    struct lq_take take = ct_asking(worker, lanes, max);
    empty_got();
    EXPECT(0, lq_settle_take(ct.s, NULL, 0, &take, &ct.got, &ct.err));
    return ct.got.n;
}

size_t ct_reclaim(const char *worker, const char *lanes, size_t max)
{
    struct lq_take take = ct_asking(worker, lanes, max);
    empty_got();
    int rc = lq_reclaim(ct.s, &take, &ct.got, &ct.err);
    EXPECT(ct.got.n > 0 ? LADE_DONE : LADE_EMPTY, rc);
    return ct.got.n;
}

const char *ct_got(void)
{
    const char *text = "";
    for (size_t i = 0; i < ct.got.n; i++)
        text = ct_format("%s%s%s", text, i ? " " : "", (const char *)ct.got.job[i].id.p);
    return text;
}

struct lq_leased ct_take_one(const char *worker, const char *queue)
{
    assert_int_equal(ct_take(worker, queue, 2), 1);
    struct lq_leased j = ct.got.job[0];
    j.id = lb_arena_copy(&ct.arena, j.id.p, j.id.n);
    j.body = lb_arena_copy(&ct.arena, j.body.p, j.body.n);
    j.history = lb_arena_copy(&ct.arena, j.history.p, j.history.n);
    return j;
}

struct lq_settle ct_settling(const char *queue, const struct lq_leased *j, enum lq_to to)
{
    return (struct lq_settle){
        .queue = queue,
        .id = lb_slice_of(j->id),
        .fence = j->fence,
        .to = to,
        .delay_ms = to == LQ_TO_RETRYING || to == LQ_TO_SCHEDULED ? CT_HOUR : 0,
        .reason = to == LQ_TO_DEAD ? LQ_REASON_EXHAUSTED : LQ_REASON_NONE,
    };
}

int ct_settle_one(struct lq_settle it)
{
    EXPECT(0, lq_settle_take(ct.s, &it, 1, NULL, NULL, &ct.err));
    return it.outcome;
}

int ct_settle(const char *queue, const struct lq_leased *j, enum lq_to to)
{
    return ct_settle_one(ct_settling(queue, j, to));
}

int ct_begin(const char *worker, const char *queue, const struct lq_leased *j)
{
    struct lq_lease lease = {.queue = queue, .id = lb_slice_of(j->id), .fence = j->fence};
    EXPECT(0, lq_begin(ct.s, worker, &lease, 1, &ct.err));
    return lease.outcome;
}

struct lq_leased ct_bring(const char *queue, const char *id, enum lade_state state)
{
    static const enum lq_to way[LADE_N_STATES] = {
        [LADE_STATE_RETRYING] = LQ_TO_RETRYING,
        [LADE_STATE_COMPLETED] = LQ_TO_COMPLETED,
        [LADE_STATE_DEAD] = LQ_TO_DEAD,
        [LADE_STATE_CANCELLED] = LQ_TO_CANCELLED,
    };
    struct lq_leased j = {0};
    if (state == LADE_STATE_SCHEDULED) {
        ct_add_in(queue, id, CT_HOUR);
        return j;
    }
    ct_add(queue, id);
    if (state == LADE_STATE_READY)
        return j;
    j = ct_take_one("w", queue);
    if (state != LADE_STATE_ACTIVE)
        assert_int_equal(ct_settle(queue, &j, way[state]), LADE_DONE);
    return j;
}

/* looking ---------------------------------------------------------------------------------------------------------- */

static const struct lq_row *find_row(const char *queue, const char *id)
{
    lb_arena_reset(&ct.rows.arena);
    ct.rows.n = 0;
    ct.rows.row = NULL;
    int rc = ct.s->ops->get(ct.s, queue, lb_slice_str(id), &ct.rows, &ct.err);
    EXPECT(ct.rows.n == 1 ? LADE_DONE : LADE_NOT_FOUND, rc);
    return ct.rows.n == 1 ? &ct.rows.row[0] : NULL;
}

int ct_state(const char *queue, const char *id)
{
    const struct lq_row *row = find_row(queue, id);
    return row ? (int)row->state : -1;
}

const struct lq_row *ct_row(const char *queue, const char *id)
{
    const struct lq_row *row = find_row(queue, id);
    assert_non_null(row);
    return row;
}

lade_queue_info ct_info(const char *queue)
{
    lade_queue_info info = {0};
    EXPECT(0, ct.s->ops->count(ct.s, queue, &info, &ct.err));
    return info;
}

size_t ct_count(const char *queue, enum lade_state state)
{
    return ct_info(queue).count[state];
}

const char *ct_list(const char *queue, enum lade_state state, size_t page)
{
    lade_cursor cursor = {0};
    const char *text = "";
    while (!cursor.done) {
        lb_arena_reset(&ct.rows.arena);
        ct.rows.n = 0;
        int rc = ct.s->ops->list(ct.s, queue, state, &cursor, page, &ct.rows, &ct.err);
        EXPECT(ct.rows.n > 0 ? LADE_DONE : LADE_EMPTY, rc);
        assert_true(ct.rows.n <= page);
        if (rc == LADE_EMPTY)
            assert_true(cursor.done);
        for (size_t i = 0; i < ct.rows.n; i++) {
            assert_int_equal(ct.rows.row[i].state, state);
            text = ct_format("%s%s%s", text, *text ? " " : "", (const char *)ct.rows.row[i].id.p);
        }
    }
    return text;
}

int ct_act(const char *queue, enum lade_job_verb verb, const char *id)
{
    struct lb_slice one = lb_slice_str(id);
    int outcome = -1;
    int rc = ct.s->ops->act(ct.s, queue, verb, &one, 1, &outcome, &ct.err);
    if (rc != LADE_DONE)
        EXPECT(outcome, rc);
    return outcome;
}

const char *ct_stops(const char *worker, const char *lanes, size_t max)
{
    struct lq_stop stop[8];
    struct lq_beat beat = ct_beat(worker, lanes);
    size_t n = 0;
    const char *text = "";
    assert_true(max <= LB_ARRAY_LEN(stop));
    beat.first = false;
    EXPECT(0, lq_renew(ct.s, &beat, stop, max, &n, &ct.err));
    assert_true(n <= max);
    for (size_t i = 0; i < n; i++)
        text = ct_format("%s%s%s", text, i ? " " : "", stop[i].id);
    return text;
}
