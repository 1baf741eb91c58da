/* resp_test.c - the codec alone: every type, every chunking, every limit */
#include "store/redis/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/ident.h"
#include "base/mem.h"

#define MAX 1048576

/* Writes the reply as text: i1 "bytes" [a b] {k v} null ... */
static void render(struct ls_redis_cursor *c, struct lb_buf *out)
{
    struct ls_redis_value v = ls_redis_read(c);
    static const char *const name[] = {
        [LS_REDIS_NONE] = "none", [LS_REDIS_SIMPLE] = "+",  [LS_REDIS_ERROR] = "-",
        [LS_REDIS_INT] = "i",     [LS_REDIS_BULK] = "$",    [LS_REDIS_VERBATIM] = "=",
        [LS_REDIS_ARRAY] = "[",   [LS_REDIS_SET] = "~[",    [LS_REDIS_PUSH] = ">[",
        [LS_REDIS_MAP] = "{",     [LS_REDIS_NULL] = "null", [LS_REDIS_DOUBLE] = ",",
        [LS_REDIS_BOOL] = "#",    [LS_REDIS_BIG] = "(",
    };
    lb_buf_add_str(out, name[v.type]);
    if (v.bytes.p)
        lb_buf_add_fmt(out, "%.*s", (int)v.bytes.n, (const char *)v.bytes.p);
    if (v.type == LS_REDIS_INT || v.type == LS_REDIS_BOOL)
        lb_buf_add_fmt(out, "%lld", (long long)v.integer);
    for (size_t i = 0; i < v.n; i++) {
        if (i > 0)
            lb_buf_add_byte(out, ' ');
        render(c, out);
    }
    if (v.type == LS_REDIS_ARRAY || v.type == LS_REDIS_SET || v.type == LS_REDIS_PUSH)
        lb_buf_add_byte(out, ']');
    if (v.type == LS_REDIS_MAP)
        lb_buf_add_byte(out, '}');
}

static void expect_rendered(const char *wire, size_t n, const char *text)
{
    struct lb_buf out;
    lb_buf_init(&out);
    struct ls_redis_cursor c = ls_redis_cursor(lb_slice(wire, n));
    render(&c, &out);
    lb_buf_add_byte(&out, 0);
    assert_string_equal((const char *)out.p, text);
    assert_false(c.bad);
    assert_ptr_equal(c.p, c.end);
    lb_buf_fini(&out);
}

#define W(s) s, sizeof(s) - 1

static const struct sample {
    const char *wire;
    size_t n;
    const char *text;
} samples[] = {
    {W("+OK\r\n"), "+OK"},
    {W("+\r\n"), "+"},
    {W("-ERR no such thing\r\n"), "-ERR no such thing"},
    {W("!8\r\nERR a\r\nb\r\n"), "-ERR a\r\nb"},
    {W(":0\r\n"), "i0"},
    {W(":+7\r\n"), "i7"},
    {W(":-9223372036854775808\r\n"), "i-9223372036854775808"},
    {W(":9223372036854775807\r\n"), "i9223372036854775807"},
    {W(":000000000000000001\r\n"), "i1"},
    {W("$0\r\n\r\n"), "$"},
    {W("$4\r\na\r\nb\r\n"), "$a\r\nb"},
    {W("$-1\r\n"), "null"},
    {W("*-1\r\n"), "null"},
    {W("_\r\n"), "null"},
    {W("*0\r\n"), "[]"},
    {W("*2\r\n$1\r\na\r\n*1\r\n:1\r\n"), "[$a [i1]]"},
    {W("*3\r\n*0\r\n*-1\r\n*1\r\n*0\r\n"), "[[] null [[]]]"},
    {W(",1.5\r\n"), ",1.5"},
    {W(",-1.25e-7\r\n"), ",-1.25e-7"},
    {W(",10\r\n"), ",10"},
    {W(",inf\r\n"), ",inf"},
    {W(",-inf\r\n"), ",-inf"},
    {W(",nan\r\n"), ",nan"},
    {W("#t\r\n"), "#1"},
    {W("#f\r\n"), "#0"},
    {W("(-3492890328409238509324850943850943825024385\r\n"),
     "(-3492890328409238509324850943850943825024385"},
    {W("=8\r\ntxt:text\r\n"), "=text"},
    {W("=4\r\nmkd:\r\n"), "="},
    {W("%2\r\n+a\r\n:1\r\n+b\r\n%0\r\n"), "{+a i1 +b {}}"},
    {W("~3\r\n:1\r\n#t\r\n_\r\n"), "~[i1 #1 null]"},
    {W(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"), ">[$invalidate [$k]]"},
    {W("|1\r\n+ttl\r\n:3600\r\n$1\r\nv\r\n"), "$v"},
    {W("*2\r\n|1\r\n+x\r\n|1\r\n+y\r\n:1\r\n:2\r\n:3\r\n|0\r\n:4\r\n"), "[i3 i4]"},
};

static void every_type_is_read_from_one_piece(void **state)
{
    (void)state;
    for (size_t i = 0; i < LB_ARRAY_LEN(samples); i++) {
        struct ls_redis_scan s;
        ls_redis_scan_init(&s, MAX);
        enum ls_redis_scanned r = ls_redis_scan(&s, (const uint8_t *)samples[i].wire, samples[i].n);
        assert_int_equal(r, LS_REDIS_SCAN_DONE);
        assert_int_equal(s.at, samples[i].n);
        expect_rendered(samples[i].wire, samples[i].n, samples[i].text);
    }
}

/* C-028: a cut at any place is "more", never a value and never an error. Each prefix has a block of its own, so that
 * a read beyond it is seen by the sanitizer. */
static void every_prefix_of_every_type_needs_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < LB_ARRAY_LEN(samples); i++) {
        struct ls_redis_scan grown;
        ls_redis_scan_init(&grown, MAX);
        for (size_t n = 0; n < samples[i].n; n++) {
            uint8_t *prefix = malloc(n ? n : 1);
            assert_non_null(prefix);
            memcpy(prefix, samples[i].wire, n);
            struct ls_redis_scan fresh;
            ls_redis_scan_init(&fresh, MAX);
            assert_int_equal(ls_redis_scan(&fresh, prefix, n), LS_REDIS_SCAN_MORE);
            assert_int_equal(ls_redis_scan(&grown, prefix, n), LS_REDIS_SCAN_MORE);
            assert_in_range(ls_redis_scan_missing(&grown, n), 1, samples[i].n - n);
            free(prefix);
        }
        const uint8_t *whole = (const uint8_t *)samples[i].wire;
        assert_int_equal(ls_redis_scan(&grown, whole, samples[i].n), LS_REDIS_SCAN_DONE);
        assert_int_equal(grown.at, samples[i].n);
    }
}

/* C-028: many replies in pieces of any size, several of them in one piece. */
static void random_pieces_give_the_same_replies(void **state)
{
    (void)state;
    struct lb_buf all;
    lb_buf_init(&all);
    for (size_t i = 0; i < LB_ARRAY_LEN(samples); i++)
        lb_buf_add(&all, samples[i].wire, samples[i].n);
    for (int round = 0; round < 2000; round++) {
        struct ls_redis_scan s;
        ls_redis_scan_init(&s, MAX);
        size_t have = 0;
        size_t start = 0;
        size_t i = 0;
        while (i < LB_ARRAY_LEN(samples)) {
            enum ls_redis_scanned r = ls_redis_scan(&s, all.p + start, have - start);
            assert_int_not_equal(r, LS_REDIS_SCAN_BAD);
            if (r == LS_REDIS_SCAN_MORE) {
                have += 1 + lb_rand_below(LB_MIN(all.n - have, 1 + (uint64_t)round / 10));
                continue;
            }
            expect_rendered((const char *)all.p + start, s.at, samples[i].text);
            start += s.at;
            ls_redis_scan_init(&s, MAX);
            i++;
        }
        assert_int_equal(start, all.n);
    }
    lb_buf_fini(&all);
}

static const struct {
    const char *wire;
    size_t n;
} bad[] = {
    {W("x\r\n")},
    {W("\0\r\n")},
    {W("\r\n")},
    {W("OK\r\n")},
    {W("HTTP/1.1 400 Bad\r\n")},
    {W(":\r\n")},
    {W(":-\r\n")},
    {W(": 1\r\n")},
    {W(":1 \r\n")},
    {W(":0x10\r\n")},
    {W(":1e9999\r\n")},
    {W(":1\rx")},
    {W(":1\n")},
    {W(":9223372036854775808\r\n")},
    {W(":-9223372036854775809\r\n")},
    {W(":18446744073709551616\r\n")},
    {W(":99999999999999999999999")},
    {W("$-2\r\n")},
    {W("$3000000000\r\n")},
    {W("$4294967296\r\n")},
    {W("$2147483648\r\n")},
    {W("$9223372036854775807\r\n")},
    {W("$18446744073709551615\r\n")},
    {W("$\r\n")},
    {W("$a\r\n")},
    {W("$1\r\nab\r\n")},
    {W("$3\r\nab\r\n\r")},
    {W("$1\r\na\n\r")},
    {W("*-2\r\n")},
    {W("*4294967297\r\n")},
    {W("*9223372036854775807\r\n")},
    {W("%4611686018427387904\r\n")},
    {W("%-1\r\n")},
    {W("~-1\r\n")},
    {W("|-1\r\n")},
    {W("!-1\r\n")},
    {W("=-1\r\n")},
    {W("=3\r\ntxt\r\n")},
    {W("=4\r\ntext\r\n")},
    {W("#x\r\n")},
    {W("#\r\n")},
    {W("#tt\r\n")},
    {W("_x\r\n")},
    {W("(\r\n")},
    {W("(1.5\r\n")},
    {W("(-\r\n")},
    {W(",\r\n")},
    {W(",1.\r\n")},
    {W(",.5\r\n")},
    {W(",1e\r\n")},
    {W(",infinity\r\n")},
    {W(",1,5\r\n")},
    {W("+a\nb\r\n")},
    {W("+a\rb\r\n")},
    {W("*?\r\n")},
    {W("$?\r\n")},
    {W("*2\r\n:1\r\n+\n")},
};

/* C-096: numbers that are none, out of range, or not what follows. */
static void malformed_replies_are_refused(void **state)
{
    (void)state;

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct ls_redis_scan s;
        ls_redis_scan_init(&s, MAX);
        const uint8_t *p = (const uint8_t *)bad[i].wire;
        enum ls_redis_scanned r = LS_REDIS_SCAN_MORE;
        for (size_t n = 0; n <= bad[i].n && r == LS_REDIS_SCAN_MORE; n++)
            r = ls_redis_scan(&s, p, n);
        if (r != LS_REDIS_SCAN_BAD)
            print_error("accepted: %s\n", bad[i].wire);
        assert_int_equal(r, LS_REDIS_SCAN_BAD);
        assert_non_null(s.why);
        assert_int_equal(ls_redis_scan(&s, p, bad[i].n), LS_REDIS_SCAN_BAD);
        struct ls_redis_scan whole;
        ls_redis_scan_init(&whole, MAX);
        assert_int_equal(ls_redis_scan(&whole, p, bad[i].n), LS_REDIS_SCAN_BAD);
    }
}

static enum ls_redis_scanned scan_text(const struct lb_buf *b, size_t reply_max)
{
    struct ls_redis_scan s;
    ls_redis_scan_init(&s, reply_max);
    return ls_redis_scan(&s, b->p, b->n);
}

/* C-045, C-096: limits hold before anything is allocated; the scanner allocates nothing at all. */
static void limits_hold_and_nothing_is_allocated(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    (void)lb_buf_reserve(&b, 4 * (size_t)LS_REDIS_LINE_MAX);
    lb_mem_fail_after(0);
    uint64_t before = lb_mem_count();
    for (int i = 0; i < LS_REDIS_DEPTH_MAX; i++)
        lb_buf_add_str(&b, "*1\r\n");
    lb_buf_add_str(&b, ":1\r\n");
    assert_int_equal(scan_text(&b, MAX), LS_REDIS_SCAN_DONE);
    lb_buf_clear(&b);
    for (int i = 0; i < LS_REDIS_DEPTH_MAX + 1; i++)
        lb_buf_add_str(&b, i % 2 ? "|1\r\n" : "*1\r\n");
    assert_int_equal(scan_text(&b, MAX), LS_REDIS_SCAN_BAD);

    lb_buf_clear(&b);
    lb_buf_add_fmt(&b, "*%d\r\n", LS_REDIS_ITEMS_MAX - 1);
    assert_int_equal(scan_text(&b, MAX), LS_REDIS_SCAN_MORE);
    lb_buf_clear(&b);
    lb_buf_add_fmt(&b, "*%d\r\n", LS_REDIS_ITEMS_MAX);
    assert_int_equal(scan_text(&b, MAX), LS_REDIS_SCAN_BAD);
    lb_buf_clear(&b);
    for (int i = 0; i < 5; i++) /* each small enough, together too many */
        lb_buf_add_fmt(&b, "*%d\r\n", LS_REDIS_ITEMS_MAX / 4);
    assert_int_equal(scan_text(&b, MAX), LS_REDIS_SCAN_BAD);

    lb_buf_clear(&b);
    lb_buf_add_str(&b, "*2\r\n$1000\r\n");
    assert_int_equal(scan_text(&b, 1011), LS_REDIS_SCAN_MORE);
    assert_int_equal(scan_text(&b, 1010), LS_REDIS_SCAN_BAD);

    lb_buf_clear(&b);
    lb_buf_add_byte(&b, '+');
    memset(lb_buf_reserve(&b, 2 * (size_t)LS_REDIS_LINE_MAX), 'x', 2 * (size_t)LS_REDIS_LINE_MAX);
    b.n += LS_REDIS_LINE_MAX;
    assert_int_equal(scan_text(&b, MAX), LS_REDIS_SCAN_MORE);
    b.n++;
    assert_int_equal(scan_text(&b, MAX), LS_REDIS_SCAN_BAD);
    assert_int_equal(lb_mem_count(), before);
    lb_buf_fini(&b);
}

/* A reply of 2 MB, one byte more each time: quadratic work would take hours. */
static void small_pieces_of_a_big_reply_cost_no_rescan(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    lb_buf_add_str(&b, "*20001\r\n$1000000\r\n");
    memset(lb_buf_reserve(&b, 1000000), 'x', 1000000);
    b.n += 1000000;
    lb_buf_add_str(&b, "\r\n");
    for (int i = 0; i < 20000; i++)
        lb_buf_add_fmt(&b, i % 2 ? "+%050d\r\n" : "$50\r\n%050d\r\n", i);
    struct ls_redis_scan s;
    ls_redis_scan_init(&s, 4 * (size_t)MAX);
    for (size_t n = 0; n < b.n; n++)
        assert_int_equal(ls_redis_scan(&s, b.p, n), LS_REDIS_SCAN_MORE);
    assert_int_equal(ls_redis_scan(&s, b.p, b.n), LS_REDIS_SCAN_DONE);
    lb_buf_fini(&b);
}

static struct ls_redis_cursor cursor_of(const char *wire)
{
    return ls_redis_cursor(lb_slice_str(wire));
}

static void readers_take_what_they_are_for(void **state)
{
    (void)state;
    struct ls_redis_cursor c =
        cursor_of("*6\r\n:-5\r\n$2\r\n42\r\n#t\r\n$2\r\nab\r\n_\r\n%1\r\n+k\r\n+v\r\n");
    assert_int_equal(ls_redis_peek(&c), LS_REDIS_ARRAY);
    assert_int_equal(ls_redis_read_array(&c), 6);
    assert_int_equal(ls_redis_read_int(&c), -5);
    assert_int_equal(ls_redis_read_int(&c), 42);
    assert_int_equal(ls_redis_read_int(&c), 1);
    assert_true(lb_slice_eq(ls_redis_read_bytes(&c), lb_slice_str("ab")));
    assert_null(ls_redis_read_bytes_or_null(&c).p);
    assert_int_equal(ls_redis_read_array(&c), 2);
    ls_redis_skip(&c);
    assert_true(lb_slice_eq(ls_redis_read_bytes(&c), lb_slice_str("v")));
    assert_false(c.bad);
    assert_int_equal(ls_redis_peek(&c), LS_REDIS_NONE);
    assert_int_equal(ls_redis_read(&c).type, LS_REDIS_NONE);
    assert_false(c.bad);
    c = cursor_of("_\r\n");
    assert_int_equal(ls_redis_read_array(&c), 0);
    assert_false(c.bad);
}

static void wrong_type_or_the_end_makes_the_cursor_bad_for_good(void **state)
{
    (void)state;
    struct ls_redis_cursor c = cursor_of("*3\r\n$1\r\nx\r\n:2\r\n:3\r\n");
    assert_int_equal(ls_redis_read_array(&c), 3);
    assert_int_equal(ls_redis_read_int(&c), 0);
    assert_true(c.bad);
    assert_int_equal(ls_redis_read_int(&c), 0);
    assert_int_equal(ls_redis_read_array(&c), 0);
    assert_null(ls_redis_read_bytes(&c).p);
    assert_int_equal(ls_redis_peek(&c), LS_REDIS_NONE);

    static const char *const not_int[] = {"$0\r\n\r\n", "$1\r\n-\r\n", "+9223372036854775808\r\n",
                                          ",1.5\r\n",   "_\r\n",       "*0\r\n"};
    for (size_t i = 0; i < LB_ARRAY_LEN(not_int); i++) {
        c = cursor_of(not_int[i]);
        (void)ls_redis_read_int(&c);
        assert_true(c.bad);
    }
    c = cursor_of("$-1\r\n");
    (void)ls_redis_read_bytes(&c);
    assert_true(c.bad);
    c = cursor_of(":1\r\n");
    (void)ls_redis_read_bytes(&c);
    assert_true(c.bad);
    c = cursor_of("+a\r\n");
    (void)ls_redis_read_array(&c);
    assert_true(c.bad);
    c = cursor_of("");
    ls_redis_skip(&c);
    assert_true(c.bad);
}

static void skip_passes_over_whole_trees(void **state)
{
    (void)state;
    for (size_t i = 0; i < LB_ARRAY_LEN(samples); i++) {
        struct ls_redis_cursor c = ls_redis_cursor(lb_slice(samples[i].wire, samples[i].n));
        ls_redis_skip(&c);
        assert_false(c.bad);
        assert_ptr_equal(c.p, c.end);
    }
}

static void write_args(struct lb_buf *b, size_t hint, size_t n)
{
    struct ls_redis_cmd cmd;
    ls_redis_cmd_begin(&cmd, b, hint);
    for (size_t i = 0; i < n; i++)
        ls_redis_arg_u64(&cmd, i);
    ls_redis_cmd_end(&cmd);
}

static void commands_are_arrays_of_bulk_strings(void **state)
{
    (void)state;
    struct lb_buf b;
    lb_buf_init(&b);
    struct ls_redis_cmd cmd;
    ls_redis_cmd_begin(&cmd, &b, 5);
    ls_redis_arg_str(&cmd, "SET");
    ls_redis_arg(&cmd, "a\0b", 3);
    ls_redis_arg_slice(&cmd, (struct lb_slice){0});
    ls_redis_arg_int(&cmd, INT64_MIN);
    ls_redis_arg_u64(&cmd, UINT64_MAX);
    ls_redis_cmd_end(&cmd);
    static const char want[] = "*5\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$0\r\n\r\n"
                               "$20\r\n-9223372036854775808\r\n$20\r\n18446744073709551615\r\n";
    assert_int_equal(b.n, sizeof(want) - 1);
    assert_memory_equal(b.p, want, b.n);
    lb_buf_fini(&b);
}

static void count_is_right_whatever_the_hint(void **state)
{
    (void)state;
    static const size_t number[] = {0, 1, 9, 10, 99, 100, 101, 1000, 12345};
    for (size_t h = 0; h < LB_ARRAY_LEN(number); h++) {
        for (size_t i = 1; i < LB_ARRAY_LEN(number); i++) {
            struct lb_buf b;
            lb_buf_init(&b);
            write_args(&b, 3, 3); /* an earlier command must stay as it is */
            size_t at = b.n;
            write_args(&b, number[h], number[i]);
            struct ls_redis_cursor c = ls_redis_cursor(lb_slice(b.p + at, b.n - at));
            struct ls_redis_scan s;
            ls_redis_scan_init(&s, MAX);
            assert_int_equal(ls_redis_scan(&s, b.p + at, b.n - at), LS_REDIS_SCAN_DONE);
            assert_int_equal(s.at, b.n - at);
            assert_int_equal(ls_redis_read_array(&c), number[i]);
            for (size_t k = 0; k < number[i]; k++)
                assert_int_equal(ls_redis_read_int(&c), k);
            assert_false(c.bad);
            lb_buf_fini(&b);
        }
    }
}

static void out_of_memory_shows_in_the_buffer(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 9; n++) {
        struct lb_buf b;
        lb_buf_init(&b);
        lb_mem_fail_after(n);
        write_args(&b, 1, 500);
        lb_mem_fail_after(0);
        assert_int_equal(b.failed, n <= 8); /* 64 bytes doubled to 8 KiB: 8 allocations */
        lb_buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read_from_one_piece),
        cmocka_unit_test(every_prefix_of_every_type_needs_more),
        cmocka_unit_test(random_pieces_give_the_same_replies),
        cmocka_unit_test(malformed_replies_are_refused),
        cmocka_unit_test(limits_hold_and_nothing_is_allocated),
        cmocka_unit_test(small_pieces_of_a_big_reply_cost_no_rescan),
        cmocka_unit_test(readers_take_what_they_are_for),
        cmocka_unit_test(wrong_type_or_the_end_makes_the_cursor_bad_for_good),
        cmocka_unit_test(skip_passes_over_whole_trees),
        cmocka_unit_test(commands_are_arrays_of_bulk_strings),
        cmocka_unit_test(count_is_right_whatever_the_hint),
        cmocka_unit_test(out_of_memory_shows_in_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
