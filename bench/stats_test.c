#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hdr.h"
#include "bench/expr.h"
#include "bench/runner.h"
#include "bench/stats.h"
#include "bench/units.h"

static void assert_close(double a, double b)
{
    if (fabs(a - b) > 1e-9 * fmax(1, fabs(b)))
        fail_msg("%.12g is not %.12g", a, b);
}

static void median_and_spread_of_known_samples(void **state)
{
    (void)state;
    double v[] = {7, 3, 9, 1, 5};
    struct bn_stats s;
    bn_stats_of(v, 5, &s);
    assert_close(s.median, 5);
    assert_close(s.mean, 5);
    assert_close(s.stdev, sqrt(10));
    assert_close(s.cv, sqrt(10) / 5);
    assert_close(s.min, 1);
    assert_close(s.max, 9);
    double even[] = {4, 1, 3, 2};
    bn_stats_of(even, 4, &s);
    assert_close(s.median, 2.5);
    bn_stats_of(even, 0, &s);
    assert_close(s.median, 0);
}

/* 1 - 2 * P(Bin(n, 1/2) <= j-1), computed by hand: n = 10, j = 2: 1 - 2 * 11 / 1024. */
static void interval_ranks_are_those_of_the_binomial(void **state)
{
    (void)state;

    static const struct {
        size_t n, j;
        double coverage;
    } known[] = {{2, 1, 0.5},
                 {3, 1, 0.75},
                 {5, 1, 0.9375},
                 {6, 1, 0.96875},
                 {7, 1, 1 - 2.0 / 128},
                 {9, 1, 1 - 2.0 / 512},
                 {10, 2, 1 - 22.0 / 1024},
                 {13, 2, 1 - 2 * (1 + 13) / 8192.0}};

    for (size_t i = 0; i < LB_ARRAY_LEN(known); i++) {
        double coverage = 0;
        assert_int_equal(bn_stats_rank(known[i].n, &coverage), known[i].j);
        assert_close(coverage, known[i].coverage);
    }
    double coverage = 0;
    for (size_t n = 7; n <= 101; n++) {
        size_t j = bn_stats_rank(n, &coverage);
        assert_true(coverage >= 0.978 && j >= 1 && j <= (n + 1) / 2);
    }
}

static void interval_is_made_of_the_ranked_values(void **state)
{
    (void)state;
    double v[10];
    struct bn_stats s;
    for (size_t i = 0; i < 10; i++)
        v[i] = (double)((i * 7) % 10 + 1);
    bn_stats_of(v, 10, &s);
    assert_close(s.low, 2);
    assert_close(s.high, 9);
    assert_close(s.median, 5.5);
}

static void slowest_runs_are_discarded_but_never_the_last(void **state)
{
    (void)state;
    double rate[] = {30, 10, 20};
    double time[] = {30, 10, 20};
    assert_int_equal(bn_stats_discard(rate, 3, 1, false), 2);
    assert_close(rate[0], 20);
    assert_close(rate[1], 30);
    assert_int_equal(bn_stats_discard(time, 3, 1, true), 2);
    assert_close(time[1], 20);
    assert_int_equal(bn_stats_discard(time, 2, 9, true), 1);
    assert_close(time[0], 10);
    assert_int_equal(bn_stats_discard(time, 0, 1, true), 0);
}

static void intervals_that_touch_are_not_apart(void **state)
{
    (void)state;
    struct bn_stats a = {.low = 1, .high = 2};
    struct bn_stats b = {.low = 2, .high = 3};
    struct bn_stats c = {.low = 2.1, .high = 3};
    assert_false(bn_stats_apart(&a, &b));
    assert_true(bn_stats_apart(&a, &c));
    assert_true(bn_stats_apart(&c, &a));
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Log-uniform over seven decades, against the exact nearest-rank percentiles. */
static void histogram_agrees_with_exact_percentiles(void **state)
{
    (void)state;

    enum { N = 20000 };

    static const double at[] = {0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999};
    int64_t *v = malloc(N * sizeof(*v));
    struct lb_hdr *h = lb_hdr_make();
    uint64_t x = 88172645463325252U;
    assert_non_null(v);
    assert_non_null(h);
    for (size_t i = 0; i < N; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        v[i] = (int64_t)exp((double)(x >> 11) / 9007199254740992.0 * log(1e10));
        lb_hdr_add(h, v[i]);
    }
    qsort(v, N, sizeof(*v), compare_i64);
    assert_int_equal(lb_hdr_count(h), N);
    assert_int_equal(lb_hdr_max(h), v[N - 1]);
    for (size_t i = 0; i < LB_ARRAY_LEN(at); i++) {
        double exact = (double)v[(size_t)ceil(at[i] * N) - 1];
        double got = (double)lb_hdr_at(h, at[i]);
        if (fabs(got - exact) > exact / 1000 + 1)
            fail_msg("%g: %.0f is not %.0f", at[i], got, exact);
    }
    assert_int_equal(lb_hdr_at(h, 1), v[N - 1]);
    lb_hdr_free(h);
    free(v);
}

static void histogram_keeps_its_ends(void **state)
{
    (void)state;
    struct lb_hdr *h = lb_hdr_make();
    assert_int_equal(lb_hdr_at(h, 0.5), 0);
    lb_hdr_add(h, -5);
    assert_int_equal(lb_hdr_at(h, 0.5), 0);
    lb_hdr_add(h, LB_HDR_MAX_NS);
    assert_int_equal(lb_hdr_overflow(h), 0);
    lb_hdr_add(h, INT64_MAX);
    assert_int_equal(lb_hdr_overflow(h), 1);
    assert_int_equal(lb_hdr_count(h), 3);
    assert_int_equal(lb_hdr_max(h), LB_HDR_MAX_NS);
    lb_hdr_free(h);
}

static bool look_up(void *ctx, const char *name, size_t n, uint64_t *out)
{
    *out = *(uint64_t *)ctx;
    return n == 1 && *name == 'n';
}

static void formulas_are_computed_as_written(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        uint64_t value;
    } known[] = {{"n*(n-1)/2", 4950},
                 {"2 + 3 * 4", 14},
                 {"(2+3)*4", 20},
                 {"n/8*8", 96},
                 {"n%7", 2},
                 {"n-1-1", 98},
                 {"1-2", UINT64_MAX},
                 {"mix(1, 0)", 0},
                 {"mix(9, 9) - mix(9, 9)", 0},
                 {"mix(1, 1)", UINT64_C(0xE220A8397B1DCDAF)}};

    uint64_t n = 100;
    char why[160];
    for (size_t i = 0; i < LB_ARRAY_LEN(known); i++) {
        uint64_t v = 0;
        assert_true(bn_expr(known[i].text, look_up, &n, &v, why, sizeof(why)));
        assert_true(v == known[i].value);
    }
}

static void formulas_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "m", "1/0", "n%(n-n)", "(1", "1)", "mix(1)", "1 2", "*"};
    uint64_t n = 100;
    char why[160];
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        uint64_t v = 0;
        why[0] = '\0';
        assert_false(bn_expr(bad[i], look_up, &n, &v, why, sizeof(why)));
        assert_true(strlen(why) > 0);
    }
}

static void numbers_have_three_digits_and_a_unit(void **state)
{
    (void)state;

    static const struct {
        double v;
        const char *unit, *text;
    } known[] = {{0, "", "0.00"},
                 {0.2, "", "0.200"},
                 {1, "", "1.00"},
                 {12.34, "", "12.3"},
                 {999.4, "", "999"},
                 {999.6, "", "1.00K"},
                 {25872, "jobs/s", "25.9K"},
                 {1.38e6, "", "1.38M"},
                 {0.08, "us", "80.0 ns"},
                 {3910, "us", "3.91 ms"},
                 {2e6, "us", "2.00 s"},
                 {48, "B", "48.0 B"},
                 {2773, "B", "2.71 KiB"},
                 {9.999, "", "10.0"}};

    char text[32];
    for (size_t i = 0; i < LB_ARRAY_LEN(known); i++)
        assert_string_equal(bn_units(known[i].v, known[i].unit, text, sizeof(text)), known[i].text);
}

static void versions_compare_by_number(void **state)
{
    (void)state;
    assert_true(bn_version_compare("7.0.15", "8.6") < 0);
    assert_true(bn_version_compare("8.6", "8.6.0") == 0);
    assert_true(bn_version_compare("8.10", "8.6") > 0);
    assert_true(bn_version_compare("7.0.15", "7.0") > 0);
}

static void order_rotates_and_leaves_nobody_out(void **state)
{
    (void)state;
    for (size_t repeat = 0; repeat < 7; repeat++) {
        unsigned seen = 0;
        for (size_t k = 0; k < 3; k++)
            seen |= 1U << bn_order(repeat, k, 3);
        assert_int_equal(seen, 7);
        assert_int_equal(bn_order(repeat, 0, 3), repeat % 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_and_spread_of_known_samples),
        cmocka_unit_test(interval_ranks_are_those_of_the_binomial),
        cmocka_unit_test(interval_is_made_of_the_ranked_values),
        cmocka_unit_test(slowest_runs_are_discarded_but_never_the_last),
        cmocka_unit_test(intervals_that_touch_are_not_apart),
        cmocka_unit_test(histogram_agrees_with_exact_percentiles),
        cmocka_unit_test(histogram_keeps_its_ends),
        cmocka_unit_test(formulas_are_computed_as_written),
        cmocka_unit_test(formulas_that_make_no_sense_are_refused),
        cmocka_unit_test(numbers_have_three_digits_and_a_unit),
        cmocka_unit_test(versions_compare_by_number),
        cmocka_unit_test(order_rotates_and_leaves_nobody_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
