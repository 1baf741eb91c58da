/* lade stats: all queues in one line each and their sum, once or again and again */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/view.h"

struct stats {
    bool watch;
    int64_t seconds;
    int64_t count; /* 0 = for ever */
};

static const struct cli_column columns[] = {
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"READY", "ready", CLI_CELL_TEXT, true, false},
    {"SCHEDULED", "scheduled", CLI_CELL_TEXT, true, false},
    {"RETRYING", "retrying", CLI_CELL_TEXT, true, false},
    {"ACTIVE", "active", CLI_CELL_TEXT, true, false},
    {"DEAD", "dead", CLI_CELL_TEXT, true, false},
    {"ENQUEUED", "total_enqueued", CLI_CELL_TEXT, true, false},
    {"DONE", "total_completed", CLI_CELL_TEXT, true, false},
    {"FAILED", "total_failed", CLI_CELL_TEXT, true, false},
    {"DIED", "total_dead", CLI_CELL_TEXT, true, false},
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
    cli_row_u64(r, "total_enqueued", q->total_enqueued);
    cli_row_u64(r, "total_completed", q->total_completed);
    cli_row_u64(r, "total_failed", q->total_failed);
    cli_row_u64(r, "total_dead", q->total_dead);
    cli_row_int(r, "latency_ms", q->latency / LADE_MILLISECOND);
    cli_row_u64(r, "workers", q->n_workers);
}

static void add_to_sum(lade_queue_info *sum, const lade_queue_info *q)
{
    for (int s = 0; s < LADE_N_STATES; s++)
        sum->count[s] += q->count[s];
    sum->held += q->held;
    sum->total_enqueued += q->total_enqueued;
    sum->total_completed += q->total_completed;
    sum->total_failed += q->total_failed;
    sum->total_dead += q->total_dead;
    sum->latency = LB_MAX(sum->latency, q->latency);
}

/* One object: {"at":..., "queues":[...], "total":{...}} */
static int print_object(const struct cli *c, const lade_queue_info *queues, size_t n,
                        const lade_queue_info *sum, lade_err *err)
{
    struct cli_row all;
    struct cli_row total;
    int64_t now = 0;
    int rc = lade_now(c->q, &now, err);
    if (rc < 0)
        return rc;
    cli_row_init(&all);
    cli_row_time(&all, "at", now);
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        struct cli_row row;
        make_row(&row, &queues[i]);
        all.failed |= row.failed || json_array_append(list, row.o) != 0;
        cli_row_fini(&row);
    }
    cli_row_json(&all, "queues", list);
    make_row(&total, sum);
    all.failed |= total.failed || json_object_set(all.o, "total", total.o) != 0;
    cli_row_fini(&total);
    return cli_out_object(c, &all, err);
}

static int print_table(const struct cli *c, const lade_queue_info *queues, size_t n,
                       const lade_queue_info *sum, lade_err *err)
{
    struct cli_out out;
    struct cli_row row;
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    for (size_t i = 0; i < n; i++) {
        make_row(&row, &queues[i]);
        cli_out_row(&out, &row);
    }
    make_row(&row, sum);
    cli_out_row(&out, &row);
    return cli_out_end(&out, err);
}

static int print_once(struct cli *c, lade_err *err)
{
    lade_queue_info *queues = NULL;
    lade_worker_info *workers = NULL;
    size_t n = 0;
    lade_queue_info sum = {.name = "total"};
    int rc = cli_view_queues(c, &queues, &n, err);
    if (rc != 0)
        return rc;
    /* A worker serves several queues, so the sum of theirs would count it twice. */
    rc = lade_worker_list(c->q, &workers, &sum.n_workers, err);
    lade_free(workers);
    for (size_t i = 0; i < n; i++)
        add_to_sum(&sum, &queues[i]);
    if (rc == 0 && (c->format == CLI_TABLE || c->format == CLI_TSV))
        rc = print_table(c, queues, n, &sum, err);
    else if (rc == 0)
        rc = print_object(c, queues, n, &sum, err);
    lade_free(queues);
    return rc;
}

static int set_watch(void *values, const char *text, lade_err *err)
{
    struct stats *s = values;
    s->watch = true;
    s->seconds = 1;
    if (!text)
        return 0;
    return cli_arg_int("--watch", text, (struct cli_range){1, 86400}, &s->seconds, err);
}

static enum cli_exit run_stats(struct cli *c, void *values, char **args, int n_args)
{
    struct stats *s = values;
    lade_err err = {0};
    if (n_args > 0 && !s->watch)
        return cli_say(CLI_USAGE, "stats %s: too many arguments; it takes none without --watch",
                       args[0]);
    if (n_args > 0 && set_watch(s, args[0], &err) < 0)
        return cli_complain(&err);
    if (s->count > 0 && !s->watch)
        return cli_say(CLI_USAGE, "--count: only with --watch");
    int rc = cli_look(c, &err);
    bool redraw = isatty(STDOUT_FILENO) && c->format == CLI_TABLE;
    int64_t rounds = s->watch ? s->count : 1;
    for (int64_t i = 0; rc == 0; i++) {
        if (i > 0)
            cli_pause(s->seconds * LADE_SECOND);
        if (s->watch && redraw)
            (void)fputs("\033[H\033[2J", stdout);
        rc = print_once(c, &err);
        if (rounds > 0 && i + 1 >= rounds)
            break;
    }
    if (rc > 0)
        return cli_say(cli_exit_of(rc), "%s", err.text);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt opts[] = {
    {"watch", 'w', CLI_OPT_CALL, 0, "[=SEC]",
     "again every SEC seconds (default 1) until interrupted", 0, 0, set_watch},
    {"count", 0, CLI_OPT_INT, offsetof(struct stats, count), "N", "with --watch: so many times", 1,
     1000000, NULL},
};

const struct cli_command cli_stats = {
    .noun = "stats",
    .verb = "",
    .args = "[SEC]",
    .max_args = 1,
    .about = "Shows counts and totals of all queues. Latency is the age of "
             "the oldest ready job. With -o json: one object with queues and total.",
    .examples = "  lade stats\n  lade stats --watch 2\n  lade stats --watch -o ndjson",
    .opts = opts,
    .n_opts = LB_ARRAY_LEN(opts),
    .size = sizeof(struct stats),
    .run = run_stats,
};
