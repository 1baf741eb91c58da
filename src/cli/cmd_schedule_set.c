/* lade schedule set: one schedule from options, or many from a file */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/lines.h"
#include "cli/out.h"
#include "cli/schedule_rule.h"
#include "cli/schedule_words.h"

struct set {
    struct cli_rule rule;
    const char *file, *payload, *missed, *overlap, *unique;
    int64_t jitter, missed_window, limit, priority, max_attempts, payload_max;
    bool paused;
    lade_schedule_spec spec;
    lade_header headers[LADE_HEADERS_MAX];
    char names[LADE_HEADERS_MAX][LADE_NAME_MAX + 1];
};

static int set_header(void *values, const char *text, lade_err *err)
{
    struct set *s = values;
    const char *sign = strchr(text, '=');
    size_t n = s->spec.job.n_headers;
    if (!sign || sign == text || (size_t)(sign - text) > LADE_NAME_MAX)
        return lb_fail(err, LADE_EINVAL, "usage", "--header: '%.40s' is not NAME=VALUE", text);
    if (n == LADE_HEADERS_MAX)
        return lb_fail(err, LADE_EINVAL, "usage", "--header: more than %d; a job can have no more",
                       LADE_HEADERS_MAX);
    (void)snprintf(s->names[n], sizeof(s->names[n]), "%.*s", (int)(sign - text), text);
    s->headers[n] = (lade_header){s->names[n], sign + 1};
    s->spec.job.n_headers++;
    return 0;
}

static int set_backoff(void *values, const char *text, lade_err *err)
{
    struct set *s = values;
    return cli_arg_backoff("--backoff", text, &s->spec.job.backoff, err);
}

static int set_until(void *values, const char *text, lade_err *err)
{
    struct set *s = values;
    return cli_arg_until("--unique-until", text, &s->spec.job.unique.until, err);
}

#define AT(member) offsetof(struct set, member)

static const struct cli_opt opts[] = {
    {"id", 0, CLI_OPT_TEXT, AT(spec.id), "ID",
     "the same as the argument; default: made from kind, rule, queue and payload", 0, 0, NULL},
    CLI_RULE_OPTS(AT(rule)),
    {"missed", 0, CLI_OPT_TEXT, AT(missed), "one|skip|all[:N]",
     "what becomes of times nobody was there for (default one)", 0, 0, NULL},
    {"missed-window", 0, CLI_OPT_DURATION, AT(missed_window), "DURATION",
     "older ones are never made up for", 0, CLI_DURATION_MAX, NULL},
    {"overlap", 0, CLI_OPT_TEXT, AT(overlap), "allow|skip|queue-one",
     "when the last job has not ended (default allow)", 0, 0, NULL},
    {"limit", 0, CLI_OPT_INT, AT(limit), "N", "fires in all; 0 = no limit", 0, INT64_MAX, NULL},
    {"jitter", 0, CLI_OPT_DURATION, AT(jitter), "DURATION", "each fire is late by up to this", 0,
     CLI_DURATION_MAX, NULL},
    {"paused", 0, CLI_OPT_FLAG, AT(paused), NULL, "a new one begins paused", 0, 0, NULL},
    {"file", 'f', CLI_OPT_TEXT, AT(file), "FILE|-", "many, one a line of JSON", 0, 0, NULL},
    {"kind", 'k', CLI_OPT_TEXT, AT(spec.job.kind), "KIND", "which handler runs it", 0, 0, NULL},
    {"payload", 'p', CLI_OPT_TEXT, AT(payload), "TEXT|@FILE|@-", "its input, any bytes", 0, 0,
     NULL},
    {"content-type", 0, CLI_OPT_TEXT, AT(spec.job.content_type), "TYPE", "what the payload is", 0,
     0, NULL},
    {"priority", 0, CLI_OPT_INT, AT(priority), "N", "-4 to 4, higher first (default 0)",
     LADE_PRIORITY_MIN, LADE_PRIORITY_MAX, NULL},
    {"max-attempts", 0, CLI_OPT_INT, AT(max_attempts), "N", "runs, not retries (default 25)", 1,
     1000, NULL},
    {"timeout", 0, CLI_OPT_DURATION, AT(spec.job.timeout), "DURATION",
     "for one attempt (default 30m)", LADE_MILLISECOND, CLI_DURATION_MAX, NULL},
    {"result-ttl", 0, CLI_OPT_DURATION, AT(spec.job.result_ttl), "DURATION",
     "keep results so long, also when the records are gone", LADE_MILLISECOND, CLI_DURATION_MAX,
     NULL},
    {"backoff", 0, CLI_OPT_CALL, 0, "WHAT", "fixed:5s, exponential:1s, polynomial[:1s]", 0, 0,
     set_backoff},
    {"unique", 0, CLI_OPT_TEXT, AT(unique), "KEY", "no second job with this key", 0, 0, NULL},
    {"unique-ttl", 0, CLI_OPT_DURATION, AT(spec.job.unique.ttl), "DURATION",
     "with --unique-until ttl: how long it is held (default 24h)", LADE_MILLISECOND,
     CLI_DURATION_MAX, NULL},
    {"unique-until", 0, CLI_OPT_CALL, 0, "WHEN", "done, start or ttl (default done)", 0, 0,
     set_until},
    {"header", 'H', CLI_OPT_CALL, 0, "NAME=VALUE", "may be repeated", 0, 0, set_header},
    {"payload-max", 0, CLI_OPT_SIZE, AT(payload_max), "BYTES",
     "largest payload, as 2MiB (default 1MiB, at most 64MiB)", 1, LADE_PAYLOAD_MAX_HARD, NULL},
};

static const char *const changes[] = {"unchanged", "created", "changed"};

static const struct cli_column set_columns[] = {
    {"ID", "id", CLI_CELL_TEXT, false, false},
    {"CHANGE", "change", CLI_CELL_TEXT, false, false},
    {"DRY RUN", "dry_run", CLI_CELL_TEXT, false, false},
};

/* `list` takes it when there are several and they are one text. */
static int print_set(const struct cli *c, const char *id, enum lade_schedule_change change,
                     struct cli_out *list, lade_err *err)
{
    struct cli_row row;
    if (c->format == CLI_TABLE) {
        (void)printf("%s\n", id);
        return cli_out_raw((lade_bytes){0}, err);
    }
    cli_row_init(&row);
    cli_row_text(&row, "id", id);
    cli_row_text(&row, "change", c->dry_run ? NULL : changes[change]);
    cli_row_bool(&row, "dry_run", c->dry_run);
    if (!list)
        return cli_out_object(c, &row, err);
    cli_out_row(list, &row);
    return 0;
}

/* Sets one and prints its id. 0 or a failure with its text. */
static int set_one(struct cli *c, const lade_schedule_spec *spec, struct cli_out *list,
                   lade_err *err)
{
    lade_schedule_id id;
    enum lade_schedule_change change = LADE_SCHEDULE_UNCHANGED;
    int rc = c->dry_run ? lade_schedule_check(c->q, spec, &id, err)
                        : lade_schedule_set(c->q, spec, &id, &change, err);
    if (rc == 0)
        rc = print_set(c, id.text, change, list, err);
    if (rc == 0 && c->dry_run)
        cli_note(c, "%s: the schedule is sound; it would be set", id.text);
    else if (rc == 0)
        cli_note(c, "%s: %s", id.text, changes[change]);
    return rc;
}

static int set_line(struct cli *c, lade_bytes line, int64_t now, struct cli_out *list,
                    lade_err *err)
{
    struct cli_schedule_line l;
    lade_job_spec defaults = {.queue = c->queue};
    int rc = cli_schedule_parse(&l, line.data, line.size, &defaults, now, err);
    if (rc < 0)
        return rc;
    rc = set_one(c, &l.spec, list, err);
    cli_schedule_line_fini(&l);
    return rc;
}

static bool is_blank(lade_bytes line)
{
    const char *p = line.data;
    for (size_t i = 0; i < line.size; i++) {
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
            return false;
    }
    return true;
}

/* A bad line is told and stops none of the others (C-058); the store being away stops. */
static void set_lines(struct cli *c, const struct set *s, int64_t now, struct cli_lines *lines,
                      struct cli_out *list, struct cli_fold *fold)
{
    lade_err err = {0};
    lade_bytes line;
    int rc = 0;
    while ((rc = cli_lines_next(lines, &line, &err)) != LADE_EMPTY) {
        if (rc == 0 && is_blank(line))
            continue;
        if (rc == 0)
            rc = set_line(c, line, now, list, &err);
        enum cli_exit code = cli_exit_of(rc);
        cli_fold_add(fold, code);
        if (rc < 0)
            (void)cli_say(code, "%s: line %llu: %s", s->file, (unsigned long long)lines->number,
                          err.text);
        if (code == CLI_UNAVAILABLE || code == CLI_FAILED)
            break;
    }
}

static enum cli_exit set_file(struct cli *c, const struct set *s, int64_t now)
{
    struct cli_lines lines;
    struct cli_fold fold = {0};
    struct cli_out list;
    lade_err err = {0};
    bool is_list = c->format == CLI_JSON || c->format == CLI_TSV;
    size_t max = cli_ndjson_line_max(s->payload_max ? (size_t)s->payload_max : LADE_PAYLOAD_MAX);
    if (cli_lines_open(&lines, s->file, max, &err) < 0)
        return cli_complain(&err);
    if (is_list)
        cli_out_begin(&list, c, set_columns, LB_ARRAY_LEN(set_columns));
    set_lines(c, s, now, &lines, is_list ? &list : NULL, &fold);
    cli_lines_close(&lines);
    if (is_list && cli_out_end(&list, &err) < 0)
        return cli_complain(&err);
    cli_note(c, "%llu %s, %llu refused", (unsigned long long)fold.n_ok,
             c->dry_run ? "are sound" : "set", (unsigned long long)fold.n_bad);
    return cli_fold_exit(&fold);
}

static int read_payload(const struct set *s, struct lb_buf *out, lade_err *err)
{
    if (!s->payload)
        return 0;
    if (s->payload[0] == '@')
        return cli_read_file(s->payload + 1,
                             s->payload_max ? (size_t)s->payload_max : LADE_PAYLOAD_MAX, out, err);
    lb_buf_add_str(out, s->payload);
    return out->failed ? lb_fail_nomem(err, "schedule") : 0;
}

static int fill_spec(struct cli *c, struct set *s, int64_t now, lade_err *err)
{
    lade_schedule_spec *spec = &s->spec;
    int rc = cli_rule_read(&s->rule, now, spec, err);
    if (rc == 0 && s->missed)
        rc = cli_schedule_missed("--missed", s->missed, spec, err);
    if (rc == 0 && s->overlap)
        rc = cli_schedule_overlap("--overlap", s->overlap, spec, err);
    spec->missed_window = s->missed_window;
    spec->limit = s->limit;
    spec->jitter = s->jitter;
    spec->paused = s->paused;
    spec->job.queue = c->queue;
    spec->job.headers = s->headers;
    spec->job.priority = (int)s->priority;
    spec->job.max_attempts = (int)s->max_attempts;
    return rc;
}

static enum cli_exit run_set(struct cli *c, void *values, char **args, int n_args)
{
    struct set *s = values;
    lade_err err = {0};
    struct lb_buf payload;
    int64_t now = 0;
    if (n_args > 0 && s->spec.id)
        return cli_say(CLI_USAGE, "--id: not with an id as argument; give one of them");
    if (n_args > 0)
        s->spec.id = args[0];
    if (s->file && (s->rule.cron || s->rule.every || s->spec.job.kind || s->spec.id))
        return cli_say(CLI_USAGE,
                       "--file: not with an id, --cron, --every or --kind; they are in it");
    if (!s->file && !s->spec.job.kind)
        return cli_say(CLI_USAGE, "--kind: missing; give the name of the handler to run");
    if (cli_arg_unique(s->unique, &s->spec.job.unique, &err) < 0)
        return cli_complain(&err);
    lb_buf_init(&payload);
    int rc = read_payload(s, &payload, &err);
    if (rc == 0)
        rc = cli_connect(c, &(lade_options){.payload_max = (uint32_t)s->payload_max}, &err);
    if (rc == 0)
        rc = lade_now(c->q, &now, &err);
    if (rc == 0)
        rc = fill_spec(c, s, now, &err);
    s->spec.job.payload = (lade_bytes){payload.p, payload.n};
    enum cli_exit code = CLI_OK;
    if (rc == 0 && s->file)
        code = set_file(c, s, now);
    else if (rc == 0)
        rc = set_one(c, &s->spec, NULL, &err);
    lb_buf_fini(&payload);
    return rc < 0 ? cli_complain(&err) : code;
}

const struct cli_command cli_schedule_set = {
    .noun = "schedule",
    .verb = "set",
    .args = "[ID]",
    .max_args = 1,
    .about =
        "Makes a schedule or changes it. Prints its id. The same again changes nothing, so it may be "
        "run at each deployment; a changed rule counts from now. With --file each line is one "
        "schedule: {\"id\":..,\"cron\":..,\"tz\":..,\"kind\":..,\"payload\":..} with the names of these "
        "options; a bad line is told and stops no other, the exit status is 6 then. Workers fire "
        "schedules; where none runs, lade schedule serve.",
    .examples =
        "  lade schedule set --cron '*/5 * * * *' --kind cleanup\n"
        "  lade schedule set nightly --cron '30 2 * * mon-fri' --tz Europe/Berlin -q reports "
        "--kind report --payload '{\"day\":1}' --overlap skip\n"
        "  lade schedule set --file schedules.ndjson",
    .opts = opts,
    .n_opts = LB_ARRAY_LEN(opts),
    .size = sizeof(struct set),
    .can_dry_run = true,
    .queue_help = "of its jobs (default: default)",
    .run = run_set,
};
