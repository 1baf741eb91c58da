/* lade dead: bring dead jobs back, or remove them: all, or by filter, with rate and canary; ls and classes are in cmd_classes.c */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/commands.h"
#include "cli/deadopt.h"
#include "cli/limit_opts.h"
#include "cli/out.h"
#include "cli/text.h"
#include "cli/view.h"

#define STEP     1000
#define PAGE     100
#define RATE_MAX 1000000

struct dead {
    struct cli_dead_filter filter; /* first: CLI_DEAD_FILTER_OPTS */
    int64_t limit;                 /* 0 = all */
    int64_t rate, canary, canary_wait, stop_on;
};

/* What a command did, over all queues. */
struct tally {
    uint64_t done, lost, died_again;
    int64_t before;      /* the moment its deaths lie before; 0 = none was needed */
    const char *stopped; /* why it did not go to the end, or NULL */
};

typedef int (*step_fn)(lade *q, const char *queue, size_t max, size_t *n, lade_err *err);

static int purge_step(lade *q, const char *queue, size_t max, size_t *n, lade_err *err)
{
    return lade_queue_purge(q, queue, LADE_STATE_DEAD, max, n, err);
}

/*
 * Repeats bounded steps over one queue. At most as many jobs as were dead at the start, so that jobs which die again
 * meanwhile cannot keep it going.
 */
static int repeat_steps(struct cli *c, const lade_queue_info *info, step_fn step, uint64_t *left,
                        struct tally *t, lade_err *err)
{
    uint64_t here = LB_MIN(info->count[LADE_STATE_DEAD], *left);
    int rc = LADE_MORE;
    if (c->dry_run) {
        *left -= here;
        t->done += here;
        return 0;
    }
    while (rc == LADE_MORE && here > 0) {
        size_t n = 0;
        rc = step(c->q, info->name, (size_t)LB_MIN(here, (uint64_t)STEP), &n, err);
        if (rc < 0)
            return rc;
        here -= LB_MIN(here, (uint64_t)n);
        *left -= LB_MIN(*left, (uint64_t)n);
        t->done += n;
    }
    return 0;
}

/* by filter ------------------------------------------------------------------------------------------------------- */

/* How many would be moved; looks at them only. */
static int count_matches(struct cli *c, const char *queue, const lade_dead_filter *f,
                         uint64_t *left, uint64_t *n_matches, lade_err *err)
{
    lade_cursor cursor = {0};
    int rc = 0;
    while (rc == 0 && !cursor.done && *left > 0) {
        lade_job_view *v[PAGE];
        size_t n = 0;
        rc = lade_dead_list(c->q, queue, f, &cursor, LB_MIN(*left, (uint64_t)PAGE), v, &n, err);
        for (size_t i = 0; i < n; i++)
            lade_job_view_free(v[i]);
        *n_matches += n;
        *left -= n;
        rc = LB_MIN(rc, 0);
    }
    return rc;
}

static void sleep_for(int64_t ns)
{
    struct timespec ts = {ns / LADE_SECOND, ns % LADE_SECOND};
    (void)nanosleep(&ts, NULL);
}

static const char *why_stopped(enum lade_redrive_phase phase)
{
    switch (phase) {
    case LADE_REDRIVE_CANARY_FAILED:
        return "a canary failed of the same again";
    case LADE_REDRIVE_CANARY_OPEN:
        return "the canaries have not run in time";
    case LADE_REDRIVE_STOPPED:
        return "too many died again";
    case LADE_REDRIVE_CANARY:
    case LADE_REDRIVE_WATCHING:
    case LADE_REDRIVE_MOVING:
    case LADE_REDRIVE_DONE:
    default:
        return NULL;
    }
}

static void tell_resume(struct cli *c, const char *queue, int64_t before)
{
    char time[CLI_TIME_LEN];
    cli_time_text(time, before);
    cli_note(c, "%s: deaths before %s; the same command with --before %s goes on after a break",
             queue, time, time);
}

static int drive_queue(struct cli *c, const char *queue, const lade_redrive_plan *common,
                       uint64_t *left, struct tally *t, lade_err *err)
{
    lade_redrive_plan plan = *common;
    lade_redrive_report r = {0};
    lade_redrive *run = NULL;
    plan.queue = queue;
    plan.limit = *left == UINT64_MAX ? 0 : *left;
    int rc = lade_redrive_open(&run, c->q, &plan, err);
    bool told = false;
    for (; rc == 0;) {
        rc = lade_redrive_step(run, &r, err);
        if (rc < 0)
            break;
        if (!told && r.moved > 0 && (rc == LADE_MORE))
            tell_resume(c, queue, r.before);
        told = told || r.moved > 0;
        if (rc == 0)
            break;
        rc = 0;
        sleep_for(r.wait);
    }
    lade_redrive_close(run);
    t->done += r.moved;
    t->lost += r.lost;
    t->died_again += r.died_again;
    t->before = LB_MAX(t->before, r.before);
    if (*left != UINT64_MAX)
        *left -= LB_MIN(*left, r.moved);
    t->stopped = why_stopped(r.phase);
    return rc;
}

/* ----------------------------------------------------------------------------------------------------------------- */

static const struct cli_column count_columns[] = {{"DONE", "done", CLI_CELL_TEXT, true, false}};

static int print_tally(const struct cli *c, const struct tally *t, lade_err *err)
{
    struct cli_row row;
    if (c->format == CLI_TABLE) {
        (void)printf("%llu\n", (unsigned long long)t->done);
        return 0;
    }
    cli_row_init(&row);
    if (c->format == CLI_TSV) {
        struct cli_out out;
        cli_row_u64(&row, "done", t->done);
        cli_out_begin(&out, c, count_columns, LB_ARRAY_LEN(count_columns));
        cli_out_row(&out, &row);
        return cli_out_end(&out, err);
    }
    cli_row_text(&row, "verb", c->command->verb);
    cli_row_bool(&row, "dry_run", c->dry_run);
    cli_row_u64(&row, "done", t->done);
    cli_row_u64(&row, "lost", t->lost);
    cli_row_u64(&row, "died_again", t->died_again);
    cli_row_time(&row, "before", t->before);
    cli_row_text(&row, "stopped", t->stopped);
    return cli_out_object(c, &row, err);
}

static int run_queues(struct cli *c, const struct dead *d, step_fn step, enum lade_dead_verb verb,
                      const lade_queue_info *queues, size_t n, struct tally *t, lade_err *err)
{
    uint64_t left = d->limit > 0 ? (uint64_t)d->limit : UINT64_MAX;
    bool driven = cli_dead_is_filtered(&d->filter) || d->rate || d->canary || d->stop_on;
    lade_redrive_plan plan = {.verb = verb,
                              .rate = d->rate,
                              .canary = (size_t)d->canary,
                              .canary_wait = d->canary_wait,
                              .stop_on = (uint64_t)d->stop_on};
    int rc = driven ? cli_dead_resolve(c, &d->filter, &plan.filter, err) : 0;
    for (size_t i = 0; rc == 0 && i < n && left > 0 && !t->stopped; i++) {
        if (!driven)
            rc = repeat_steps(c, &queues[i], step, &left, t, err);
        else if (c->dry_run)
            rc = count_matches(c, queues[i].name, &plan.filter, &left, &t->done, err);
        else
            rc = drive_queue(c, queues[i].name, &plan, &left, t, err);
    }
    return rc;
}

static enum cli_exit run_steps(struct cli *c, const struct dead *d, step_fn step,
                               enum lade_dead_verb verb, const char *word)
{
    lade_err err = {0};
    lade_queue_info *queues = NULL;
    size_t n = 0;
    struct tally t = {0};
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = cli_view_queues(c, &queues, &n, &err);
    if (rc > 0)
        return cli_say(cli_exit_of(rc), "%s", err.text);
    if (rc == 0)
        rc = run_queues(c, d, step, verb, queues, n, &t, &err);
    lade_free(queues);
    if (rc == 0 || t.done > 0) {
        lade_err why = {0};
        if (print_tally(c, &t, &why) < 0)
            return cli_complain(&why);
        cli_note(c, "%llu dead %s%s", (unsigned long long)t.done, c->dry_run ? "would be " : "",
                 word);
        if (t.lost > 0)
            cli_note(c, "%llu were moved by somebody else meanwhile", (unsigned long long)t.lost);
    }
    if (rc < 0)
        return cli_complain(&err);
    return t.stopped ? cli_say(CLI_PARTIAL, "stopped: %s; the others stay dead", t.stopped)
                     : CLI_OK;
}

static enum cli_exit run_redrive(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    const struct dead *d = values;
    if (d->canary_wait > 0 && d->canary == 0)
        return cli_say(CLI_USAGE, "--canary-wait: needs --canary; give it too");
    return run_steps(c, d, lade_dead_redrive, LADE_DEAD_REDRIVE, "redriven");
}

static enum cli_exit run_purge(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    enum cli_exit code = CLI_OK;
    if (!cli_confirm(c, &code, "remove the dead of %s", c->queue ? c->queue : "all queues"))
        return code;
    return run_steps(c, values, purge_step, LADE_DEAD_REMOVE, "removed");
}

static int set_rate(void *values, const char *text, lade_err *err)
{
    struct dead *d = values;
    return cli_rate_a_second("--rate", text, RATE_MAX, &d->rate, err);
}

#define AT(member) offsetof(struct dead, member)

static const struct cli_opt redrive_opts[] = {
    {"limit", 'l', CLI_OPT_INT, AT(limit), "N", "at most so many, the oldest first (default all)",
     1, INT64_MAX, NULL},
    CLI_DEAD_FILTER_OPTS,
    {"rate", 0, CLI_OPT_CALL, 0, "N|N/PERIOD", "at most so many a second, or as 100/1s", 0, 0,
     set_rate},
    {"canary", 0, CLI_OPT_INT, AT(canary), "N",
     "so many first, and the rest only when none of them fails of the same again", 1,
     LADE_DEAD_CANARY_MAX, NULL},
    {"canary-wait", 0, CLI_OPT_DURATION, AT(canary_wait), "DURATION",
     "how long they may take (default 5m)", LADE_MILLISECOND, CLI_DURATION_MAX, NULL},
    {"stop-on", 0, CLI_OPT_INT, AT(stop_on), "N", "stop when so many have died again", 1, 1000,
     NULL},
};

static const struct cli_opt purge_opts[] = {
    {"limit", 'l', CLI_OPT_INT, AT(limit), "N", "at most so many, the oldest first (default all)",
     1, INT64_MAX, NULL},
    CLI_DEAD_FILTER_OPTS,
    {"rate", 0, CLI_OPT_CALL, 0, "N|N/PERIOD", "at most so many a second, or as 100/1s", 0, 0,
     set_rate},
};

const struct cli_command cli_dead_redrive = {
    .noun = "dead",
    .verb = "redrive",
    .args = "",
    .about =
        "Moves dead jobs back to ready. Oldest first, with all their attempts again. Prints "
        "how many. With a filter, a rate or a canary it is about the deaths before one moment, which stderr names: the "
        "same command with --before goes on where one was interrupted. Exit 6 when it stopped by --canary or --stop-on.",
    .examples = "  lade dead redrive -q mail\n  lade dead redrive --dry-run\n"
                "  lade dead redrive --class 3679bbf5ab98 --canary 5 --rate 100/1s --stop-on 20",
    .opts = redrive_opts,
    .n_opts = LB_ARRAY_LEN(redrive_opts),
    .size = sizeof(struct dead),
    .can_dry_run = true,
    .run = run_redrive,
};

const struct cli_command cli_dead_purge = {
    .noun = "dead",
    .verb = "purge",
    .args = "",
    .about = "Removes dead jobs. Oldest first; prints how many. Cannot be undone.",
    .examples = "  lade dead purge -q mail --yes\n  lade dead purge --dry-run\n"
                "  lade dead purge --older 30d --yes",
    .opts = purge_opts,
    .n_opts = LB_ARRAY_LEN(purge_opts),
    .size = sizeof(struct dead),
    .can_dry_run = true,
    .asks = true,
    .run = run_purge,
};
