#include "base/fault.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

#ifdef LADE_FAULTS

/* Runs fn in a child whose stderr is caught in `said`; returns the wait status. */
static int run_child(void (*fn)(const char *), const char *spec, char *said, size_t size)
{
    int end[2];
    assert_int_equal(pipe(end), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(end[1], 2);
        fn(spec);
        exit(0);
    }
    (void)close(end[1]);
    size_t at = 0;
    for (ssize_t n; at < size - 1 && (n = read(end[0], said + at, size - 1 - at)) > 0;)
        at += (size_t)n;
    said[at] = 0;
    (void)close(end[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void an_unarmed_point_does_nothing(void **state)
{
    (void)state;
    lb_fault_arm(NULL);
    for (int i = 0; i < 10; i++)
        assert_false(LB_FAULT_FAILS("put.before"));
    lb_fault_arm("");
    assert_false(LB_FAULT_FAILS("put.before"));
}

static void fail_fails_the_nth_time_only(void **state)
{
    (void)state;
    lb_fault_arm("settle.after:3:fail");
    for (int i = 1; i <= 6; i++) {
        assert_false(LB_FAULT_FAILS("settle.before")); /* another point does not count */
        assert_int_equal(LB_FAULT_FAILS("settle.after"), i == 3);
    }
    lb_fault_arm(NULL);
}

static void fail_plus_fails_from_then_on(void **state)
{
    (void)state;
    lb_fault_arm("take.before:2:fail+");
    for (int i = 1; i <= 5; i++)
        assert_int_equal(LB_FAULT_FAILS("take.before"), i >= 2);
    lb_fault_arm(NULL);
}

static void a_star_counts_every_point(void **state)
{
    (void)state;
    lb_fault_arm("*:3:fail");
    assert_false(LB_FAULT_FAILS("a"));
    assert_false(LB_FAULT_FAILS("b"));
    assert_true(LB_FAULT_FAILS("c"));
    assert_false(LB_FAULT_FAILS("d"));
    lb_fault_arm(NULL);
}

static void reach_three(const char *spec)
{
    lb_fault_arm(spec);
    LB_FAULT("one");
    LB_FAULT("two");
    LB_FAULT("three");
}

static void kill_ends_the_process_at_the_nth_point(void **state)
{
    (void)state;
    char said[256];
    int status = run_child(reach_three, "*:3:kill", said, sizeof(said));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    status = run_child(reach_three, "*:4:kill", said, sizeof(said));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void count_tells_how_many_points_a_run_reaches(void **state)
{
    (void)state;
    char said[256];
    int status = run_child(reach_three, "*:0:count", said, sizeof(said));
    assert_int_equal(status, 0);
    assert_string_equal(said, "lade: fault one 1\nlade: fault two 1\nlade: fault three 1\n"
                              "lade: faults 3\n");
}

static void reach_from_environment(const char *spec)
{
    (void)spec;
    LB_FAULT("one");
    if (LB_FAULT_FAILS("one"))
        _exit(7);
}

/* The environment is read once, at the first point; so this runs before any other test has armed anything. */
static void the_environment_arms_too(void **state)
{
    (void)state;
    char said[256];
    assert_int_equal(setenv("LADE_FAULT", "one:2:fail", 1), 0);
    int status = run_child(reach_from_environment, NULL, said, sizeof(said));
    assert_int_equal(unsetenv("LADE_FAULT"), 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* A test that arms nothing by a slip proves nothing, so it must not pass. */
static void a_malformed_spec_ends_the_program(void **state)
{
    (void)state;
    static const char *const bad[] = {"put.before", "put.before:1", "put.before:1:explode",
                                      "put.before:1:"};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        char said[256];
        int status = run_child(reach_three, bad[i], said, sizeof(said));
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
        assert_non_null(strstr(said, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_arms_too),
        cmocka_unit_test(an_unarmed_point_does_nothing),
        cmocka_unit_test(fail_fails_the_nth_time_only),
        cmocka_unit_test(fail_plus_fails_from_then_on),
        cmocka_unit_test(a_star_counts_every_point),
        cmocka_unit_test(kill_ends_the_process_at_the_nth_point),
        cmocka_unit_test(count_tells_how_many_points_a_run_reaches),
        cmocka_unit_test(a_malformed_spec_ends_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void without_the_option_points_are_nothing(void **state)
{
    (void)state;
    LB_FAULT("put.before");
    assert_false(LB_FAULT_FAILS("put.before"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_the_option_points_are_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
