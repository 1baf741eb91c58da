/* lade job: list, show, and act on jobs by id */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/acts.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/lines.h"
#include "cli/notes.h"
#include "cli/result.h"
#include "cli/view.h"

#define LIST_LIMIT     100
#define LIST_LIMIT_MAX 10000000

struct ls {
    const char *state;
    int64_t limit;
    bool limit_given;
};

static int set_limit(void *values, const char *text, lade_err *err)
{
    struct ls *ls = values;
    ls->limit_given = true;
    return cli_arg_int("--limit", text, (struct cli_range){0, LIST_LIMIT_MAX}, &ls->limit, err);
}

static enum cli_exit run_list(struct cli *c, const struct ls *ls, unsigned states, bool are_dead)
{
    lade_err err = {0};
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = cli_view_list(c, states, ls->limit_given ? ls->limit : LIST_LIMIT,
                           are_dead ? cli_dead_columns : cli_job_columns,
                           are_dead ? cli_n_dead_columns : cli_n_job_columns, &err);
    if (rc > 0)
        return cli_say(cli_exit_of(rc), "%s", err.text);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static enum cli_exit run_ls(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    struct ls *ls = values;
    lade_err err = {0};
    unsigned states = 0;
    if (cli_view_states("--state", ls->state ? ls->state : "all", &states, &err) < 0)
        return cli_complain(&err);
    return run_list(c, ls, states, states == 1U << LADE_STATE_DEAD);
}

static const struct cli_opt ls_opts[] = {
    {"limit", 'l', CLI_OPT_CALL, 0, "N", "at most so many; 0 = all (default 100)", 0, 0, set_limit},
    {"state", 's', CLI_OPT_TEXT, offsetof(struct ls, state), "STATES",
     "only these, comma separated, or all (default all)", 0, 0, NULL},
};

const struct cli_command cli_job_ls = {
    .noun = "job",
    .verb = "ls",
    .args = "",
    .about = "Lists jobs. Shows state, tries, age and, when active, who holds them and until when. "
             "When there are more than --limit, stderr says so. "
             "States of other systems are understood: pending, delayed, retry, archived. Payloads "
             "are previews; lade job show has them whole.",
    .examples = "  lade job ls --state dead\n  lade job ls -q images --state active,ready -o "
                "ndjson --limit 0",
    .opts = ls_opts,
    .n_opts = LB_ARRAY_LEN(ls_opts),
    .size = sizeof(struct ls),
    .run = run_ls,
};

struct show {
    bool payload, result;
    struct cli_out *list; /* NULL: each by itself */
};

static enum cli_exit show_view(struct cli *c, const struct show *show, const lade_job_view *v,
                               lade_err *err)
{
    int64_t now = 0;
    int rc = 0;
    if (show->payload || show->result) {
        rc = cli_out_raw(show->payload ? v->payload : v->result, err);
    } else {
        rc = lade_now(c->q, &now, err);
        if (rc == 0 && c->format == CLI_TABLE) {
            rc = cli_view_print(c, v, now, err);
            if (rc == 0)
                rc = cli_notes_print(c, v, err);
        } else if (rc == 0) {
            struct cli_row row;
            cli_view_full(&row, v, now);
            rc = cli_notes_add(c, &row, v, err);
            if (c->format == CLI_TSV)
                cli_view_last_error(&row, v);
            if (show->list)
                cli_out_row(show->list, &row);
            else if (rc == 0)
                rc = cli_out_object(c, &row, err);
            else
                cli_row_fini(&row);
        }
    }
    return rc < 0 ? cli_complain(err) : CLI_OK;
}

static enum cli_exit show_one(struct cli *c, const struct show *show, const char *id)
{
    lade_err err = {0};
    lade_job_view *v = NULL;
    bool found = false;
    int rc = lade_job_get(c->q, c->queue, id, &v, &err);
    if (rc == LADE_NOT_FOUND && show->result)
        rc = cli_result_of_gone(c, id, &found, &err) < 0 ? -1 : found ? 0 : LADE_NOT_FOUND;
    if (found)
        return CLI_OK;
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such job%s%s", id, c->queue ? " in queue " : "",
                       c->queue ? c->queue : "");
    if (rc != 0)
        return cli_complain(&err);
    enum cli_exit code = show_view(c, show, v, &err);
    lade_job_view_free(v);
    return code;
}

static enum cli_exit run_show(struct cli *c, void *values, char **args, int n_args)
{
    struct show *show = values;
    struct cli_out list;
    struct cli_fold fold = {0};
    struct cli_ids ids;
    lade_id id;
    lade_err err = {0};
    size_t n = 0;
    if (show->payload && show->result)
        return cli_say(CLI_USAGE, "--payload: not with --result; give one of them");
    if (cli_look(c, &err) < 0)
        return cli_complain(&err);
    if (cli_out_needs_list(c, args, n_args) && !show->payload && !show->result) {
        cli_out_begin(&list, c, cli_show_columns, cli_n_show_columns);
        show->list = &list;
    }
    cli_ids_init(&ids, args, n_args);
    int rc = cli_ids_next(&ids, &id, 1, &n, &err);
    while (rc == 0 && n > 0) {
        cli_fold_add(&fold, show_one(c, show, id.text));
        rc = cli_ids_next(&ids, &id, 1, &n, &err);
    }
    cli_ids_fini(&ids);
    lade_err end_err = {0};
    if (show->list && cli_out_end(&list, &end_err) < 0)
        return cli_complain(&end_err);
    return rc < 0 ? cli_complain(&err) : cli_fold_exit(&fold);
}

static const struct cli_opt show_opts[] = {
    {"payload", 0, CLI_OPT_FLAG, offsetof(struct show, payload), NULL,
     "write the payload as it is, nothing else", 0, 0, NULL},
    {"result", 0, CLI_OPT_FLAG, offsetof(struct show, result), NULL,
     "write the result as it is, nothing else; also of a job that is gone (--result-ttl)", 0, 0,
     NULL},
};

#define SHOW_ABOUT                                                                                   \
    "Shows everything of a job. That is payload, headers, result, lease and every attempt with its " \
    "error. Bytes that are not UTF-8 are given as base 64 in JSON. Ids may be read from stdin: "     \
    "-."

const struct cli_command cli_job_show = {
    .noun = "job",
    .verb = "show",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = SHOW_ABOUT,
    .examples = "  lade job show 01HZX3V7Q2M4N5P6R7S8T9VWXY\n"
                "  lade job show ID --payload > payload.bin",
    .opts = show_opts,
    .n_opts = LB_ARRAY_LEN(show_opts),
    .size = sizeof(struct show),
    .run = run_show,
};

const struct cli_command cli_dead_show = {
    .noun = "dead",
    .verb = "show",
    .args = "ID...",
    .min_args = 1,
    .max_args = CLI_MANY_ARGS,
    .about = SHOW_ABOUT,
    .examples = "  lade dead show 01HZX3V7Q2M4N5P6R7S8T9VWXY",
    .opts = show_opts,
    .n_opts = LB_ARRAY_LEN(show_opts),
    .size = sizeof(struct show),
    .run = run_show,
};

static const char *const done_words[] = {"retried", "killed", "cancelled", "removed"};

/* What a verb would do, by the state the job is in now. */
static int foresee(struct cli *c, enum lade_job_verb verb, const char *id, lade_err *err)
{
    lade_job_view *v = NULL;
    int rc = lade_job_get(c->q, c->queue, id, &v, err);
    if (rc == LADE_NOT_FOUND && verb == LADE_JOB_REMOVE) {
        bool found = false; /* its result may have outlived it */
        rc = cli_result_look(c, id, &found, err);
        return rc < 0 ? rc : found ? 0 : LADE_NOT_FOUND;
    }
    if (rc != 0)
        return rc;
    bool has_ended = v->state == LADE_STATE_COMPLETED || v->state == LADE_STATE_DEAD ||
                     v->state == LADE_STATE_CANCELLED;
    bool is_queued = v->state == LADE_STATE_READY || v->state == LADE_STATE_ACTIVE;
    bool refused = verb == LADE_JOB_REMOVE ? false : verb == LADE_JOB_RETRY ? is_queued : has_ended;
    lade_job_view_free(v);
    return refused ? LADE_WRONG_STATE : 0;
}

static int act_on(struct cli *c, int verb, const lade_id *ids, size_t n, struct cli_act *out,
                  lade_err *err)
{
    const char *texts[CLI_ACTS_STEP];
    int outcomes[CLI_ACTS_STEP] = {0};
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        texts[i] = ids[i].text;
    if (!c->dry_run)
        rc = lade_job_act(c->q, (enum lade_job_verb)verb, c->queue, texts, n, outcomes, err);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        out[i].outcome =
            c->dry_run ? foresee(c, (enum lade_job_verb)verb, texts[i], err) : outcomes[i];
        rc = LB_MIN(out[i].outcome, 0);
    }
    return LB_MIN(rc, 0);
}

static enum cli_exit refuse(int verb, const char *id, const struct cli_act *act)
{
    if (act->outcome == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such job", id);
    return cli_say(CLI_CONFLICT, "%s: not %s: its state does not allow it; see lade job show", id,
                   done_words[verb]);
}

static enum cli_exit run_act(struct cli *c, enum lade_job_verb verb, char **args, int n_args)
{
    struct cli_acts acts = {
        .done = done_words[verb], .verb = (int)verb, .act = act_on, .refuse = refuse};
    return cli_acts_run(c, &acts, args, n_args);
}

static enum cli_exit run_retry(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return run_act(c, LADE_JOB_RETRY, args, n_args);
}

static enum cli_exit run_kill(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return run_act(c, LADE_JOB_KILL, args, n_args);
}

static enum cli_exit run_cancel(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return run_act(c, LADE_JOB_CANCEL, args, n_args);
}

static enum cli_exit run_rm(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    enum cli_exit code = CLI_OK;
    if (!cli_confirm(c, &code, "remove %d job%s%s", n_args, n_args > 1 ? "s, first " : " ",
                     args[0]))
        return code;
    return run_act(c, LADE_JOB_REMOVE, args, n_args);
}

#define ACT_COMMAND(variable, word, from, tail, text)                                       \
    const struct cli_command variable = {                                                   \
        .noun = "job",                                                                      \
        .verb = #word,                                                                      \
        .args = "ID...",                                                                    \
        .min_args = 1,                                                                      \
        .max_args = CLI_MANY_ARGS,                                                          \
        .about = text " Ids may be read from stdin: -.",                                    \
        .examples = "  lade job " #word " 01HZX3V7Q2M4N5P6R7S8T9VWXY\n"                     \
                    "  lade job ls -s " from                                                \
                    " -o tsv --limit 0 | tail -n +2 | cut -f1 | lade job " #word " -" tail, \
        .can_dry_run = true,                                                                \
        .asks = sizeof(tail) > 1,                                                           \
        .run = run_##word,                                                                  \
    }

ACT_COMMAND(
    cli_job_retry, retry, "dead", "",
    "Runs jobs now. Scheduled, retrying, dead, cancelled and completed ones become ready; those that had ended "
    "get all attempts again.");
ACT_COMMAND(cli_job_kill, kill, "ready", "",
            "Moves jobs to the dead. A running handler is told to stop first.");
ACT_COMMAND(cli_job_cancel, cancel, "ready", "",
            "Ends jobs as cancelled. A running handler is told to stop.");
ACT_COMMAND(cli_job_rm, rm, "dead", " --yes",
            "Removes jobs. Everything kept of them goes. A running handler is told to stop and its "
            "outcome is refused. Cannot be undone.");
