/* lade worker show, quiet, resume, stop, stacks: workers from afar; `worker ls` is in cmd_worker.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/text.h"

#define PAGE       500
#define LOOK_EVERY (100 * LADE_MILLISECOND)
#define WAIT_MAX   LADE_DAY

/* choosing workers ------------------------------------------------------------------------------------------------- */

struct chosen {
    lade_worker_info *all;
    size_t *at; /* of those that are chosen */
    size_t n;
};

static void free_chosen(struct chosen *w)
{
    lade_free(w->all);
    free(w->at);
}

static bool serves(const lade_worker_info *w, const char *queue)
{
    size_t len = strlen(queue);
    for (const char *p = w->queues; *p;) {
        size_t n = strcspn(p, ",");
        if (n == len && memcmp(p, queue, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* By id, or by a name that one live worker has. */
static enum cli_exit choose_one(struct chosen *w, size_t n_all, const char *word)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < n_all; i++) {
        if (strcmp(w->all[i].id, word) == 0) {
            w->at[w->n++] = i;
            return CLI_OK;
        }
        if (strcmp(w->all[i].name, word) != 0)
            continue;
        if (found != SIZE_MAX)
            return cli_say(CLI_USAGE,
                           "%s: several workers have this name; give the id of one, see lade "
                           "worker ls -o tsv, or --all",
                           word);
        found = i;
    }
    if (found == SIZE_MAX)
        return cli_say(CLI_NOT_FOUND, "%s: no such worker, or it is gone; see lade worker ls",
                       word);
    w->at[w->n++] = found;
    return CLI_OK;
}

/* The workers that are meant: those named; with `all` every live one, of c->queue when that is said. Folds what was not found. */
static enum cli_exit choose(struct cli *c, char **args, int n_args, bool all, struct chosen *out,
                            struct cli_fold *fold)
{
    lade_err err = {0};
    size_t n = 0;
    if (n_args > 0 && (all || c->queue))
        return cli_say(CLI_USAGE, "%s: names go with neither --all nor --queue", args[0]);
    if (n_args == 0 && !all && !c->queue)
        return cli_say(CLI_USAGE, "worker %s: which worker? give its name or id, --queue or --all",
                       c->command->verb);
    if (cli_look(c, &err) < 0 || lade_worker_list(c->q, &out->all, &n, &err) < 0)
        return cli_complain(&err);
    out->at = calloc(n + (size_t)n_args + 1, sizeof(*out->at));
    if (!out->at)
        return cli_say(CLI_FAILED, "out of memory");
    for (int i = 0; i < n_args; i++) {
        enum cli_exit code = choose_one(out, n, args[i]);
        if (code != CLI_OK)
            cli_fold_add(fold, code);
    }
    for (size_t i = 0; n_args == 0 && i < n; i++) {
        if (!c->queue || serves(&out->all[i], c->queue))
            out->at[out->n++] = i;
    }
    if (n_args == 0 && out->n == 0)
        return cli_say(CLI_NOT_FOUND, "no worker is live%s%s", c->queue ? " on queue " : "",
                       c->queue ? c->queue : "");
    return CLI_OK;
}

/* How soon an idle worker reads its orders. */
static int64_t reads_within(const lade_worker_info *w)
{
    return LB_MAX(w->lease_until - w->seen_at, 0) / 2;
}

/* show ------------------------------------------------------------------------------------------------------------- */

static const struct cli_column job_columns[] = {
    {"JOB", "id", CLI_CELL_TEXT, false, false},
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"KIND", "kind", CLI_CELL_TEXT, false, false},
    {"ATTEMPT", "attempt", CLI_CELL_TEXT, true, false},
    {"FOR", "held_ms", CLI_CELL_DURATION, true, false},
    {"LEASE", "lease_left_ms", CLI_CELL_DURATION, true, false},
};

static const char *wish_name(enum lade_worker_order wish)
{
    switch (wish) {
    case LADE_WORKER_RESUME:
        return "resume";
    case LADE_WORKER_QUIET:
        return "quiet";
    case LADE_WORKER_STOP:
        return "stop";
    case LADE_WORKER_STACKS:
    default:
        return NULL;
    }
}

static void fill_worker(struct cli_row *r, const lade_worker_view *v, int64_t now)
{
    const lade_worker_info *w = &v->info;
    cli_row_init(r);
    cli_row_text(r, "name", w->name);
    cli_row_text(r, "id", w->id);
    cli_row_text(r, "state", lade_worker_state_name(v->state));
    cli_row_text(r, "order", wish_name(v->wish));
    cli_row_text(r, "host", *v->host ? v->host : NULL);
    if (v->pid > 0)
        cli_row_int(r, "pid", v->pid);
    else
        cli_row_text(r, "pid", NULL);
    cli_row_text(r, "version", *v->version ? v->version : NULL);
    cli_row_text(r, "queues", w->queues);
    cli_row_int(r, "concurrency", w->concurrency);
    cli_row_u64(r, "active", w->n_active);
    cli_row_time(r, "started_at", w->started_at);
    cli_row_int(r, "up_ms", LB_MAX(now - w->started_at, 0) / LADE_MILLISECOND);
    cli_row_time(r, "seen_at", w->seen_at);
    cli_row_time(r, "lease_until", w->lease_until);
    cli_row_int(r, "lease_left_ms", LB_MAX(w->lease_until - now, 0) / LADE_MILLISECOND);
}

typedef void (*job_fn)(void *ctx, const lade_job_view *job);

/* The active jobs of the queue that are under the worker's name. */
static int each_job_of_queue(struct cli *c, const char *queue, const char *worker, job_fn fn,
                             void *ctx, lade_err *err)
{
    lade_cursor cursor = {0};
    int rc = 0;
    while (rc == 0 && !cursor.done) {
        lade_job_view *page[PAGE];
        size_t n = 0;
        rc = lade_job_list(c->q, queue, LADE_STATE_ACTIVE, &cursor, PAGE, page, &n, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            if (strcmp(page[i]->worker, worker) == 0)
                fn(ctx, page[i]);
            lade_job_view_free(page[i]);
        }
    }
    return LB_MIN(rc, 0);
}

static int each_job(struct cli *c, const lade_worker_info *w, job_fn fn, void *ctx, lade_err *err)
{
    lade_queue_info *queues = NULL;
    size_t n = 0;
    int rc = lade_queue_list(c->q, &queues, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (queues[i].count[LADE_STATE_ACTIVE] > 0 && serves(w, queues[i].name))
            rc = each_job_of_queue(c, queues[i].name, w->name, fn, ctx, err);
    }
    lade_free(queues);
    return rc;
}

struct jobs {
    int64_t now;
    struct cli_out *out; /* or */
    json_t *list;
    bool failed;
};

static void add_job(void *ctx, const lade_job_view *v)
{
    struct jobs *j = ctx;
    struct cli_row r;
    cli_row_init(&r);
    cli_row_text(&r, "id", v->id);
    cli_row_text(&r, "queue", v->queue);
    cli_row_text(&r, "kind", v->kind);
    cli_row_int(&r, "attempt", v->attempts + 1);
    cli_row_time(&r, "taken_at", v->taken_at);
    cli_row_int(&r, "held_ms", LB_MAX(j->now - v->taken_at, 0) / LADE_MILLISECOND);
    cli_row_time(&r, "lease_until", v->lease_until);
    cli_row_int(&r, "lease_left_ms", LB_MAX(v->lease_until - j->now, 0) / LADE_MILLISECOND);
    if (j->out) {
        cli_out_row(j->out, &r);
        return;
    }
    j->failed = j->failed || r.failed || json_array_append(j->list, r.o) != 0;
    cli_row_fini(&r);
}

static void print_card(const struct cli_row *r)
{
    static const char *const facts[][2] = {
        {"name", "name"},          {"id", "id"},
        {"state", "state"},        {"order", "order"},
        {"host", "host"},          {"pid", "pid"},
        {"lade", "version"},       {"queues", "queues"},
        {"slots", "concurrency"},  {"active", "active"},
        {"started", "started_at"}, {"up", "up_ms"},
        {"seen", "seen_at"},       {"lease left", "lease_left_ms"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(facts); i++) {
        const json_t *v = json_object_get(r->o, facts[i][1]);
        char text[CLI_TIME_LEN];
        if (json_is_string(v)) {
            (void)printf("%-11s %s\n", facts[i][0], json_string_value(v));
        } else if (json_is_integer(v) && strstr(facts[i][1], "_ms")) {
            cli_duration_text(text, json_integer_value(v) * LADE_MILLISECOND);
            (void)printf("%-11s %s\n", facts[i][0], text);
        } else if (json_is_integer(v)) {
            (void)printf("%-11s %lld\n", facts[i][0], (long long)json_integer_value(v));
        }
    }
}

static int show_worker(struct cli *c, const lade_worker_view *v, lade_err *err)
{
    struct jobs jobs = {0};
    struct cli_row row;
    struct cli_out out;
    int rc = lade_now(c->q, &jobs.now, err);
    if (rc < 0)
        return rc;
    fill_worker(&row, v, jobs.now);
    if (cli_out_is_json(c)) {
        jobs.list = json_array();
        rc = jobs.list ? each_job(c, &v->info, add_job, &jobs, err) : 0;
        row.failed = row.failed || jobs.failed;
        cli_row_json(&row, "jobs", jobs.list);
        if (rc == 0)
            return cli_out_object(c, &row, err);
        cli_row_fini(&row);
        return rc;
    }
    if (c->format == CLI_TSV)
        return cli_out_object(c, &row, err);
    print_card(&row);
    cli_row_fini(&row);
    if (v->info.n_active == 0)
        return 0;
    (void)putchar('\n');
    jobs.out = &out;
    cli_out_begin(&out, c, job_columns, LB_ARRAY_LEN(job_columns));
    rc = each_job(c, &v->info, add_job, &jobs, err);
    return cli_out_finish(&out, rc, err);
}

/* One worker that an argument names, looked up. */
static enum cli_exit find_one(struct cli *c, char **args, lade_worker_view **v)
{
    struct chosen w = {0};
    struct cli_fold fold = {0};
    lade_err err = {0};
    enum cli_exit code = choose(c, args, 1, false, &w, &fold);
    if (code == CLI_OK && w.n == 0)
        code = cli_fold_exit(&fold);
    if (code == CLI_OK && w.at && w.n > 0) {
        int rc = lade_worker_get(c->q, w.all[w.at[0]].id, v, &err);
        if (rc == LADE_NOT_FOUND)
            code = cli_say(CLI_NOT_FOUND, "%s: has just gone", args[0]);
        else if (rc < 0)
            code = cli_complain(&err);
    }
    free_chosen(&w);
    return code;
}

static enum cli_exit run_show(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    (void)n_args;
    lade_worker_view *v = NULL;
    lade_err err = {0};
    enum cli_exit code = find_one(c, args, &v);
    if (code != CLI_OK || !v)
        return code;
    if (show_worker(c, v, &err) < 0)
        code = cli_complain(&err);
    lade_free(v);
    return code;
}

const struct cli_command cli_worker_show = {
    .noun = "worker",
    .verb = "show",
    .args = "NAME|ID",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Shows one live worker. Where it runs, its state, its slots and lease, the order that holds for it, and the jobs that it holds, "
        "since when.",
    .examples = "  lade worker show web1:4711\n  lade worker show web1:4711 -o json",
    .lacks = CLI_LACKS_QUEUE,
    .run = run_show,
};

/* quiet, resume, stop ---------------------------------------------------------------------------------------------- */

struct order {
    bool all;
    int64_t wait;
};

static bool has_obeyed(const lade_worker_view *v, enum lade_worker_order order)
{
    return order == LADE_WORKER_QUIET    ? v->state == LADE_WORKER_IS_QUIET
           : order == LADE_WORKER_RESUME ? v->state == LADE_WORKER_RUNNING
                                         : false;
}

/* 0; LADE_TIMEOUT; LADE_NOT_FOUND: it is gone, which is what a stop waits for. */
static int wait_for(struct cli *c, const char *id, enum lade_worker_order order, int64_t deadline,
                    lade_err *err)
{
    for (;;) {
        lade_worker_view *v = NULL;
        int rc = lade_worker_get(c->q, id, &v, err);
        bool done = rc == 0 && v && has_obeyed(v, order);
        lade_free(v);
        if (rc != 0 || done)
            return rc;
        if (lb_clock_mono() >= deadline)
            return LADE_TIMEOUT;
        cli_pause(LOOK_EVERY);
    }
}

static const struct cli_column order_columns[] = {
    {"ID", "id", CLI_CELL_TEXT, false, false},
    {"NAME", "name", CLI_CELL_TEXT, false, false},
    {"ORDER", "order", CLI_CELL_TEXT, false, false},
    {"RESULT", "result", CLI_CELL_TEXT, false, false},
};

struct giving {
    struct cli *c;
    enum lade_worker_order order;
    const struct order *o;
    struct cli_out out;
    struct cli_fold fold;
    int64_t deadline;
};

/* What became of the order, told; "done" once it was waited for. */
static const char *tell_result(struct giving *g, const lade_worker_info *w, int rc,
                               const lade_err *err)
{
    const char *verb = g->c->command->verb;
    bool gone = rc == LADE_NOT_FOUND;
    char within[CLI_TIME_LEN];
    cli_duration_text(within, reads_within(w));
    if (rc < 0) {
        cli_fold_add(&g->fold, cli_complain(err));
        return "failed";
    }
    if (rc == LADE_WRONG_STATE) {
        cli_fold_add(&g->fold, cli_say(CLI_CONFLICT, "%s: is told to stop already", w->name));
        return "wrong_state";
    }
    if (rc == LADE_TIMEOUT) {
        cli_fold_add(&g->fold, cli_say(CLI_CONFLICT, "%s: has not obeyed yet (%s)", w->name, verb));
        return "timeout";
    }
    if (gone && !(g->o->wait > 0 && g->order == LADE_WORKER_STOP)) {
        cli_fold_add(&g->fold, cli_say(CLI_NOT_FOUND, "%s: is gone", w->name));
        return "not_found";
    }
    cli_fold_add(&g->fold, CLI_OK);
    if (g->c->dry_run)
        cli_note(g->c, "%s: would be told: %s", w->name, verb);
    else if (g->o->wait > 0)
        cli_note(g->c, "%s: %s", w->name, gone ? "has stopped" : "has obeyed");
    else
        cli_note(g->c, "%s: told: %s; it reads this within %s", w->name, verb, within);
    return g->o->wait > 0 && !g->c->dry_run ? "done" : "asked";
}

static void give_one(struct giving *g, const lade_worker_info *w)
{
    lade_err err = {0};
    struct cli_row row;
    int rc = g->c->dry_run ? 0 : lade_worker_order(g->c->q, w->id, g->order, &err);
    if (rc == 0 && g->o->wait > 0 && !g->c->dry_run)
        rc = wait_for(g->c, w->id, g->order, g->deadline, &err);
    const char *result = tell_result(g, w, rc, &err);
    if (g->c->format == CLI_TABLE)
        return;
    cli_row_init(&row);
    cli_row_text(&row, "id", w->id);
    cli_row_text(&row, "name", w->name);
    cli_row_text(&row, "order", g->c->command->verb);
    cli_row_text(&row, "result", result);
    cli_row_bool(&row, "dry_run", g->c->dry_run);
    cli_out_row(&g->out, &row);
}

static enum cli_exit run_order(struct cli *c, const struct order *o, enum lade_worker_order order,
                               char **args, int n_args)
{
    struct giving g = {.c = c, .order = order, .o = o};
    struct chosen w = {0};
    lade_err err = {0};
    enum cli_exit code = choose(c, args, n_args, o->all, &w, &g.fold);
    if (code == CLI_OK && order == LADE_WORKER_STOP && n_args == 0)
        (void)cli_confirm(c, &code, "stop %zu workers", w.n);
    if (code != CLI_OK) {
        free_chosen(&w);
        return code;
    }
    g.deadline = lb_deadline_in(o->wait);
    if (c->format != CLI_TABLE)
        cli_out_begin(&g.out, c, order_columns, LB_ARRAY_LEN(order_columns));
    for (size_t i = 0; w.all && w.at && i < w.n; i++)
        give_one(&g, &w.all[w.at[i]]);
    free_chosen(&w);
    if (c->format != CLI_TABLE && cli_out_end(&g.out, &err) < 0)
        return cli_complain(&err);
    return cli_fold_exit(&g.fold);
}

static enum cli_exit run_quiet(struct cli *c, void *values, char **args, int n_args)
{
    return run_order(c, values, LADE_WORKER_QUIET, args, n_args);
}

static enum cli_exit run_resume(struct cli *c, void *values, char **args, int n_args)
{
    return run_order(c, values, LADE_WORKER_RESUME, args, n_args);
}

static enum cli_exit run_stop(struct cli *c, void *values, char **args, int n_args)
{
    return run_order(c, values, LADE_WORKER_STOP, args, n_args);
}

static const struct cli_opt order_opts[] = {
    {"all", 0, CLI_OPT_FLAG, offsetof(struct order, all), NULL, "every live worker", 0, 0, NULL},
    {"wait", 0, CLI_OPT_DURATION, offsetof(struct order, wait), "DURATION",
     "until it has obeyed, at most so long (exit 4 when not)", LADE_MILLISECOND, WAIT_MAX, NULL},
};

#define READS                                                                                           \
    " A worker reads orders when it renews its lease, so within half of that (7.5 s by default). Exit " \
    "3: there is no such worker, or it is gone."
#define ORDER_COMMAND(variable, word, asks_, text, example)        \
    const struct cli_command variable = {                          \
        .noun = "worker",                                          \
        .verb = #word,                                             \
        .args = "[NAME|ID...]",                                    \
        .max_args = CLI_MANY_ARGS,                                 \
        .about = text READS,                                       \
        .examples = "  lade worker " #word " web1:4711\n" example, \
        .opts = order_opts,                                        \
        .n_opts = LB_ARRAY_LEN(order_opts),                        \
        .size = sizeof(struct order),                              \
        .can_dry_run = true,                                       \
        .asks = (asks_),                                           \
        .queue_help = "all workers that serve this queue",         \
        .run = run_##word,                                         \
    }

ORDER_COMMAND(
    cli_worker_quiet, quiet, false,
    "Tells workers to take no more jobs. They stay up and finish what they run, until resumed: "
    "as TSTP, but that is for good.",
    "  lade worker quiet -q images --wait 10s");
ORDER_COMMAND(cli_worker_resume, resume, false,
              "Tells workers to take jobs again. After lade worker quiet; not after a TSTP.",
              "  lade worker resume --all");
ORDER_COMMAND(
    cli_worker_stop, stop, true,
    "Tells workers to stop. They take no more, finish what they run and end, as by TERM; what is not done within "
    "their --shutdown-timeout is handed back. With --all and --queue it asks first.",
    "  lade worker stop --all --yes --wait 60s");

/* stacks ----------------------------------------------------------------------------------------------------------- */

struct stacks {
    int64_t timeout;
};

/* 0 with *out, LADE_TIMEOUT, LADE_NOT_FOUND. */
static int await_stacks(struct cli *c, const char *id, uint64_t asked, int64_t deadline,
                        lade_worker_view **out, lade_err *err)
{
    for (;;) {
        int rc = lade_worker_get(c->q, id, out, err);
        if (rc != 0 || (*out)->stacks_made >= asked)
            return rc;
        lade_free(*out);
        *out = NULL;
        if (lb_clock_mono() >= deadline)
            return LADE_TIMEOUT;
        cli_pause(LOOK_EVERY);
    }
}

static int print_stacks(struct cli *c, const lade_worker_view *v, lade_err *err)
{
    struct cli_row row;
    if (c->format == CLI_TABLE)
        return cli_out_raw(v->stacks, err);
    cli_row_init(&row);
    cli_row_text(&row, "id", v->info.id);
    cli_row_text(&row, "name", v->info.name);
    cli_row_time(&row, "at", v->stacks_at);
    cli_row_bytes(&row, "stacks", v->stacks, SIZE_MAX);
    return cli_out_object(c, &row, err);
}

static enum cli_exit run_stacks(struct cli *c, void *values, char **args, int n_args)
{
    (void)n_args;
    const struct stacks *s = values;
    lade_worker_view *before = NULL, *v = NULL;
    lade_err err = {0};
    enum cli_exit code = find_one(c, args, &before);
    if (code != CLI_OK || !before)
        return code;
    int64_t wait = s->timeout > 0 ? s->timeout : 2 * reads_within(&before->info) + 5 * LADE_SECOND;
    int rc = lade_worker_order(c->q, before->info.id, LADE_WORKER_STACKS, &err);
    if (rc == 0)
        rc = await_stacks(c, before->info.id, before->stacks_asked + 1, lb_deadline_in(wait), &v,
                          &err);
    if (rc == 0)
        rc = print_stacks(c, v, &err);
    if (rc == LADE_NOT_FOUND)
        code = cli_say(CLI_NOT_FOUND, "%s: has gone without an answer", args[0]);
    else if (rc == LADE_TIMEOUT)
        code = cli_say(CLI_CONFLICT, "%s: has not answered yet", args[0]);
    else if (rc < 0)
        code = cli_complain(&err);
    lade_free(before);
    lade_free(v);
    return code;
}

static const struct cli_opt stacks_opts[] = {
    {"timeout", 't', CLI_OPT_DURATION, offsetof(struct stacks, timeout), "DURATION",
     "give up after that, exit 4 (default: a lease and 5 s)", LADE_MILLISECOND, WAIT_MAX, NULL},
};

const struct cli_command cli_worker_stacks = {
    .noun = "worker",
    .verb = "stacks",
    .args = "NAME|ID",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Shows what a worker's handlers and tasks are doing. As TTIN, which writes the same to the worker's log: each job with the "
        "time it runs, each task with what it waits for and where. At most 64 KiB are kept, for an hour." READS,
    .examples =
        "  lade worker stacks web1:4711\n  lade worker stacks web1:4711 --timeout 30s -o json",
    .opts = stacks_opts,
    .n_opts = LB_ARRAY_LEN(stacks_opts),
    .size = sizeof(struct stacks),
    .lacks = CLI_LACKS_QUEUE,
    .run = run_stacks,
};
