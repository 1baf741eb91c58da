/* lade work: run jobs with shell commands as handlers */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/exec.h"
#include "cli/out.h"
#include "cli/progress.h"

#define HANDLERS_MAX 256
#define QUEUES_MAX   64

struct work {
    int64_t concurrency, lease, sweep, max_crashes, shutdown_timeout, prefetch, payload_max;
    bool shutdown_given, prefetch_given, drain, no_progress, init, no_scheduler, strict_steps;
    const char *name;
    const char *signals;            /* whose table; NULL: the URL's */
    const char *kind[HANDLERS_MAX]; /* kind[i] is run by command[i]; NULL until its --exec came */
    const char *command[HANDLERS_MAX];
    size_t n_handlers;
    size_t n_waiting; /* kinds at the end that no --exec has followed yet */
    struct cli_exec exec[HANDLERS_MAX];
    char names[QUEUES_MAX][LADE_NAME_MAX + 2]; /* one over the limit, for the library to refuse */
    lade_worker_queue queues[QUEUES_MAX];
    size_t n_queues;
    bool weighted;
    bool tasks;
    lade_options store; /* how much is kept of what ended */
    struct cli_guard guard;
};

static int add_kind(struct work *w, const char *kind, lade_err *err)
{
    if (w->n_handlers == HANDLERS_MAX)
        return lb_fail(err, LADE_EINVAL, "usage", "--kind: more than %d", HANDLERS_MAX);
    w->kind[w->n_handlers++] = kind;
    w->n_waiting++;
    return 0;
}

static int set_kind(void *values, const char *text, lade_err *err)
{
    return add_kind(values, text, err);
}

static int set_exec(void *values, const char *text, lade_err *err)
{
    struct work *w = values;
    if (!text[0])
        return lb_fail(err, LADE_EINVAL, "usage", "--exec: empty; give a shell command");
    if (w->n_waiting == 0) {
        int rc = add_kind(w, "*", err);
        if (rc < 0)
            return rc;
    }
    for (; w->n_waiting > 0; w->n_waiting--)
        w->command[w->n_handlers - w->n_waiting] = text;
    return 0;
}

static int set_shutdown(void *values, const char *text, lade_err *err)
{
    struct work *w = values;
    w->shutdown_given = true;
    return cli_arg_duration("--shutdown-timeout", text, (struct cli_range){0, 365 * LADE_DAY},
                            &w->shutdown_timeout, err);
}

static int set_executor(void *values, const char *text, lade_err *err)
{
    struct work *w = values;
    if (strcmp(text, "task") != 0 && strcmp(text, "thread") != 0)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--executor: '%.40s' is neither 'thread' nor 'task'", text);
    w->tasks = strcmp(text, "task") == 0;
    return 0;
}

static int set_signals(void *values, const char *text, lade_err *err)
{
    struct work *w = values;
    if (strcmp(text, "lade") != 0 && strcmp(text, "resque") != 0)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--signals: '%.40s' is neither 'lade' nor 'resque'", text);
    w->signals = text;
    return 0;
}

static int set_prefetch(void *values, const char *text, lade_err *err)
{
    struct work *w = values;
    w->prefetch_given = true;
    return cli_arg_int("--prefetch", text, (struct cli_range){0, 100000}, &w->prefetch, err);
}

/* "1h,1000", or one of both; "0" keeps nothing. */
static int read_keep(const char *what, const char *text, int64_t *age, int64_t *count,
                     lade_err *err)
{
    const char *comma = strchr(text, ',');
    if (strcmp(text, "0") == 0) {
        *count = -1;
        return 0;
    }
    char first[32];
    (void)snprintf(first, sizeof(first), "%.*s", (int)(comma ? comma - text : (long)strlen(text)),
                   text);
    bool counts = first[0] && first[strspn(first, "0123456789")] == 0;
    if (counts && comma)
        return lb_fail(err, LADE_EINVAL, "usage", "%s: '%.40s' has the count first; give AGE,COUNT",
                       what, text);
    int rc =
        counts ? 0
               : cli_arg_duration(what, first,
                                  (struct cli_range){LADE_MILLISECOND, CLI_DURATION_MAX}, age, err);
    if (rc == 0 && (counts || comma))
        rc = cli_arg_int(what, counts ? first : comma + 1, (struct cli_range){0, INT32_MAX}, count,
                         err);
    if (rc == 0 && (counts || comma) && *count == 0)
        *count = -1;
    return rc;
}

static int set_keep_completed(void *values, const char *text, lade_err *err)
{
    lade_options *o = &((struct work *)values)->store;
    return read_keep("--keep-completed", text, &o->keep_completed.age, &o->keep_completed.count,
                     err);
}

static int set_keep_dead(void *values, const char *text, lade_err *err)
{
    lade_options *o = &((struct work *)values)->store;
    return read_keep("--keep-dead", text, &o->keep_dead.age, &o->keep_dead.count, err);
}

#define AT(member) offsetof(struct work, member)

static const struct cli_opt opts[] = {
    {"kind", 'k', CLI_OPT_CALL, 0, "KIND", "what the next --exec runs; may be repeated", 0, 0,
     set_kind},
    {"exec", 'e', CLI_OPT_CALL, 0, "CMD", "shell command; without --kind for every kind", 0, 0,
     set_exec},
    {"concurrency", 'c', CLI_OPT_INT, AT(concurrency), "N", "jobs at once (default 10)", 1, 10000,
     NULL},
    {"no-scheduler", 0, CLI_OPT_FLAG, AT(no_scheduler), NULL, "take no part in firing schedules", 0,
     0, NULL},
    {"strict-steps", 0, CLI_OPT_FLAG, AT(strict_steps), NULL,
     "begin a step of a workflow only when the end of the one before is stored", 0, 0, NULL},
    {"drain", 0, CLI_OPT_FLAG, AT(drain), NULL,
     "end when no job is left; one of a kind without a handler here keeps it running", 0, 0, NULL},
    {"lease", 0, CLI_OPT_DURATION, AT(lease), "DURATION", "of a worker (default 15s)", LADE_SECOND,
     365 * LADE_DAY, NULL},
    {"sweep", 0, CLI_OPT_DURATION, AT(sweep), "DURATION",
     "how often dead workers are looked for (default 1s)", LADE_MILLISECOND, 365 * LADE_DAY, NULL},
    {"shutdown-timeout", 0, CLI_OPT_CALL, 0, "DURATION", "wait for handlers at TERM (default 25s)",
     0, 0, set_shutdown},
    {"max-crashes", 0, CLI_OPT_INT, AT(max_crashes), "N",
     "worker deaths until a job is put aside (default 5)", 1, 1000, NULL},
    {"prefetch", 0, CLI_OPT_CALL, 0, "N", "jobs held beyond those that run (default by -c)", 0, 0,
     set_prefetch},
    {"executor", 0, CLI_OPT_CALL, 0, "WHAT",
     "what waits for a command: a thread each (thread, default) or a task of the runtime (task)", 0,
     0, set_executor},
    {"signals", 0, CLI_OPT_CALL, 0, "WHOSE",
     "what signals mean: lade's (lade) or Resque's (resque, the default with a resque:// store)", 0,
     0, set_signals},
    {"payload-max", 0, CLI_OPT_SIZE, AT(payload_max), "BYTES",
     "largest payload that is run (default 64 MiB, the most there can be)", 1,
     LADE_PAYLOAD_MAX_HARD, NULL},
    {"keep-completed", 0, CLI_OPT_CALL, 0, "AGE,COUNT",
     "of completed and cancelled jobs, each queue; one of both will do, 0 keeps none (default "
     "1h,1000)",
     0, 0, set_keep_completed},
    {"keep-dead", 0, CLI_OPT_CALL, 0, "AGE,COUNT", "of dead jobs (default 90d,10000)", 0, 0,
     set_keep_dead},
    {"name", 0, CLI_OPT_TEXT, AT(name), "NAME", "shown to operators (default host:pid)", 0, 0,
     NULL},
    {"init", 0, CLI_OPT_FLAG, AT(init), NULL,
     "pass on signals and reap orphans, as it does by itself as PID 1", 0, 0, NULL},
    {"no-progress", 0, CLI_OPT_FLAG, AT(no_progress), NULL, "no live line", 0, 0, NULL},
};

/* One "name" or "name=weight" of --queue. */
static int add_queue(struct work *w, const char *text, size_t n, lade_err *err)
{
    char weight[24];
    int64_t value = 1;
    size_t len = 0;
    while (len < n && text[len] != '=')
        len++;
    if (w->n_queues == QUEUES_MAX)
        return lb_fail(err, LADE_EINVAL, "usage", "--queue: more than %d", QUEUES_MAX);
    if (len == 0)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--queue: an empty name; give names with commas between");
    if (len < n) {
        (void)snprintf(weight, sizeof(weight), "%.*s", (int)(n - len - 1), text + len + 1);
        int rc =
            cli_arg_int("--queue: weight", weight, (struct cli_range){1, 1000000}, &value, err);
        if (rc < 0)
            return rc;
        w->weighted = true;
    }
    char *name = w->names[w->n_queues];
    (void)snprintf(name, sizeof(w->names[0]), "%.*s", (int)len, text);
    w->queues[w->n_queues++] = (lade_worker_queue){name, (uint32_t)value};
    return 0;
}

static int read_queues(struct work *w, const char *text, lade_err *err)
{
    for (;;) {
        size_t n = strcspn(text, ","), from = LB_MIN(strspn(text, " \t"), n), to = n;
        while (to > from && (text[to - 1] == ' ' || text[to - 1] == '\t'))
            to--;
        int rc = add_queue(w, text + from, to - from, err);
        if (rc < 0 || !text[n])
            return rc;
        text += n + 1;
    }
}

/* Opens the store and the worker with its handlers. */
static int open_worker(struct cli *c, struct work *w, struct cli_progress *progress,
                       lade_worker **out, lade_err *err)
{
    lade_worker_config config = {
        .concurrency = (int)w->concurrency,
        .queues = w->n_queues ? w->queues : NULL,
        .n_queues = w->n_queues,
        .order = w->weighted ? LADE_ORDER_WEIGHTED : LADE_ORDER_STRICT,
        .name = w->name,
        .lease = w->lease,
        .sweep = w->sweep,
        .shutdown_timeout = w->shutdown_timeout,
        .max_crashes = (int)w->max_crashes,
        .prefetch_max = (int)w->prefetch,
        .drain = w->drain,
        .no_scheduler = w->no_scheduler,
        .strict_steps = w->strict_steps,
        .resque_signals = w->signals && strcmp(w->signals, "resque") == 0,
        .executor = w->tasks ? LADE_EXECUTOR_TASK : LADE_EXECUTOR_THREAD,
        .log = cli_progress_log,
        .log_ctx = progress,
    };
    if (w->shutdown_given && w->shutdown_timeout == 0)
        config.shutdown_timeout = -1;
    if (w->prefetch_given && w->prefetch == 0)
        config.prefetch_max = -1;
    /* Who enqueued a big payload was allowed to; the worker's own limit is for who wants one. */
    w->store.payload_max = w->payload_max ? (uint32_t)w->payload_max : LADE_PAYLOAD_MAX_HARD;
    int rc = cli_connect(c, &w->store, err);
    if (rc < 0)
        return rc;
    lade_worker *worker = NULL;
    rc = lade_worker_open(&worker, c->q, &config, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < w->n_handlers; i++) {
        w->exec[i] = (struct cli_exec){w->command[i], &w->guard};
        rc = lade_worker_handle(worker, w->kind[i], cli_exec_run, &w->exec[i]);
        if (rc < 0)
            (void)lb_fail(err, LADE_EINVAL, "usage",
                          "--kind: '%.60s' cannot be handled: a bad name, or said twice",
                          w->kind[i]);
    }
    if (rc < 0)
        lade_worker_close(worker);
    else
        *out = worker;
    return rc;
}

static void add_count(struct cli_out *out, const char *what, uint64_t n)
{
    struct cli_row row;
    cli_row_init(&row);
    cli_row_text(&row, "outcome", what);
    cli_row_u64(&row, "jobs", n);
    cli_out_row(out, &row);
}

static int print_summary(const struct cli *c, const lade_worker_stats *s, int64_t took,
                         lade_err *err)
{
    static const struct cli_column columns[] = {
        {"OUTCOME", "outcome", CLI_CELL_STATE, false, false},
        {"JOBS", "jobs", CLI_CELL_TEXT, true, false},
    };

    const struct {
        const char *name;
        uint64_t n;
    } counts[] = {
        {"completed", s->completed},
        {"retried", s->retried},
        {"dead", s->dead},
        {"snoozed", s->snoozed},
        {"cancelled", s->cancelled},
        {"discarded", s->discarded},
        {"timed_out", s->timed_out},
        {"lost", s->lost},
        {"recovered", s->recovered},
        {"quarantined", s->quarantined},
        {"unroutable", s->unroutable},
        {"corrupt", s->corrupt},
    };

    if (c->format == CLI_JSON || c->format == CLI_NDJSON) {
        struct cli_row row;
        cli_row_init(&row);
        for (size_t i = 0; i < LB_ARRAY_LEN(counts); i++)
            cli_row_u64(&row, counts[i].name, counts[i].n);
        cli_row_int(&row, "took_ms", took / LADE_MILLISECOND);
        return cli_out_object(c, &row, err);
    }
    struct cli_out out;
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    for (size_t i = 0; i < LB_ARRAY_LEN(counts); i++) {
        if (i < 3 || counts[i].n > 0)
            add_count(&out, counts[i].name, counts[i].n);
    }
    return cli_out_end(&out, err);
}

/*
 * lade_worker_run handles signals while it runs. These are for the moments before and after: a stop that comes before is
 * not lost, and one that comes after does not cut off the summary or the end of the guard. Signals are blocked in all
 * threads but the main one, so the handler never runs beside lade_worker_close.
 */
static lade_worker *stoppable;

static void stop_worker(int signum)
{
    (void)signum;
    lade_worker_stop(stoppable);
}

/* The shell and the kernel may both send it when a terminal closes: the second is not "at once". */
static void hang_up(int signum)
{
    static volatile sig_atomic_t is_known;
    (void)signum;
    if (!is_known)
        lade_worker_stop(stoppable);
    is_known = 1;
}

/* Under nohup HUP stays ignored. */
static void set_hang_up(void (*handler)(int))
{
    struct sigaction now;
    if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        (void)signal(SIGHUP, handler);
}

static void set_stop_signals(lade_worker *worker, void (*handler)(int))
{
    static const int signals[] = {SIGTERM, SIGINT, SIGQUIT};

    stoppable = worker;
    for (size_t i = 0; i < LB_ARRAY_LEN(signals); i++)
        (void)signal(signals[i], handler);
}

static int run_worker(struct cli *c, struct work *w, lade_err *err)
{
    struct cli_progress progress;
    lade_worker *worker = NULL;
    lade_worker_stats stats;
    bool is_live = isatty(STDERR_FILENO) && !w->no_progress && !c->quiet;
    cli_progress_init(&progress, is_live);
    int rc = open_worker(c, w, &progress, &worker, err);
    if (rc < 0)
        return rc;
    int64_t started_at = lb_clock_mono();
    cli_progress_start(&progress, worker);
    set_stop_signals(worker, stop_worker);
    set_hang_up(hang_up);
    rc = lade_worker_run(worker, err);
    set_stop_signals(worker, SIG_IGN);
    set_hang_up(SIG_IGN);
    cli_progress_stop(&progress);
    lade_worker_get_stats(worker, &stats);
    lade_worker_close(worker);
    if (rc < 0 || c->quiet)
        return rc;
    return print_summary(c, &stats, lb_clock_mono() - started_at, err);
}

static enum cli_exit run_work(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    struct work *w = values;
    lade_err err = {0};
    if (w->n_handlers == 0)
        return cli_say(CLI_USAGE, "work: nothing to run; give --exec CMD, with --kind KIND before");
    if (w->n_waiting > 0)
        return cli_say(CLI_USAGE, "--kind: no --exec after '%s'; give the command it runs",
                       w->kind[w->n_handlers - 1]);
    if (c->queue && read_queues(w, c->queue, &err) < 0)
        return cli_complain(&err);
    if (!w->signals && strncmp(cli_url(c), "resque", 6) == 0)
        w->signals = "resque";
    /* One that comes before the worker listens, or after, ends nothing. */
    if (w->signals && strcmp(w->signals, "resque") == 0) {
        (void)signal(SIGUSR1, SIG_IGN);
        (void)signal(SIGUSR2, SIG_IGN);
    }
    /* A handler that does not read its payload, or a log that nobody reads, must not end the worker. */
    (void)signal(SIGPIPE, SIG_IGN);
    int rc = cli_guard_front(w->init, &err);
    if (rc == 0)
        rc = cli_guard_start(&w->guard, &err);
    if (rc < 0)
        return cli_complain(&err);
    rc = run_worker(c, w, &err);
    cli_guard_stop(&w->guard);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

const struct cli_command cli_worker_run = {
    .noun = "worker",
    .verb = "run",
    .args = "",
    .about =
        "Runs jobs. Each with `sh -c CMD`: the payload on stdin, LADE_JOB_ID, LADE_KIND, "
        "LADE_QUEUE, LADE_ATTEMPT, LADE_MAX_ATTEMPTS, LADE_FENCE and LADE_HEADER_* in the "
        "environment, and of a workflow's step the results of those before it: LADE_INPUT names a file with the "
        "first, LADE_INPUTS_FILE one with all as lines of JSON, LADE_INPUTS is how many, LADE_FLOW the workflow. Stdout is kept as the result (at most 1 MiB, or the attempt fails), the last "
        "4 KiB of stderr as the error text; a line to descriptor 3 goes to the log, 'progress 40 text' there is progress."
        " Exit 0 completes the job, 100 ends it dead, 101 "
        "discards it, 102 cancels it, 103 snoozes it for a minute; any other code or a signal "
        "fails the attempt, which is retried. At a timeout or cancel the process group gets TERM "
        "and 5 s later KILL; exit 0 after TERM is no success. What a handler leaves running in its "
        "process group is killed. TERM or INT stop the worker gently, and so does HUP (the terminal "
        "has closed; there is no configuration to read again); a second TERM or INT, or QUIT, at "
        "once; TSTP makes it take no more. On a resque:// store signals mean what they do to Ruby's Resque: QUIT "
        "finishes what runs, however long, and ends; TERM and INT as above; USR1 breaks off what runs, which fails, and goes on; USR2 "
        "takes no more, CONT takes again. --queue names queues in strict order, a=3,b=1 with "
        "weights; there also *, file_*, ?, [ab] and !low, as QUEUES of Resque. "
        "A job of ActiveJob is of the kind of its job_class there, LADE_HEADER_JOB_ID its id; ?mode=, ?jobs= and ?failures= of the URL: docs/resque.md.",
    .examples = "  lade work --queue images,default --kind wc --exec 'wc -w' -c 8\n"
                "  lade work -q mail=3,bulk=1 -k send -e ./send.sh -k clean -e ./clean.sh --drain\n"
                "  lade work -u resque://localhost -q 'high,*,!bulk' -k Mail::Send -e ./send.sh",
    .opts = opts,
    .n_opts = LB_ARRAY_LEN(opts),
    .size = sizeof(struct work),
    .queue_help = "queues in strict order, or a=3,b=1 by weight (default: default)",
    .run = run_work,
};
