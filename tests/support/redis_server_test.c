#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <lade/base.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "support/redis_server.h"

static void server_answers_and_leaves_nothing_behind(void **state)
{
    (void)state;
    struct ts_redis r;
    char reply[64];
    assert_true(ts_redis_start(&r, NULL));
    assert_true(ts_redis_ask(&r, "SET a b", reply, sizeof(reply)));
    assert_string_equal(reply, "+OK\r\n");
    pid_t pid = r.pid;
    struct ts_tmpdir dir = r.dir;
    ts_redis_stop(&r);
    struct stat st;
    assert_int_equal(stat(dir.path, &st), -1);
    assert_int_equal(kill(pid, 0), -1);
}

static void server_takes_a_password_ports_and_arguments(void **state)
{
    (void)state;
    struct ts_redis r;
    char reply[64];
    struct ts_redis_opts opts = {.password = "secret",
                                 .tcp = true,
                                 .args = (const char *const[]){"--maxmemory", "3mb", NULL}};
    assert_true(ts_redis_start(&r, &opts));
    assert_true(r.port > 0);
    assert_true(ts_redis_ask(&r, "CONFIG GET maxmemory", reply, sizeof(reply)));
    assert_non_null(strstr(reply, "maxmemory"));
    assert_int_equal(strncmp(r.url, "unix://:secret@/", 16), 0);
    ts_redis_stop(&r);
}

static void killed_server_comes_back_empty_at_the_same_place(void **state)
{
    (void)state;
    struct ts_redis r;
    char reply[64];
    assert_true(ts_redis_start(&r, NULL));
    assert_true(ts_redis_ask(&r, "SET a b", reply, sizeof(reply)));
    ts_redis_kill(&r);
    assert_false(ts_redis_ask(&r, "PING", reply, sizeof(reply)));
    assert_true(ts_redis_again(&r));
    assert_true(ts_redis_ask(&r, "EXISTS a", reply, sizeof(reply)));
    assert_string_equal(reply, ":0\r\n");
    ts_redis_stop(&r);
}

static void missing_program_is_an_error_not_a_hang(void **state)
{
    (void)state;
    struct ts_redis r;
    assert_false(ts_redis_start(&r, &(struct ts_redis_opts){.program = "no-such-redis-server"}));
}

/* A fork of the test starts a server and dies without stopping it. */
static void server_dies_with_the_process_that_started_it(void **state)
{
    (void)state;
    int fd[2];
    struct ts_redis r = {0};
    assert_int_equal(pipe(fd), 0);
    pid_t child = fork();
    if (child == 0) {
        bool ok = ts_redis_start(&r, NULL) && write(fd[1], &r, sizeof(r)) == (ssize_t)sizeof(r);
        (void)raise(ok ? SIGKILL : SIGTERM);
    }
    assert_true(child > 0);
    assert_int_equal(read(fd[0], &r, sizeof(r)), (ssize_t)sizeof(r));
    assert_int_equal(waitpid(child, NULL, 0), child);
    int64_t deadline = lb_deadline_in(10 * LADE_SECOND);
    char reply[16];
    while (ts_redis_ask(&r, "PING", reply, sizeof(reply)) && lb_clock_mono() < deadline)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    assert_true(lb_clock_mono() < deadline);
    ts_tmpdir_remove(&r.dir);
    (void)close(fd[0]);
    (void)close(fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_answers_and_leaves_nothing_behind),
        cmocka_unit_test(server_takes_a_password_ports_and_arguments),
        cmocka_unit_test(killed_server_comes_back_empty_at_the_same_place),
        cmocka_unit_test(missing_program_is_an_error_not_a_hang),
        cmocka_unit_test(server_dies_with_the_process_that_started_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
