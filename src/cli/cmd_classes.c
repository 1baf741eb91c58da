/* lade dead: classes of deaths, the dead by filter, redrive and purge by filter; and lade job edit */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/deadopt.h"
#include "cli/lines.h"
#include "cli/out.h"
#include "cli/view.h"

/* filter ---------------------------------------------------------------------------------------------------------- */

int cli_dead_where(struct cli_dead_filter *f, const char *text, lade_err *err)
{
    const char *sign = strchr(text, '=');
    size_t n = sign ? (size_t)(sign - text) : 0;
    if (n == 5 && strncmp(text, "class", n) == 0)
        f->class_id = sign + 1;
    else if (n == 4 && strncmp(text, "kind", n) == 0)
        f->kind = sign + 1;
    else if (n == 6 && strncmp(text, "reason", n) == 0)
        f->reason = sign + 1;
    else
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--where: '%.40s' is no filter; give class=ID, kind=KIND or reason=REASON",
                       text);
    return 0;
}

bool cli_dead_is_filtered(const struct cli_dead_filter *f)
{
    return f->class_id || f->kind || f->reason || f->older > 0 || f->newer > 0 || f->before > 0;
}

int cli_dead_resolve(struct cli *c, const struct cli_dead_filter *f, lade_dead_filter *out,
                     lade_err *err)
{
    int64_t now = 0;
    int rc = lade_now(c->q, &now, err);
    *out = (lade_dead_filter){.class_id = f->class_id,
                              .kind = f->kind,
                              .reason = f->reason,
                              .from = f->newer > 0 ? now - f->newer : 0,
                              .before = f->before};
    if (f->older > 0 && (out->before == 0 || now - f->older < out->before))
        out->before = now - f->older;
    if (rc == 0 && out->from > 0 && out->before > 0 && out->before <= out->from)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--newer: no time is left before %s; give a longer one",
                       f->older > 0 ? "--older" : "--before");
    return rc;
}

/* classes --------------------------------------------------------------------------------------------------------- */

static const struct cli_column class_columns[] = {
    {"CLASS", "class", CLI_CELL_TEXT, false, false},
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"COUNT", "count", CLI_CELL_TEXT, true, false},
    {"KIND", "kind", CLI_CELL_TEXT, false, false},
    {"LAST SEEN", "last_seen", CLI_CELL_TEXT, false, false},
    {"SAMPLE", "sample", CLI_CELL_TEXT, false, false},
    {"ERROR", "error", CLI_CELL_TEXT, false, true},
};

struct classes {
    int64_t limit;
};

static enum cli_exit run_classes(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    const struct classes *o = values;
    lade_err err = {0};
    lade_dead_class *k = NULL;
    size_t n = 0;
    lade_queue_info queue;
    int rc = cli_look(c, &err);
    if (rc == 0 && c->queue)
        rc = lade_queue_get(c->q, c->queue, &queue, &err);
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such queue; see lade queue ls", c->queue);
    if (rc == 0)
        rc = lade_dead_classes(c->q, c->queue, &k, &n, &err);
    if (rc < 0)
        return cli_complain(&err);
    size_t shown = o->limit > 0 ? LB_MIN(n, (size_t)o->limit) : n;
    struct cli_out out;
    cli_out_begin(&out, c, class_columns, LB_ARRAY_LEN(class_columns));
    for (size_t i = 0; i < shown; i++) {
        struct cli_row row;
        cli_row_init(&row);
        cli_row_text(&row, "class", k[i].id);
        cli_row_text(&row, "queue", k[i].queue);
        cli_row_u64(&row, "count", k[i].count);
        cli_row_text(&row, "kind", k[i].kind);
        cli_row_time(&row, "first_seen", k[i].first_seen);
        cli_row_time(&row, "last_seen", k[i].last_seen);
        cli_row_text(&row, "sample", k[i].sample);
        cli_row_text(&row, "error", k[i].text);
        cli_out_row(&out, &row);
    }
    lade_free(k);
    if (cli_out_end(&out, &err) < 0)
        return cli_complain(&err);
    if (shown < n)
        cli_note(c, "%zu more; see --limit 0", n - shown);
    return CLI_OK;
}

static const struct cli_opt classes_opts[] = {
    {"limit", 'l', CLI_OPT_INT, offsetof(struct classes, limit), "N",
     "at most so many, the largest first (default all)", 0, 1000000, NULL},
};

const struct cli_command cli_dead_classes = {
    .noun = "dead",
    .verb = "classes",
    .args = "",
    .about =
        "Lists what jobs died of. A class is a kind and its last error with numbers, ids, quotes and addresses masked. "
        "The largest first; counts are exact and cost the same however many jobs are dead.",
    .examples = "  lade dead classes -q mail\n  lade dead classes -o json --limit 10",
    .opts = classes_opts,
    .n_opts = LB_ARRAY_LEN(classes_opts),
    .size = sizeof(struct classes),
    .run = run_classes,
};

/* ls -------------------------------------------------------------------------------------------------------------- */

#define LIST_LIMIT 100
#define PAGE       100

struct dead_ls {
    struct cli_dead_filter filter; /* first: CLI_DEAD_FILTER_OPTS */
    int64_t limit;
    bool limit_given;
};

static int set_limit(void *values, const char *text, lade_err *err)
{
    struct dead_ls *ls = values;
    ls->limit_given = true;
    return cli_arg_int("--limit", text, (struct cli_range){0, 10000000}, &ls->limit, err);
}

/* Up to *left rows of one queue; false in *more when it was read to its end. */
static int list_queue(struct cli *c, const char *queue, const lade_dead_filter *f, int64_t now,
                      uint64_t *left, struct cli_out *out, bool *more, lade_err *err)
{
    lade_cursor cursor = {0};
    int rc = 0;
    while (rc == 0 && !cursor.done && *left > 0) {
        lade_job_view *v[PAGE];
        size_t n = 0;
        rc = lade_dead_list(c->q, queue, f, &cursor, LB_MIN(*left, (uint64_t)PAGE), v, &n, err);
        for (size_t i = 0; i < n; i++) {
            struct cli_row row;
            cli_view_row(&row, v[i], now);
            cli_out_row(out, &row);
            lade_job_view_free(v[i]);
        }
        *left -= n;
        rc = LB_MIN(rc, 0);
    }
    *more = *more || !cursor.done;
    return rc;
}

/* Whether jobs of these queues died of the class; a failure. */
static int have_class(struct cli *c, const lade_queue_info *queues, size_t n_queues,
                      const char *class_id, bool *found, lade_err *err)
{
    int rc = 0;
    *found = false;
    for (size_t i = 0; i < n_queues && rc >= 0 && !*found; i++) {
        lade_dead_class *k = NULL;
        size_t n = 0;
        rc = lade_dead_classes(c->q, queues[i].name, &k, &n, err);
        for (size_t j = 0; j < n && rc >= 0; j++)
            *found = *found || strcmp(k[j].id, class_id) == 0;
        lade_free(k);
    }
    return LB_MIN(rc, 0);
}

static enum cli_exit run_dead_ls(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    const struct dead_ls *ls = values;
    lade_err err = {0};
    lade_queue_info *queues = NULL;
    lade_dead_filter f;
    size_t n = 0;
    int64_t limit = ls->limit_given ? ls->limit : LIST_LIMIT, now = 0;
    uint64_t left = limit > 0 ? (uint64_t)limit : UINT64_MAX;
    bool more = false;
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = cli_dead_resolve(c, &ls->filter, &f, &err);
    if (rc == 0)
        rc = lade_now(c->q, &now, &err);
    if (rc == 0)
        rc = cli_view_queues(c, &queues, &n, &err);
    if (rc > 0)
        return cli_say(cli_exit_of(rc), "%s", err.text);
    bool known = true;
    if (rc == 0 && f.class_id && !f.class_id[0])
        rc = lb_fail(&err, LADE_EINVAL, "usage", "--class: empty; give one of lade dead classes");
    if (rc == 0 && f.class_id)
        rc = have_class(c, queues, n, f.class_id, &known, &err);
    if (rc < 0 || !known) {
        lade_free(queues);
        return rc < 0
                   ? cli_complain(&err)
                   : cli_say(CLI_NOT_FOUND,
                             "%s: no job is dead of this class; see lade dead classes", f.class_id);
    }
    struct cli_out out;
    cli_out_begin(&out, c, cli_dead_columns, cli_n_dead_columns);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = list_queue(c, queues[i].name, &f, now, &left, &out, &more, &err);
    lade_free(queues);
    if (cli_out_finish(&out, rc, &err) < 0)
        return cli_complain(&err);
    if (left == 0 && more)
        cli_note(c, "more than %lld; see --limit 0", (long long)limit);
    return CLI_OK;
}

static const struct cli_opt dead_ls_opts[] = {
    {"limit", 'l', CLI_OPT_CALL, 0, "N", "at most so many; 0 = all (default 100)", 0, 0, set_limit},
    CLI_DEAD_FILTER_OPTS,
};

const struct cli_command cli_dead_ls = {
    .noun = "dead",
    .verb = "ls",
    .args = "",
    .about =
        "Lists dead jobs. Oldest first, with the reason and the last error; by class, kind, reason and age.",
    .examples = "  lade dead ls\n  lade dead ls --class 3679bbf5ab98\n"
                "  lade dead ls -q mail --older 7d -o json --limit 0",
    .opts = dead_ls_opts,
    .n_opts = LB_ARRAY_LEN(dead_ls_opts),
    .size = sizeof(struct dead_ls),
    .run = run_dead_ls,
};

/* edit ------------------------------------------------------------------------------------------------------------ */

struct edit {
    const char *payload;
    bool retry;
    int64_t payload_max;
};

static enum cli_exit edit_one(struct cli *c, const struct edit *e, const char *id,
                              lade_bytes payload)
{
    lade_err err = {0};
    struct cli_row row;
    int rc = 0;
    if (c->dry_run) {
        lade_job_view *v = NULL;
        rc = lade_job_get(c->q, c->queue, id, &v, &err);
        if (rc == 0 && (v->state == LADE_STATE_ACTIVE || v->state == LADE_STATE_COMPLETED ||
                        (e->retry && v->state == LADE_STATE_READY)))
            rc = LADE_WRONG_STATE;
        lade_job_view_free(v);
    } else {
        rc = lade_job_edit(c->q, c->queue, id, payload, e->retry, &err);
    }
    if (rc < 0)
        return cli_complain(&err);
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such job", id);
    if (rc != 0)
        return cli_say(CLI_CONFLICT,
                       "%s: not edited: its state does not allow it; see lade job show", id);
    if (c->format != CLI_TABLE) {
        cli_row_init(&row);
        cli_row_text(&row, "id", id);
        cli_row_bool(&row, "dry_run", c->dry_run);
        cli_row_bool(&row, "retried", e->retry);
        cli_row_u64(&row, "payload_size", payload.size);
        if (cli_out_object(c, &row, &err) < 0)
            return cli_complain(&err);
    }
    cli_note(c, "%s: %sedited%s", id, c->dry_run ? "would be " : "", e->retry ? ", ready" : "");
    return CLI_OK;
}

static enum cli_exit run_edit(struct cli *c, void *values, char **args, int n_args)
{
    (void)n_args;
    const struct edit *e = values;
    lade_err err = {0};
    struct lb_buf payload;
    if (!e->payload)
        return cli_say(CLI_USAGE, "--payload: missing; give the new payload, TEXT, @FILE or @-");
    uint32_t max = e->payload_max ? (uint32_t)e->payload_max : LADE_PAYLOAD_MAX;
    lb_buf_init(&payload);
    int rc = 0;
    if (e->payload[0] == '@')
        rc = cli_read_file(e->payload + 1, max, &payload, &err);
    else
        lb_buf_add_str(&payload, e->payload);
    if (rc == 0 && payload.failed)
        rc = lb_fail_nomem(&err, "edit");
    if (rc == 0)
        rc = cli_connect(
            c, &(lade_options){.payload_max = (uint32_t)e->payload_max, .must_exist = true}, &err);
    enum cli_exit code =
        rc < 0 ? cli_complain(&err) : edit_one(c, e, args[0], (lade_bytes){payload.p, payload.n});
    lb_buf_fini(&payload);
    return code;
}

static const struct cli_opt edit_opts[] = {
    {"payload", 'p', CLI_OPT_TEXT, offsetof(struct edit, payload), "TEXT|@FILE|@-",
     "the new payload, any bytes", 0, 0, NULL},
    {"retry", 0, CLI_OPT_FLAG, offsetof(struct edit, retry), NULL, "make it ready in the same step",
     0, 0, NULL},
    {"payload-max", 0, CLI_OPT_SIZE, offsetof(struct edit, payload_max), "BYTES",
     "largest payload, as 2MiB (default 1MiB, at most 64MiB)", 1, LADE_PAYLOAD_MAX_HARD, NULL},
};

const struct cli_command cli_job_edit = {
    .noun = "job",
    .verb = "edit",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Gives a job another payload. Scheduled, ready, retrying, dead and cancelled ones; all else stays as it was "
        "enqueued. With --retry it is ready in the same step, a dead one with all attempts again.",
    .examples = "  lade job edit 01HZX3V7Q2M4N5P6R7S8T9VWXY --payload '{\"to\":\"a@b\"}' --retry\n"
                "  lade job edit ID --payload @mended.json",
    .opts = edit_opts,
    .n_opts = LB_ARRAY_LEN(edit_opts),
    .size = sizeof(struct edit),
    .can_dry_run = true,
    .run = run_edit,
};
