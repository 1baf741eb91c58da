/* lade flow: enqueue a workflow from JSON, list, show and draw workflows, cancel, retry and remove them whole */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/acts.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/flow_draw.h"
#include "cli/flow_file.h"
#include "cli/lines.h"
#include "cli/out.h"

#define PAGE           100
#define LIST_LIMIT     100
#define LIST_LIMIT_MAX 10000000

/* run -------------------------------------------------------------------------------------------------------------- */

static int print_enqueued(const struct cli *c, const struct cli_flow *f, const char *id, int rc,
                          lade_err *err)
{
    struct cli_row row;
    (void)f;
    if (c->format == CLI_TABLE) {
        if (id)
            (void)printf("%s\n", id);
        return 0;
    }
    cli_row_init(&row);
    cli_row_text(&row, "id", id);
    cli_row_bool(&row, "duplicate", rc == LADE_DUPLICATE);
    cli_row_bool(&row, "dry_run", c->dry_run);
    return cli_out_object(c, &row, err);
}

static enum cli_exit enqueue(struct cli *c, const struct cli_flow *f)
{
    lade_err err = {0};
    lade_id id = {{0}};
    int rc = c->dry_run ? lade_flow_check(c->q, &f->spec, &err)
                        : lade_flow_enqueue(c->q, &f->spec, &id, &err);
    if (rc < 0)
        cli_flow_name_place(f, &err);
    if (rc >= 0 && print_enqueued(c, f, c->dry_run ? NULL : id.text, rc, &err) < 0)
        rc = err.code;
    if (rc < 0)
        return cli_complain(&err);
    if (c->dry_run)
        cli_note(c, "the workflow is sound; it would be enqueued");
    if (rc == LADE_DUPLICATE)
        cli_note(c, "flow: duplicate: a workflow with this id is already there, nothing was added");
    return cli_exit_of(rc);
}

static enum cli_exit run_run(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    (void)n_args;
    lade_err err = {0};
    struct lb_buf text;
    struct cli_flow f;
    lade_job_spec defaults = {.queue = c->queue};
    lb_buf_init(&text);
    int rc = cli_read_file(args[0], (size_t)LADE_FLOW_BYTES_MAX * 2, &text, &err);
    if (rc == 0)
        rc = cli_flow_parse(&f, (const char *)text.p, text.n, &defaults, &err);
    lb_buf_fini(&text);
    if (rc < 0)
        return cli_complain(&err);
    enum cli_exit code = CLI_OK;
    rc = cli_connect(c, &(lade_options){.must_exist = c->dry_run}, &err);
    if (rc == -LADE_ENOSTORE && c->dry_run) /* it would be made: any store can check */
        rc = lade_open(&c->q, "memory:", NULL, &err);
    if (rc < 0)
        code = cli_complain(&err);
    else
        code = enqueue(c, &f);
    cli_flow_fini(&f);
    return code;
}

const struct cli_command cli_flow_run = {
    .noun = "flow",
    .verb = "run",
    .args = "FILE|-",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Enqueues a workflow from JSON. Wholly or not at all; prints its id. A step is a job "
        "(members as of lade enqueue --ndjson, but id and unique), {\"chain\":[...]}, "
        "{\"group\":[...],\"callback\":{...}} or {\"graph\":{\"NAME\":{...,\"after\":[NAMES]}}}, "
        "nested as you like, each with \"on_dead\": fail, continue or wait. The outermost may have "
        "id, name, on_failure and cancel_siblings. -q is the queue of jobs that name none; "
        "--dry-run only checks.",
    .examples =
        "  echo '{\"chain\":[{\"kind\":\"load\"},{\"group\":[{\"kind\":\"s\"},{\"kind\":\"m\"}],"
        "\"callback\":{\"kind\":\"publish\"}}]}' | lade flow run -\n"
        "  lade flow run nightly.json --dry-run",
    .can_dry_run = true,
    .queue_help = "of the jobs that name none",
    .run = run_run,
};

/* ls --------------------------------------------------------------------------------------------------------------- */

struct ls {
    int64_t limit;
    bool limit_given;
};

static int set_limit(void *values, const char *text, lade_err *err)
{
    struct ls *ls = values;
    ls->limit_given = true;
    return cli_arg_int("--limit", text, (struct cli_range){0, LIST_LIMIT_MAX}, &ls->limit, err);
}

static const struct cli_column ls_columns[] = {
    {"ID", "id", CLI_CELL_TEXT, false, false},
    {"NAME", "name", CLI_CELL_TEXT, false, true},
    {"STATE", "state", CLI_CELL_STATE, false, false},
    {"STEPS", "steps", CLI_CELL_TEXT, true, false},
    {"AGE", "age_ms", CLI_CELL_DURATION, true, false},
    {"TOOK", "took_ms", CLI_CELL_DURATION, true, false},
};

/* What a listing and a single one share. */
static void fill_row(struct cli_row *r, const lade_flow_view *v, int64_t now)
{
    cli_row_init(r);
    cli_row_text(r, "id", v->id);
    cli_row_text(r, "name", v->name);
    cli_row_text(r, "state", lade_flow_state_name(v->state));
    cli_row_u64(r, "steps", v->n_steps);
    cli_row_bool(r, "cancel_siblings", v->cancel_siblings);
    cli_row_time(r, "created_at", v->created_at);
    cli_row_time(r, "finished_at", v->finished_at);
    cli_row_int(r, "age_ms", LB_MAX(now - v->created_at, 0) / LADE_MILLISECOND);
    if (v->finished_at > 0)
        cli_row_int(r, "took_ms", LB_MAX(v->finished_at - v->created_at, 0) / LADE_MILLISECOND);
    else
        cli_row_text(r, "took_ms", NULL);
}

/* Says so when there are more than were asked for. */
static void note_more(struct cli *c, lade_cursor cursor, uint64_t shown)
{
    lade_flow_view *next = NULL;
    size_t n = 0;
    if (cursor.done || lade_flow_list(c->q, &cursor, 1, &next, &n, NULL) != 0 || n == 0)
        return;
    lade_flow_view_free(next);
    cli_note(c, "%llu shown, more are there; --limit 0 for all", (unsigned long long)shown);
}

/* `limit` 0 = all. */
static int list_flows(struct cli *c, struct cli_out *out, int64_t limit, lade_err *err)
{
    lade_cursor cursor = {0};
    bool is_limited = limit > 0;
    if (!is_limited)
        limit = INT64_MAX;
    int64_t now = 0;
    int rc = lade_now(c->q, &now, err);
    while (rc == 0 && limit > 0 && !cursor.done) {
        lade_flow_view *view[PAGE] = {NULL};
        size_t n = 0;
        rc = lade_flow_list(c->q, &cursor, (size_t)LB_MIN(limit, (int64_t)PAGE), view, &n, err);
        for (size_t i = 0; rc >= 0 && i < n && view[i]; i++) {
            struct cli_row row;
            fill_row(&row, view[i], now);
            cli_out_row(out, &row);
            lade_flow_view_free(view[i]);
        }
        limit -= rc >= 0 ? (int64_t)n : 0;
    }
    if (rc == 0 && is_limited)
        note_more(c, cursor, out->n_rows);
    return LB_MIN(rc, 0);
}

static enum cli_exit run_ls(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    const struct ls *ls = values;
    lade_err err = {0};
    struct cli_out out;
    if (cli_look(c, &err) < 0)
        return cli_complain(&err);
    cli_out_begin(&out, c, ls_columns, LB_ARRAY_LEN(ls_columns));
    int rc = list_flows(c, &out, ls->limit_given ? ls->limit : LIST_LIMIT, &err);
    return cli_out_finish(&out, rc, &err) < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt ls_opts[] = {
    {"limit", 'l', CLI_OPT_CALL, 0, "N", "at most so many; 0 = all (default 100)", 0, 0, set_limit},
};

const struct cli_command cli_flow_ls = {
    .noun = "flow",
    .verb = "ls",
    .args = "",
    .about = "Lists workflows. Newest first, with their state; lade flow show has the steps.",
    .examples = "  lade flow ls\n  lade flow ls -o ndjson --limit 0",
    .opts = ls_opts,
    .n_opts = LB_ARRAY_LEN(ls_opts),
    .size = sizeof(struct ls),
    .lacks = CLI_LACKS_QUEUE,
    .run = run_ls,
};

/* show ------------------------------------------------------------------------------------------------------------- */

struct show {
    bool dot, mermaid;
};

static const struct cli_column step_columns[] = {
    {"STEP", "number", CLI_CELL_TEXT, true, false},
    {"STATE", "state", CLI_CELL_STATE, false, false},
    {"KIND", "kind", CLI_CELL_TEXT, false, false},
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"AFTER", "after", CLI_CELL_TEXT, false, true},
    {"BLOCKED BY", "blocked_by", CLI_CELL_TEXT, false, true},
};

static bool has_passed(enum lade_flow_step_state state)
{
    return state == LADE_STEP_COMPLETED || state == LADE_STEP_SKIPPED;
}

/* Numbers of the steps before one; `open`: only of those that it still waits for. */
static json_t *list_before(const lade_flow_view *v, size_t i, bool open)
{
    json_t *list = json_array();
    for (size_t k = 0; list && k < v->nodes[i].n_after; k++) {
        uint32_t at = v->nodes[i].after[k];
        if (!open || !has_passed(v->nodes[at].state))
            (void)json_array_append_new(list, json_integer(at));
    }
    return list;
}

/* "0 1 2 9" of a JSON list, for a row of a table. */
static void add_list_text(struct cli_row *r, const char *key, const json_t *list)
{
    struct lb_buf text;
    lb_buf_init(&text);
    for (size_t i = 0; i < json_array_size(list); i++)
        lb_buf_add_fmt(&text, "%s%lld", i ? " " : "",
                       (long long)json_integer_value(json_array_get(list, i)));
    lb_buf_add_byte(&text, 0);
    r->failed = r->failed || text.failed;
    cli_row_text(r, key, text.failed ? NULL : (const char *)text.p);
    lb_buf_fini(&text);
}

static void fill_step(struct cli_row *r, const lade_flow_view *v, size_t i, bool for_table)
{
    const lade_flow_node *n = &v->nodes[i];
    json_t *after = list_before(v, i, false), *open = list_before(v, i, true);
    cli_row_init(r);
    cli_row_u64(r, "number", i);
    cli_row_text(r, "id", n->id);
    cli_row_text(r, "kind", n->kind);
    cli_row_text(r, "queue", n->queue);
    cli_row_text(r, "state", lade_flow_step_state_name(n->state));
    cli_row_text(r, "on_dead", lade_flow_policy_name(n->on_dead));
    cli_row_bool(r, "on_failure", i >= v->n_steps);
    if (for_table) {
        add_list_text(r, "after", after);
        add_list_text(r, "blocked_by", n->state == LADE_STEP_WAITING ? open : NULL);
        if (i >= v->n_steps)
            cli_row_text(r, "after", "failure");
        json_decref(after);
        json_decref(open);
        return;
    }
    cli_row_json(r, "after", after);
    cli_row_json(r, "blocked_by", open);
}

static int show_json(struct cli *c, const lade_flow_view *v, int64_t now, lade_err *err)
{
    struct cli_row row;
    size_t count[LADE_N_STEP_STATES] = {0};
    json_t *steps = json_array(), *counts = json_object();
    fill_row(&row, v, now);
    for (size_t i = 0; i < v->n_nodes; i++) {
        struct cli_row step;
        fill_step(&step, v, i, false);
        row.failed = row.failed || step.failed || !steps || json_array_append(steps, step.o) < 0;
        cli_row_fini(&step);
        count[v->nodes[i].state] += i < v->n_steps;
    }
    for (int s = 0; s < LADE_N_STEP_STATES; s++)
        row.failed =
            row.failed || !counts ||
            json_object_set_new(counts, lade_flow_step_state_name((enum lade_flow_step_state)s),
                                json_integer((json_int_t)count[s])) < 0;
    cli_row_json(&row, "counts", counts);
    cli_row_json(&row, "nodes", steps);
    return cli_out_object(c, &row, err);
}

static void print_title(const lade_flow_view *v)
{
    size_t done = 0;
    for (size_t i = 0; i < v->n_steps; i++)
        done += has_passed(v->nodes[i].state);
    (void)printf("%s%s", v->id, v->name[0] ? " (" : "");
    cli_print_text(v->name);
    (void)printf("%s: %s, %zu of %zu steps passed\n\n", v->name[0] ? ")" : "",
                 lade_flow_state_name(v->state), done, v->n_steps);
}

static int show_table(struct cli *c, const lade_flow_view *v, int64_t now, lade_err *err)
{
    struct cli_out out;
    (void)now;
    if (c->format == CLI_TABLE)
        print_title(v);
    cli_out_begin(&out, c, step_columns, LB_ARRAY_LEN(step_columns));
    for (size_t i = 0; i < v->n_nodes; i++) {
        struct cli_row row;
        fill_step(&row, v, i, true);
        cli_out_row(&out, &row);
    }
    return cli_out_end(&out, err);
}

static int show_picture(const lade_flow_view *v, bool mermaid, lade_err *err)
{
    struct lb_buf text;
    lb_buf_init(&text);
    if (mermaid)
        cli_flow_mermaid(&text, v);
    else
        cli_flow_dot(&text, v);
    int rc =
        text.failed ? lb_fail_nomem(err, "flow") : cli_out_raw((lade_bytes){text.p, text.n}, err);
    lb_buf_fini(&text);
    return rc;
}

static enum cli_exit run_show(struct cli *c, void *values, char **args, int n_args)
{
    (void)n_args;
    const struct show *show = values;
    lade_err err = {0};
    lade_flow_view *v = NULL;
    int64_t now = 0;
    if (show->dot && show->mermaid)
        return cli_say(CLI_USAGE, "--dot: not with --mermaid; give one of them");
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = lade_now(c->q, &now, &err);
    if (rc == 0)
        rc = lade_flow_get(c->q, args[0], &v, &err);
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such workflow", args[0]);
    if (rc < 0 || !v)
        return cli_complain(&err);
    if (show->dot || show->mermaid)
        rc = show_picture(v, show->mermaid, &err);
    else if (cli_out_is_json(c))
        rc = show_json(c, v, now, &err);
    else
        rc = show_table(c, v, now, &err);
    lade_flow_view_free(v);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt show_opts[] = {
    {"dot", 0, CLI_OPT_FLAG, offsetof(struct show, dot), NULL, "a picture for Graphviz", 0, 0,
     NULL},
    {"mermaid", 0, CLI_OPT_FLAG, offsetof(struct show, mermaid), NULL, "a picture for Mermaid", 0,
     0, NULL},
};

const struct cli_command cli_flow_show = {
    .noun = "flow",
    .verb = "show",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .about = "Shows a workflow. Its steps with their states, what each runs after and what still "
             "blocks it; or a picture of it. The job of a step is shown by lade job show ID~STEP.",
    .examples = "  lade flow show 01HZX3V7Q2M4N5P6R7S8T9VWXY\n"
                "  lade flow show ID --dot | dot -Tsvg > flow.svg",
    .opts = show_opts,
    .n_opts = LB_ARRAY_LEN(show_opts),
    .size = sizeof(struct show),
    .lacks = CLI_LACKS_QUEUE,
    .run = run_show,
};

/* cancel, retry, rm ------------------------------------------------------------------------------------------------ */

/* What a verb would do, by the flow as it is now. */
static int foresee(struct cli *c, enum lade_flow_verb verb, const char *id, lade_err *err)
{
    lade_flow_view *v = NULL;
    bool is_down = false;
    int rc = lade_flow_get(c->q, id, &v, err);
    if (rc != 0 || !v)
        return rc;
    bool is_over = v->state == LADE_FLOW_COMPLETED || v->state == LADE_FLOW_CANCELLED;
    for (size_t i = 0; i < v->n_steps; i++)
        is_down = is_down || v->nodes[i].state == LADE_STEP_DEAD ||
                  v->nodes[i].state == LADE_STEP_CANCELLED;
    lade_flow_view_free(v);
    bool refused = (verb == LADE_FLOW_CANCEL && is_over) || (verb == LADE_FLOW_RETRY && !is_down);
    return refused ? LADE_WRONG_STATE : 0;
}

static int act_on(struct cli *c, int verb, const lade_id *ids, size_t n, struct cli_act *out,
                  lade_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc >= 0; i++) {
        rc = c->dry_run ? foresee(c, (enum lade_flow_verb)verb, ids[i].text, err)
                        : lade_flow_act(c->q, (enum lade_flow_verb)verb, ids[i].text, err);
        out[i].outcome = rc;
    }
    return LB_MIN(rc, 0);
}

static enum cli_exit refuse(int verb, const char *id, const struct cli_act *act)
{
    if (act->outcome == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such workflow", id);
    return cli_say(CLI_CONFLICT, "%s: %s; see lade flow show", id,
                   verb == LADE_FLOW_RETRY ? "nothing in it is dead or cancelled"
                                           : "it has ended already");
}

/* One by one, since each is a call of its own: what was done before a failure is told. */
static enum cli_exit run_act(struct cli *c, enum lade_flow_verb verb, char **args, int n_args)
{
    static const char *const words[] = {"cancelled", "set going again", "removed"};

    struct cli_acts acts = {
        .done = words[verb], .step = 1, .verb = (int)verb, .act = act_on, .refuse = refuse};
    return cli_acts_run(c, &acts, args, n_args);
}

static enum cli_exit run_cancel(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return run_act(c, LADE_FLOW_CANCEL, args, n_args);
}

static enum cli_exit run_retry(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return run_act(c, LADE_FLOW_RETRY, args, n_args);
}

static enum cli_exit run_rm(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    enum cli_exit code = CLI_OK;
    if (!c->dry_run && !cli_confirm(c, &code, "remove %d workflow%s%s", n_args,
                                    n_args > 1 ? "s, first " : " ", args[0]))
        return code;
    return run_act(c, LADE_FLOW_REMOVE, args, n_args);
}

const struct cli_command cli_flow_cancel = {
    .noun = "flow",
    .verb = "cancel",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = "Cancels whole workflows. Nothing of them begins any more, jobs that wait are "
             "cancelled, handlers that run are told. Ids may be read from stdin: -.",
    .examples = "  lade flow cancel 01HZX3V7Q2M4N5P6R7S8T9VWXY",
    .can_dry_run = true,
    .lacks = CLI_LACKS_QUEUE,
    .run = run_cancel,
};

const struct cli_command cli_flow_retry = {
    .noun = "flow",
    .verb = "retry",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = "Sets workflows going again. Dead and cancelled steps run again, with all their "
             "attempts; what completed is not redone. Ids may be read from stdin: -.",
    .examples = "  lade flow retry 01HZX3V7Q2M4N5P6R7S8T9VWXY",
    .can_dry_run = true,
    .lacks = CLI_LACKS_QUEUE,
    .run = run_retry,
};

const struct cli_command cli_flow_rm = {
    .noun = "flow",
    .verb = "rm",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = "Removes workflows. Their results and the steps that have not begun go; jobs that are "
             "in their queues stay, as jobs of no workflow. Cannot be undone. Ids may be read from "
             "stdin: -.",
    .examples = "  lade flow rm 01HZX3V7Q2M4N5P6R7S8T9VWXY --yes",
    .can_dry_run = true,
    .lacks = CLI_LACKS_QUEUE,
    .asks = true,
    .run = run_rm,
};
