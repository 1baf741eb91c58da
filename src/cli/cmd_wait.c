/* lade job wait, lade job logs: until a job ends, and what it says until then */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/notes.h"
#include "cli/result.h"
#include "cli/view.h"

/* The queue of a job: given, or where the job is. 0, LADE_NOT_FOUND or a failure. */
static int find_queue(struct cli *c, const char *id, char queue[LADE_NAME_MAX + 1], lade_err *err)
{
    const char *name = c->queue;
    lade_job_view *v = NULL;
    if (!name) {
        int rc = lade_job_get(c->q, NULL, id, &v, err);
        if (rc != 0)
            return rc;
        name = v->queue;
    }
    (void)snprintf(queue, LADE_NAME_MAX + 1, "%s", name);
    lade_job_view_free(v);
    return 0;
}

static enum cli_exit say_missing(const struct cli *c, const char *id)
{
    return cli_say(CLI_NOT_FOUND, "%s: no such job%s%s; it never was, or nothing of it is kept", id,
                   c->queue ? " in queue " : "", c->queue ? c->queue : "");
}

/* ---- wait ---- */

struct wait {
    int64_t timeout; /* 0 = for ever */
    bool result;
};

static int print_end(const struct cli *c, const struct wait *w, const lade_job_view *v,
                     lade_err *err)
{
    if (w->result)
        return cli_out_raw(v->result, err);
    if (c->format == CLI_TABLE) {
        (void)printf("%s %s%s%s\n", v->id, lade_state_name(v->state), *v->reason ? ": " : "",
                     v->reason);
        return 0;
    }
    struct cli_row row;
    cli_row_init(&row);
    cli_row_text(&row, "id", v->id);
    cli_row_text(&row, "queue", v->queue);
    cli_row_text(&row, "kind", v->kind);
    cli_row_text(&row, "state", lade_state_name(v->state));
    cli_row_text(&row, "reason", v->reason);
    cli_row_int(&row, "attempts", v->attempts);
    cli_row_time(&row, "finished_at", v->finished_at);
    cli_row_bytes(&row, "result", v->result, SIZE_MAX);
    return cli_out_object(c, &row, err);
}

static enum cli_exit run_wait(struct cli *c, void *values, char **args, int n_args)
{
    (void)n_args;
    const struct wait *w = values;
    lade_err err = {0};
    lade_job_view *v = NULL;
    char queue[LADE_NAME_MAX + 1];
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = find_queue(c, args[0], queue, &err);
    if (rc == 0)
        rc = lade_job_wait(c->q, queue, args[0], w->timeout > 0 ? w->timeout : LADE_FOREVER, NULL,
                           &v, &err);
    bool found = false;
    if (rc == LADE_NOT_FOUND && w->result && cli_result_of_gone(c, args[0], &found, &err) < 0)
        return cli_complain(&err);
    if (rc == LADE_NOT_FOUND)
        return found ? CLI_OK : say_missing(c, args[0]);
    if (rc == LADE_TIMEOUT)
        return cli_say(CLI_CONFLICT, "%s: has not ended yet", args[0]);
    if (rc != 0)
        return cli_complain(&err);
    rc = print_end(c, w, v, &err);
    enum cli_exit code = v->state == LADE_STATE_COMPLETED ? CLI_OK : CLI_FAILED;
    lade_job_view_free(v);
    return rc < 0 ? cli_complain(&err) : code;
}

static const struct cli_opt wait_opts[] = {
    {"result", 0, CLI_OPT_FLAG, offsetof(struct wait, result), NULL,
     "write the result as it is, nothing else; also of a job that is gone (--result-ttl)", 0, 0,
     NULL},
    {"timeout", 't', CLI_OPT_DURATION, offsetof(struct wait, timeout), "DURATION",
     "give up after that (default: never)", LADE_MILLISECOND, CLI_DURATION_MAX, NULL},
};

const struct cli_command cli_job_wait = {
    .noun = "job",
    .verb = "wait",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Waits until a job has ended. Nothing is polled: the worker that ends it rings. Exits 0 "
        "when it completed, 1 when it is dead or cancelled, 3 when it is not there or nothing of it is kept, 4 when the time is over first.",
    .examples = "  lade job wait 01HZX3V7Q2M4N5P6R7S8T9VWXY --timeout 30s\n"
                "  lade job wait \"$(lade enqueue --kind thumb)\" --result > thumb.png",
    .opts = wait_opts,
    .n_opts = LB_ARRAY_LEN(wait_opts),
    .size = sizeof(struct wait),
    .run = run_wait,
};

/* ---- logs ---- */

struct logs {
    int64_t start, limit;
    bool follow, reverse, start_given, limit_given;
};

static int set_start(void *values, const char *text, lade_err *err)
{
    struct logs *l = values;
    l->start_given = true;
    return cli_arg_int("--start", text, (struct cli_range){-LADE_LOG_LINES_MAX, LADE_LOG_LINES_MAX},
                       &l->start, err);
}

static int set_limit(void *values, const char *text, lade_err *err)
{
    struct logs *l = values;
    l->limit_given = true;
    return cli_arg_int("--limit", text, (struct cli_range){1, LADE_LOG_LINES_MAX}, &l->limit, err);
}

static const struct cli_column log_columns[] = {
    {"LINE", "number", CLI_CELL_TEXT, true, false},
    {"AT", "at", CLI_CELL_TEXT, false, false},
    {"TEXT", "text", CLI_CELL_BYTES, false, false},
};

/* Prints lines with a number above *seen. */
static int print_lines(struct cli *c, const lade_job_notes *notes, uint64_t *seen, lade_err *err)
{
    struct cli_out out;
    uint64_t before = *seen;
    if (c->format != CLI_TABLE) /* which is printed by the line */
        cli_out_begin(&out, c, log_columns, LB_ARRAY_LEN(log_columns));
    for (size_t i = 0; i < notes->n; i++) {
        const lade_log_line *line = &notes->line[i];
        struct cli_row row;
        *seen = LB_MAX(*seen, line->number);
        if (line->number <= before)
            continue;
        if (c->format == CLI_TABLE) {
            cli_notes_print_line(line);
            continue;
        }
        cli_row_init(&row);
        cli_row_u64(&row, "number", line->number);
        cli_row_time(&row, "at", line->at);
        cli_row_bytes(&row, "text", line->text, SIZE_MAX);
        cli_out_row(&out, &row);
    }
    if (c->format == CLI_TABLE) {
        (void)fflush(stdout);
        return 0;
    }
    int rc = cli_out_end(&out, err);
    (void)fflush(stdout);
    return rc;
}

static bool has_ended(struct cli *c, const char *queue, const char *id)
{
    lade_job_view *v = NULL;
    lade_err err = {0};
    bool ended = lade_job_wait(c->q, queue, id, 0, NULL, &v, &err) != LADE_TIMEOUT;
    lade_job_view_free(v);
    return ended;
}

/* New lines as they come, until the job ends. 0, LADE_NOT_FOUND or a failure. */
static int follow(struct cli *c, const char *queue, const char *id, uint64_t seen, lade_err *err)
{
    int rc = 0;
    bool ended = false;
    while (rc == 0 && !ended) {
        lade_job_notes *notes = NULL;
        rc = lade_job_wait_log(c->q, queue, id, seen, LADE_FOREVER, NULL, err);
        ended =
            rc == 0 && has_ended(c, queue, id); /* before the reading: then nothing follows it */
        if (rc == 0)
            rc = lade_job_get_notes(c->q, queue, id, 0, LADE_LOG_LINES_MAX, false, &notes, err);
        if (rc == 0)
            rc = print_lines(c, notes, &seen, err);
        lade_free(notes);
    }
    return rc;
}

static enum cli_exit run_logs(struct cli *c, void *values, char **args, int n_args)
{
    (void)n_args;
    const struct logs *l = values;
    lade_err err = {0};
    lade_job_notes *notes = NULL;
    char queue[LADE_NAME_MAX + 1];
    uint64_t seen = 0;
    if (l->follow && (l->reverse || c->format == CLI_JSON))
        return cli_say(CLI_USAGE,
                       "--follow goes with neither --reverse nor -o json; use -o ndjson");
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = find_queue(c, args[0], queue, &err);
    int64_t limit = l->limit_given ? l->limit : LADE_LOG_LINES_MAX;
    int64_t start = l->start_given ? l->start : l->limit_given ? -limit : 0;
    if (rc == 0)
        rc = lade_job_get_notes(c->q, queue, args[0], start, (size_t)limit, l->reverse, &notes,
                                &err);
    if (rc == 0)
        rc = print_lines(c, notes, &seen, &err);
    if (rc == 0 && l->follow)
        rc = follow(c, queue, args[0], LB_MAX(seen, notes->total), &err);
    lade_free(notes);
    if (rc == LADE_NOT_FOUND)
        return say_missing(c, args[0]);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt logs_opts[] = {
    {"follow", 'f', CLI_OPT_FLAG, offsetof(struct logs, follow), NULL,
     "go on with new lines until the job ends", 0, 0, NULL},
    {"limit", 'l', CLI_OPT_CALL, 0, "N", "at most so many lines; without --start the last ones", 0,
     0, set_limit},
    {"reverse", 0, CLI_OPT_FLAG, offsetof(struct logs, reverse), NULL, "newest first", 0, 0, NULL},
    {"start", 0, CLI_OPT_CALL, 0, "N", "skip N lines; below 0: begin N before the end", 0, 0,
     set_start},
};

const struct cli_command cli_job_logs = {
    .noun = "job",
    .verb = "logs",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Shows what a job's handler wrote to its log. The newest 1000 lines are kept with the job.",
    .examples = "  lade job logs 01HZX3V7Q2M4N5P6R7S8T9VWXY --follow\n"
                "  lade job logs ID --limit 20 -o ndjson",
    .opts = logs_opts,
    .n_opts = LB_ARRAY_LEN(logs_opts),
    .size = sizeof(struct logs),
    .run = run_logs,
};
