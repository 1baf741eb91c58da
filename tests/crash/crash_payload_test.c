/* crash_payload_test.c - hostile bytes and numbers through the C API (C-091, C-092, C-096) */
#include "support/rig_test.h"

#define NS(ms) ((ms)*LADE_MILLISECOND)

static const unsigned char bad_utf8[] = {0xff, 0xfe, 0x00, 0xc3, 0x28, 0xed,
                                         0xa0, 0x80, 0xed, 0xb0, 0x80};

/* What the next handler call answers; set before the job is enqueued. */
static struct {
    lade_bytes error, result;
    lade_outcome outcome;
    size_t payload_size;
    bool payload_ok, result_ok;
    lade_bytes payload;
} say;

static lade_outcome answer(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes p = lade_job_payload(job);
    say.payload_size = p.size;
    say.payload_ok = p.size == say.payload.size &&
                     (p.size == 0 || memcmp(p.data, say.payload.data, p.size) == 0);
    if (say.error.data)
        lade_job_error_bytes(job, say.error);
    say.result_ok = lade_job_result(job, say.result) == 0;
    lade_job_retry_in(job, 0);
    return say.outcome;
}

static void start_worker(struct ts_fix *f)
{
    ts_local_open(&f->local, &f->r, f->q, NULL);
    assert_int_equal(lade_worker_handle(f->local.w, "job", answer, NULL), 0);
    ts_local_run(&f->local);
}

static lade_job_view *view_of(const struct ts_fix *f, const char *id)
{
    lade_job_view *v = NULL;
    assert_int_equal(lade_job_get(f->q, NULL, id, &v, NULL), 0);
    return v;
}

static void enqueue(const struct ts_fix *f, const char *id, lade_bytes payload, int max_attempts)
{
    lade_job_spec spec = {
        .kind = "job", .id = id, .payload = payload, .max_attempts = max_attempts};
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
}

/* C-091: the failure record must be written whatever the error says, or recovery runs the job for ever. */
static void c091_error_text_of_any_bytes_and_length_is_kept_with_the_dead(void **state)
{
    struct ts_fix *f = *state;
    size_t size = 1U << 20;
    unsigned char *large = malloc(size);
    assert_non_null(large);
    for (size_t i = 0; i < size; i++)
        large[i] = bad_utf8[i % sizeof(bad_utf8)];
    const lade_bytes errors[] = {{bad_utf8, sizeof(bad_utf8)}, {large, size}, {"", 0}, {"\0", 1}};
    start_worker(f);
    say.outcome = LADE_RETRY;
    for (size_t i = 0; i < LB_ARRAY_LEN(errors); i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "bad-%zu", i);
        say.error = errors[i];
        enqueue(f, id, (lade_bytes){NULL, 0}, 3);
        assert_true(ts_fix_wait_state(f, id, LADE_STATE_DEAD));
        lade_job_view *v = view_of(f, id);
        assert_int_equal(v->attempts, 3);
        assert_int_equal(v->n_history, 3);
        for (size_t k = 0; k < 3; k++) {
            size_t kept = LB_MIN(errors[i].size, LADE_ERROR_TEXT_MAX);
            assert_int_equal(v->history[k].error.size, kept);
            if (kept > 0)
                assert_memory_equal(v->history[k].error.data, errors[i].data, kept);
        }
        lade_job_view_free(v);
    }
    free(large);
    say.error = (lade_bytes){NULL, 0};
}

/* One job whose payload and result are these bytes; there and back. */
static void round_trip(struct ts_fix *f, const char *id, lade_bytes bytes)
{
    say.payload = bytes;
    say.result = bytes;
    enqueue(f, id, bytes, 0);
    assert_true(ts_fix_wait_state(f, id, LADE_STATE_COMPLETED));
    assert_true(say.payload_ok && say.result_ok);
    lade_job_view *v = view_of(f, id);
    assert_int_equal(v->payload.size, bytes.size);
    assert_int_equal(v->result.size, bytes.size);
    if (bytes.size > 0) {
        assert_memory_equal(v->payload.data, bytes.data, bytes.size);
        assert_memory_equal(v->result.data, bytes.data, bytes.size);
    }
    lade_job_view_free(v);
}

static void c092_payload_and_result_of_any_bytes_make_the_round_trip(void **state)
{
    struct ts_fix *f = *state;
    unsigned char all[256], runs[3000];
    start_worker(f);
    say.outcome = LADE_OK;
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (unsigned char)i;
    round_trip(f, "empty", (lade_bytes){NULL, 0});
    round_trip(f, "nul", (lade_bytes){"\0", 1});
    round_trip(f, "nuls", (lade_bytes){"\0\0\0\0", 4});
    round_trip(f, "inner", (lade_bytes){"a\0b", 3});
    round_trip(f, "crlf", (lade_bytes){"\r\n$5\r\nhello\r\n*1\r\n", 18});
    round_trip(f, "quote", (lade_bytes){"'; DROP TABLE job; --", 21});
    round_trip(f, "all", (lade_bytes){all, sizeof(all)});
    round_trip(f, "utf8", (lade_bytes){bad_utf8, sizeof(bad_utf8)});
    for (int byte = 0; byte < 256; byte += 15) {
        char id[24];
        (void)snprintf(id, sizeof(id), "run-%d", byte);
        memset(runs, byte, sizeof(runs));
        round_trip(f, id, (lade_bytes){runs, (size_t)(byte * 11 + 1)});
    }
    assert_inv(f, TS_INV_QUIET);
}

/* C-092: words may not hold every byte; what breaks the rule is refused, and nothing is written. (chasqui 7) */
static void c092_ids_names_and_headers_that_break_a_rule_are_refused(void **state)
{
    struct ts_fix *f = *state;
    char long_id[LADE_ID_MAX + 2], long_name[LADE_NAME_MAX + 2];
    memset(long_id, 'x', sizeof(long_id) - 1);
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_id[sizeof(long_id) - 1] = 0;
    long_name[sizeof(long_name) - 1] = 0;
    const lade_header control = {"a\nb", "x"}, no_name = {"", "x"}, no_value = {"a", NULL};
    const lade_job_spec bad[] = {
        {.kind = NULL},
        {.kind = ""},
        {.kind = "a b"},
        {.kind = "caf\xc3\xa9"},
        {.kind = "a\x01"},
        {.kind = long_name},
        {.kind = "job", .queue = "a b"},
        {.kind = "job", .queue = "{a}"},
        {.kind = "job", .queue = ""},
        {.kind = "job", .queue = long_name},
        {.kind = "job", .id = ""},
        {.kind = "job", .id = "a b"},
        {.kind = "job", .id = "a\nb"},
        {.kind = "job", .id = "\xff"},
        {.kind = "job", .id = long_id},
        {.kind = "job", .headers = &control, .n_headers = 1},
        {.kind = "job", .headers = &no_name, .n_headers = 1},
        {.kind = "job", .headers = &no_value, .n_headers = 1},
        {.kind = "job", .headers = NULL, .n_headers = 1},
        {.kind = "job", .payload = {NULL, 5}},
    };
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        lade_err err = {0};
        int rc = lade_enqueue(f->q, &bad[i], NULL, &err);
        /* an empty queue name may mean the default */
        if (rc >= 0 && bad[i].queue && !*bad[i].queue)
            continue;
        if (rc != -LADE_EINVAL && rc != -LADE_ETOOBIG)
            print_message("spec %zu: %s\n", i, lade_result_name(rc));
        assert_true(rc == -LADE_EINVAL || rc == -LADE_ETOOBIG);
        assert_true(err.text[0] && !strchr(err.text, '\n'));
    }
    assert_true(ts_rig_count(f->q, LADE_STATE_READY) <= 1);
}

/* C-096: whatever a number is, the answer is a typed error or a job that can be read back. */
static void try_spec(const struct ts_fix *f, const lade_job_spec *spec, const char *what, size_t i)
{
    lade_err err = {0};
    lade_id id;
    int rc = lade_enqueue(f->q, spec, &id, &err);
    if (rc == 0) {
        lade_job_view *v = view_of(f, id.text);
        int64_t now;
        assert_int_equal(lade_now(f->q, &now, NULL), 0);
        if (v->state == LADE_STATE_SCHEDULED)
            assert_true(v->run_at > now - LADE_SECOND);
        assert_true(v->max_attempts >= 1 && v->timeout > 0);
        assert_in_range(v->priority + 4, 0, 8);
        lade_job_view_free(v);
        return;
    }
    if (rc != -LADE_EINVAL && rc != -LADE_ETOOBIG)
        print_message("%s %zu: %s %s\n", what, i, lade_result_name(rc), err.text);
    assert_true(rc == -LADE_EINVAL || rc == -LADE_ETOOBIG);
}

/* chronos 14; chasqui 9, 10 */
static void c096_numbers_of_a_job_at_and_beyond_every_edge(void **state)
{
    struct ts_fix *f = *state;
    static const int64_t edges[] = {-1,
                                    0,
                                    1,
                                    999999,
                                    1000000,
                                    INT32_MAX,
                                    INT64_C(2147483648),
                                    INT64_C(4294967295),
                                    INT64_C(4294967296),
                                    INT64_C(1) << 53,
                                    (INT64_C(1) << 53) + 1,
                                    INT64_MAX - 1,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MIN + 1};
    for (size_t i = 0; i < LB_ARRAY_LEN(edges); i++) {
        int64_t n = edges[i];
        try_spec(f, &(lade_job_spec){.kind = "job", .in = n}, "in", i);
        try_spec(f, &(lade_job_spec){.kind = "job", .at = n}, "at", i);
        try_spec(f, &(lade_job_spec){.kind = "job", .in = 1000000, .at = n}, "both", i);
        try_spec(f, &(lade_job_spec){.kind = "job", .timeout = n}, "timeout", i);
        try_spec(f, &(lade_job_spec){.kind = "job", .priority = (int)n}, "priority", i);
        try_spec(f, &(lade_job_spec){.kind = "job", .max_attempts = (int)n}, "max_attempts", i);
        for (int type = 0; type < 5; type++) {
            lade_backoff b = {.type = (enum lade_backoff_type)type, .base = n, .cap = n};
            try_spec(f, &(lade_job_spec){.kind = "job", .backoff = b}, "backoff", i);
            b.base = 1000000;
            b.jitter = (uint8_t)n;
            try_spec(f, &(lade_job_spec){.kind = "job", .backoff = b}, "jitter", i);
        }
        lade_unique u = {.key = {&n, sizeof(n)}, .ttl = n};
        try_spec(f, &(lade_job_spec){.kind = "job", .unique = u}, "unique", i);
        u.until = (enum lade_unique_until)(n & 0xff);
        u.key.size = 7;
        try_spec(f, &(lade_job_spec){.kind = "job", .unique = u}, "until", i);
    }
    assert_inv(f, TS_INV_RUNNING);
}

/* A declared size is refused before a byte of it is read or room is made for it. */
static void c096_declared_sizes_are_refused_before_they_are_believed(void **state)
{
    struct ts_fix *f = *state;
    static const size_t sizes[] = {LADE_PAYLOAD_MAX + 1, 3000000000U, SIZE_MAX / 2, SIZE_MAX - 1,
                                   SIZE_MAX};
    lade_header header = {"a", "b"};
    for (size_t i = 0; i < LB_ARRAY_LEN(sizes); i++) {
        lade_job_spec spec = {.kind = "job", .payload = {"x", sizes[i]}};
        assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), -LADE_ETOOBIG);
        spec = (lade_job_spec){.kind = "job", .unique = {.key = {"x", sizes[i]}}};
        int rc = lade_enqueue(f->q, &spec, NULL, NULL);
        assert_true(rc == -LADE_ETOOBIG || rc == -LADE_EINVAL);
        spec = (lade_job_spec){.kind = "job", .headers = &header, .n_headers = sizes[i]};
        rc = lade_enqueue(f->q, &spec, NULL, NULL);
        assert_true(rc == -LADE_ETOOBIG || rc == -LADE_EINVAL);
        rc = lade_enqueue_many(f->q, &spec, sizes[i], NULL, NULL, NULL);
        assert_true(rc == -LADE_ETOOBIG || rc == -LADE_EINVAL);
    }
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 0);
}

static void c096_limits_of_looking_and_acting_are_checked(void **state)
{
    struct ts_fix *f = *state;
    static const size_t limits[] = {0, 1001, 10001, 3000000000U, SIZE_MAX};
    enqueue(f, "one", (lade_bytes){NULL, 0}, 0);
    for (size_t i = 0; i < LB_ARRAY_LEN(limits); i++) {
        lade_cursor at = {0};
        lade_job_view *v[1];
        size_t n;
        assert_int_equal(
            lade_job_list(f->q, "default", LADE_STATE_READY, &at, limits[i], v, &n, NULL),
            -LADE_EINVAL);
        if (limits[i] == 1001)
            continue; /* fine for the others */
        assert_int_equal(lade_queue_purge(f->q, "default", LADE_STATE_DEAD, limits[i], &n, NULL),
                         -LADE_EINVAL);
        assert_int_equal(lade_dead_redrive(f->q, "default", limits[i], &n, NULL), -LADE_EINVAL);
    }
    size_t n;
    assert_int_equal(lade_queue_purge(f->q, "default", LADE_STATE_ACTIVE, 1, &n, NULL),
                     -LADE_EINVAL);
    assert_int_equal(lade_queue_purge(f->q, "default", (enum lade_state)99, 1, &n, NULL),
                     -LADE_EINVAL);
    const char *ids[] = {"one"};
    int outcome;
    assert_int_equal(lade_job_act(f->q, (enum lade_job_verb)99, NULL, ids, 1, &outcome, NULL),
                     -LADE_EINVAL);
    assert_int_equal(ts_rig_state(f->q, "one"), LADE_STATE_READY);
}

/* chronos 9, 31 */
static void c096_numbers_of_options_and_workers_are_checked(void **state)
{
    struct ts_fix *f = *state;
    const lade_options bad[] = {{.payload_max = UINT32_MAX},
                                {.payload_max = LADE_PAYLOAD_MAX_HARD + 1},
                                {.timeout = -1},
                                {.timeout = 1},
                                {.connect_timeout = -1},
                                {.keep_completed = {.age = -1}},
                                {.keep_completed = {.count = -2}},
                                {.keep_dead = {.age = 1}},
                                {.keep_dead = {.count = INT64_MIN}}};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        lade *q;
        int rc = lade_open(&q, f->r.direct, &bad[i], NULL);
        if (rc != -LADE_EINVAL)
            print_message("options %zu: %s\n", i, lade_result_name(rc));
        assert_int_equal(rc, -LADE_EINVAL);
    }
    const lade_worker_config configs[] = {{.concurrency = -1},
                                          {.concurrency = 10001},
                                          {.concurrency = INT32_MAX},
                                          {.lease = 1},
                                          {.lease = -1},
                                          {.lease = INT64_MIN},
                                          {.sweep = -1},
                                          {.sweep = 1},
                                          {.shutdown_timeout = -2},
                                          {.shutdown_timeout = INT64_MIN},
                                          {.max_crashes = -1},
                                          {.prefetch_max = -2},
                                          {.prefetch_max = INT32_MAX},
                                          {.order = (enum lade_queue_order)7}};
    for (size_t i = 0; i < LB_ARRAY_LEN(configs); i++) {
        lade_worker *w;
        int rc = lade_worker_open(&w, f->q, &configs[i], NULL);
        if (rc != -LADE_EINVAL)
            print_message("config %zu: %s\n", i, lade_result_name(rc));
        assert_int_equal(rc, -LADE_EINVAL);
    }
    const lade_worker_config wide = {
        .lease = INT64_MAX, .shutdown_timeout = INT64_MAX, .sweep = INT64_MAX};
    lade_worker *w;
    int rc = lade_worker_open(&w, f->q, &wide, NULL);
    assert_true(rc == 0 || rc == -LADE_EINVAL);
    if (rc == 0)
        lade_worker_close(w);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(c091_error_text_of_any_bytes_and_length_is_kept_with_the_dead),
        TS_TEST(c092_payload_and_result_of_any_bytes_make_the_round_trip),
        TS_TEST(c092_ids_names_and_headers_that_break_a_rule_are_refused),
        TS_TEST(c096_numbers_of_a_job_at_and_beyond_every_edge),
        TS_TEST(c096_declared_sizes_are_refused_before_they_are_believed),
        TS_TEST(c096_limits_of_looking_and_acting_are_checked),
        TS_TEST(c096_numbers_of_options_and_workers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
