/* lade queue: look at queues, pause and resume them, remove what they hold */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/commands.h"
#include "cli/limit_opts.h"
#include "cli/queue_sort.h"
#include "cli/view.h"

#define PURGE_STEP 1000

static const struct cli_column queue_columns[] = {
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"STATUS", "status", CLI_CELL_STATE, false, false},
    {"READY", "ready", CLI_CELL_TEXT, true, false},
    {"SCHEDULED", "scheduled", CLI_CELL_TEXT, true, false},
    {"RETRYING", "retrying", CLI_CELL_TEXT, true, false},
    {"ACTIVE", "active", CLI_CELL_TEXT, true, false},
    {"DEAD", "dead", CLI_CELL_TEXT, true, false},
    {"COMPLETED", "completed", CLI_CELL_TEXT, true, false},
    {"CANCELLED", "cancelled", CLI_CELL_TEXT, true, false},
    {"LATENCY", "latency_ms", CLI_CELL_DURATION, true, false},
    {"WORKERS", "workers", CLI_CELL_TEXT, true, false},
};

static void make_row(struct cli_row *r, const lade_queue_info *q)
{
    cli_row_init(r);
    cli_row_text(r, "queue", q->name);
    cli_row_text(r, "status", q->paused ? "paused" : "open");
    cli_row_bool(r, "paused", q->paused);
    for (int s = 0; s < LADE_N_STATES; s++)
        cli_row_u64(r, lade_state_name((enum lade_state)s), q->count[s]);
    cli_row_u64(r, "held", q->held);
    cli_row_int(r, "latency_ms", q->latency / LADE_MILLISECOND);
    cli_row_u64(r, "total_enqueued", q->total_enqueued);
    cli_row_u64(r, "total_completed", q->total_completed);
    cli_row_u64(r, "total_failed", q->total_failed);
    cli_row_u64(r, "total_dead", q->total_dead);
    cli_row_u64(r, "workers", q->n_workers);
}

struct ls {
    const char *sort;
    bool reverse;
};

static enum cli_exit run_ls(struct cli *c, void *values, char **args, int n_args)
{
    const struct ls *ls = values;
    struct cli_queue_sort sort = {.reverse = ls->reverse};
    (void)args;
    (void)n_args;
    lade_err err = {0};
    lade_queue_info *queues = NULL;
    size_t n = 0;
    struct cli_out out;
    int rc = ls->sort ? cli_queue_sort_read(&sort, "--sort", ls->sort, &err) : 0;
    if (rc == 0)
        rc = cli_look(c, &err);
    if (rc == 0)
        rc = cli_view_queues(c, &queues, &n, &err);
    if (rc > 0)
        return cli_say(cli_exit_of(rc), "%s", err.text);
    if (rc < 0)
        return cli_complain(&err);
    cli_queue_sort(&sort, queues, n);
    cli_out_begin(&out, c, queue_columns, LB_ARRAY_LEN(queue_columns));
    for (size_t i = 0; i < n; i++) {
        struct cli_row row;
        make_row(&row, &queues[i]);
        cli_out_row(&out, &row);
    }
    lade_free(queues);
    rc = cli_out_end(&out, &err);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt ls_opts[] = {
    {"reverse", 0, CLI_OPT_FLAG, offsetof(struct ls, reverse), NULL, "the other way round", 0, 0,
     NULL},
    {"sort", 0, CLI_OPT_TEXT, offsetof(struct ls, sort), "WORDS",
     "by these, the largest first: failed, latency, ready, dead, ... (default name)", 0, 0, NULL},
};

const struct cli_command cli_queue_ls = {
    .noun = "queue",
    .verb = "ls",
    .args = "",
    .about =
        "Lists queues. Counts by state are exact; latency is the age of the oldest ready job. --sort takes several words, "
        "comma separated: name; ready, scheduled, retrying, active, dead, completed, cancelled, held, workers; latency; and "
        "of what happened since the queue was made enqueued, done, failed (attempts), died.",
    .examples = "  lade queue ls\n  lade queue ls --sort failed,latency\n"
                "  lade queue ls -o json -u redis://localhost",
    .opts = ls_opts,
    .n_opts = LB_ARRAY_LEN(ls_opts),
    .size = sizeof(struct ls),
    .run = run_ls,
};

typedef enum cli_exit (*act_fn)(struct cli *c, const char *queue, void *ctx);

/* Acts on the queues that the arguments or -q name. */
static enum cli_exit for_queues(struct cli *c, char **args, int n_args, act_fn act, void *ctx)
{
    struct cli_fold fold = {0};
    lade_err err = {0};
    if (n_args == 0 && !c->queue)
        return cli_say(CLI_USAGE, "queue %s: which queue? give its name", c->command->verb);
    if (n_args > 0 && c->queue)
        return cli_say(CLI_USAGE, "--queue: said twice; name queues as arguments or by -q");
    if (!c->q && cli_look(c, &err) < 0)
        return cli_complain(&err);
    if (n_args == 0)
        return act(c, c->queue, ctx);
    for (int i = 0; i < n_args; i++)
        cli_fold_add(&fold, act(c, args[i], ctx));
    return cli_fold_exit(&fold);
}

static enum cli_exit complain_queue(const char *queue, int rc, const lade_err *err)
{
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such queue; see lade queue ls", queue);
    if (rc == LADE_WRONG_STATE)
        return cli_say(CLI_CONFLICT,
                       "%s: jobs are in it; purge them first: lade queue purge %s --state all",
                       queue, queue);
    return cli_complain(err);
}

static enum cli_exit print_facts(const struct cli *c, struct cli_row *r, lade_err *err)
{
    static const struct cli_column columns[] = {
        {"FACT", "fact", CLI_CELL_TEXT, false, false},
        {"VALUE", "value", CLI_CELL_STATE, false, false},
    };

    struct cli_out out;
    const char *key = NULL;
    json_t *value = NULL;
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    json_object_foreach(r->o, key, value)
    {
        struct cli_row fact;
        cli_row_init(&fact);
        cli_row_text(&fact, "fact", key);
        cli_row_json(&fact, "value", json_incref(value));
        cli_out_row(&out, &fact);
    }
    cli_row_fini(r);
    return cli_out_end(&out, err) < 0 ? cli_complain(err) : CLI_OK;
}

static enum cli_exit show_one(struct cli *c, const char *queue, void *ctx)
{
    (void)ctx;
    lade_err err = {0};
    lade_queue_info info;
    struct cli_row row;
    int rc = lade_queue_get(c->q, queue, &info, &err);
    if (rc != 0)
        return complain_queue(queue, rc, &err);
    make_row(&row, &info);
    rc = cli_bound_row(c, queue, &row, &err);
    if (rc != 0) {
        cli_row_fini(&row);
        return complain_queue(queue, rc, &err);
    }
    if (c->format == CLI_TABLE || c->format == CLI_TSV)
        return print_facts(c, &row, &err);
    return cli_out_object(c, &row, &err) < 0 ? cli_complain(&err) : CLI_OK;
}

static enum cli_exit run_show(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return for_queues(c, args, n_args, show_one, NULL);
}

const struct cli_command cli_queue_show = {
    .noun = "queue",
    .verb = "show",
    .args = "QUEUE...",
    .max_args = CLI_MANY_ARGS,
    .about = "Shows one queue. Counts by state, totals since it was made, latency, workers, bound.",
    .examples = "  lade queue show images",
    .queue_help = "the queue, in place of an argument",
    .run = run_show,
};

/* What a command does to queues, and in JSON and TSV what it did. */
struct acts {
    bool pause;
    const struct purge *purge;
    json_t *queues; /* NULL unless the format is JSON */
    uint64_t n_queues, n_jobs;
    bool failed, titled;
};

/* In TSV a line for each queue. */
static void print_act(struct acts *a, const char *queue, uint64_t n_jobs)
{
    if (!a->titled)
        (void)puts(a->purge ? "queue\tremoved" : "queue");
    a->titled = true;
    if (a->purge)
        (void)printf("%s\t%llu\n", queue, (unsigned long long)n_jobs);
    else
        (void)puts(queue);
}

static void add_act(const struct cli *c, struct acts *a, const char *queue, uint64_t n_jobs)
{
    struct cli_row row;
    a->n_queues++;
    a->n_jobs += n_jobs;
    if (c->format == CLI_TSV)
        print_act(a, queue, n_jobs);
    if (!a->queues)
        return;
    cli_row_init(&row);
    cli_row_text(&row, "queue", queue);
    if (a->purge)
        cli_row_u64(&row, "removed", n_jobs);
    a->failed |= row.failed || json_array_append(a->queues, row.o) != 0;
    cli_row_fini(&row);
}

/* Acts on the queues; in JSON it prints one object when it came to acting at all. */
static enum cli_exit run_acts(struct cli *c, char **args, int n_args, act_fn act, struct acts *a)
{
    struct cli_row row;
    lade_err err = {0};
    uint64_t n_asked = n_args > 0 ? (uint64_t)n_args : 1;
    bool is_json = cli_out_is_json(c);
    a->queues = is_json ? json_array() : NULL;
    if (is_json && !a->queues)
        return cli_say(CLI_FAILED, "out of memory");
    enum cli_exit code = for_queues(c, args, n_args, act, a);
    if (!is_json || !c->q) {
        json_decref(a->queues);
        return code;
    }
    cli_row_init(&row);
    row.failed |= a->failed;
    cli_row_text(&row, "verb", c->command->verb);
    cli_row_bool(&row, "dry_run", c->dry_run);
    cli_row_u64(&row, "done", a->n_queues);
    cli_row_u64(&row, "failed", n_asked - a->n_queues);
    if (a->purge)
        cli_row_u64(&row, "removed", a->n_jobs);
    cli_row_json(&row, "queues", a->queues);
    return cli_out_object(c, &row, &err) < 0 ? cli_complain(&err) : code;
}

static enum cli_exit pause_one(struct cli *c, const char *queue, void *ctx)
{
    struct acts *a = ctx;
    bool pause = a->pause;
    lade_err err = {0};
    lade_queue_info info;
    /* Pausing makes a queue that is not there yet, and says so; to resume one would only hide a wrong name. */
    int rc = lade_queue_get(c->q, queue, &info, &err);
    bool is_new = pause && rc == LADE_NOT_FOUND;
    if (rc == 0 || is_new)
        rc = pause ? lade_queue_pause(c->q, queue, &err) : lade_queue_resume(c->q, queue, &err);
    if (rc != 0)
        return complain_queue(queue, rc, &err);
    add_act(c, a, queue, 0);
    cli_note(c, "%s: %s%s", queue, pause ? "paused" : "resumed",
             is_new ? " (new queue: no jobs yet)" : "");
    return CLI_OK;
}

static enum cli_exit run_pause(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    struct acts a = {.pause = true};
    return run_acts(c, args, n_args, pause_one, &a);
}

const struct cli_command cli_queue_pause = {
    .noun = "queue",
    .verb = "pause",
    .args = "QUEUE...",
    .max_args = CLI_MANY_ARGS,
    .about = "Stops taking jobs of a queue. Workers obey within 100 ms; jobs that run go on, and "
             "more may be enqueued. A queue that is not there yet is made, and told to be new.",
    .examples = "  lade queue pause mail",
    .queue_help = "the queue, in place of an argument",
    .run = run_pause,
};

static enum cli_exit run_resume(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    struct acts a = {0};
    return run_acts(c, args, n_args, pause_one, &a);
}

const struct cli_command cli_queue_resume = {
    .noun = "queue",
    .verb = "resume",
    .args = "QUEUE...",
    .max_args = CLI_MANY_ARGS,
    .about = "Lets workers take from it again.",
    .examples = "  lade queue resume mail",
    .queue_help = "the queue, in place of an argument",
    .run = run_resume,
};

struct purge {
    const char *state;
    unsigned states;
};

/*
 * Removes at most what was there at the start, so that it ends even when jobs of that state keep coming.
 */
static int purge_state(struct cli *c, const char *queue, enum lade_state state, uint64_t left,
                       uint64_t *total, lade_err *err)
{
    int rc = LADE_MORE;
    while (rc == LADE_MORE && left > 0) {
        size_t n = 0;
        rc = lade_queue_purge(c->q, queue, state, (size_t)LB_MIN(left, (uint64_t)PURGE_STEP), &n,
                              err);
        if (rc < 0)
            return rc;
        left -= LB_MIN(left, (uint64_t)n);
        *total += n;
    }
    return 0;
}

static enum cli_exit purge_one(struct cli *c, const char *queue, void *ctx)
{
    struct acts *a = ctx;
    const struct purge *p = a->purge;
    lade_err err = {0};
    lade_queue_info info;
    uint64_t n = 0;
    int rc = lade_queue_get(c->q, queue, &info, &err);
    for (int s = 0; rc == 0 && s < LADE_N_STATES; s++) {
        if (s == LADE_STATE_ACTIVE || !(p->states & 1U << s))
            continue;
        if (c->dry_run)
            n += info.count[s];
        else
            rc = purge_state(c, queue, (enum lade_state)s, info.count[s], &n, &err);
    }
    if (rc != 0)
        return complain_queue(queue, rc, &err);
    add_act(c, a, queue, n);
    if (c->format == CLI_TABLE)
        (void)printf("%s\t%llu\n", queue, (unsigned long long)n);
    cli_note(c, "%s: %llu job%s %sremoved", queue, (unsigned long long)n, n == 1 ? "" : "s",
             c->dry_run ? "would be " : "");
    return CLI_OK;
}

static enum cli_exit run_purge(struct cli *c, void *values, char **args, int n_args)
{
    struct purge *p = values;
    lade_err err = {0};
    enum cli_exit code = CLI_OK;
    if (!p->state)
        return cli_say(CLI_USAGE, "--state: which jobs? give completed, dead, ready, ... or all");
    if (cli_view_states("--state", p->state, &p->states, &err) < 0)
        return cli_complain(&err);
    if (strcmp(p->state, "all") != 0 && (p->states & 1U << LADE_STATE_ACTIVE))
        return cli_say(CLI_USAGE, "--state: active jobs cannot be purged; use lade job rm ID");
    if (!cli_confirm(c, &code, "remove all jobs of state %s of %s", p->state,
                     n_args ? args[0] : "the queue"))
        return code;
    return run_acts(c, args, n_args, purge_one, &(struct acts){.purge = p});
}

static const struct cli_opt purge_opts[] = {
    {"state", 's', CLI_OPT_TEXT, offsetof(struct purge, state), "STATES",
     "which jobs, comma separated, or all (but active)", 0, 0, NULL},
};

const struct cli_command cli_queue_purge = {
    .noun = "queue",
    .verb = "purge",
    .args = "QUEUE...",
    .max_args = CLI_MANY_ARGS,
    .about = "Removes all jobs of some states. In small steps that do not hold the "
             "store. Active jobs stay. Prints queue and count.",
    .examples = "  lade queue purge images --state completed --yes\n"
                "  lade queue purge images --state all --dry-run",
    .opts = purge_opts,
    .n_opts = LB_ARRAY_LEN(purge_opts),
    .size = sizeof(struct purge),
    .can_dry_run = true,
    .queue_help = "the queue, in place of an argument",
    .asks = true,
    .run = run_purge,
};

static enum cli_exit rm_one(struct cli *c, const char *queue, void *ctx)
{
    lade_err err = {0};
    lade_queue_info info;
    int rc = c->dry_run ? lade_queue_get(c->q, queue, &info, &err)
                        : lade_queue_remove(c->q, queue, &err);
    if (rc != 0)
        return complain_queue(queue, rc, &err);
    add_act(c, ctx, queue, 0);
    cli_note(c, "%s: %s", queue, c->dry_run ? "would be removed" : "removed");
    return CLI_OK;
}

static enum cli_exit run_rm(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    enum cli_exit code = CLI_OK;
    if (!cli_confirm(c, &code, "remove queue %s", n_args ? args[0] : "(by -q)"))
        return code;
    return run_acts(c, args, n_args, rm_one, &(struct acts){0});
}

const struct cli_command cli_queue_rm = {
    .noun = "queue",
    .verb = "rm",
    .args = "QUEUE...",
    .max_args = CLI_MANY_ARGS,
    .about = "Removes an empty queue. Its totals go too.",
    .examples = "  lade queue rm images --yes",
    .can_dry_run = true,
    .queue_help = "the queue, in place of an argument",
    .asks = true,
    .run = run_rm,
};
