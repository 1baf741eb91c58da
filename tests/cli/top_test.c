/* lade top: one sample as text and data; at a terminal it draws, and gives it back however it ends */
#include "cli/cli_run.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

#define SECONDS(n) (INT64_C(n) * 1000 * 1000 * 1000)
#define SAID_MAX   (1U << 20)
#define ENTERS     "\x1b[?1049h\x1b[?25l"
#define LEAVES     "\x1b[?25h\x1b[?1049l"

static void run(int code, const char *const *args)
{
    struct cli_run r = {0};
    run_args(&r, NULL, args);
    assert_code(&r, code);
    run_free(&r);
}

#define CODE(code, ...) run((code), (const char *const[]){__VA_ARGS__, NULL})

/* lade top at a terminal of its own. */
struct screen {
    int tty;
    pid_t pid;
    size_t n;
    char said[SAID_MAX];
};

static struct screen screen;

static void open_program(const char *const *argv)
{
    struct winsize size = {.ws_row = 10, .ws_col = 60};
    screen.n = 0;
    screen.pid = forkpty(&screen.tty, NULL, NULL, &size);
    assert_true(screen.pid >= 0);
    if (screen.pid == 0) {
        (void)setenv("TERM", "xterm", 1);
        (void)execv(argv[0], (char *const *)argv);
        _exit(126);
    }
}

static void open_screen(const char *const *args)
{
    const char *argv[16] = {lade_bin(), "top"};
    for (size_t i = 0; args[i]; i++)
        argv[i + 2] = args[i];
    open_program(argv);
}

#define OPEN(...) open_screen((const char *const[]){__VA_ARGS__, NULL})

/* Reads until `text` has come since `from`; false at the end or after a minute. */
static bool reads(const char *text, size_t from)
{
    int64_t deadline = lb_deadline_in(SECONDS(60));
    for (;;) {
        screen.said[screen.n] = '\0';
        if (text && screen.n >= from && strstr(screen.said + from, text))
            return true;
        struct pollfd p = {.fd = screen.tty, .events = POLLIN};
        (void)poll(&p, 1, 1000);
        ssize_t got =
            p.revents ? read(screen.tty, screen.said + screen.n, SAID_MAX - 1 - screen.n) : 0;
        if ((got < 0 && errno != EINTR) || lb_clock_mono() > deadline || screen.n + 1 == SAID_MAX)
            return false;
        screen.n += got > 0 ? (size_t)got : 0;
    }
}

/* Its exit code, once all it said is read. */
static int end_screen(void)
{
    int status = 0;
    (void)reads(NULL, 0);
    assert_int_equal(waitpid(screen.pid, &status, 0), screen.pid);
    (void)close(screen.tty);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool has_echo(void)
{
    struct termios t;
    assert_int_equal(tcgetattr(screen.tty, &t), 0);
    return (t.c_lflag & (tcflag_t)ECHO) && (t.c_lflag & (tcflag_t)ICANON);
}

static void one_sample_has_rates_of_the_interval(void **state)
{
    (void)state;
    struct cli_run r = {0};
    CODE(0, "enqueue", "-k", "k", "-q", "mail", "--id", "a");
    CODE(0, "enqueue", "-k", "k", "-q", "post", "--in", "1h");
    CODE(0, "job", "kill", "a");
    RUN(&r, "top", "-o", "json", "--interval", "100ms");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    const json_t *mail = json_array_get(json_object_get(o, "queues"), 0);
    assert_string_equal(json_text_at(mail, "queue"), "mail");
    assert_int_equal(json_int_at(mail, "dead"), 1);
    assert_true(json_is_real(json_object_get(mail, "in_per_s")));
    assert_true(json_real_value(json_object_get(o, "seconds")) >= 0.05);
    assert_int_equal(json_int_at(json_object_get(o, "total"), "scheduled"), 1);
    assert_int_equal(json_array_size(json_object_get(o, "workers")), 0);
    json_decref(o);
    RUN(&r, "dash", "--once", "--interval", "100ms", "--sort", "scheduled");
    assert_code(&r, 0);
    assert_null(strchr(r.out, '\x1b'));
    assert_says(r.out, "QUEUE ");
    assert_true(strstr(r.out, "\npost ") < strstr(r.out, "\nmail "));
    assert_says(r.out, "\ntotal ");
    RUN(&r, "top", "-q", "post", "-o", "tsv", "--interval", "100ms");
    assert_code(&r, 0);
    assert_says(r.out, "queue\tready\tscheduled\t");
    assert_says(r.out, "\npost\t0\t1\t0\t0\t0\t0.000\t0.000\t0.000\t");
    RUN(&r, "top", "-o", "ndjson", "--count", "3", "--interval", "100ms");
    assert_code(&r, 0);
    size_t n = 0;
    for (const char *p = r.out; *p; p++)
        n += *p == '\n';
    assert_int_equal(n, 3);
    CODE(3, "top", "-q", "nowhere", "--once");
    CODE(2, "top", "--interval", "1ms");
    CODE(2, "top", "--sort", "nonsense");
    CODE(2, "top", "--once", "--count", "2");
    CODE(2, "top", "-o", "json", "--count", "2");
    run_free(&r);
}

static void the_live_view_shows_what_changes(void **state)
{
    (void)state;
    CODE(0, "enqueue", "-k", "k", "-q", "mail");
    OPEN("--interval", "100ms", "--no-color");
    assert_true(reads("mail", 0));
    assert_true(strncmp(screen.said, ENTERS, strlen(ENTERS)) == 0);
    assert_false(has_echo());
    CODE(0, "enqueue", "-k", "k", "-q", "fresh");
    assert_true(reads("fresh", screen.n));
    assert_int_equal(write(screen.tty, "q", 1), 1);
    assert_int_equal(end_screen(), 0);
    assert_says(screen.said, LEAVES);
    size_t n = strlen(LEAVES);
    assert_true(screen.n > n && strcmp(screen.said + screen.n - n, LEAVES) == 0);
}

static void signals_end_it_with_the_terminal_as_it_was(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGQUIT};

    CODE(0, "enqueue", "-k", "k", "-q", "mail");
    for (size_t i = 0; i < LB_ARRAY_LEN(signals); i++) {
        size_t n = strlen(LEAVES);
        OPEN("--interval", "1h");
        assert_true(reads("mail", 0));
        assert_int_equal(kill(screen.pid, signals[i]), 0);
        assert_true(reads(LEAVES, screen.n > n ? screen.n - n : 0));
        assert_int_equal(end_screen(), 0);
    }
}

/* ^Z as a person types it, under a shell with job control; and fg. */
static void a_stop_gives_the_terminal_back_until_it_goes_on(void **state)
{
    (void)state;
    char script[600];
    CODE(0, "enqueue", "-k", "k", "-q", "mail");
    (void)snprintf(
        script, sizeof(script),
        "set -m; '%s' top --interval 1h; echo st''opped; read line; fg >/dev/null; echo en''ded",
        lade_bin());
    open_program((const char *const[]){"/bin/bash", "--norc", "-c", script, NULL});
    assert_true(reads("mail", 0));
    assert_int_equal(write(screen.tty, "\x1a", 1), 1);
    assert_true(reads("stopped", 0));
    const char *left = strstr(screen.said, LEAVES);
    assert_true(left && left < strstr(screen.said, "stopped"));
    assert_true(has_echo());
    size_t from = screen.n;
    assert_int_equal(write(screen.tty, "\n", 1), 1);
    assert_true(reads(ENTERS, from));
    assert_true(reads("mail", from));
    assert_int_equal(write(screen.tty, "q", 1), 1);
    assert_true(reads("ended", from));
    assert_int_equal(end_screen(), 0);
}

/* No row and no column beyond the terminal's: it would scroll and wrap. */
static void a_screen_never_exceeds_the_terminal(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < 30; i++) {
        (void)snprintf(name, sizeof(name), "a-rather-long-name-%02d", i);
        CODE(0, "queue", "pause", name);
    }
    OPEN("--count", "1", "--no-color");
    assert_int_equal(end_screen(), 0);
    assert_says(screen.said, "more queues");
    size_t rows = 0;
    const char *p = strstr(screen.said, "\x1b[H");
    assert_non_null(p);
    for (p += 3; *p && strncmp(p, "\x1b[J", 3) != 0;) {
        const char *end = strstr(p, "\x1b[K\r");
        assert_non_null(end);
        assert_true(end - p <= 60);
        rows++;
        p = strchr(end, '\n') + 1;
    }
    assert_true(rows <= 9);
}

/* HUP is ignored, so only the terminal itself tells; keys come from it or, `in` being /dev/null, from nowhere. */
static void ends_without_its_terminal(const char *in)
{
    char script[600];
    int status = 0;
    (void)snprintf(script, sizeof(script), "trap '' HUP; exec '%s' top --interval 1h %s",
                   lade_bin(), in);
    open_program((const char *const[]){"/bin/bash", "--norc", "-c", script, NULL});
    assert_true(reads("mail", 0));
    (void)close(screen.tty);
    int64_t deadline = lb_deadline_in(SECONDS(60));
    pid_t ended = 0;
    while (ended == 0 && lb_clock_mono() < deadline) {
        (void)poll(NULL, 0, 10);
        ended = waitpid(screen.pid, &status, WNOHANG);
    }
    if (ended == 0) { /* TERM would not do: it is held back while a descriptor is ready */
        (void)kill(screen.pid, SIGKILL);
        (void)waitpid(screen.pid, &status, 0);
    }
    assert_int_equal(ended, screen.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_terminal_that_is_gone_ends_it(void **state)
{
    (void)state;
    CODE(0, "enqueue", "-k", "k", "-q", "mail");
    ends_without_its_terminal("");
    ends_without_its_terminal("</dev/null");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(one_sample_has_rates_of_the_interval),
        ON_STORE(the_live_view_shows_what_changes),
        ON_STORE(signals_end_it_with_the_terminal_as_it_was),
        ON_STORE(a_stop_gives_the_terminal_back_until_it_goes_on),
        ON_STORE(a_screen_never_exceeds_the_terminal),
        ON_STORE(a_terminal_that_is_gone_ends_it),
    };
    return run_group(argc, argv, "top", tests, LB_ARRAY_LEN(tests));
}
