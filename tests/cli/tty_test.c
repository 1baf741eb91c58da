/* What differs at a terminal: the live line, progress, colours, and being asked */
#include "cli/cli_run.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

#define SECONDS(n) (INT64_C(n) * 1000 * 1000 * 1000)
#define SAID_MAX   (256U << 10)

/* Runs lade with a terminal of its own as stdin, stdout and stderr, types `typed`, and returns the exit code. */
static int run_at_terminal(const char *typed, char *said, const char *const *args)
{
    const char *argv[32] = {lade_bin()};
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    int tty = -1;
    int status = 0;
    size_t n = 0;
    for (size_t i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    pid_t pid = forkpty(&tty, NULL, NULL, &size);
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setenv("TERM", "xterm", 1);
        (void)execv(argv[0], (char *const *)argv);
        _exit(126);
    }
    assert_int_equal(write(tty, typed, strlen(typed)), (ssize_t)strlen(typed));
    int64_t deadline = lb_deadline_in(SECONDS(180));
    for (;;) {
        struct pollfd p = {.fd = tty, .events = POLLIN};
        (void)poll(&p, 1, 1000);
        ssize_t got = p.revents ? read(tty, said + n, SAID_MAX - 1 - n) : 0;
        /* EIO: the other side of the terminal has closed. */
        if ((got < 0 && errno != EINTR) || lb_clock_mono() > deadline || n + 1 == SAID_MAX)
            break;
        n += got > 0 ? (size_t)got : 0;
    }
    said[n] = '\0';
    (void)close(tty);
    if (lb_clock_mono() > deadline)
        (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define AT_TERMINAL(typed, said, ...) \
    run_at_terminal((typed), (said), (const char *const[]){__VA_ARGS__, NULL})

static void a_person_is_asked_before_something_is_removed(void **state)
{
    (void)state;
    static char said[SAID_MAX];
    struct lade_id_text id = enqueue("k", "p");
    assert_int_equal(AT_TERMINAL("n\n", said, "job", "rm", id.text), 1);
    assert_says(said, "? [y/N]");
    assert_says(said, "not done");
    assert_string_equal(state_of(id.text), "ready");
    assert_int_equal(AT_TERMINAL("\n", said, "queue", "purge", "default", "-s", "all"), 1);
    assert_int_equal(total_of("ready"), 1);
    assert_int_equal(AT_TERMINAL("y\n", said, "job", "rm", id.text), 0);
    assert_string_equal(state_of(id.text), "gone");
}

static void a_worker_shows_a_live_line_unless_told_not_to(void **state)
{
    (void)state;
    static char said[SAID_MAX];
    for (int i = 0; i < 4; i++)
        (void)enqueue("k", "p");
    assert_int_equal(AT_TERMINAL("", said, "work", "--drain", "--exec", "sleep 0.3", "-c", "2"), 0);
    assert_says(said, " jobs/s  ");
    assert_says(said, " running");
    assert_says(said, "\r\x1b[K");
    assert_says(said, "completed    4");
    (void)enqueue("k", "p");
    assert_int_equal(AT_TERMINAL("", said, "work", "--drain", "--exec", "true", "--no-progress"),
                     0);
    assert_null(strstr(said, " jobs/s"));
}

static void a_terminal_shows_errors_whole_below_the_attempts(void **state)
{
    (void)state;
    static char said[SAID_MAX];
    struct cli_run r = {0};
    char text[201];
    char command[300];
    memset(text, 'e', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)snprintf(command, sizeof(command), "echo %s >&2; exit 1", text);
    RUN(&r, "enqueue", "-k", "k", "--id", "a", "--max-attempts", "1");
    assert_code(&r, 0);
    assert_int_equal(AT_TERMINAL("", said, "work", "--drain", "--exec", "true", "-q", "empty"), 0);
    assert_null(strstr(said, "\x1b[31m"));
    RUN(&r, "work", "--drain", "--exec", command);
    assert_code(&r, 0);
    assert_int_equal(AT_TERMINAL("", said, "job", "show", "a"), 0);
    assert_says(said, "error of attempt 1");
    assert_says(said, text);
    assert_int_equal(AT_TERMINAL("", said, "stats", "--watch", "--count", "1"), 0);
    assert_true(strncmp(said, "\x1b[H\x1b[2J", 7) == 0);
    run_free(&r);
}

static void colours_are_for_terminals_and_can_be_turned_off(void **state)
{
    (void)state;
    static char said[SAID_MAX];
    struct cli_run r = {0};
    struct lade_id_text id = enqueue("k", "p");
    RUN(&r, "job", "kill", id.text);
    assert_code(&r, 0);
    assert_int_equal(AT_TERMINAL("", said, "job", "ls"), 0);
    assert_says(said, "\x1b[31mdead");
    assert_int_equal(AT_TERMINAL("", said, "job", "ls", "--no-color"), 0);
    assert_null(strstr(said, "\x1b[31m"));
    assert_int_equal(setenv("NO_COLOR", "1", 1), 0);
    assert_int_equal(AT_TERMINAL("", said, "job", "ls"), 0);
    assert_int_equal(unsetenv("NO_COLOR"), 0);
    assert_null(strstr(said, "\x1b[31m"));
    RUN(&r, "job", "ls");
    assert_code(&r, 0);
    assert_null(strchr(r.out, '\x1b'));
    run_free(&r);
}

/* C-091: what a job says cannot drive the terminal it is shown on. */
static void control_bytes_of_jobs_never_reach_the_terminal(void **state)
{
    (void)state;
    static char said[SAID_MAX];
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "--id", "x", "--payload", "a\x1b]0;title\a\302\23331m",
        "--header", "h=\x1b[2J", "--content-type", "\x1b[1m", "--max-attempts", "1");
    assert_code(&r, 0);
    RUN(&r, "work", "--drain", "--exec", "printf '\\033[5mblink' >&2; exit 1");
    assert_code(&r, 0);
    assert_int_equal(AT_TERMINAL("", said, "job", "show", "x", "--no-color"), 0);
    assert_null(strchr(said, '\x1b'));
    assert_null(strchr(said, '\x07'));
    assert_null(strstr(said, "\xc2\x9b"));
    assert_says(said, "\\x1b");
    assert_int_equal(AT_TERMINAL("", said, "dead", "ls", "--no-color"), 0);
    assert_null(strchr(said, '\x1b'));
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(a_person_is_asked_before_something_is_removed),
        ON_STORE(a_worker_shows_a_live_line_unless_told_not_to),
        ON_STORE(a_terminal_shows_errors_whole_below_the_attempts),
        ON_STORE(colours_are_for_terminals_and_can_be_turned_off),
        ON_STORE(control_bytes_of_jobs_never_reach_the_terminal),
    };
    return run_group(argc, argv, "tty", tests, LB_ARRAY_LEN(tests));
}
