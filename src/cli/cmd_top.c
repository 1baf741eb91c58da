/*
 * lade top: a screen of queues with their rates and of workers, drawn again and again
 *
 * The terminal is given back as it was on every way out that a program can take: q, the signals INT, TERM, HUP and QUIT, a failure; TSTP
 * gives it back while stopped. Signals are taken only while it waits, so none cuts a drawing in two.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/top.h"

#define EVERY     (2 * LADE_SECOND)
#define EVERY_MIN (100 * LADE_MILLISECOND)
#define EVERY_MAX LADE_HOUR

struct opts {
    int64_t interval, count;
    const char *sort;
    bool once, reverse;
};

/* the terminal ----------------------------------------------------------------------------------------------------- */

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
static volatile sig_atomic_t came; /* the last of them but WINCH, which only ends the wait */

static void on_signal(int signo)
{
    if (signo != SIGWINCH)
        came = signo;
}

struct terminal {
    bool is_on, has_keys;
    struct termios before;
    sigset_t mask; /* as it was: while waiting */
    struct sigaction actions[LB_ARRAY_LEN(caught)];
};

static void write_all(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(STDOUT_FILENO, p, n);
        if (k < 0 && errno != EINTR)
            return; /* it is gone; the next wait tells, by its poll */
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
}

static void enter(struct terminal *t)
{
    static const char text[] = "\033[?1049h\033[?25l"; /* another screen, no cursor */
    struct termios raw;
    t->has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &t->before) == 0;
    if (t->has_keys) {
        raw = t->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    write_all(text, sizeof(text) - 1);
    t->is_on = true;
}

static void leave(struct terminal *t)
{
    static const char text[] = "\033[?25h\033[?1049l";
    if (!t->is_on)
        return;
    t->is_on = false;
    write_all(text, sizeof(text) - 1);
    if (t->has_keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static void take_signals(struct terminal *t)
{
    struct sigaction sa = {.sa_handler = on_signal};
    sigset_t mask;
    (void)sigemptyset(&mask);
    for (size_t i = 0; i < LB_ARRAY_LEN(caught); i++)
        (void)sigaddset(&mask, caught[i]);
    sa.sa_mask = mask;
    (void)sigprocmask(SIG_BLOCK, &mask, &t->mask);
    for (size_t i = 0; i < LB_ARRAY_LEN(caught); i++)
        (void)sigaction(caught[i], &sa, &t->actions[i]);
}

static void give_signals_back(struct terminal *t)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(caught); i++)
        (void)sigaction(caught[i], &t->actions[i], NULL);
    (void)sigprocmask(SIG_SETMASK, &t->mask, NULL);
}

/* Stops as the shell wants it, on the user's own screen. */
static void suspend(struct terminal *t)
{
    leave(t);
    give_signals_back(t);
    (void)raise(SIGTSTP);
    take_signals(t);
    enter(t);
}

/*
 * Until `until`, or sooner when there is a key or a signal. False: the end is wanted, or the terminal is gone. That is told by its
 * descriptors, too: HUP may be ignored (nohup) or go to others, and while a descriptor is ready ppoll() lets no signal through at all.
 */
static bool wait_until(struct terminal *t, int64_t until)
{
    came = 0;
    int64_t left = LB_MAX(until - lb_clock_mono(), 0);
    struct timespec timeout = {left / LADE_SECOND, left % LADE_SECOND};
    struct pollfd fds[] = {
        {.fd = STDOUT_FILENO}, /* asked for nothing: whether it is gone is always told */
        {.fd = t->has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
    int n = ppoll(fds, LB_ARRAY_LEN(fds), &timeout, &t->mask);
    if (n > 0 && (fds[0].revents | fds[1].revents) & (POLLHUP | POLLERR | POLLNVAL))
        return false;
    if (n > 0 && (fds[1].revents & POLLIN)) {
        char key[16];
        ssize_t k = read(STDIN_FILENO, key, sizeof(key));
        if (k == 0 || (k < 0 && errno != EINTR && errno != EAGAIN))
            return false; /* ready, and nothing to be had: hung up, or not ours any more */
        if (k > 0 && (memchr(key, 'q', (size_t)k) || memchr(key, 'Q', (size_t)k)))
            return false;
    }
    if (came == SIGTSTP)
        suspend(t);
    return came == 0 || came == SIGTSTP;
}

/* looking again and again ------------------------------------------------------------------------------------------ */

static void draw(struct cli *c, const struct cli_top *top, const lade_err *away)
{
    struct winsize size = {0};
    struct lb_buf screen;
    size_t rows = 24, columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 && size.ws_col > 0) {
        rows = size.ws_row;
        columns = size.ws_col;
    }
    lb_buf_init(&screen);
    /* The last row stays free: a line end there would scroll. */
    cli_top_draw(&screen, c, top, rows - 1, columns, true);
    if (away->code)
        lb_buf_add_fmt(&screen, "\033[H\033[7m%.*s\033[0m\033[K", (int)columns, away->text);
    if (!screen.failed)
        write_all((const char *)screen.p, screen.n);
    lb_buf_fini(&screen);
}

/* 0, or what ended it. A store that goes away is waited for, once it has been seen. */
static int run_live(struct cli *c, const struct opts *o, const struct cli_queue_sort *sort,
                    lade_err *err)
{
    struct terminal t = {0};
    struct cli_top top = {0};
    int rc = cli_top_look(c, &top, sort, err);
    if (rc != 0)
        return rc;
    take_signals(&t);
    enter(&t);
    lade_err away = {0};
    int64_t next = lb_clock_mono();
    for (int64_t i = 1;; i++) {
        draw(c, &top, &away);
        if (o->count > 0 && i >= o->count)
            break;
        next = LB_MAX(next + o->interval, lb_clock_mono() + EVERY_MIN);
        bool goes_on = true;
        while (goes_on && lb_clock_mono() < next) {
            goes_on = wait_until(&t, next);
            if (goes_on && lb_clock_mono() < next)
                draw(c, &top, &away); /* a key, or another size */
        }
        if (!goes_on)
            break;
        lb_err_clear(&away);
        rc = cli_top_look(c, &top, sort, &away);
        if (rc != 0 && rc != -LADE_EUNAVAILABLE && rc != -LADE_EBUSY) {
            *err = away;
            break;
        }
        rc = 0;
    }
    leave(&t);
    give_signals_back(&t);
    cli_top_fini(&top);
    return rc;
}

static const struct cli_column columns[] = {
    {"", "queue", CLI_CELL_TEXT, false, false},
    {"", "ready", CLI_CELL_TEXT, false, false},
    {"", "scheduled", CLI_CELL_TEXT, false, false},
    {"", "retrying", CLI_CELL_TEXT, false, false},
    {"", "active", CLI_CELL_TEXT, false, false},
    {"", "dead", CLI_CELL_TEXT, false, false},
    {"", "in_per_s", CLI_CELL_TEXT, false, false},
    {"", "done_per_s", CLI_CELL_TEXT, false, false},
    {"", "failed_per_s", CLI_CELL_TEXT, false, false},
    {"", "latency_ms", CLI_CELL_TEXT, false, false},
    {"", "workers", CLI_CELL_TEXT, false, false},
};

static int print_tsv(struct cli *c, struct cli_row *row, lade_err *err)
{
    struct cli_out out;
    size_t i = 0;
    json_t *queue = NULL;
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    json_array_foreach(json_object_get(row->o, "queues"), i, queue)
    {
        struct cli_row one = {.o = json_incref(queue)};
        cli_out_row(&out, &one);
    }
    cli_row_fini(row);
    return cli_out_end(&out, err);
}

static int print_sample(struct cli *c, const struct cli_top *top, lade_err *err)
{
    struct cli_row row;
    struct lb_buf text;
    if (c->format != CLI_TABLE) {
        cli_top_row(&row, top);
        return c->format == CLI_TSV ? print_tsv(c, &row, err) : cli_out_object(c, &row, err);
    }
    lb_buf_init(&text);
    cli_top_draw(&text, c, top, 0, 0, false);
    int rc =
        text.failed ? lb_fail_nomem(err, "top") : cli_out_raw((lade_bytes){text.p, text.n}, err);
    lb_buf_fini(&text);
    return rc;
}

/* `n` samples, each with rates of the interval before it. */
static int run_samples(struct cli *c, const struct opts *o, const struct cli_queue_sort *sort,
                       int64_t n, lade_err *err)
{
    struct cli_top top = {0};
    int rc = cli_top_look(c, &top, sort, err);
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        cli_pause(o->interval);
        rc = cli_top_look(c, &top, sort, err);
        if (rc == 0)
            rc = print_sample(c, &top, err);
    }
    cli_top_fini(&top);
    return rc;
}

static enum cli_exit run_top(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    struct opts *o = values;
    struct cli_queue_sort sort = {.reverse = o->reverse};
    lade_err err = {0};
    if (o->interval == 0)
        o->interval = EVERY;
    if (o->once && o->count > 0)
        return cli_say(CLI_USAGE, "--count: not with --once; give one of them");
    if (o->count > 1 && c->format == CLI_JSON)
        return cli_say(CLI_USAGE, "--count: several samples are no JSON text; use -o ndjson");
    int rc = o->sort ? cli_queue_sort_read(&sort, "--sort", o->sort, &err) : 0;
    if (rc == 0)
        rc = cli_look(c, &err);
    bool is_live = c->format == CLI_TABLE && !o->once && isatty(STDOUT_FILENO);
    /* Without a terminal there is no live view: a stream of samples goes on until it is stopped. */
    bool is_stream = c->format == CLI_NDJSON && !o->once;
    int64_t n = o->count > 0 ? o->count : is_stream ? INT64_MAX : 1;
    if (rc == 0)
        rc = is_live ? run_live(c, o, &sort, &err) : run_samples(c, o, &sort, n, &err);
    if (rc > 0)
        return cli_say(cli_exit_of(rc), "%s", err.text);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt opts[] = {
    {"count", 0, CLI_OPT_INT, offsetof(struct opts, count), "N", "so many looks, then end", 1,
     1000000, NULL},
    {"interval", 'i', CLI_OPT_DURATION, offsetof(struct opts, interval), "DURATION",
     "between two looks (default 2s)", EVERY_MIN, EVERY_MAX, NULL},
    {"once", 0, CLI_OPT_FLAG, offsetof(struct opts, once), NULL,
     "one sample, as lines; takes one interval, for the rates", 0, 0, NULL},
    {"reverse", 0, CLI_OPT_FLAG, offsetof(struct opts, reverse), NULL, "the other way round", 0, 0,
     NULL},
    {"sort", 0, CLI_OPT_TEXT, offsetof(struct opts, sort), "WORDS",
     "as of lade queue ls (default name)", 0, 0, NULL},
};

const struct cli_command cli_top = {
    .noun = "top",
    .verb = "",
    .args = "",
    .about =
        "Shows queues with their rates, and workers, live. Until q or a signal; the terminal is then as before. Without a "
        "terminal, or with -o json or tsv, it is one sample; with -o ndjson a sample for each interval. A look asks for numbers of "
        "queues and workers only, whatever the number of jobs.",
    .examples =
        "  lade top\n  lade top --sort failed,latency --interval 1s\n  lade top --once -o json\n"
        "  lade dash -q mail",
    .opts = opts,
    .n_opts = LB_ARRAY_LEN(opts),
    .size = sizeof(struct opts),
    .run = run_top,
};
