#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "queue/job.h"

static struct lb_mut encode(const lade_job_spec *spec, struct lb_buf *b)
{
    lb_buf_init(b);
    lq_job_encode(b, spec, 1700000000123);
    assert_false(b->failed);
    assert_non_null(lb_buf_reserve(b, 1)); /* the spare byte a decoder may write */
    return (struct lb_mut){b->p, b->n};
}

/* The bytes of version 1, for ever: a change here is a change of format and needs a new version. */
static void an_envelope_with_defaults_has_the_golden_bytes(void **state)
{
    (void)state;
    static const uint8_t golden[] = {0x01, '4',  0x93, 0xa4, 'm',  'a',  'i',  'l',
                                     0xc4, 0x03, 'a',  0x00, 'b',  0xcf, 0x00, 0x00,
                                     0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x7b};
    struct lb_buf b;
    struct lb_mut m = encode(&(lade_job_spec){.kind = "mail", .payload = {"a\0b", 3}}, &b);
    assert_int_equal(m.n, sizeof(golden));
    assert_memory_equal(m.p, golden, sizeof(golden));
    lb_buf_fini(&b);
}

static void an_envelope_with_everything_has_the_golden_bytes(void **state)
{
    (void)state;
    static const uint8_t golden[] = {
        0x01, '0',  0x99, 0xa1, 'k',  0xc4, 0x00, 0xcf, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5,
        0x68, 0x7b, 0x03, 0xcd, 0x03, 0xe8, 0x94, 0x02, 0xcd, 0x01, 0xf4, 0xcd, 0x27, 0x10,
        0x05, 0xa1, 't',  0x92, 0xa1, 'h',  0xa1, 'v',  0x92, 0xc4, 0x01, 0x00, 0x02};
    lade_header h = {"h", "v"};
    struct lb_buf b;
    struct lb_mut m =
        encode(&(lade_job_spec){.kind = "k",
                                .priority = 4,
                                .max_attempts = 3,
                                .timeout = LADE_SECOND,
                                .backoff = {LADE_BACKOFF_EXPONENTIAL, 500 * LADE_MILLISECOND,
                                            10 * LADE_SECOND, 5},
                                .content_type = "t",
                                .headers = &h,
                                .n_headers = 1,
                                .unique = {.key = {"\0", 1}, .until = LADE_UNTIL_TTL}},
               &b);
    assert_int_equal(m.n, sizeof(golden));
    assert_memory_equal(m.p, golden, sizeof(golden));
    lb_buf_fini(&b);
}

static void decoding_gives_back_what_was_encoded(void **state)
{
    (void)state;
    uint8_t payload[256];
    for (int i = 0; i < 256; i++)
        payload[i] = (uint8_t)i; /* C-092: every byte value */
    lade_header h[2] = {{"first", "1"}, {"second", ""}};
    struct lb_buf b;
    struct lb_mut m =
        encode(&(lade_job_spec){.kind = "resize:photo",
                                .payload = {payload, 256},
                                .priority = -4,
                                .max_attempts = 7,
                                .timeout = 1500 * LADE_MILLISECOND,
                                .content_type = "image/png",
                                .headers = h,
                                .n_headers = 2,
                                .unique = {.key = LADE_STR("key"), .until = LADE_UNTIL_START}},
               &b);
    struct lq_job j;
    assert_int_equal(lq_job_decode(m, &j, NULL), 0);
    assert_string_equal(j.kind, "resize:photo");
    assert_int_equal(j.payload.n, 256);
    assert_memory_equal(j.payload.p, payload, 256);
    assert_int_equal(j.level, 8);
    assert_int_equal(j.max_attempts, 7);
    assert_int_equal(j.timeout_ms, 1500);
    assert_string_equal(j.content_type, "image/png");
    assert_int_equal(j.enqueued_ms, 1700000000123);
    assert_int_equal(j.unique.n, 3);
    assert_int_equal(j.until, LADE_UNTIL_START);
    size_t at = 0;
    lade_header got;
    assert_true(lq_job_header_next(&j, &at, &got));
    assert_string_equal(got.name, "first");
    assert_string_equal(got.value, "1");
    assert_true(lq_job_header_next(&j, &at, &got));
    assert_string_equal(got.name, "second");
    assert_string_equal(got.value, "");
    assert_false(lq_job_header_next(&j, &at, &got));
    lb_buf_fini(&b);
}

/* The flags stand behind all, so that who does not know them passes over them. */
static void discard_dead_is_the_last_field(void **state)
{
    (void)state;
    struct lb_buf b;
    struct lq_job j;
    struct lb_mut m = encode(&(lade_job_spec){.kind = "k", .discard_dead = true}, &b);
    assert_int_equal(m.p[2], 0x9a);       /* ten fields */
    assert_int_equal(m.p[m.n - 2], 0xc0); /* not unique */
    assert_int_equal(m.p[m.n - 1], 1);
    assert_int_equal(lq_job_decode(m, &j, NULL), 0);
    assert_true(j.discard_dead);
    assert_int_equal(j.unique.n, 0);
    lb_buf_fini(&b);
    m = encode(&(lade_job_spec){.kind = "k"}, &b);
    assert_int_equal(lq_job_decode(m, &j, NULL), 0);
    assert_false(j.discard_dead);
    lb_buf_fini(&b);
}

/* Behind the key, which is nil then. */
static void result_ttl_comes_behind_the_key(void **state)
{
    (void)state;
    struct lb_buf b;
    struct lq_job j;
    lade_job_spec spec = {.kind = "k", .result_ttl = 200 * LADE_MILLISECOND + 1};
    struct lb_mut m = encode(&spec, &b);
    assert_int_equal(m.p[2], 0x9c);       /* twelve fields */
    assert_int_equal(m.p[m.n - 3], 0xc0); /* no key */
    assert_int_equal(m.p[m.n - 2], 0xcc);
    assert_int_equal(m.p[m.n - 1], 201); /* up: C-073 */
    assert_int_equal(lq_job_decode(m, &j, NULL), 0);
    assert_int_equal(j.result_ttl_ms, 201);
    assert_int_equal(j.key.n, 0);
    lb_buf_fini(&b);
    spec.key = (lade_bytes){"acme", 4};
    m = encode(&spec, &b);
    assert_int_equal(lq_job_decode(m, &j, NULL), 0);
    assert_int_equal(j.result_ttl_ms, 201);
    assert_true(lb_slice_eq(j.key, lb_slice_str("acme")));
    lb_buf_fini(&b);
}

static void another_payload_leaves_every_other_byte(void **state)
{
    (void)state;
    lade_header h = {"name", "value"};
    lade_job_spec spec = {.kind = "kind",
                          .payload = LADE_STR("old"),
                          .priority = 2,
                          .headers = &h,
                          .n_headers = 1,
                          .unique = {.key = LADE_STR("u"), .until = LADE_UNTIL_START},
                          .discard_dead = true};
    struct lb_buf before, after, made;
    struct lb_mut m = encode(&spec, &before);
    spec.payload = LADE_STR("a new one");
    struct lb_mut want = encode(&spec, &after);
    lb_buf_init(&made);
    struct lb_slice payload = lb_slice_str("a new one");
    assert_int_equal(lq_job_replace_payload(&made, lb_slice_of(m), payload, NULL), 0);
    assert_true(lb_slice_eq(lb_buf_slice(&made), lb_slice_of(want)));
    lb_buf_clear(&made);
    lade_err err = {0};
    assert_int_equal(lq_job_replace_payload(&made, lb_slice(m.p, 5), payload, &err), -LADE_EFORMAT);
    assert_int_equal(lq_job_replace_payload(&made, lb_slice("\x07x", 2), payload, &err),
                     -LADE_EFORMAT);
    lb_buf_fini(&before);
    lb_buf_fini(&after);
    lb_buf_fini(&made);
}

static void every_cut_and_every_flipped_byte_is_refused_or_harmless(void **state)
{
    (void)state;
    lade_header h = {"name", "value"};
    struct lb_buf b;
    struct lb_mut m =
        encode(&(lade_job_spec){.kind = "k",
                                .payload = LADE_STR("payload"),
                                .headers = &h,
                                .n_headers = 1,
                                .unique = {.key = LADE_STR("u"), .until = LADE_UNTIL_DONE}},
               &b);
    for (size_t n = 0; n < m.n; n++) {
        uint8_t *copy =
            lb_malloc(n + 1); /* exactly that long, so that a sanitizer sees a step outside */
        memcpy(copy, m.p, n);
        struct lq_job j;
        assert_int_equal(lq_job_decode((struct lb_mut){copy, n}, &j, NULL), -LADE_EFORMAT);
        lb_free(copy);
    }
    for (size_t i = 0; i < m.n * 8; i++) {
        uint8_t *copy = lb_malloc(m.n + 1);
        memcpy(copy, m.p, m.n);
        copy[i / 8] ^= (uint8_t)(1U << (i % 8));
        struct lq_job j;
        int rc = lq_job_decode((struct lb_mut){copy, m.n}, &j, NULL);
        assert_true(rc == 0 || rc == -LADE_EFORMAT);
        lb_free(copy);
    }
    lb_buf_fini(&b);
}

static void a_key_is_written_behind_all_else(void **state)
{
    (void)state;
    struct lb_buf b;
    struct lb_mut m = encode(&(lade_job_spec){.kind = "k", .key = LADE_STR("tenant")}, &b);
    struct lq_job j;
    assert_int_equal(m.p[2], 0x9b);
    assert_int_equal(lq_job_decode(m, &j, NULL), 0);
    assert_int_equal(j.unique.n, 0);
    assert_true(lb_slice_eq(j.key, lb_slice_str("tenant")));
    lb_buf_fini(&b);
}

/* chasqui 8 */
static void fields_of_a_later_writer_are_ignored(void **state)
{
    (void)state;
    uint8_t later[] = {0x01, '4',  0x9c, 0xa1, 'k',  0xc4, 0x00, 0x01, 0x19,
                       0x01, 0xc0, 0xa0, 0x90, 0xc0, 0x00, 0xc0, 0x07, 0};
    struct lq_job j;
    assert_int_equal(lq_job_decode((struct lb_mut){later, sizeof(later) - 1}, &j, NULL), 0);
    assert_string_equal(j.kind, "k");
    assert_int_equal(j.n_headers, 0);
    assert_int_equal(j.unique.n, 0);
}

static void expect_refusal(lade_job_spec spec, int code, const char *word)
{
    lade_err err = {0};
    assert_int_equal(lq_job_check(&spec, 100, SIZE_MAX, &err), -code);
    if (!strstr(err.text, word))
        fail_msg("'%s' does not name '%s'", err.text, word);
}

/* chasqui 5 */
static void each_bad_field_is_refused_by_name(void **state)
{
    (void)state;
    expect_refusal((lade_job_spec){0}, LADE_EINVAL, "kind");
    expect_refusal((lade_job_spec){.kind = "a b"}, LADE_EINVAL, "kind");
    expect_refusal((lade_job_spec){.kind = "k", .queue = ""}, LADE_EINVAL, "queue");
    expect_refusal((lade_job_spec){.kind = "k", .queue = "a{b}"}, LADE_EINVAL, "queue");
    expect_refusal((lade_job_spec){.kind = "k", .id = "a/b"}, LADE_EINVAL, "id");
    expect_refusal((lade_job_spec){.kind = "k", .priority = 5}, LADE_EINVAL,
                   "priority"); /* C-080 */
    expect_refusal((lade_job_spec){.kind = "k", .payload = {"", 101}}, LADE_ETOOBIG, "payload");
    expect_refusal((lade_job_spec){.kind = "k", .in = -1}, LADE_EINVAL, "in");
    expect_refusal((lade_job_spec){.kind = "k", .in = 999999}, LADE_EINVAL,
                   "millisecond"); /* C-073 */
    expect_refusal((lade_job_spec){.kind = "k", .in = 5}, LADE_EINVAL, "nanoseconds");
    /* seconds, milliseconds and microseconds where nanoseconds belong */
    for (int64_t at = 1767225600; at < INT64_C(1767225600) * LADE_SECOND; at *= 1000)
        expect_refusal((lade_job_spec){.kind = "k", .at = at}, LADE_EINVAL, "nanoseconds");
    expect_refusal((lade_job_spec){.kind = "k", .at = -1}, LADE_EINVAL, "2000");
    int64_t now = INT64_C(1767225600) * LADE_SECOND;
    expect_refusal((lade_job_spec){.kind = "k", .in = LADE_SECOND, .at = now}, LADE_EINVAL, "both");
    expect_refusal((lade_job_spec){.kind = "k", .unique = {.key = LADE_STR("u"), .ttl = 1}},
                   LADE_EINVAL, "unique.ttl");
    expect_refusal((lade_job_spec){.kind = "k", .result_ttl = -1}, LADE_EINVAL, "result_ttl");
    expect_refusal((lade_job_spec){.kind = "k", .result_ttl = 1}, LADE_EINVAL, "result_ttl");
    expect_refusal((lade_job_spec){.kind = "k", .max_attempts = 1001}, LADE_EINVAL, "max_attempts");
    expect_refusal((lade_job_spec){.kind = "k", .backoff = {.type = LADE_BACKOFF_FIXED}},
                   LADE_EINVAL, "backoff.base");
    lade_header bad = {"a b", ""};
    expect_refusal((lade_job_spec){.kind = "k", .headers = &bad, .n_headers = 1}, LADE_EINVAL,
                   "header");
    lade_err err = {0};
    assert_int_equal(lq_job_check(&(lade_job_spec){0}, 100, 17, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "job 17"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_envelope_with_defaults_has_the_golden_bytes),
        cmocka_unit_test(an_envelope_with_everything_has_the_golden_bytes),
        cmocka_unit_test(decoding_gives_back_what_was_encoded),
        cmocka_unit_test(discard_dead_is_the_last_field),
        cmocka_unit_test(result_ttl_comes_behind_the_key),
        cmocka_unit_test(another_payload_leaves_every_other_byte),
        cmocka_unit_test(every_cut_and_every_flipped_byte_is_refused_or_harmless),
        cmocka_unit_test(a_key_is_written_behind_all_else),
        cmocka_unit_test(fields_of_a_later_writer_are_ignored),
        cmocka_unit_test(each_bad_field_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("queue/job", tests, NULL, NULL);
}
