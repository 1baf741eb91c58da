/* lade schedule: when one fires, why it did or did not, and the scheduler by itself */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "cli/schedule_rows.h"
#include "cli/schedule_rule.h"
#include "cli/schedule_words.h"
#include "cli/text.h"

#define TIMES_MAX 10000
#define TIMES     10

/* preview ---------------------------------------------------------------------------------------------------------- */

struct preview {
    struct cli_rule rule;
    const char *from, *to;
    int64_t n;
};

static const struct cli_column time_columns[] = {
    {"TIME", "at", CLI_CELL_TEXT, false, false},
    {"LOCAL", "local", CLI_CELL_TEXT, false, false},
    {"NOTE", "note", CLI_CELL_TEXT, false, false},
};

static int print_times(struct cli *c, const lade_schedule_spec *spec, int64_t from, int64_t to,
                       size_t max, lade_err *err)
{
    static lade_schedule_time time[TIMES_MAX];
    size_t n = 0;
    struct cli_out out;
    int rc = lade_schedule_preview(spec, from, to, time, max, &n, err);
    if (rc < 0)
        return rc;
    cli_out_begin(&out, c, time_columns, LB_ARRAY_LEN(time_columns));
    for (size_t i = 0; i < n; i++) {
        struct cli_row row;
        cli_schedule_time_row(&row, &time[i]);
        cli_out_row(&out, &row);
    }
    rc = rc == LADE_MORE && to != INT64_MAX ? rc : 0;
    int end = cli_out_end(&out, err);
    if (rc == LADE_MORE && end == 0)
        cli_note(c, "%zu shown, more are there; -N for more", n);
    return end;
}

/* The rule of a schedule that is there: its anchor is known. */
static int preview_saved(struct cli *c, const char *id, int64_t from, int64_t to, size_t max,
                         lade_err *err)
{
    lade_schedule_view *v = NULL;
    int rc = lade_schedule_get(c->q, id, &v, err);
    if (rc != 0 || !v)
        return rc;
    if (!v->spec) {
        lade_schedule_view_free(v);
        return LADE_WRONG_STATE;
    }
    lade_schedule_spec spec = *v->spec;
    if (spec.anchor == LADE_ANCHOR_START)
        spec.anchor = LADE_ANCHOR_TIME;
    spec.anchor_at = spec.anchor == LADE_ANCHOR_TIME ? v->anchor_at : 0;
    rc = print_times(c, &spec, from, to, max, err);
    lade_schedule_view_free(v);
    return rc;
}

static enum cli_exit run_preview(struct cli *c, void *values, char **args, int n_args)
{
    const struct preview *p = values;
    lade_err err = {0};
    lade_schedule_spec spec = {0};
    bool has_rule = p->rule.cron || p->rule.every;
    int64_t now = 0, from = 0, to = INT64_MAX;
    if (has_rule == (n_args == 1))
        return cli_say(CLI_USAGE, "give the ID of a schedule, or a rule with --cron or --every");
    int rc = has_rule ? 0 : cli_look(c, &err);
    if (rc == 0 && has_rule)
        now = lb_clock_wall();
    else if (rc == 0)
        rc = lade_now(c->q, &now, &err);
    from = now;
    if (rc == 0 && p->from)
        rc = cli_schedule_time("--from", p->from, now, &from, &err);
    if (rc == 0 && p->to)
        rc = cli_schedule_time("--to", p->to, now, &to, &err);
    if (rc == 0)
        rc = cli_rule_read(&p->rule, now, &spec, &err);
    size_t max = p->n ? (size_t)p->n : p->to ? (size_t)TIMES_MAX : TIMES;
    if (rc == 0 && has_rule)
        rc = print_times(c, &spec, from, to, max, &err);
    else if (rc == 0)
        rc = preview_saved(c, args[0], from, to, max, &err);
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such schedule", args[0]);
    if (rc == LADE_WRONG_STATE)
        return cli_say(CLI_CONFLICT, "%s: cannot be read; see lade schedule show", args[0]);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt preview_opts[] = {
    CLI_RULE_OPTS(offsetof(struct preview, rule)),
    {"from", 0, CLI_OPT_TEXT, offsetof(struct preview, from), "TIME", "default now", 0, 0, NULL},
    {"to", 0, CLI_OPT_TEXT, offsetof(struct preview, to), "TIME", "up to then", 0, 0, NULL},
    {"count", 'N', CLI_OPT_INT, offsetof(struct preview, n), "N",
     "at most so many (default 10; with --to 10,000)", 1, TIMES_MAX, NULL},
};

const struct cli_command cli_schedule_preview = {
    .noun = "schedule",
    .verb = "preview",
    .args = "[ID]",
    .min_args = 0,
    .max_args = 1,
    .about =
        "Shows when a schedule fires. One that is there, or a rule that is only thought of, which "
        "needs no store. In UTC and local time, with a note where a change of the clock has moved "
        "a time (shifted) or gives it twice (first pass, second pass).",
    .examples = "  lade schedule preview nightly --from 2027-03-27T00:00:00Z\n"
                "  lade schedule preview --cron '30 2 * * *' --tz Europe/Berlin -N 3",
    .opts = preview_opts,
    .n_opts = LB_ARRAY_LEN(preview_opts),
    .size = sizeof(struct preview),
    .lacks = CLI_LACKS_QUEUE,
    .run = run_preview,
};

/* explain ---------------------------------------------------------------------------------------------------------- */

static const struct cli_column fire_columns[] = {
    {"TIME", "at", CLI_CELL_TEXT, false, false},
    {"OUTCOME", "outcome", CLI_CELL_TEXT, false, false},
    {"TIMES", "count", CLI_CELL_TEXT, true, false},
    {"LATE", "late_ms", CLI_CELL_DURATION, true, false},
    {"WHY", "why", CLI_CELL_TEXT, false, true},
};

static const char *why(const lade_fire *f, const lade_schedule_spec *spec)
{
    switch (f->outcome) {
    case LADE_FIRE_DONE:
        return "due, the job was put";
    case LADE_FIRE_MADE_UP:
        return "nobody looked in time; put by missed";
    case LADE_FIRE_MISSED:
        return spec && spec->missed == LADE_MISSED_SKIP
                   ? "nobody looked in time; missed=skip passes over"
                   : "nobody looked in time; more than missed makes up for";
    case LADE_FIRE_OVERLAP:
        return "the last job had not ended; overlap passes over";
    case LADE_FIRE_QUEUED:
        return "the last job had not ended; waits for that";
    case LADE_FIRE_DUPLICATE:
        return "another job holds the unique key, or this one was there";
    case LADE_FIRE_BY_HAND:
        return "lade schedule run";
    default:
        return "?";
    }
}

static const char *standing(const lade_schedule_view *v, const lade_schedule_leader *leader,
                            int64_t now)
{
    if (v->state == LADE_SCHEDULE_PAUSED)
        return "paused: fires when it is resumed";
    if (v->state == LADE_SCHEDULE_ENDED)
        return "ended: its limit is reached or it has no more times";
    if (v->state == LADE_SCHEDULE_BROKEN)
        return "broken: see error; set it again, or resume it where it can be read";
    if (!leader->name[0] && v->due_at <= now)
        return "due, but nobody runs schedules: start a worker or lade schedule serve";
    if (!leader->name[0])
        return "active, but nobody runs schedules now: start a worker or lade schedule serve";
    return "active: waits for its next time";
}

static void make_fire_row(struct cli_row *r, const lade_fire *f, const lade_schedule_spec *spec)
{
    cli_fire_row(r, f);
    cli_row_text(r, "why", why(f, spec));
}

/* The verdict and the outcomes as one object: programs do not read stderr. */
static int explain_json(struct cli *c, const lade_schedule_view *v, const char *verdict,
                        const lade_schedule_leader *leader, lade_err *err)
{
    struct cli_row row;
    json_t *history = json_array();
    cli_row_init(&row);
    cli_row_text(&row, "id", v->id);
    cli_row_text(&row, "state", lade_schedule_state_name(v->state));
    cli_row_text(&row, "verdict", verdict);
    cli_row_time(&row, "next_at", v->next_at);
    cli_row_text(&row, "leader", leader->name[0] ? leader->name : NULL);
    cli_row_text(&row, "error", v->error[0] ? v->error : NULL);
    for (size_t i = 0; i < v->n_history; i++) {
        struct cli_row fire;
        make_fire_row(&fire, &v->history[i], v->spec);
        row.failed |= fire.failed || json_array_append(history, fire.o) != 0;
        cli_row_fini(&fire);
    }
    cli_row_json(&row, "history", history);
    return cli_out_object(c, &row, err);
}

static int explain(struct cli *c, const lade_schedule_view *v, lade_err *err)
{
    lade_schedule_leader leader = {0};
    struct cli_out out;
    char next[CLI_TIME_LEN];
    int64_t now = 0;
    int rc = lade_now(c->q, &now, err);
    if (rc == 0)
        rc = lade_schedule_get_leader(c->q, &leader, err);
    if (rc < 0)
        return rc;
    if (cli_out_is_json(c))
        return explain_json(c, v, standing(v, &leader, now), &leader, err);
    cli_time_text(next, v->next_at);
    cli_note(c, "%s: %s%s%s", v->id, standing(v, &leader, now), v->next_at ? "; next " : "",
             v->next_at ? next : "");
    if (v->error[0])
        cli_note(c, "%s", v->error);
    cli_out_begin(&out, c, fire_columns, LB_ARRAY_LEN(fire_columns));
    for (size_t i = 0; i < v->n_history; i++) {
        struct cli_row row;
        make_fire_row(&row, &v->history[i], v->spec);
        cli_out_row(&out, &row);
    }
    return cli_out_end(&out, err);
}

static enum cli_exit run_explain(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    (void)n_args;
    lade_err err = {0};
    lade_schedule_view *v = NULL;
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = lade_schedule_get(c->q, args[0], &v, &err);
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such schedule", args[0]);
    if (rc < 0 || !v)
        return cli_complain(&err);
    rc = explain(c, v, &err);
    lade_schedule_view_free(v);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

const struct cli_command cli_schedule_explain = {
    .noun = "schedule",
    .verb = "explain",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Tells why a schedule did or did not fire. The last 20 outcomes with their reasons, and "
        "what it waits for now: on stderr, in JSON as \"verdict\" beside the \"history\".",
    .examples = "  lade schedule explain nightly\n  lade schedule explain nightly -o json",
    .lacks = CLI_LACKS_QUEUE,
    .run = run_explain,
};

/* serve ------------------------------------------------------------------------------------------------------------ */

static lade_scheduler *serving;

static void on_signal(int signo)
{
    (void)signo;
    lade_scheduler_stop(serving);
}

static void log_line(void *ctx, const char *line)
{
    cli_note(ctx, "%s", line);
}

static int serve(struct cli *c, lade_err *err)
{
    lade_scheduler_stats stats;
    struct cli_row row;
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    lade_scheduler_config config = {.log = log_line, .log_ctx = c};
    int rc = lade_scheduler_open(&serving, c->q, &config, err);
    if (rc < 0)
        return rc;
    (void)sigfillset(&sa.sa_mask);
    (void)sigaction(SIGTERM, &sa, NULL);
    (void)sigaction(SIGINT, &sa, NULL);
    cli_note(c, "fires schedules until it is stopped");
    rc = lade_scheduler_run(serving, err);
    lade_scheduler_get_stats(serving, &stats);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    lade_scheduler_close(serving);
    if (rc < 0)
        return rc;
    cli_note(c, "stopped: %llu fired, %llu missed, %llu failed", (unsigned long long)stats.fired,
             (unsigned long long)stats.missed, (unsigned long long)stats.failed);
    if (c->format == CLI_TABLE)
        return 0;
    cli_row_init(&row);
    cli_row_u64(&row, "fired", stats.fired);
    cli_row_u64(&row, "made_up", stats.made_up);
    cli_row_u64(&row, "missed", stats.missed);
    cli_row_u64(&row, "overlaps", stats.overlaps);
    cli_row_u64(&row, "duplicates", stats.duplicates);
    cli_row_u64(&row, "failed", stats.failed);
    cli_row_u64(&row, "takeovers", stats.takeovers);
    return cli_out_object(c, &row, err);
}

static enum cli_exit run_serve(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    (void)args;
    (void)n_args;
    lade_err err = {0};
    int rc = cli_connect(c, NULL, &err);
    if (rc == 0)
        rc = serve(c, &err);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

const struct cli_command cli_schedule_serve = {
    .noun = "schedule",
    .verb = "serve",
    .args = "",
    .about =
        "Fires schedules until stopped. Every worker does so beside its work unless told not to; "
        "this is for where no worker runs all the time. Any number may run: one leads, another goes "
        "on within 5 s when it dies. TERM and INT stop it.",
    .examples = "  lade schedule serve",
    .lacks = CLI_LACKS_QUEUE,
    .run = run_serve,
};
