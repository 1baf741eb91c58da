#include "queue/fingerprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void assert_masks(const char *error, const char *masked)
{
    struct lb_buf b;
    lb_buf_init(&b);
    lq_fingerprint_mask(&b, lb_slice_str(error));
    lb_buf_add_byte(&b, 0);
    assert_false(b.failed);
    assert_string_equal((const char *)b.p, masked);
    lb_buf_fini(&b);
}

static void what_differs_from_error_to_error_is_masked(void **state)
{
    (void)state;
    assert_masks("timed out after 30000 ms", "timed out after <n> ms");
    assert_masks("took 3.5s, limit 2s", "took <n>s, limit <n>s");
    assert_masks("user 'bob' unknown", "user <s> unknown");
    assert_masks("key \"a b\" missing in `t`", "key <s> missing in <s>");
    assert_masks("job 01HF7YAT000000000000000100 gone", "job <id> gone");
    assert_masks("id 550e8400-e29b-41d4-a716-446655440000.", "id <id>.");
    assert_masks("commit deadbeef12 not found", "commit <id> not found");
    assert_masks("segfault at 0x7ffd12ab", "segfault at <id>");
    assert_masks("connect 10.0.0.1:5432: refused", "connect <addr>: refused");
    assert_masks("connect 10.0.0.17: refused", "connect <addr>: refused");
    assert_masks("no route to fe80::1ff:fe23:4567:890a", "no route to <addr>");
    assert_masks("mail to bob@example.org bounced", "mail to <mail> bounced");
    assert_masks("at 2026-12-01T05:00:00Z it broke", "at <n>-<n>-<n>T<n>:<n>:<n>Z it broke");
}

static void words_of_the_error_stay(void **state)
{
    (void)state;
    assert_masks("connection reset by peer", "connection reset by peer");
    assert_masks("the server can't be reached; don't retry",
                 "the server can't be reached; don't retry");
    assert_masks("std::bad_alloc: no memory", "std::bad_alloc: no memory");
    assert_masks("feed the cafe", "feed the cafe"); /* letters of hex without a digit */
    assert_masks("HTTP 503", "HTTP <n>");
    assert_masks("stage2 failed", "stage<n> failed");
    assert_masks("", "");
}

static void blanks_are_one_and_control_characters_are_told(void **state)
{
    (void)state;
    assert_masks("  a\t\tb\n c ", "a b c");
    assert_masks("a\x01"
                 "b",
                 "a?b");
    assert_masks("an 'open quote", "an 'open quote");
    assert_masks("h\xc3\xa9 12", "h\xc3\xa9 <n>");
}

/* Whatever bytes an error has, the mask is bounded and the same each time. */
static void any_bytes_are_bounded(void **state)
{
    (void)state;
    uint8_t bytes[5000];
    uint64_t x = 1;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
            bytes[i] = round % 2 ? (uint8_t)(x >> 56) : (uint8_t)("0:.a'\n@-"[x >> 61]);
        }
        struct lb_buf a, b;
        lb_buf_init(&a);
        lb_buf_init(&b);
        lq_fingerprint_mask(&a, lb_slice(bytes, sizeof(bytes)));
        lq_fingerprint_mask(&b, lb_slice(bytes, sizeof(bytes)));
        assert_true(a.n <= 2 * LQ_FINGERPRINT_LOOK + 1024);
        assert_true(lb_slice_eq(lb_buf_slice(&a), lb_buf_slice(&b)));
        lb_buf_fini(&a);
        lb_buf_fini(&b);
    }
}

/* Classes are stored: these names must never change. */
static void names_are_pinned_and_tell_kinds_and_errors_apart(void **state)
{
    (void)state;
    char a[LQ_FINGERPRINT_NAME + 1], b[LQ_FINGERPRINT_NAME + 1];
    lq_fingerprint_name(a, lb_slice_str("mail"), lb_slice_str("timed out after <n> ms"));
    assert_string_equal(a, "3679bbf5ab98");
    lq_fingerprint_name(b, lb_slice_str("sms"), lb_slice_str("timed out after <n> ms"));
    assert_string_not_equal(a, b);
    lq_fingerprint_name(a, lb_slice_str("ab"), lb_slice_str("c"));
    lq_fingerprint_name(b, lb_slice_str("a"), lb_slice_str("bc"));
    assert_string_not_equal(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_differs_from_error_to_error_is_masked),
        cmocka_unit_test(words_of_the_error_stay),
        cmocka_unit_test(blanks_are_one_and_control_characters_are_told),
        cmocka_unit_test(any_bytes_are_bounded),
        cmocka_unit_test(names_are_pinned_and_tell_kinds_and_errors_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
