/* The bytes of Resque 3.0.0, as its Ruby code was seen to write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "resque/resque_failure.h"
#include "resque/resque_id.h"
#include "resque/resque_job.h"
#include "resque/resque_json.h"
#include "resque/resque_keys.h"
#include "resque/resque_pace.h"
#include "resque/resque_time.h"

static const char *text_of(struct lb_buf *b)
{
    lb_buf_add_byte(b, 0);
    assert_false(b->failed);
    b->n--;
    return (const char *)b->p;
}

static void assert_rewrites(const char *from, const char *to)
{
    struct lb_buf out = {0};
    lade_err err = {0};
    int rc = rq_json_rewrite(&out, lb_slice_str(from), &err);
    if (to) {
        assert_int_equal(rc, 0);
        assert_string_equal(text_of(&out), to);
    } else {
        assert_int_equal(rc, -LADE_EINVAL);
        assert_int_equal(out.n, 0);
    }
    lb_buf_fini(&out);
}

/* resque W5: what Ruby 3.1's generator gives for the same values. */
static void json_is_written_as_ruby_writes_it(void **state)
{
    (void)state;
    assert_rewrites(" [ 1 , \"two\" , {\"k\" : null} , 1.5 ] ", "[1,\"two\",{\"k\":null},1.5]");
    assert_rewrites("1e30", "1.0e+30");
    assert_rewrites("1E-5", "1.0e-05");
    assert_rewrites("0.0001", "0.0001");
    assert_rewrites("123456789.0", "123456789.0");
    assert_rewrites("1e15", "1000000000000000.0");
    assert_rewrites("1e16", "1.0e+16");
    assert_rewrites("0.1", "0.1");
    assert_rewrites("1.25e-7", "1.25e-07");
    assert_rewrites("-2.50", "-2.5");
    assert_rewrites("-0.0", "-0.0");
    assert_rewrites("1e100", "1.0e+100");
    assert_rewrites("0.1234567890123456789", "0.12345678901234568");
    assert_rewrites("-0", "0");
    assert_rewrites("123456789012345678901234567890", "123456789012345678901234567890");
    assert_rewrites("\"\\u00e9 \\/ < \\u2028\"", "\"\xc3\xa9 / < \xe2\x80\xa8\"");
    assert_rewrites("\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"");
    assert_rewrites("\"\\u0000\\u001f\\b\\t\\n\\f\\r\\\"\\\\\x7f\"",
                    "\"\\u0000\\u001f\\b\\t\\n\\f\\r\\\"\\\\\x7f\"");
    assert_rewrites("{}", "{}");
    assert_rewrites("[[],{\"a\":[]}]", "[[],{\"a\":[]}]");
    assert_rewrites("true", "true");
}

static void what_is_not_json_is_refused_and_nothing_written(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "not json",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":1,}",
        "01",
        "1.",
        "\"\xff\"",
        "\"a",
        "[1 2]",
        "\"\\x\"",
        "nul",
        "\"\\ud83d\"",
        "1e400",
        "[1] x",
        "+1",
        "'a'",
        "{1:2}",
        "\"\n\"",
        "\"\\u12g4\"",
        "\"\xc0\xaf\"",
        "\"\xed\xa0\x80\"",
    };
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++)
        assert_rewrites(bad[i], NULL);
    char deep[2 * (RQ_JSON_DEPTH + 1) + 1];
    memset(deep, '[', RQ_JSON_DEPTH + 1);
    memset(deep + RQ_JSON_DEPTH + 1, ']', RQ_JSON_DEPTH + 1);
    deep[sizeof(deep) - 1] = 0;
    assert_rewrites(deep, NULL);
    deep[2 * RQ_JSON_DEPTH + 1] = 0;
    assert_rewrites(deep + 1, deep + 1);
}

static void keys_carry_the_namespace(void **state)
{
    (void)state;

    static const struct {
        const char *ns, *key;
    } t[] = {{NULL, "resque:queue:mail"},
             {"", "queue:mail"},
             {"resque:", "resque:queue:mail"},
             {"my:ns", "my:ns:queue:mail"},
             {"{resque}", "{resque}:queue:mail"}};

    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++) {
        struct rq_keys k;
        struct lb_buf b = {0};
        assert_int_equal(rq_keys_init(&k, t[i].ns, NULL), 0);
        rq_key_queue(&k, &b, lb_slice_str("mail"));
        assert_string_equal(text_of(&b), t[i].key);
        lb_buf_fini(&b);
    }
    struct rq_keys k;
    lade_err err;
    assert_int_equal(rq_keys_init(&k, ":", &err), -LADE_EINVAL);
    assert_int_equal(rq_keys_init(&k, "a\nb", &err), -LADE_EINVAL);
    assert_int_equal(rq_keys_init(&k, NULL, NULL), 0);
    struct lb_buf b = {0};
    rq_key_started(&k, &b, lb_slice_str("vm:1:a"));
    lb_buf_add_byte(&b, ' ');
    rq_key_processed(&k, &b, lb_slice_str("vm:1:a"));
    lb_buf_add_byte(&b, ' ');
    rq_key_queue_failed(&k, &b, lb_slice_str("mail"));
    assert_string_equal(
        text_of(&b),
        "resque:worker:vm:1:a:started resque:stat:processed:vm:1:a resque:mail_failed");
    lb_buf_fini(&b);
}

static void a_job_is_written_as_resque_enqueues_it(void **state)
{
    (void)state;
    struct lb_buf b = {0};
    assert_int_equal(
        rq_job_write(&b, lb_slice_str("OkJob"), lb_slice_str("[1,\"two\",{\"k\":null},1.5]"), NULL),
        0);
    assert_string_equal(text_of(&b), "{\"class\":\"OkJob\",\"args\":[1,\"two\",{\"k\":null},1.5]}");
    struct rq_job job;
    assert_int_equal(rq_job_read(&job, lb_buf_slice(&b)), RQ_FINE);
    assert_true(rq_json_is(job.klass, "OkJob"));
    assert_true(lb_slice_eq(job.args, lb_slice_str("[1,\"two\",{\"k\":null},1.5]")));
    assert_int_equal(job.extra_at.n, 0);
    lb_buf_fini(&b);
    lade_err err;
    assert_int_equal(rq_job_write(&b, lb_slice_str(""), lb_slice_str("[]"), &err), -LADE_EINVAL);
    lb_buf_fini(&b);
    assert_int_equal(rq_job_write(&b, lb_slice_str("\xff"), lb_slice_str("[]"), &err),
                     -LADE_EINVAL);
    lb_buf_fini(&b);
}

static void malformed_entries_are_told_apart(void **state)
{
    (void)state;

    static const struct {
        const char *entry;
        enum rq_bad bad;
    } t[] = {{"not json", RQ_NOT_JSON},
             {"\xff\xfe", RQ_NOT_JSON},
             {"", RQ_NOT_JSON},
             {"[1,2]", RQ_NOT_OBJECT},
             {"1", RQ_NOT_OBJECT},
             {"{}", RQ_NO_CLASS},
             {"{\"class\":\"\"}", RQ_NO_CLASS},
             {"{\"class\":7,\"args\":[]}", RQ_NO_CLASS},
             {"{\"class\":\"A\"}", RQ_FINE},
             {"{\"class\":\"A\",\"args\":null}", RQ_FINE},
             {"{\"class\":\"A\",\"args\":\"x\"}", RQ_BAD_ARGS},
             {"{\"class\":\"A\",\"args\":[]} x", RQ_NOT_JSON},
             {"{\"class\":\"A\",\"args\":[\"\xff\"]}", RQ_NOT_JSON}};

    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++) {
        struct rq_job job;
        assert_int_equal(rq_job_read(&job, lb_slice_str(t[i].entry)), t[i].bad);
        assert_true(*rq_bad_text(t[i].bad));
    }
    struct rq_job job;
    assert_int_equal(
        rq_job_read(&job, lb_slice_str("{\"x\":1,\"class\":\"A\",\"class\":\"B\",\"y\":2}")),
        RQ_FINE);
    assert_true(rq_json_is(job.klass, "B"));
    assert_true(rq_json_is(job.extra_at, "x"));
}

static void times_have_the_form_of_their_place(void **state)
{
    (void)state;
    static const char *const form[] = {"2026-11-30 09:57:20 +0000", "2026-11-30T09:57:20+00:00",
                                       "2026-11-30T09:57:20Z", "2026/11/30 09:57:20 UTC"};
    for (int i = 0; i < 4; i++) {
        char text[RQ_TIME_LEN];
        int64_t back = 0;
        rq_time_write(text, (enum rq_time_form)i, 1796032640);
        assert_string_equal(text, form[i]);
        assert_true(rq_time_read(&back, lb_slice_str(text)));
        assert_int_equal(back, 1796032640);
    }
    int64_t t;
    assert_true(rq_time_read(&t, lb_slice_str("2026-11-30T11:57:20.123+02:00")));
    assert_int_equal(t, 1796032640);
    static const char *const bad[] = {"1796032645",
                                      "",
                                      "2026-11-30",
                                      "2026-13-30T09:57:20Z",
                                      "2026-02-30T09:57:20Z",
                                      "2026-11-30T09:57:20",
                                      "2026-11-30T09:57:20Zx",
                                      "2026-11/30T09:57:20Z",
                                      "soon"};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++)
        assert_false(rq_time_read(&t, lb_slice_str(bad[i])));
}

static void ids_are_of_a_form_that_ruby_leaves_alone(void **state)
{
    (void)state;
    struct rq_host a;
    struct rq_host b;
    rq_host_init(&a, "v:m/1");
    rq_host_init(&b, "v:m/1");
    assert_memory_equal(a.name, "v-m-1-", 6);
    assert_int_equal(strlen(a.name), 6 + RQ_ID_SUFFIX_LEN);
    assert_string_not_equal(a.name, b.name); /* resque W23: two containers of one name */
    struct lb_buf out = {0};
    rq_id_write(&out, &a, 1, 7, lb_slice_str("high,a:b"));
    struct rq_id id;
    assert_true(rq_id_read(&id, lb_buf_slice(&out)));
    assert_true(lb_slice_eq(id.host, lb_slice_str(a.name)));
    assert_true(lb_slice_eq(id.pid, lb_slice_str("1.7")));
    assert_true(lb_slice_eq(id.queues, lb_slice_str("high,a:b")));
    assert_true(rq_id_serves(&id, lb_slice_str("a:b")));
    assert_false(rq_id_serves(&id, lb_slice_str("hig")));
    lb_buf_fini(&out);
    assert_true(rq_id_read(&id, lb_slice_str("vm:3:*")));
    assert_true(rq_id_serves(&id, lb_slice_str("anything")));
    assert_true(rq_id_read(&id, lb_slice_str("vm:3:")));
    assert_false(rq_id_serves(&id, lb_slice_str("x")));
    assert_false(rq_id_read(&id, lb_slice_str("abc")));
    assert_false(rq_id_read(&id, lb_slice_str("abc:1")));
}

static void a_failure_has_all_that_resque_web_asks_for(void **state)
{
    (void)state;
    static const char *const trace[] = {"<file>:6:in `perform'"};
    struct rq_failure f = {.failed_at = 1796032640,
                           .payload = lb_slice_str("{\"class\":\"FailJob\",\"args\":[\"x\"]}"),
                           .exception = "ArgumentError",
                           .error = lb_slice_str("boom \xc3\xa9"),
                           .backtrace = trace,
                           .n_backtrace = 1,
                           .worker = lb_slice_str("vm:16013:default"),
                           .queue = lb_slice_str("default"),
                           .failure_id = "f"};
    struct lb_buf out = {0};
    rq_failure_write(&out, &f);
    assert_string_equal(
        text_of(&out),
        "{\"failed_at\":\"2026/11/30 09:57:20 UTC\",\"payload\":{\"class\":\"FailJob\",\"args\":[\"x\"]},"
        "\"exception\":\"ArgumentError\",\"error\":\"boom \xc3\xa9\",\"backtrace\":[\"<file>:6:in `perform'\"],"
        "\"worker\":\"vm:16013:default\",\"queue\":\"default\",\"failure_id\":\"f\"}");
    lb_buf_clear(&out);
    f.payload = lb_slice("not \xff json", 10);
    f.failure_id = NULL;
    f.error = lb_slice("a\xe2\x82", 3);
    rq_failure_write(&out, &f);
    struct rq_json r = rq_json(lb_buf_slice(&out));
    (void)rq_json_value(&r);
    assert_true(rq_json_done(&r));
    assert_non_null(
        strstr(text_of(&out), "\"payload\":{\"class\":null,\"args\":[\"not \xef\xbf\xbd json\"]}"));
    assert_non_null(strstr(text_of(&out), "\"error\":\"a\xef\xbf\xbd\xef\xbf\xbd\""));
    assert_non_null(strstr(text_of(&out), "\"failure_id\":\""));
    lb_buf_clear(&out);
    rq_working_write(&out, lb_slice_str("default"), 1796032640,
                     lb_slice_str("{\"class\":\"OkJob\",\"args\":[1]}"));
    assert_string_equal(text_of(&out), "{\"queue\":\"default\",\"run_at\":\"2026-11-30T09:57:20Z\","
                                       "\"payload\":{\"class\":\"OkJob\",\"args\":[1]}}");
    lb_buf_clear(&out);
    rq_prune_text(&out, lb_slice_str("vm:1:a"), lb_slice_str("OkJob"));
    assert_string_equal(text_of(&out),
                        "Worker vm:1:a did not gracefully exit while processing OkJob");
    lb_buf_fini(&out);
}

/* resque B17, W21: the sleeps seen from Ruby's worker, in units of 100 ms. */
static void backoff_sleeps_as_ruby_does(void **state)
{
    (void)state;

    static const struct {
        int64_t interval, min, max, backoff;
        int hit_at;
        int64_t sleeps[4];
    } t[] = {
        {50, 50, 50, 1, -1, {50, 50, 50, 50}}, {1, 1, 10, 3, -1, {4, 7, 10, 10}},
        {1, 1, 100, 1, -1, {2, 3, 4, 5}},      {50, 1, 50, 1, 2, {50, 50, 2, 3}},
        {50, 50, 10, 1, -1, {10, 10, 10, 10}}, {1, 1, 10, 3, 2, {4, 7, 4, 7}},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++) {
        struct rq_pace p;
        rq_pace_init(&p, &(struct rq_pace_opts){t[i].interval, t[i].min, t[i].max, t[i].backoff});
        for (int k = 0; k < 4; k++) {
            if (k == t[i].hit_at)
                rq_pace_hit(&p);
            assert_int_equal(rq_pace_miss(&p), t[i].sleeps[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_written_as_ruby_writes_it),
        cmocka_unit_test(what_is_not_json_is_refused_and_nothing_written),
        cmocka_unit_test(keys_carry_the_namespace),
        cmocka_unit_test(a_job_is_written_as_resque_enqueues_it),
        cmocka_unit_test(malformed_entries_are_told_apart),
        cmocka_unit_test(times_have_the_form_of_their_place),
        cmocka_unit_test(ids_are_of_a_form_that_ruby_leaves_alone),
        cmocka_unit_test(a_failure_has_all_that_resque_web_asks_for),
        cmocka_unit_test(backoff_sleeps_as_ruby_does),
    };
    return cmocka_run_group_tests_name("resque", tests, NULL, NULL);
}
