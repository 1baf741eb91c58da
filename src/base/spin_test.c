#include "base/spin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define US INT64_C(1000)

/* One question whose answer comes after `took`; looked for each `step`. Whether it spun. */
static bool ask(struct lb_spin *s, int64_t took, int64_t step)
{
    int64_t now = 1;
    if (!lb_spin_begin(s, now))
        return false;
    bool hit = false;
    do {
        now += step;
        hit = now > took;
    } while (!hit && lb_spin_goes_on(s, now));
    lb_spin_end(s, now, hit);
    return true;
}

static size_t count_spins(struct lb_spin *s, size_t calls, int64_t took, int64_t step)
{
    size_t n = 0;
    for (size_t i = 0; i < calls; i++)
        n += ask(s, took, step);
    return n;
}

static void answers_that_come_soon_are_spun_for(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_places(1);
    assert_int_equal(count_spins(&s, 1000, 30 * US, US), 1000);
}

static void answers_that_come_late_are_slept_for_but_for_rare_trials(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_places(1);
    assert_in_range(count_spins(&s, 20000, 500 * US, US), 1, 300);
}

static void a_question_whose_answers_become_quick_is_spun_for_again(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_places(1);
    (void)count_spins(&s, 5000, 500 * US, US);
    (void)count_spins(&s, 2000, 30 * US, US);
    assert_int_equal(count_spins(&s, 100, 30 * US, US), 100);
}

static void a_cpu_that_others_want_is_left_to_them(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_places(1);
    assert_in_range(count_spins(&s, 20000, 60 * US, 50 * US), 1, 300);
}

static void a_rare_miss_does_not_end_the_spinning(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_places(1);
    for (size_t i = 0; i < 500; i++) {
        assert_int_equal(count_spins(&s, 9, 30 * US, US), 9);
        assert_true(ask(&s, 500 * US, US));
    }
}

static void the_first_answers_of_a_trial_may_be_slower(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_places(1);
    assert_int_equal(count_spins(&s, 4, 150 * US, US), 4);
    assert_int_equal(count_spins(&s, 500, 30 * US, US), 500);
}

static void the_polite_spin_however_many_they_are_and_lose_only_slices(void **state)
{
    (void)state;
    struct lb_spin s = {.polite = true};
    lb_spin_set_places(1);
    assert_true(lb_spin_enter());
    assert_int_equal(count_spins(&s, 1000, 60 * US, 50 * US), 1000);
    assert_in_range(count_spins(&s, 20000, 60 * US, 1500 * US), 1, 300);
    lb_spin_leave();
    lb_spin_set_places(0);
    s = (struct lb_spin){.polite = true};
    assert_int_equal(count_spins(&s, 1000, 30 * US, US), 0);
    lb_spin_set_places(-1);
}

static void a_judgement_alone_follows_the_same_rules(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    size_t wanted = 0;
    lb_spin_set_places(1);
    for (size_t i = 0; i < 1000; i++) {
        assert_true(lb_spin_wanted(&s));
        lb_spin_judge(&s, true, false);
    }
    for (size_t i = 0; i < 20000; i++) {
        if (!lb_spin_wanted(&s))
            continue;
        lb_spin_judge(&s, false, false);
        wanted++;
    }
    assert_in_range(wanted, 1, 300);
    assert_true(lb_spin_is_robbed(1, 2000 * US));
    assert_false(lb_spin_is_robbed(1, 100 * US));
    lb_spin_set_places(-1);
}

static void no_more_threads_spin_than_there_are_spare_cpus(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_places(2);
    assert_true(lb_spin_enter());
    assert_true(lb_spin_enter());
    assert_false(lb_spin_enter());
    assert_false(lb_spin_begin(&s, 1));
    lb_spin_leave();
    assert_true(lb_spin_begin(&s, 1));
    lb_spin_end(&s, 2, true);
    lb_spin_leave();
    lb_spin_set_places(0);
    assert_false(lb_spin_enter());
    lb_spin_set_places(-1);
    (void)(lb_spin_enter() && (lb_spin_leave(), true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_come_soon_are_spun_for),
        cmocka_unit_test(answers_that_come_late_are_slept_for_but_for_rare_trials),
        cmocka_unit_test(a_question_whose_answers_become_quick_is_spun_for_again),
        cmocka_unit_test(a_cpu_that_others_want_is_left_to_them),
        cmocka_unit_test(a_rare_miss_does_not_end_the_spinning),
        cmocka_unit_test(the_first_answers_of_a_trial_may_be_slower),
        cmocka_unit_test(the_polite_spin_however_many_they_are_and_lose_only_slices),
        cmocka_unit_test(a_judgement_alone_follows_the_same_rules),
        cmocka_unit_test(no_more_threads_spin_than_there_are_spare_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
