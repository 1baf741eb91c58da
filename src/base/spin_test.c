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
    lb_spin_set_cpus(2);
    assert_int_equal(count_spins(&s, 1000, 30 * US, US), 1000);
}

static void answers_that_come_late_are_slept_for_but_for_rare_trials(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_cpus(2);
    assert_in_range(count_spins(&s, 20000, 500 * US, US), 1, 300);
}

static void a_question_whose_answers_become_quick_is_spun_for_again(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_cpus(2);
    (void)count_spins(&s, 5000, 500 * US, US);
    (void)count_spins(&s, 2000, 30 * US, US);
    assert_int_equal(count_spins(&s, 100, 30 * US, US), 100);
}

/* The CPU comes back after `slice`: of a call each 20 us, how many spun in `time`. */
static size_t count_robbed(struct lb_spin *s, int64_t time, int64_t slice)
{
    size_t n = 0;
    for (int64_t now = 1; now < time;) {
        bool spins = lb_spin_begin(s, now);
        now += spins ? slice : 20 * US;
        if (spins)
            lb_spin_end(s, now, true);
        n += spins;
    }
    return n;
}

static void a_cpu_that_others_want_is_left_to_them(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_cpus(2);
    /* in ten seconds not a twentieth of the time, though each answer is there when it looks */
    assert_in_range(count_robbed(&s, 10000000 * US, 3000 * US), 1, 160);
    assert_in_range(count_robbed(&s, 10000 * US, 20 * US), 0, 0); /* it rests still */
}

static void a_cpu_that_is_free_again_is_spun_on_again(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_cpus(2);
    (void)count_robbed(&s, 10000000 * US, 3000 * US);
    s.last = s.end = s.not_before = 0;
    assert_int_equal(count_robbed(&s, 10000 * US, 20 * US), 500);
}

static void who_gets_its_cpu_back_soon_is_not_robbed(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_cpus(2);
    assert_int_equal(count_spins(&s, 1000, 60 * US, 50 * US), 1000);
}

static void a_rare_miss_does_not_end_the_spinning(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_cpus(2);
    for (size_t i = 0; i < 500; i++) {
        assert_int_equal(count_spins(&s, 9, 30 * US, US), 9);
        assert_true(ask(&s, 500 * US, US));
    }
}

static void the_first_answers_of_a_trial_may_be_slower(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_cpus(2);
    assert_int_equal(count_spins(&s, 4, 150 * US, US), 4);
    assert_int_equal(count_spins(&s, 500, 30 * US, US), 500);
}

static void a_judgement_alone_follows_the_same_rules(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    size_t wanted = 0;
    lb_spin_set_cpus(2);
    for (size_t i = 0; i < 1000; i++) {
        assert_true(lb_spin_wanted(&s, 1));
        lb_spin_judge(&s, 1, true, 0);
    }
    for (size_t i = 0; i < 20000; i++) {
        if (!lb_spin_wanted(&s, 1))
            continue;
        lb_spin_judge(&s, 1, false, 0);
        wanted++;
    }
    assert_in_range(wanted, 1, 300);
}

static void nobody_spins_on_a_single_cpu(void **state)
{
    (void)state;
    struct lb_spin s = {0};
    lb_spin_set_cpus(1);
    assert_int_equal(count_spins(&s, 1000, 30 * US, US), 0);
    lb_spin_set_cpus(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_come_soon_are_spun_for),
        cmocka_unit_test(answers_that_come_late_are_slept_for_but_for_rare_trials),
        cmocka_unit_test(a_question_whose_answers_become_quick_is_spun_for_again),
        cmocka_unit_test(a_cpu_that_others_want_is_left_to_them),
        cmocka_unit_test(a_cpu_that_is_free_again_is_spun_on_again),
        cmocka_unit_test(who_gets_its_cpu_back_soon_is_not_robbed),
        cmocka_unit_test(a_rare_miss_does_not_end_the_spinning),
        cmocka_unit_test(the_first_answers_of_a_trial_may_be_slower),
        cmocka_unit_test(a_judgement_alone_follows_the_same_rules),
        cmocka_unit_test(nobody_spins_on_a_single_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
