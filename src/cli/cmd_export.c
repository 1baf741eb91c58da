/*
 * lade export, lade import: jobs that wait as lines of JSON, from one store into another
 *
 * A line is what lade enqueue --ndjson reads (ndjson.h), with the job's id. So an import can be done again, or be broken off and begun
 * anew: what is there is passed over. What a line cannot carry is told and left out, never bent: steps of workflows, whose ids are
 * not for others to give, and keys and headers that are no UTF-8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/bulk.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/text.h"
#include "cli/view.h"

#define PAGE    500
#define WAITING "scheduled,retrying,ready"

struct export
{
    const char *state;
};

struct writing {
    struct cli *c;
    uint64_t n_written, n_left;
};

static bool is_text(const void *p, size_t n)
{
    return cli_utf8_span(p, n) == n;
}

/* NULL: a line can carry it; else why not. */
static const char *why_not(const lade_job_view *v)
{
    if (v->corrupt)
        return "its envelope cannot be read";
    if (strchr(v->id, '~'))
        return "it is a step of a workflow";
    if (!is_text(v->unique_key.data, v->unique_key.size))
        return "its unique key is no UTF-8";
    if (!is_text(v->key.data, v->key.size))
        return "its key is no UTF-8";
    for (size_t i = 0; i < v->n_headers; i++) {
        if (!is_text(v->headers[i].value, strlen(v->headers[i].value)))
            return "a header is no UTF-8";
    }
    return NULL;
}

static void add_bytes(struct cli_row *r, const char *key, lade_bytes b)
{
    cli_row_json(r, key, json_stringn(b.size > 0 ? b.data : "", b.size));
}

static void add_ms(struct cli_row *r, const char *key, int64_t ns)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%lldms", (long long)(ns / LADE_MILLISECOND));
    cli_row_text(r, key, text);
}

static void add_payload(struct cli_row *r, lade_bytes p)
{
    struct lb_buf text;
    if (is_text(p.data, p.size)) {
        add_bytes(r, "payload", p);
        return;
    }
    lb_buf_init(&text);
    cli_base64_encode(&text, p.data, p.size);
    r->failed = r->failed || text.failed;
    add_bytes(r, "payload_base64", (lade_bytes){text.p, text.failed ? 0 : text.n});
    lb_buf_fini(&text);
}

/* Takes what `part` holds. */
static void add_part(struct cli_row *r, const char *key, struct cli_row *part)
{
    r->failed = r->failed || part->failed || json_object_set(r->o, key, part->o) != 0;
    cli_row_fini(part);
}

static void add_unique(struct cli_row *r, const lade_job_view *v)
{
    static const char *const until[] = {"done", "start", "ttl"};

    struct cli_row part;
    if (v->unique_key.size == 0)
        return;
    cli_row_init(&part);
    add_bytes(&part, "key", v->unique_key);
    cli_row_text(&part, "until", until[v->unique_until]);
    add_part(r, "unique", &part);
}

static void add_backoff(struct cli_row *r, const lade_backoff *b)
{
    static const char *const types[] = {"", "fixed", "exponential", "polynomial"};

    struct cli_row part;
    if (b->type == LADE_BACKOFF_DEFAULT || (size_t)b->type >= LB_ARRAY_LEN(types))
        return;
    cli_row_init(&part);
    cli_row_text(&part, "type", types[b->type]);
    add_ms(&part, "base", b->base);
    if (b->cap > 0)
        add_ms(&part, "cap", b->cap);
    cli_row_int(&part, "jitter", b->jitter);
    add_part(r, "backoff", &part);
}

static void fill_line(struct cli_row *r, const lade_job_view *v)
{
    cli_row_init(r);
    cli_row_text(r, "id", v->id);
    cli_row_text(r, "queue", v->queue);
    cli_row_text(r, "kind", v->kind);
    add_payload(r, v->payload);
    if (*v->content_type)
        cli_row_text(r, "content_type", v->content_type);
    if ((v->state == LADE_STATE_SCHEDULED || v->state == LADE_STATE_RETRYING) && v->run_at > 0)
        cli_row_time(r, "at", v->run_at);
    cli_row_int(r, "priority", v->priority);
    cli_row_int(r, "max_attempts", v->max_attempts);
    add_ms(r, "timeout", v->timeout);
    if (v->result_ttl > 0)
        add_ms(r, "result_ttl", v->result_ttl);
    if (v->discard_dead)
        cli_row_bool(r, "discard_dead", true);
    if (v->key.size > 0)
        add_bytes(r, "key", v->key);
    add_unique(r, v);
    add_backoff(r, &v->backoff);
    if (v->n_headers > 0) {
        struct cli_row part;
        cli_row_init(&part);
        for (size_t i = 0; i < v->n_headers; i++)
            cli_row_text(&part, v->headers[i].name, v->headers[i].value);
        add_part(r, "headers", &part);
    }
}

static int write_job(struct writing *w, const lade_job_view *v, lade_err *err)
{
    struct cli_row row;
    struct cli as = *w->c;
    const char *why = why_not(v);
    if (why) {
        w->n_left++;
        (void)cli_say(CLI_PARTIAL, "%s of %s: left out: %s", v->id, v->queue, why);
        return 0;
    }
    as.format = CLI_NDJSON;
    fill_line(&row, v);
    w->n_written++;
    return cli_out_object(&as, &row, err);
}

static int write_state(struct writing *w, const char *queue, enum lade_state state, lade_err *err)
{
    lade_cursor cursor = {0};
    int rc = 0;
    while (rc == 0 && !cursor.done) {
        lade_job_view *page[PAGE];
        size_t n = 0;
        rc = lade_job_list(w->c->q, queue, state, &cursor, PAGE, page, &n, err);
        if (rc != 0)
            break;
        for (size_t i = 0; i < n; i++) {
            if (rc == 0)
                rc = write_job(w, page[i], err);
            lade_job_view_free(page[i]);
        }
    }
    return LB_MIN(rc, 0);
}

static enum cli_exit run_export(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    const struct export *e = values;

    /* A job that falls due meanwhile moves to ready, which is read last: it is met once more rather than missed. */
    static const enum lade_state order[] = {LADE_STATE_SCHEDULED, LADE_STATE_RETRYING,
                                            LADE_STATE_READY, LADE_STATE_DEAD};

    struct writing w = {.c = c};
    lade_queue_info *queues = NULL;
    lade_err err = {0};
    size_t n = 0;
    unsigned states = 0, may = 0;
    for (size_t k = 0; k < LB_ARRAY_LEN(order); k++)
        may |= 1U << order[k];
    if (cli_view_states("--state", e->state ? e->state : WAITING, &states, &err) < 0)
        return cli_complain(&err);
    if (states & ~may)
        return cli_say(CLI_USAGE,
                       "--state: only scheduled, ready, retrying and dead jobs can be exported");
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = cli_view_queues(c, &queues, &n, &err);
    if (rc > 0)
        return cli_say(cli_exit_of(rc), "%s", err.text);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        for (size_t k = 0; rc == 0 && k < LB_ARRAY_LEN(order); k++) {
            if (states & 1U << order[k])
                rc = write_state(&w, queues[i].name, order[k], &err);
        }
    }
    lade_free(queues);
    cli_note(c, "%llu exported, %llu left out", (unsigned long long)w.n_written,
             (unsigned long long)w.n_left);
    if (rc < 0)
        return cli_complain(&err);
    return w.n_left > 0 ? CLI_PARTIAL : CLI_OK;
}

static const struct cli_opt export_opts[] = {
    {"state", 's', CLI_OPT_TEXT, offsetof(struct export, state), "STATES",
     "of scheduled, ready, retrying, dead, comma separated (default all but dead)", 0, 0, NULL},
};

const struct cli_command cli_export = {
    .noun = "export",
    .verb = "",
    .args = "",
    .about =
        "Writes the jobs that wait as lines of JSON. With id, payload, time, and all that they were enqueued with; lade import, "
        "or lade enqueue --ndjson, reads them. What a job has been through (attempts, errors, age) stays behind. Nothing is removed. Pause "
        "the queues first: what is taken meanwhile is on both sides. Steps of workflows cannot be exported: they are told, exit 6.",
    .examples = "  lade export -u sqlite:app.db | lade import -u redis://localhost\n"
                "  lade export -q mail --state dead > dead.ndjson",
    .opts = export_opts,
    .n_opts = LB_ARRAY_LEN(export_opts),
    .size = sizeof(struct export),
    .lacks = CLI_LACKS_OUTPUT,
    .run = run_export,
};

/* import ----------------------------------------------------------------------------------------------------------- */

struct import {
    bool skip_bad;
};

static enum cli_exit run_import(struct cli *c, void *values, char **args, int n_args)
{
    const struct import *m = values;
    lade_err err = {0};
    lade_job_spec defaults = {.queue = c->queue};
    int rc = cli_connect(
        c, &(lade_options){.payload_max = LADE_PAYLOAD_MAX_HARD, .must_exist = c->dry_run}, &err);
    if (rc < 0)
        return cli_complain(&err);
    struct cli_bulk bulk = {.path = n_args > 0 ? args[0] : "-",
                            .is_ndjson = true,
                            .skip_bad = m->skip_bad,
                            .tells_held = true,
                            .payload_max = LADE_PAYLOAD_MAX_HARD,
                            .base = &defaults};
    enum cli_exit code = cli_bulk_run(c, &bulk);
    /* What is there already was imported before: that is how an import goes on. */
    return code == CLI_CONFLICT ? CLI_OK : code;
}

static const struct cli_opt import_opts[] = {
    {"skip-bad", 0, CLI_OPT_FLAG, offsetof(struct import, skip_bad), NULL,
     "pass over lines that are no jobs (exit 6)", 0, 0, NULL},
};

const struct cli_command cli_import = {
    .noun = "import",
    .verb = "",
    .args = "[FILE]",
    .max_args = 1,
    .about =
        "Enqueues the jobs of an export. From a file or stdin, in batches that are added wholly or not at all. A job whose id is there is "
        "passed over, so an import that was broken off is simply done again. One whose unique key another job holds there is told and not added, "
        "exit 6. They begin with all their attempts.",
    .examples = "  lade import -u redis://localhost jobs.ndjson\n"
                "  lade export -u sqlite:app.db | lade import -u redis://localhost",
    .opts = import_opts,
    .n_opts = LB_ARRAY_LEN(import_opts),
    .size = sizeof(struct import),
    .can_dry_run = true,
    .queue_help = "of jobs whose line names none",
    .run = run_import,
};
