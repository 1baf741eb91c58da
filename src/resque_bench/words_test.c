/* Words and numbers of resque-bench; what the original's own unit tests hold is here too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "resque_bench/rb_server.h"
#include "resque_bench/words.h"

FILE *rb_out;

bool rb_interrupted(void)
{
    return false;
}

/* resque B26 */
static void numbers_read_as_in_the_original(void **state)
{
    (void)state;
    char w[RB_WORD];
    assert_string_equal(rb_us(w, 620), "620 µs");
    assert_string_equal(rb_us(w, 999), "999 µs");
    assert_string_equal(rb_us(w, 3100), "3.1 ms");
    assert_string_equal(rb_us(w, 52000), "52.0 ms");
    assert_string_equal(rb_us(w, 50800000), "50.80 s");
    assert_string_equal(rb_count(w, 0), "0");
    assert_string_equal(rb_count(w, 999), "999");
    assert_string_equal(rb_count(w, 1000), "1,000");
    assert_string_equal(rb_count(w, 1000000), "1,000,000");
    assert_string_equal(rb_count(w, 12345678), "12,345,678");
    assert_string_equal(rb_rate(w, (double)NAN), "n/a");
    assert_string_equal(rb_rate(w, (double)INFINITY), "n/a");
    assert_string_equal(rb_rate(w, -1), "n/a");
    assert_string_equal(rb_rate(w, 11062.3), "11,062");
    assert_string_equal(rb_qps(w, (double)NAN), "n/a");
    assert_string_equal(rb_qps(w, -1), "n/a");
    assert_string_equal(rb_qps(w, 123.456), "123.5");
}

/* resque B6 */
static void percentile_names_mean_what_they_say(void **state)
{
    (void)state;

    static const struct {
        const char *name;
        double at;
    } t[] = {{"p50", 0.5},
             {"p90", 0.9},
             {"p99", 0.99},
             {"p999", 0.999},
             {"p9999", 0.9999},
             {"p75", 0.75},
             {"p5", 0.05},
             {"p100", 1},
             {"max", 1},
             {"mean", -1},
             {"p999999999999", 0.999999999999}};

    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++) {
        struct rb_percentile p;
        assert_int_equal(rb_percentile_parse(&p, t[i].name, NULL), 0);
        assert_true(fabs(p.at - t[i].at) < 1e-15);
        assert_string_equal(p.name, t[i].name);
    }
    static const char *const bad[] = {
        "p0", "p00", "p", "pxyz", "99", "", "p1234567890123456", "P50", "p99999999999999999999",
        "p-5"};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct rb_percentile p;
        assert_int_equal(rb_percentile_parse(&p, bad[i], NULL), -LADE_EINVAL);
    }
}

/* resque B7: the names that INFO gives, Valkey's too. */
static void a_tag_is_the_server_in_harmless_letters(void **state)
{
    (void)state;

    static const struct {
        const char *version, *tag;
    } t[] = {{"redis 7.0.15", "redis-7.0.15"},
             {"valkey 8.0.1", "valkey-8.0.1"},
             {"../e/ vil", "..-e--vil"},
             {"", "unknown"}};

    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++) {
        struct rb_server s = {0};
        char tag[64];
        (void)snprintf(s.version, sizeof(s.version), "%s", t[i].version);
        rb_server_tag(&s, tag, sizeof(tag));
        assert_string_equal(tag, t[i].tag);
    }
}

static void queues_are_named_by_number(void **state)
{
    (void)state;
    char name[64];
    struct rb_options o = {.queue = "q", .n_queues = 1};
    rb_queue_name(name, sizeof(name), &o, 0);
    assert_string_equal(name, "q");
    o.n_queues = 3;
    rb_queue_name(name, sizeof(name), &o, 2);
    assert_string_equal(name, "q_2");
}

/* resque B15 */
static void a_rate_is_never_a_thing_that_is_no_number(void **state)
{
    (void)state;

    static const struct {
        uint64_t polls;
        double seconds;
        size_t workers;
        double qps, each;
    } t[] = {{30, 30, 5, 1, 0.2},
             {30, 0, 5, 0, 0},
             {30, (double)NAN, 5, 0, 0},
             {30, -1, 5, 0, 0},
             {30, (double)INFINITY, 5, 0, 0},
             {500, 10, 0, 50, 0},
             {5000000, 1, 5000, 5000000, 1000}};

    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++) {
        double qps;
        double each;
        rb_idle_rate(t[i].polls, t[i].seconds, t[i].workers, &qps, &each);
        assert_true(fabs(qps - t[i].qps) < 1e-9 && fabs(each - t[i].each) < 1e-9);
    }
    double qps;
    double each;
    rb_idle_rate(UINT64_MAX / 2, 1, 1, &qps, &each);
    assert_true(isfinite(qps) && isfinite(each));
}

/* resque B23: the original loses what took longer than 67 s. */
static void long_latencies_are_kept(void **state)
{
    (void)state;
    struct lb_hdr *h = lb_hdr_make();
    struct rb_percentile max = {.at = 1};
    struct rb_percentile mean = {.at = -1};
    assert_non_null(h);
    lb_hdr_add(h, 68 * LADE_SECOND);
    lb_hdr_add(h, 100 * LADE_SECOND);
    assert_int_equal(lb_hdr_count(h), 2);
    assert_int_equal(lb_hdr_overflow(h), 0);
    assert_int_equal(rb_percentile_of(h, &max), 100000000);
    assert_int_equal(rb_percentile_of(h, &mean), 84000000);
    lb_hdr_add(h, 2 * LADE_HOUR);
    assert_int_equal(lb_hdr_overflow(h), 1);
    lb_hdr_clear(h);
    assert_int_equal(lb_hdr_count(h), 0);
    assert_int_equal(rb_percentile_of(h, &max), 0);
    lb_hdr_free(h);
}

/* resque B9, B21 */
static void an_entry_is_ours_only_when_all_of_it_is(void **state)
{
    (void)state;
    struct rb_options o = {.payload_size = 6};
    struct rb_server s = {.o = &o, .put_at = 1000};
    struct lb_buf b = {0};
    uint64_t index;
    int64_t at;
    rb_job_write(&b, &o, 42, 1700000000000000001);
    lb_buf_add_byte(&b, 0);
    assert_string_equal(
        (const char *)b.p,
        "{\"class\":\"LoadWorker\",\"args\":[\"string\",42,{\"mike\":\"bob\"},1700000000000000001]}");
    assert_int_equal(rb_job_read(&s, lb_slice(b.p, b.n - 1), &index, &at), RB_OURS);
    assert_int_equal(index, 42);
    assert_int_equal(at, 1700000000000000001);
    lb_buf_fini(&b);

    static const struct {
        const char *entry;
        enum rb_entry what;
    } t[] = {
        {"{\"class\":\"LoadWorker\",\"args\":[\"string\",42,{\"mike\":\"bob\"},999]}",
         RB_FOREIGN}, /* of an earlier run */
        {"{\"class\":\"Other\",\"args\":[\"string\",42,{\"mike\":\"bob\"},2000]}", RB_FOREIGN},
        {"{\"class\":\"LoadWorker\",\"args\":[\"string\",42,{\"mike\":\"bob\"},2000],\"id\":1}",
         RB_FOREIGN},
        {"{\"class\":\"LoadWorker\",\"args\":[\"string\",-1,{\"mike\":\"bob\"},2000]}", RB_FOREIGN},
        {"{\"class\":\"LoadWorker\",\"args\":[\"string\",42,{\"mike\":\"bob\"}]}", RB_BROKEN},
        {"{\"class\":\"LoadWorker\",\"args\":[\"string\",42,{\"mike\":\"bob\"},\"2000\"]}",
         RB_BROKEN},
        {"{\"class\":\"LoadWorker\",\"args\":[\"string\",42,{\"mike\":\"bob\"},2000.5]}",
         RB_BROKEN},
        {"{\"class\":\"LoadWorker\"}", RB_BROKEN},
        {"not json", RB_BROKEN},
        {"\xff", RB_BROKEN},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(t); i++)
        assert_int_equal(rb_job_read(&s, lb_slice_str(t[i].entry), &index, &at), t[i].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_read_as_in_the_original),
        cmocka_unit_test(percentile_names_mean_what_they_say),
        cmocka_unit_test(a_tag_is_the_server_in_harmless_letters),
        cmocka_unit_test(queues_are_named_by_number),
        cmocka_unit_test(a_rate_is_never_a_thing_that_is_no_number),
        cmocka_unit_test(long_latencies_are_kept),
        cmocka_unit_test(an_entry_is_ours_only_when_all_of_it_is),
    };
    return cmocka_run_group_tests_name("resque-bench: words", tests, NULL, NULL);
}
