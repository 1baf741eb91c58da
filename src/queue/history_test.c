#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "queue/history.h"

static struct lq_record record(int number)
{
    return (struct lq_record){.number = number,
                              .started_ms = 1000 + number,
                              .ended_ms = 2000 + number,
                              .event = LQ_EVENT_RETRY,
                              .worker = lb_slice("w", 1),
                              .error = lb_slice("e\0", 2)};
}

static void a_history_of_one_has_the_golden_bytes(void **state)
{
    (void)state;
    static const uint8_t golden[] = {0x01, 0x00, 0x01, 0x00, 0x02, 0x00, 0x96,
                                     0x01, 0xcd, 0x03, 0xe9, 0xcd, 0x07, 0xd1,
                                     0x00, 0xa1, 'w',  0xc4, 0x02, 'e',  0x00};
    struct lb_buf b;
    lb_buf_init(&b);
    struct lq_record r = record(1);
    lq_history_append(&b, (struct lb_slice){0}, &r, 1, 2);
    assert_int_equal(b.n, sizeof(golden));
    assert_memory_equal(b.p, golden, sizeof(golden));
    lb_buf_fini(&b);
}

static void the_last_records_are_kept_and_the_counts_go_on(void **state)
{
    (void)state;
    struct lb_buf b[2];
    lb_buf_init(&b[0]);
    lb_buf_init(&b[1]);
    int now = 0;
    for (int i = 1; i <= 100; i++) {
        struct lq_record r = record(i);
        lb_buf_clear(&b[!now]);
        lq_history_append(&b[!now], lb_buf_slice(&b[now]), &r, i, 0);
        now = !now;
    }
    struct lb_slice h = lb_buf_slice(&b[now]);
    assert_int_equal(lq_history_attempts(h), 100);
    size_t at = 0;
    struct lq_record r;
    int n = 0;
    for (; lq_history_next(h, &at, &r); n++)
        assert_int_equal(r.number, 100 - LQ_HISTORY_KEEP + 1 + n);
    assert_int_equal(n, LQ_HISTORY_KEEP);
    assert_int_equal(r.error.n, 2);
    lb_buf_fini(&b[0]);
    lb_buf_fini(&b[1]);
}

static void damage_counts_as_an_empty_history(void **state)
{
    (void)state;
    uint8_t bad[] = {9, 0, 1, 0, 1, 0, 0x96};
    struct lb_slice h = lb_slice(bad, sizeof(bad));
    size_t at = 0;
    struct lq_record r;
    assert_int_equal(lq_history_attempts(h), 0);
    assert_false(lq_history_next(h, &at, &r));
    bad[0] = LQ_HISTORY_VERSION; /* the head is right, the record is cut */
    assert_int_equal(lq_history_attempts(h), 1);
    assert_false(lq_history_next(h, &at, &r));
}

/* Found by the fuzzer: the new record stood behind the damage and could not be read. */
static void a_record_after_damage_can_be_read(void **state)
{
    (void)state;
    uint8_t bad[] = {LQ_HISTORY_VERSION, 0, 1, 0, 0, 0, 0x96, 0x01, 0x02, 0xff};
    struct lq_record r = record(2);
    struct lb_buf b;
    lb_buf_init(&b);
    lq_history_append(&b, lb_slice(bad, sizeof(bad)), &r, 2, 0);
    size_t at = 0;
    struct lq_record got;
    assert_true(lq_history_next(lb_buf_slice(&b), &at, &got));
    assert_int_equal(got.number, 2);
    assert_false(lq_history_next(lb_buf_slice(&b), &at, &got));
    lb_buf_fini(&b);
}

static void fields_of_a_later_writer_are_skipped(void **state)
{
    (void)state;
    uint8_t later[] = {LQ_HISTORY_VERSION,
                       0,
                       2,
                       0,
                       0,
                       0,
                       0x98,
                       0x01,
                       0x02,
                       0x03,
                       0x00,
                       0xa1,
                       'w',
                       0xc4,
                       0x00,
                       0x92,
                       0xc0,
                       0xa1,
                       'x',
                       0x07,
                       0x96,
                       0x02,
                       0x02,
                       0x03,
                       0x00,
                       0xa1,
                       'w',
                       0xc4,
                       0x00};
    struct lb_slice h = lb_slice(later, sizeof(later));
    size_t at = 0;
    struct lq_record got;
    assert_true(lq_history_next(h, &at, &got));
    assert_int_equal(got.number, 1);
    assert_true(lq_history_next(h, &at, &got));
    assert_int_equal(got.number, 2);
    assert_false(lq_history_next(h, &at, &got));
}

static void effects_stay_whatever_comes_after_them(void **state)
{
    (void)state;
    static const uint8_t golden[] = {0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x96, 0x00,
                                     0x00, 0x07, 0x08, 0xa1, 'k',  0xc4, 0x01, 'v'};
    struct lb_buf b[2];
    lb_buf_init(&b[0]);
    lb_buf_init(&b[1]);
    lq_history_add_effect(&b[0], (struct lb_slice){0}, lb_slice("k", 1), lb_slice("v", 1), 7);
    assert_int_equal(b[0].n, sizeof(golden));
    assert_memory_equal(b[0].p, golden, sizeof(golden));
    int now = 0;
    for (int i = 1; i <= 100; i++) {
        struct lq_record r = record(i);
        lb_buf_clear(&b[!now]);
        lq_history_append(&b[!now], lb_buf_slice(&b[now]), &r, i, 0);
        now = !now;
        if (i != 50)
            continue;
        lb_buf_clear(&b[!now]);
        lq_history_add_effect(&b[!now], lb_buf_slice(&b[now]), lb_slice("k2", 2), lb_slice("", 0),
                              8);
        now = !now;
    }
    struct lb_slice h = lb_buf_slice(&b[now]);
    struct lq_record r;
    size_t n = 0, records = 0;
    for (size_t at = 0; lq_history_next(h, &at, &r);)
        records++;
    assert_int_equal(records, LQ_HISTORY_KEEP + 2);
    assert_int_equal(lq_history_attempts(h), 100);
    assert_true(lq_history_effect(h, lb_slice("k", 1), &r, &n));
    assert_int_equal(n, 2);
    assert_int_equal(r.ended_ms, 7);
    assert_true(lq_history_effect(h, lb_slice("k2", 2), &r, NULL));
    assert_int_equal(r.error.n, 0);
    assert_false(lq_history_effect(h, lb_slice("k3", 2), &r, &n));
    lb_buf_fini(&b[0]);
    lb_buf_fini(&b[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_after_damage_can_be_read),
        cmocka_unit_test(effects_stay_whatever_comes_after_them),
        cmocka_unit_test(fields_of_a_later_writer_are_skipped),
        cmocka_unit_test(a_history_of_one_has_the_golden_bytes),
        cmocka_unit_test(the_last_records_are_kept_and_the_counts_go_on),
        cmocka_unit_test(damage_counts_as_an_empty_history),
    };
    return cmocka_run_group_tests_name("queue/history", tests, NULL, NULL);
}
