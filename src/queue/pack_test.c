#include "queue/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/ident.h"
#include "base/mem.h"

static struct lq_unpack reader_of(struct lb_buf *b)
{
    return (struct lq_unpack){.p = b->p, .end = b->p + b->n};
}

/* Golden bytes from the MessagePack specification: the shortest form of each value, on both sides of every limit. */
static void integers_take_their_shortest_form(void **state)
{
    (void)state;

    static const struct {
        uint64_t v;
        size_t n;
        const char *bytes;
    } row[] = {
        {0, 1, "\x00"},
        {127, 1, "\x7f"},
        {128, 2, "\xcc\x80"},
        {255, 2, "\xcc\xff"},
        {256, 3, "\xcd\x01\x00"},
        {65535, 3, "\xcd\xff\xff"},
        {65536, 5, "\xce\x00\x01\x00\x00"},
        {UINT32_MAX, 5, "\xce\xff\xff\xff\xff"},
        {UINT64_C(1) << 32, 9, "\xcf\x00\x00\x00\x01\x00\x00\x00\x00"},
        {UINT64_MAX, 9, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(row); i++) {
        struct lb_buf b;
        lb_buf_init(&b);
        lq_pack_uint(&b, row[i].v);
        assert_int_equal(b.n, row[i].n);
        assert_memory_equal(b.p, row[i].bytes, row[i].n);
        struct lq_unpack u = reader_of(&b);
        assert_true(lq_unpack_uint(&u) == row[i].v);
        assert_false(u.bad);
        assert_ptr_equal(u.p, u.end);
        lb_buf_fini(&b);
    }
}

static void strings_and_binaries_of_every_length_class_come_back(void **state)
{
    (void)state;

    static const struct {
        size_t n;
        uint8_t str, bin;
        size_t str_head, bin_head;
    } row[] = {{0, 0xa0, 0xc4, 1, 2},     {31, 0xbf, 0xc4, 1, 2},    {32, 0xd9, 0xc4, 2, 2},
               {255, 0xd9, 0xc4, 2, 2},   {256, 0xda, 0xc5, 3, 3},   {65535, 0xda, 0xc5, 3, 3},
               {65536, 0xdb, 0xc6, 5, 5}, {100000, 0xdb, 0xc6, 5, 5}};

    uint8_t *text = malloc(100000);
    assert_non_null(text);
    for (size_t i = 0; i < 100000; i++)
        text[i] = (uint8_t)i;
    for (size_t i = 0; i < LB_ARRAY_LEN(row); i++) {
        struct lb_slice s = lb_slice(text, row[i].n);
        struct lb_buf b;
        lb_buf_init(&b);
        lq_pack_str(&b, s);
        assert_int_equal(b.p[0], row[i].str);
        assert_int_equal(b.n, row[i].n + row[i].str_head);
        size_t after_str = b.n;
        lq_pack_bin(&b, s);
        assert_int_equal(b.p[after_str], row[i].bin);
        assert_int_equal(b.n - after_str, row[i].n + row[i].bin_head);
        struct lq_unpack u = reader_of(&b);
        assert_true(lb_slice_eq(lb_slice_of(lq_unpack_str(&u)), s));
        assert_true(lb_slice_eq(lb_slice_of(lq_unpack_bin(&u)), s));
        assert_false(u.bad);
        assert_ptr_equal(u.p, u.end);
        lb_buf_fini(&b);
    }
    free(text);
}

static void arrays_and_nil_come_back(void **state)
{
    (void)state;
    static const uint32_t n[] = {0, 15, 16, 65535, 65536, UINT32_MAX};
    struct lb_buf b;
    lb_buf_init(&b);
    for (size_t i = 0; i < LB_ARRAY_LEN(n); i++)
        lq_pack_array(&b, n[i]);
    lq_pack_nil(&b);
    lq_pack_uint(&b, 7);
    struct lq_unpack u = reader_of(&b);
    for (size_t i = 0; i < LB_ARRAY_LEN(n); i++) {
        assert_false(lq_unpack_nil(&u));
        assert_int_equal(lq_unpack_array(&u), n[i]);
    }
    assert_true(lq_unpack_nil(&u));
    assert_false(lq_unpack_nil(&u)); /* not a nil: stays before it */
    assert_int_equal(lq_unpack_uint(&u), 7);
    assert_false(lq_unpack_nil(&u)); /* the end */
    assert_false(u.bad);
    lb_buf_fini(&b);
}

/* Other writers may use longer forms than needed. */
static void longer_forms_are_read_too(void **state)
{
    (void)state;
    uint8_t bytes[] = "\xcf\x00\x00\x00\x00\x00\x00\x00\x05"
                      "\xdb\x00\x00\x00\x02hi"
                      "\xc6\x00\x00\x00\x01x"
                      "\xdd\x00\x00\x00\x03";
    struct lq_unpack u = {bytes, bytes + sizeof(bytes) - 1, false};
    assert_int_equal(lq_unpack_uint(&u), 5);
    assert_true(lb_slice_eq(lb_slice_of(lq_unpack_str(&u)), lb_slice_str("hi")));
    assert_true(lb_slice_eq(lb_slice_of(lq_unpack_bin(&u)), lb_slice_str("x")));
    assert_int_equal(lq_unpack_array(&u), 3);
    assert_false(u.bad);
}

static void the_wrong_type_is_bad_and_stays_bad(void **state)
{
    (void)state;
    uint8_t bytes[] = {0x05, 0x05, 0x05};
    struct lq_unpack u = {bytes, bytes + sizeof(bytes), false};
    assert_null(lq_unpack_str(&u).p);
    assert_true(u.bad);
    assert_int_equal(lq_unpack_uint(&u), 0); /* though a 5 is there */
    assert_int_equal(lq_unpack_array(&u), 0);
    assert_null(lq_unpack_bin(&u).p);
    assert_false(lq_unpack_nil(&u));
    uint8_t negative[] = {0xff};
    struct lq_unpack n = {negative, negative + 1, false};
    assert_int_equal(lq_unpack_uint(&n), 0);
    assert_true(n.bad);
}

/* Each cut lies at the end of a block of its own size, so that ASan sees a read of one byte too many. */
static void every_cut_is_bad_and_reads_nothing_outside(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    static uint8_t text[300];
    lq_pack_array(&b, 70000);
    lq_pack_uint(&b, UINT64_MAX);
    lq_pack_str(&b, lb_slice(text, sizeof(text)));
    lq_pack_bin(&b, lb_slice(text, sizeof(text)));
    assert_false(b.failed);
    for (size_t n = 0; n < b.n; n++) {
        uint8_t *cut = malloc(n ? n : 1);
        assert_non_null(cut);
        memcpy(cut, b.p, n);
        struct lq_unpack u = {cut, cut + n, false};
        (void)lq_unpack_array(&u);
        (void)lq_unpack_uint(&u);
        (void)lq_unpack_str(&u);
        (void)lq_unpack_bin(&u);
        assert_true(u.bad);
        assert_true(u.p <= u.end);
        free(cut);
    }
    lb_buf_fini(&b);
}

static void a_length_that_lies_is_bad(void **state)
{
    (void)state;
    uint8_t bytes[] = {0xdb, 0xff, 0xff, 0xff, 0xff, 'x'};
    struct lq_unpack u = {bytes, bytes + sizeof(bytes), false};
    assert_null(lq_unpack_str(&u).p);
    assert_true(u.bad);
}

static void random_bytes_never_lead_outside(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t n = lb_rand_below(24);
        uint8_t *bytes = malloc(n ? n : 1);
        assert_non_null(bytes);
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)lb_rand();
        struct lq_unpack u = {bytes, bytes + n, false};
        for (int step = 0; step < 30 && !u.bad; step++) {
            switch (lb_rand_below(5)) {
            case 0:
                (void)lq_unpack_uint(&u);
                break;
            case 1:
                (void)lq_unpack_str(&u);
                break;
            case 2:
                (void)lq_unpack_bin(&u);
                break;
            case 3:
                (void)lq_unpack_array(&u);
                break;
            default:
                (void)lq_unpack_nil(&u);
            }
            assert_true(u.p <= u.end);
        }
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_take_their_shortest_form),
        cmocka_unit_test(strings_and_binaries_of_every_length_class_come_back),
        cmocka_unit_test(arrays_and_nil_come_back),
        cmocka_unit_test(longer_forms_are_read_too),
        cmocka_unit_test(the_wrong_type_is_bad_and_stays_bad),
        cmocka_unit_test(every_cut_is_bad_and_reads_nothing_outside),
        cmocka_unit_test(a_length_that_lies_is_bad),
        cmocka_unit_test(random_bytes_never_lead_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
