/* lade enqueue: one job from options, or many from a file */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/bulk.h"
#include "cli/commands.h"
#include "cli/lines.h"
#include "cli/out.h"

struct enqueue {
    const char *payload, *lines, *ndjson, *unique, *key;
    bool skip_bad, ids, in_given, at_given;
    int64_t in, at, at_in; /* --in; --at as a time, or as a delay */
    int64_t payload_max, priority, max_attempts;
    lade_job_spec spec;
    lade_header headers[LADE_HEADERS_MAX];
    char names[LADE_HEADERS_MAX][LADE_NAME_MAX + 1];
};

static int set_header(void *values, const char *text, lade_err *err)
{
    struct enqueue *e = values;
    const char *sign = strchr(text, '=');
    size_t n = e->spec.n_headers;
    if (!sign || sign == text)
        return lb_fail(err, LADE_EINVAL, "usage", "--header: '%.40s' has no name; give NAME=VALUE",
                       text);
    if (n == LADE_HEADERS_MAX)
        return lb_fail(err, LADE_EINVAL, "usage", "--header: more than %d; a job can have no more",
                       LADE_HEADERS_MAX);
    if ((size_t)(sign - text) > LADE_NAME_MAX)
        return lb_fail(err, LADE_EINVAL, "usage", "--header: '%.40s...' is over %d characters",
                       text, LADE_NAME_MAX);
    (void)snprintf(e->names[n], sizeof(e->names[n]), "%.*s", (int)(sign - text), text);
    e->headers[n] = (lade_header){e->names[n], sign + 1};
    e->spec.n_headers++;
    return 0;
}

static int set_at(void *values, const char *text, lade_err *err)
{
    struct enqueue *e = values;
    e->at_given = true;
    return cli_arg_run_at("--at", text, &e->at, &e->at_in, err);
}

static int set_in(void *values, const char *text, lade_err *err)
{
    struct enqueue *e = values;
    e->in_given = true;
    return cli_arg_duration("--in", text, (struct cli_range){0, CLI_DURATION_MAX}, &e->in, err);
}

static int set_backoff(void *values, const char *text, lade_err *err)
{
    struct enqueue *e = values;
    return cli_arg_backoff("--backoff", text, &e->spec.backoff, err);
}

static int set_until(void *values, const char *text, lade_err *err)
{
    struct enqueue *e = values;
    return cli_arg_until("--unique-until", text, &e->spec.unique.until, err);
}

static int set_conflict(void *values, const char *text, lade_err *err)
{
    struct enqueue *e = values;
    return cli_arg_conflict("--on-conflict", text, &e->spec.unique.on_conflict, err);
}

#define AT(member) offsetof(struct enqueue, member)

static const struct cli_opt opts[] = {
    {"kind", 'k', CLI_OPT_TEXT, AT(spec.kind), "KIND", "which handler runs it", 0, 0, NULL},
    {"payload", 'p', CLI_OPT_TEXT, AT(payload), "TEXT|@FILE|@-", "its input, any bytes", 0, 0,
     NULL},
    {"content-type", 0, CLI_OPT_TEXT, AT(spec.content_type), "TYPE", "what the payload is", 0, 0,
     NULL},
    {"lines", 'l', CLI_OPT_TEXT, AT(lines), "FILE|-", "one job per line, the line is the payload",
     0, 0, NULL},
    {"ndjson", 0, CLI_OPT_TEXT, AT(ndjson), "FILE|-", "one job per line of JSON", 0, 0, NULL},
    {"skip-bad", 0, CLI_OPT_FLAG, AT(skip_bad), NULL, "pass over bad lines, exit 6", 0, 0, NULL},
    {"ids", 0, CLI_OPT_FLAG, AT(ids), NULL, "print the ids of --lines and --ndjson", 0, 0, NULL},
    {"id", 0, CLI_OPT_TEXT, AT(spec.id), "ID", "explicit id: enqueued once", 0, 0, NULL},
    {"in", 0, CLI_OPT_CALL, 0, "DURATION", "run after a delay", 0, 0, set_in},
    {"at", 0, CLI_OPT_CALL, 0, "TIME", "run at a time", 0, 0, set_at},
    {"priority", 0, CLI_OPT_INT, AT(priority), "N", "-4 to 4, higher first (default 0)",
     LADE_PRIORITY_MIN, LADE_PRIORITY_MAX, NULL},
    {"max-attempts", 0, CLI_OPT_INT, AT(max_attempts), "N", "runs, not retries (default 25)", 1,
     1000, NULL},
    {"timeout", 0, CLI_OPT_DURATION, AT(spec.timeout), "DURATION", "for one attempt (default 30m)",
     LADE_MILLISECOND, CLI_DURATION_MAX, NULL},
    {"result-ttl", 0, CLI_OPT_DURATION, AT(spec.result_ttl), "DURATION",
     "keep its result so long, also when its record is gone (default: with the record)",
     LADE_MILLISECOND, CLI_DURATION_MAX, NULL},
    {"backoff", 0, CLI_OPT_CALL, 0, "WHAT", "fixed:5s, exponential:1s, polynomial[:1s]", 0, 0,
     set_backoff},
    {"unique", 0, CLI_OPT_TEXT, AT(unique), "KEY", "refuse a second job with this key", 0, 0, NULL},
    {"unique-key", 0, CLI_OPT_TEXT, AT(unique), "KEY", "the same", 0, 0, NULL},
    {"unique-ttl", 0, CLI_OPT_DURATION, AT(spec.unique.ttl), "DURATION",
     "with --unique-until ttl: how long it is held (default 24h)", LADE_MILLISECOND,
     CLI_DURATION_MAX, NULL},
    {"unique-until", 0, CLI_OPT_CALL, 0, "WHEN", "done, start or ttl (default done)", 0, 0,
     set_until},
    {"key", 0, CLI_OPT_TEXT, AT(key), "KEY", "for whom: fair turns and limits (lade key)", 0, 0,
     NULL},
    {"on-conflict", 0, CLI_OPT_CALL, 0, "WHAT",
     "when the key is held: keep, replace or reject (default keep)", 0, 0, set_conflict},
    {"debounce", 0, CLI_OPT_DURATION, AT(spec.unique.debounce), "DURATION",
     "one run so long after the last with this key; the last payload wins", LADE_MILLISECOND,
     CLI_DURATION_MAX, NULL},
    {"max-wait", 0, CLI_OPT_DURATION, AT(spec.unique.max_wait), "DURATION",
     "with --debounce: at most so long after the first (default 10 times)", LADE_MILLISECOND,
     CLI_DURATION_MAX, NULL},
    {"throttle", 0, CLI_OPT_DURATION, AT(spec.unique.throttle), "DURATION",
     "the first with this key runs; what follows within this time is a duplicate", LADE_MILLISECOND,
     CLI_DURATION_MAX, NULL},
    {"trailing", 0, CLI_OPT_FLAG, AT(spec.unique.trailing), NULL,
     "with --throttle: one more run at its end, with the last payload", 0, 0, NULL},
    {"discard-dead", 0, CLI_OPT_FLAG, AT(spec.discard_dead), NULL,
     "keep nothing of it when it would die", 0, 0, NULL},
    {"header", 'H', CLI_OPT_CALL, 0, "NAME=VALUE", "may be repeated", 0, 0, set_header},
    {"payload-max", 0, CLI_OPT_SIZE, AT(payload_max), "BYTES",
     "largest payload, as 2MiB (default 1MiB, at most 64MiB)", 1, LADE_PAYLOAD_MAX_HARD, NULL},
};

/* What contradicts itself, before anything is opened. */
static enum cli_exit check(struct enqueue *e)
{
    lade_err err = {0};
    bool is_bulk = e->lines || e->ndjson;
    if (e->lines && e->ndjson)
        return cli_say(CLI_USAGE, "--lines: not with --ndjson; give one of them");
    if (e->lines && e->payload)
        return cli_say(CLI_USAGE, "--payload: not with --lines; each line is a payload");
    if (is_bulk && (e->spec.id || e->unique))
        return cli_say(CLI_USAGE, "--%s: not for many jobs; give it in the lines of --ndjson",
                       e->spec.id ? "id" : "unique");
    if (!is_bulk && (e->skip_bad || e->ids))
        return cli_say(CLI_USAGE, "--%s: only with --lines or --ndjson",
                       e->skip_bad ? "skip-bad" : "ids");
    if (!e->spec.kind && !e->ndjson)
        return cli_say(CLI_USAGE, "--kind: missing; give the name of the handler to run");
    if (e->in_given && e->at_given)
        return cli_say(CLI_USAGE, "--in: not with --at; give one of them");
    if (e->key && !e->key[0])
        return cli_say(CLI_USAGE, "--key: empty; give a key of 1 to %d bytes", LADE_KEY_MAX);
    if (cli_arg_unique(e->unique, &e->spec.unique, &err) < 0)
        return cli_complain(&err);
    return CLI_OK;
}

static enum cli_exit enqueue_one(struct cli *c, const lade_job_spec *spec)
{
    lade_err err = {0};
    lade_id id;
    struct cli_row row;
    if (c->dry_run && c->format != CLI_TABLE) {
        cli_row_init(&row);
        cli_row_bool(&row, "dry_run", true);
        cli_row_int(&row, "added", 1);
        if (cli_out_object(c, &row, &err) < 0)
            return cli_complain(&err);
    }
    if (c->dry_run) {
        cli_note(c, "1 would be added: kind %s, %zu bytes", spec->kind, spec->payload.size);
        return CLI_OK;
    }
    int rc = lade_enqueue(c->q, spec, &id, &err);
    if (rc < 0 || rc == LADE_FULL)
        return cli_complain(&err);
    int printed = 0;
    if (c->format == CLI_TABLE) {
        (void)printf("%s\n", id.text);
        printed = cli_out_raw((lade_bytes){0}, &err);
    } else {
        cli_row_init(&row);
        cli_row_text(&row, "id", id.text);
        cli_row_bool(&row, "duplicate", rc == LADE_DUPLICATE || rc == LADE_CONFLICT);
        cli_row_bool(&row, "replaced", rc == LADE_REPLACED);
        printed = cli_out_object(c, &row, &err);
    }
    if (printed < 0)
        return cli_say(CLI_FAILED, "%s; the job %s: %s", err.text,
                       rc == LADE_DUPLICATE ? "was there already" : "was enqueued", id.text);
    if (rc == LADE_CONFLICT)
        return cli_say(CLI_CONFLICT, "enqueue: refused: the key is held by job %s", id.text);
    if (rc == LADE_REPLACED)
        cli_note(c, "enqueue: the job that waited under this key is replaced");
    if (rc == LADE_DUPLICATE)
        cli_note(c, "enqueue: duplicate: this job is already there, nothing was added");
    return cli_exit_of(rc);
}

/* Reads what --payload names. */
static int read_payload(const struct enqueue *e, uint32_t max, struct lb_buf *out, lade_err *err)
{
    if (!e->payload)
        return 0;
    if (e->payload[0] == '@')
        return cli_read_file(e->payload + 1, max, out, err);
    lb_buf_add_str(out, e->payload);
    return out->failed ? lb_fail_nomem(err, "enqueue") : 0;
}

static enum cli_exit run_enqueue(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    struct enqueue *e = values;
    lade_err err = {0};
    struct lb_buf payload;
    enum cli_exit code = check(e);
    if (code != CLI_OK)
        return code;
    uint32_t max = e->payload_max ? (uint32_t)e->payload_max : LADE_PAYLOAD_MAX;
    e->spec.queue = c->queue;
    e->spec.in = e->in_given ? e->in : e->at_in;
    e->spec.at = e->at;
    e->spec.priority = (int)e->priority;
    e->spec.max_attempts = (int)e->max_attempts;
    e->spec.headers = e->headers;
    if (e->key)
        e->spec.key = (lade_bytes){e->key, strlen(e->key)};
    lb_buf_init(&payload);
    int rc = read_payload(e, max, &payload, &err);
    if (rc == 0)
        rc = cli_connect(
            c, &(lade_options){.payload_max = (uint32_t)e->payload_max, .must_exist = c->dry_run},
            &err);
    if (rc == -LADE_ENOSTORE && c->dry_run)
        rc = 0; /* it would be made; nothing of a dry run needs it */
    e->spec.payload = (lade_bytes){payload.p, payload.n};
    if (rc < 0) {
        code = cli_complain(&err);
    } else if (e->lines || e->ndjson) {
        struct cli_bulk bulk = {.path = e->lines ? e->lines : e->ndjson,
                                .is_ndjson = e->ndjson != NULL,
                                .skip_bad = e->skip_bad,
                                .print_ids = e->ids || c->format == CLI_NDJSON,
                                .payload_max = max,
                                .base = &e->spec};
        code = cli_bulk_run(c, &bulk);
    } else {
        code = enqueue_one(c, &e->spec);
    }
    lb_buf_fini(&payload);
    return code;
}

const struct cli_command cli_job_enqueue = {
    .noun = "job",
    .verb = "enqueue",
    .args = "",
    .about =
        "Enqueues a job or many. Prints the id; a duplicate prints the id of the job already there "
        "and exits 4. With --lines or --ndjson many jobs are added in batches and a summary "
        "goes to stderr: a bad line stops with exit 2 and nothing of its batch is written; a queue "
        "at its bound (lade queue limit --max-jobs, --max-bytes) stops with exit 4, its batch refused whole. "
        "Members of --ndjson: kind, queue, payload or payload_base64 or payload_json, "
        "content_type, id, key, in, at, priority, max_attempts, timeout, result_ttl, discard_dead, unique {key, ttl, "
        "until, on_conflict, debounce, max_wait, throttle, trailing}, "
        "headers {}, backoff {type, base, cap, jitter}.",
    .examples =
        "  lade enqueue --kind resize --queue images --payload @photo.json\n"
        "  find . -name '*.txt' | lade enqueue --kind wc --lines -\n"
        "  echo '{\"kind\":\"mail\",\"in\":\"5m\",\"payload_json\":{\"to\":\"a@b\"}}' | lade "
        "enqueue --ndjson -",
    .opts = opts,
    .n_opts = LB_ARRAY_LEN(opts),
    .size = sizeof(struct enqueue),
    .can_dry_run = true,
    .queue_help = "where to (default: default)",
    .run = run_enqueue,
};
