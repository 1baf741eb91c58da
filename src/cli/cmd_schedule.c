/* lade schedule: list and show schedules, pause, resume, run and remove them */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/acts.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/schedule_rows.h"

#define PAGE           100
#define LIST_LIMIT     100
#define LIST_LIMIT_MAX 10000000

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
    {"STATE", "state", CLI_CELL_STATE, false, false},
    {"RULE", "rule", CLI_CELL_TEXT, false, true},
    {"KIND", "kind", CLI_CELL_TEXT, false, false},
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"NEXT", "next_at", CLI_CELL_TEXT, false, false},
    {"IN", "next_in_ms", CLI_CELL_DURATION, true, false},
    {"LAST", "last_ago_ms", CLI_CELL_DURATION, true, false},
    {"FIRED", "fired", CLI_CELL_TEXT, true, false},
    {"MISSED", "missed_times", CLI_CELL_TEXT, true, false},
    {"ERROR", "error", CLI_CELL_TEXT, false, true},
};

/* `limit` 0 = all. */
static int list_schedules(struct cli *c, struct cli_out *out, int64_t limit, lade_err *err)
{
    lade_cursor cursor = {0};
    lade_schedule_leader leader = {0};
    bool is_limited = limit > 0;
    int64_t now = 0;
    if (!is_limited)
        limit = INT64_MAX;
    int rc = lade_now(c->q, &now, err);
    if (rc == 0)
        rc = lade_schedule_get_leader(c->q, &leader, err);
    while (rc == 0 && limit > 0 && !cursor.done) {
        lade_schedule_view *view[PAGE] = {NULL};
        size_t n = 0;
        rc = lade_schedule_list(c->q, &cursor, (size_t)LB_MIN(limit, (int64_t)PAGE), view, &n, err);
        for (size_t i = 0; rc >= 0 && i < n && view[i]; i++) {
            struct cli_row row;
            cli_schedule_row(&row, view[i], now, &leader);
            cli_out_row(out, &row);
            lade_schedule_view_free(view[i]);
        }
        limit -= rc >= 0 ? (int64_t)n : 0;
    }
    if (rc == 0 && is_limited && !cursor.done)
        cli_note(c, "%llu shown, more are there; --limit 0 for all",
                 (unsigned long long)out->n_rows);
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
    int rc = list_schedules(c, &out, ls->limit_given ? ls->limit : LIST_LIMIT, &err);
    return cli_out_finish(&out, rc, &err) < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt ls_opts[] = {
    {"limit", 'l', CLI_OPT_CALL, 0, "N", "at most so many; 0 = all (default 100)", 0, 0, set_limit},
};

const struct cli_command cli_schedule_ls = {
    .noun = "schedule",
    .verb = "ls",
    .args = "",
    .about = "Lists schedules. By id, with their state, rule, next and last time. A broken one "
             "shows what cannot be read.",
    .examples = "  lade schedule ls\n  lade schedule ls -o ndjson --limit 0",
    .opts = ls_opts,
    .n_opts = LB_ARRAY_LEN(ls_opts),
    .size = sizeof(struct ls),
    .lacks = CLI_LACKS_QUEUE,
    .run = run_ls,
};

/* show ------------------------------------------------------------------------------------------------------------- */

static const struct cli_column show_columns[] = {
    {"", "id", CLI_CELL_TEXT, false, false},
    {"", "state", CLI_CELL_TEXT, false, false},
    {"", "error", CLI_CELL_TEXT, false, false},
    {"", "rule", CLI_CELL_TEXT, false, false},
    {"", "anchor", CLI_CELL_TEXT, false, false},
    {"", "gap", CLI_CELL_TEXT, false, false},
    {"", "fold", CLI_CELL_TEXT, false, false},
    {"", "missed", CLI_CELL_TEXT, false, false},
    {"", "overlap", CLI_CELL_TEXT, false, false},
    {"", "limit", CLI_CELL_TEXT, false, false},
    {"", "start", CLI_CELL_TEXT, false, false},
    {"", "end", CLI_CELL_TEXT, false, false},
    {"", "jitter_ms", CLI_CELL_TEXT, false, false},
    {"", "kind", CLI_CELL_TEXT, false, false},
    {"", "queue", CLI_CELL_TEXT, false, false},
    {"", "payload", CLI_CELL_BYTES, false, false},
    {"", "content_type", CLI_CELL_TEXT, false, false},
    {"", "priority", CLI_CELL_TEXT, false, false},
    {"", "max_attempts", CLI_CELL_TEXT, false, false},
    {"", "timeout_ms", CLI_CELL_TEXT, false, false},
    {"", "result_ttl_ms", CLI_CELL_TEXT, false, false},
    {"", "unique_key", CLI_CELL_BYTES, false, false},
    {"", "key", CLI_CELL_BYTES, false, false},
    {"", "discard_dead", CLI_CELL_TEXT, false, false},
    {"", "next_at", CLI_CELL_TEXT, false, false},
    {"", "last_at", CLI_CELL_TEXT, false, false},
    {"", "last_job", CLI_CELL_TEXT, false, false},
    {"", "queued_at", CLI_CELL_TEXT, false, false},
    {"", "fired", CLI_CELL_TEXT, false, false},
    {"", "missed_times", CLI_CELL_TEXT, false, false},
    {"", "overlaps", CLI_CELL_TEXT, false, false},
    {"", "duplicates", CLI_CELL_TEXT, false, false},
    {"", "created_at", CLI_CELL_TEXT, false, false},
    {"", "changed_at", CLI_CELL_TEXT, false, false},
    {"", "tzdata", CLI_CELL_TEXT, false, false},
    {"", "leader", CLI_CELL_TEXT, false, false},
    {"", "seen_at", CLI_CELL_TEXT, false, false},
};

/* NAME VALUE lines, without what is not set. */
static void print_fact(const struct cli_row *row, const char *key)
{
    char size_key[40];
    const json_t *v = json_object_get(row->o, key);
    (void)snprintf(size_key, sizeof(size_key), "%s_size", key);
    const json_t *size = json_object_get(row->o, size_key);
    if (json_is_string(v)) {
        (void)printf("%-14s ", key);
        cli_print_text(json_string_value(v));
        (void)putchar('\n');
    } else if (!v && json_integer_value(size) > 0) {
        (void)printf("%-14s (%lld bytes, binary)\n", key, (long long)json_integer_value(size));
    } else if (json_is_integer(v) && json_integer_value(v) != 0) {
        (void)printf("%-14s %lld\n", key, (long long)json_integer_value(v));
    } else if (json_is_true(v)) {
        (void)printf("%-14s yes\n", key);
    }
}

static void print_facts(const struct cli_row *row)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(show_columns); i++)
        print_fact(row, show_columns[i].key);
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(row->o, "headers"), name, value)
    {
        (void)printf("%-14s %s=", "header", name);
        cli_print_text(json_string_value(value));
        (void)putchar('\n');
    }
}

static int show_json(struct cli *c, struct cli_row *row, const lade_schedule_view *v, lade_err *err)
{
    json_t *fires = json_array();
    for (size_t i = 0; i < v->n_history; i++) {
        struct cli_row fire;
        cli_fire_row(&fire, &v->history[i]);
        row->failed = row->failed || fire.failed || !fires || json_array_append(fires, fire.o) < 0;
        cli_row_fini(&fire);
    }
    cli_row_json(row, "history", fires);
    return cli_out_object(c, row, err);
}

static enum cli_exit run_show(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    (void)n_args;
    lade_err err = {0};
    lade_schedule_view *v = NULL;
    lade_schedule_leader leader = {0};
    struct cli_row row;
    int64_t now = 0;
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = lade_now(c->q, &now, &err);
    if (rc == 0)
        rc = lade_schedule_get_leader(c->q, &leader, &err);
    if (rc == 0)
        rc = lade_schedule_get(c->q, args[0], &v, &err);
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such schedule", args[0]);
    if (rc < 0 || !v)
        return cli_complain(&err);
    cli_schedule_row(&row, v, now, &leader);
    if (cli_out_is_json(c)) {
        rc = show_json(c, &row, v, &err);
    } else if (c->format == CLI_TSV) {
        (void)json_object_del(row.o, "headers"); /* no cell of a line */
        rc = cli_out_object(c, &row, &err);
    } else {
        print_facts(&row);
        cli_row_fini(&row);
        rc = cli_out_raw((lade_bytes){0}, &err);
    }
    lade_schedule_view_free(v);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

const struct cli_command cli_schedule_show = {
    .noun = "schedule",
    .verb = "show",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .about = "Shows a schedule. Its rule and template, what it has done and when it fires next; as "
             "JSON with the last 20 outcomes, which lade schedule explain tells in words.",
    .examples = "  lade schedule show nightly\n  lade schedule show nightly -o json",
    .lacks = CLI_LACKS_QUEUE,
    .run = run_show,
};

/* pause, resume, run, rm ------------------------------------------------------------------------------------------- */

enum verb { VERB_PAUSE, VERB_RESUME, VERB_RUN, VERB_RM };

/* What a verb would do, by the schedule as it is now. */
static int foresee(struct cli *c, enum verb verb, const char *id, lade_err *err)
{
    lade_schedule_view *v = NULL;
    int rc = lade_schedule_get(c->q, id, &v, err);
    if (rc != 0 || !v)
        return rc;
    enum lade_schedule_state state = v->state;
    bool reads = v->spec != NULL;
    lade_schedule_view_free(v);
    if (verb == VERB_PAUSE)
        return state == LADE_SCHEDULE_ACTIVE ? 0 : LADE_WRONG_STATE;
    if (verb == VERB_RESUME)
        return state == LADE_SCHEDULE_PAUSED || state == LADE_SCHEDULE_BROKEN ? 0
                                                                              : LADE_WRONG_STATE;
    return verb == VERB_RUN && !reads ? LADE_WRONG_STATE : 0;
}

static int act(struct cli *c, int verb, const lade_id *ids, size_t n, struct cli_act *out,
               lade_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc >= 0; i++) {
        const char *id = ids[i].text;
        if (c->dry_run)
            rc = foresee(c, (enum verb)verb, id, err);
        else if (verb == VERB_PAUSE)
            rc = lade_schedule_pause(c->q, id, err);
        else if (verb == VERB_RESUME)
            rc = lade_schedule_resume(c->q, id, err);
        else if (verb == VERB_RUN)
            rc = lade_schedule_run(c->q, id, &out[i].job, err);
        else
            rc = lade_schedule_remove(c->q, id, err);
        out[i].outcome = rc;
    }
    return LB_MIN(rc, 0);
}

static enum cli_exit refuse(int verb, const char *id, const struct cli_act *act)
{
    static const char *const refusals[] = {"it is not active", "it is not paused", "it is broken",
                                           ""};

    if (act->outcome == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such schedule", id);
    if (act->outcome == LADE_DUPLICATE)
        return cli_say(CLI_CONFLICT, "%s: not run, job %s holds its unique key", id, act->job.text);
    return cli_say(CLI_CONFLICT, "%s: %s; see lade schedule show", id, refusals[verb]);
}

/* One by one, since each is a call of its own: what was done before a failure is told. */
static enum cli_exit run_act(struct cli *c, enum verb verb, char **args, int n_args)
{
    static const char *const words[] = {"paused", "resumed", "run", "removed"};

    struct cli_acts acts = {.done = words[verb],
                            .makes_jobs = verb == VERB_RUN,
                            .step = 1,
                            .verb = (int)verb,
                            .act = act,
                            .refuse = refuse};
    return cli_acts_run(c, &acts, args, n_args);
}

static enum cli_exit run_pause(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return run_act(c, VERB_PAUSE, args, n_args);
}

static enum cli_exit run_resume(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return run_act(c, VERB_RESUME, args, n_args);
}

static enum cli_exit run_run(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return run_act(c, VERB_RUN, args, n_args);
}

static enum cli_exit run_rm(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    enum cli_exit code = CLI_OK;
    if (!c->dry_run && !cli_confirm(c, &code, "remove %d schedule%s%s", n_args,
                                    n_args > 1 ? "s, first " : " ", args[0]))
        return code;
    return run_act(c, VERB_RM, args, n_args);
}

const struct cli_command cli_schedule_pause = {
    .noun = "schedule",
    .verb = "pause",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = "Pauses schedules. They fire no more until resumed; jobs that were put stay. Ids may "
             "be read from stdin: -.",
    .examples = "  lade schedule pause nightly",
    .can_dry_run = true,
    .lacks = CLI_LACKS_QUEUE,
    .run = run_pause,
};

const struct cli_command cli_schedule_resume = {
    .noun = "schedule",
    .verb = "resume",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = "Resumes paused schedules. They go on with the next time from now on; times of the "
             "pause are not made up for. A broken one goes on when it can be read now.",
    .examples = "  lade schedule resume nightly",
    .can_dry_run = true,
    .lacks = CLI_LACKS_QUEUE,
    .run = run_resume,
};

const struct cli_command cli_schedule_run = {
    .noun = "schedule",
    .verb = "run",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = "Puts the job of schedules now. Beside their times, which stay as they are; prints "
             "the id of the job. Works on paused and ended ones too.",
    .examples = "  lade schedule run nightly",
    .can_dry_run = true,
    .lacks = CLI_LACKS_QUEUE,
    .run = run_run,
};

const struct cli_command cli_schedule_rm = {
    .noun = "schedule",
    .verb = "rm",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = "Removes schedules. Jobs that they have put stay. Cannot be undone. Ids may be read "
             "from stdin: -.",
    .examples = "  lade schedule rm nightly --yes",
    .can_dry_run = true,
    .lacks = CLI_LACKS_QUEUE,
    .asks = true,
    .run = run_rm,
};
