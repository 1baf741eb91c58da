/*
 * lade job trace: the life of one job in the order of time
 *
 * Two sources tell it. The job's record has when it was enqueued, its failed attempts with worker and error, its effects, and what is
 * now; the queue's stream of events, when it is on, has the rest, and goes on telling when the record is gone. What both know is
 * told once, in the stream's order, with what the record adds: worker, whole error, lease.
 *
 * A stream is read once from its start, so the cost is bounded by its cap; of one job the newest MOMENTS_MAX moments are shown, and
 * twice as many are held at most.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/text.h"

#define MOMENTS_MAX 10000
#define PAGE        LADE_TAIL_BATCH_MAX

struct moment {
    int64_t at;
    size_t number; /* in the order found: of the same time the earlier one stands first */
    enum lade_event_type type; /* of the stream's; else 0 */
    int attempt;
    struct cli_row row;
};

struct trace {
    struct cli *c;
    const char *id;
    int64_t now;
    lade_job_view *job; /* NULL: gone */
    lade_flow_view *flow;
    char queue[LADE_NAME_MAX + 1];
    struct moment *moment;
    size_t n, room, found;
    bool no_events, stream, ended,
        failed; /* ended: the stream tells of the end that the record has */
};

struct opts {
    bool no_events;
};

static void free_trace(struct trace *t)
{
    for (size_t i = 0; i < t->n; i++)
        cli_row_fini(&t->moment[i].row);
    lb_free(t->moment);
    lade_job_view_free(t->job);
    lade_flow_view_free(t->flow);
}

/* All but the last MOMENTS_MAX. */
static void drop_oldest(struct trace *t)
{
    size_t n = t->n > MOMENTS_MAX ? t->n - MOMENTS_MAX : 0;
    for (size_t i = 0; i < n; i++)
        cli_row_fini(&t->moment[i].row);
    if (n > 0)
        memmove(t->moment, t->moment + n, (t->n - n) * sizeof(*t->moment));
    t->n -= n;
}

/* A new moment; NULL when there is no memory, and then the trace has failed. Valid until the next. */
static struct cli_row *add(struct trace *t, int64_t at, const char *event, const char *source)
{
    if (t->n == 2 * MOMENTS_MAX)
        drop_oldest(t);
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        struct moment *more = lb_realloc(t->moment, room * sizeof(*more));
        if (!more) {
            t->failed = true;
            return NULL;
        }
        t->moment = more;
        t->room = room;
    }
    struct moment *m = &t->moment[t->n++];
    *m = (struct moment){.at = at, .number = t->found++};
    cli_row_init(&m->row);
    cli_row_time(&m->row, "at", at);
    cli_row_text(&m->row, "event", event);
    cli_row_text(&m->row, "source", source);
    return &m->row;
}

static void add_detail(struct cli_row *r, const char *text)
{
    if (*text)
        cli_row_bytes(r, "detail", (lade_bytes){text, strlen(text)}, SIZE_MAX);
}

/* the stream ------------------------------------------------------------------------------------------------------- */

static bool is_end(enum lade_event_type type)
{
    return type == LADE_EVENT_COMPLETED || type == LADE_EVENT_DEAD || type == LADE_EVENT_CANCELLED;
}

static void add_event(struct trace *t, const lade_event *e)
{
    const char *name = lade_event_type_name(e->type);
    struct cli_row *r = add(t, e->at, name ? name : "unknown", "stream");
    if (!r)
        return;
    if (e->attempt > 0)
        cli_row_int(r, "attempt", e->attempt);
    if (e->type == LADE_EVENT_COMPLETED || e->type == LADE_EVENT_FAILED)
        cli_row_int(r, "duration_ms", e->duration / LADE_MILLISECOND);
    if (e->type == LADE_EVENT_RETRYING)
        cli_row_int(r, "delay_ms", e->duration / LADE_MILLISECOND);
    if (e->percent >= 0)
        cli_row_int(r, "percent", e->percent);
    add_detail(r, e->reason);
    t->moment[t->n - 1].type = e->type;
    t->moment[t->n - 1].attempt = e->attempt;
    t->ended = is_end(e->type);
    if (!*t->queue)
        (void)snprintf(t->queue, sizeof(t->queue), "%s", e->queue);
}

/* Everything that the stream of a queue has of the job. A stream that is off, or a store without any, has nothing. */
static int read_stream(struct trace *t, const char *queue, lade_err *err)
{
    lade_events_info info = {0};
    lade_tail *tail = NULL;
    int rc = lade_queue_events_get(t->c->q, queue, &info, err);
    if (rc == -LADE_EUNSUPPORTED || rc > 0 || (rc == 0 && info.cap == 0))
        return 0;
    t->stream = rc == 0;
    if (rc == 0)
        rc = lade_tail_open(&tail, t->c->q, &queue, 1, LADE_TAIL_START, err);
    /* No further than what was there at the start: a busy queue would go on for ever. */
    uint64_t seen = 0;
    while (rc == 0 && seen < info.last) {
        const lade_event *e = NULL;
        size_t n = 0;
        rc = lade_tail_next(tail, PAGE, 0, &e, &n, err);
        if (rc == LADE_MISSED) /* fell off while we read: on with the oldest there is */
            rc = 0;
        for (size_t i = 0; i < n; i++) {
            seen = e[i].id;
            if (strcmp(e[i].job, t->id) == 0)
                add_event(t, &e[i]);
        }
    }
    lade_tail_close(tail);
    return rc < 0 ? rc : 0;
}

/* The queue of the job; of one that is gone the one given, or each. */
static int read_streams(struct trace *t, lade_err *err)
{
    lade_queue_info *all = NULL;
    size_t n = 0;
    if (*t->queue)
        return read_stream(t, t->queue, err);
    int rc = lade_queue_list(t->c->q, &all, &n, err);
    for (size_t i = 0; rc == 0 && i < n && t->n == 0; i++) /* ids are of one queue */
        rc = read_stream(t, all[i].name, err);
    lade_free(all);
    return rc;
}

/* the record ------------------------------------------------------------------------------------------------------- */

/* The newest that the stream tells of that kind and attempt (0: any), else a moment of the record's own. */
static struct cli_row *find_or_add(struct trace *t, enum lade_event_type type, int attempt,
                                   int64_t at, const char *event)
{
    for (size_t i = t->n; i-- > 0 && type;) {
        struct moment *m = &t->moment[i];
        if (m->type == type && (attempt == 0 || m->attempt == attempt))
            return &m->row;
    }
    struct cli_row *r = add(t, at, event, "record");
    if (r && attempt > 0)
        cli_row_int(r, "attempt", attempt);
    return r;
}

static void add_attempt(struct trace *t, const lade_attempt *a)
{
    bool has_failed = strcmp(a->outcome, "retry") == 0 || strcmp(a->outcome, "dead") == 0;
    struct cli_row *r = NULL;
    if (a->started_at > 0 && a->number > 0 &&
        (r = find_or_add(t, LADE_EVENT_ACTIVE, a->number, a->started_at, "active")))
        cli_row_text(r, "worker", a->worker);
    /* One without a number (a crash, a snooze) is no failure to the stream. */
    r = a->number > 0 ? find_or_add(t, LADE_EVENT_FAILED, a->number, a->ended_at,
                                    has_failed ? "failed" : a->outcome)
                      : add(t, a->ended_at, a->outcome, "record");
    if (!r)
        return;
    cli_row_text(r, "outcome", a->outcome);
    if (a->started_at > 0)
        cli_row_int(r, "duration_ms", LB_MAX(a->ended_at - a->started_at, 0) / LADE_MILLISECOND);
    cli_row_text(r, "worker", a->worker);
    if (a->error.size > 0)
        cli_row_bytes(r, "detail", a->error, SIZE_MAX);
}

/* It runs now: who has it and under which lease. */
static void add_active(struct trace *t)
{
    const lade_job_view *v = t->job;
    char until[CLI_TIME_LEN], text[128];
    struct cli_row *r = find_or_add(t, LADE_EVENT_ACTIVE, v->attempts + 1, v->taken_at, "active");
    if (!r)
        return;
    cli_time_text(until, v->lease_until);
    (void)snprintf(text, sizeof(text), "lease until %s, fence %llu", until,
                   (unsigned long long)v->fence);
    cli_row_text(r, "worker", v->worker);
    add_detail(r, text);
}

static void add_record(struct trace *t)
{
    const lade_job_view *v = t->job;
    struct cli_row *r = NULL;
    for (size_t i = 0; i < v->n_history; i++)
        add_attempt(t, &v->history[i]);
    if (v->state == LADE_STATE_ACTIVE)
        add_active(t);
    for (size_t i = 0; i < v->n_effects; i++) {
        if ((r = add(t, v->effects[i].at, "effect", "record")))
            add_detail(r, v->effects[i].key);
    }
    if ((v->state == LADE_STATE_SCHEDULED || v->state == LADE_STATE_RETRYING) && v->run_at > 0)
        (void)add(t, v->run_at, "due", "record");
    if (v->finished_at > 0 && !t->ended &&
        (r = add(t, v->finished_at, lade_state_name(v->state), "record"))) {
        if (v->attempts > 0)
            cli_row_int(r, "attempt", v->attempts);
        add_detail(r, v->reason);
    }
}

static int by_time(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* 0, LADE_NOT_FOUND or a failure. */
static int read_flow(struct trace *t, lade_err *err)
{
    char id[LADE_ID_MAX + 1];
    const char *sign = strchr(t->id, '~');
    if (!sign)
        return 0;
    (void)snprintf(id, sizeof(id), "%.*s", (int)(sign - t->id), t->id);
    int rc = lade_flow_get(t->c->q, id, &t->flow, err);
    return rc < 0 && rc != -LADE_EUNSUPPORTED ? rc : 0;
}

static int read_trace(struct trace *t, const struct opts *o, lade_err *err)
{
    struct cli *c = t->c;
    int rc = lade_now(c->q, &t->now, err);
    if (rc == 0)
        rc = lade_job_get(c->q, c->queue, t->id, &t->job, err);
    if (rc < 0)
        return rc;
    (void)snprintf(t->queue, sizeof(t->queue), "%s",
                   t->job     ? t->job->queue
                   : c->queue ? c->queue
                              : "");
    struct cli_row *r =
        t->job ? add(t, t->job->enqueued_at, "enqueued", "record") : NULL; /* before all else */
    if (r)
        add_detail(r, t->job->kind);
    t->no_events = o->no_events;
    rc = o->no_events ? 0 : read_streams(t, err);
    if (rc == 0 && t->job)
        add_record(t);
    if (rc == 0)
        rc = read_flow(t, err);
    if (rc == 0 && t->failed)
        rc = lb_fail_nomem(err, "trace");
    if (rc == 0 && t->n == 0)
        return LADE_NOT_FOUND;
    if (t->n > 0)
        qsort(t->moment, t->n, sizeof(*t->moment), by_time);
    drop_oldest(t);
    return rc;
}

/* print ------------------------------------------------------------------------------------------------------------ */

static const struct cli_column columns[] = {
    {"TIME", "at", CLI_CELL_TEXT, false, false},
    {"EVENT", "event", CLI_CELL_STATE, false, false},
    {"ATTEMPT", "attempt", CLI_CELL_TEXT, true, false},
    {"TOOK", "duration_ms", CLI_CELL_DURATION, true, false},
    {"DELAY", "delay_ms", CLI_CELL_DURATION, true, false},
    {"WORKER", "worker", CLI_CELL_TEXT, false, true},
    {"DETAIL", "detail", CLI_CELL_BYTES, false, true},
};

static void add_flow(struct cli_row *r, const struct trace *t)
{
    const char *sign = strchr(t->id, '~');
    struct cli_row flow;
    if (!sign)
        return;
    cli_row_init(&flow);
    char id[LADE_ID_MAX + 1];
    (void)snprintf(id, sizeof(id), "%.*s", (int)(sign - t->id), t->id);
    cli_row_text(&flow, "id", id);
    cli_row_int(&flow, "step", strtol(sign + 1, NULL, 10));
    cli_row_text(&flow, "name", t->flow ? t->flow->name : NULL);
    cli_row_text(&flow, "state", t->flow ? lade_flow_state_name(t->flow->state) : "gone");
    r->failed = r->failed || flow.failed || json_object_set(r->o, "flow", flow.o) != 0;
    cli_row_fini(&flow);
}

static void fill_head(struct cli_row *r, const struct trace *t)
{
    const lade_job_view *v = t->job;
    cli_row_init(r);
    cli_row_text(r, "id", t->id);
    cli_row_text(r, "queue", *t->queue ? t->queue : NULL);
    cli_row_text(r, "kind", v ? v->kind : NULL);
    cli_row_text(r, "state", v ? lade_state_name(v->state) : "gone");
    cli_row_bool(r, "events", t->stream);
    if (v) {
        if (*v->reason)
            cli_row_text(r, "reason", v->reason);
        cli_row_int(r, "attempts", v->attempts);
        cli_row_int(r, "max_attempts", v->max_attempts);
        cli_row_int(r, "crashes", v->crashes);
        if (v->state == LADE_STATE_ACTIVE) {
            cli_row_text(r, "worker", v->worker);
            cli_row_time(r, "lease_until", v->lease_until);
            cli_row_u64(r, "fence", v->fence);
        }
        if (v->unique_key.size > 0)
            cli_row_bytes(r, "unique_key", v->unique_key, SIZE_MAX);
        if (v->key.size > 0)
            cli_row_bytes(r, "key", v->key, SIZE_MAX);
    }
    add_flow(r, t);
}

static int print_object(struct trace *t, lade_err *err)
{
    struct cli_row head;
    fill_head(&head, t);
    json_t *list = json_array();
    for (size_t i = 0; list && i < t->n; i++) {
        struct cli_row *r = &t->moment[i].row;
        head.failed = head.failed || r->failed || json_array_append(list, r->o) != 0;
    }
    cli_row_json(&head, "timeline", list);
    return cli_out_object(t->c, &head, err);
}

static void print_key(const char *title, lade_bytes key)
{
    struct lb_buf text;
    if (key.size == 0)
        return;
    lb_buf_init(&text);
    cli_add_printable(&text, key.data, key.size, 200);
    (void)printf("%-11s %.*s\n", title, text.failed ? 0 : (int)text.n, (const char *)text.p);
    lb_buf_fini(&text);
}

static void print_head(const struct trace *t)
{
    const lade_job_view *v = t->job;
    const char *sign = strchr(t->id, '~');
    (void)printf("%s: %s%s%s%s", t->id, v ? lade_state_name(v->state) : "gone",
                 v && *v->reason ? " (" : "", v ? v->reason : "", v && *v->reason ? ")" : "");
    if (v && v->state == LADE_STATE_ACTIVE)
        (void)printf(" on %s", v->worker);
    if (v && (v->state == LADE_STATE_SCHEDULED || v->state == LADE_STATE_RETRYING) &&
        v->run_at > t->now) {
        char in[CLI_TIME_LEN];
        cli_duration_text(in, v->run_at - t->now);
        (void)printf(", due in %s", in);
    }
    if (v)
        (void)printf(", %d of %d attempts", v->attempts, v->max_attempts);
    (void)printf("\n%-11s %s\n", "queue", *t->queue ? t->queue : "-");
    if (v)
        (void)printf("%-11s %s\n", "kind", v->kind);
    if (sign) {
        bool has_name = t->flow && *t->flow->name;
        (void)printf("%-11s %.*s%s", "flow", (int)(sign - t->id), t->id, has_name ? " (" : "");
        cli_print_text(has_name ? t->flow->name : "");
        (void)printf("%s, step %s: %s\n", has_name ? ")" : "", sign + 1,
                     t->flow ? lade_flow_state_name(t->flow->state) : "gone");
    }
    if (v)
        print_key("unique key", v->unique_key);
    if (v)
        print_key("key", v->key);
    (void)putchar('\n');
}

static int print_trace(struct trace *t, lade_err *err)
{
    struct cli_out out;
    if (cli_out_is_json(t->c))
        return print_object(t, err);
    if (t->c->format == CLI_TABLE)
        print_head(t);
    cli_out_begin(&out, t->c, columns, LB_ARRAY_LEN(columns));
    for (size_t i = 0; i < t->n; i++)
        cli_out_row(&out, &t->moment[i].row);
    int rc = cli_out_end(&out, err);
    if (rc == 0 && t->found > t->n && t->n == MOMENTS_MAX)
        cli_note(t->c, "only the newest %d moments are shown", MOMENTS_MAX);
    if (rc == 0 && t->job && !t->stream && !t->no_events)
        cli_note(t->c, "from the job's record alone: the queue keeps no events; see lade queue "
                       "events");
    return rc;
}

static enum cli_exit run_trace(struct cli *c, void *values, char **args, int n_args)
{
    (void)n_args;
    struct trace t = {.c = c, .id = args[0]};
    lade_err err = {0};
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = read_trace(&t, values, &err);
    if (rc == 0)
        rc = print_trace(&t, &err);
    free_trace(&t);
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such job%s%s, and no event tells of it", args[0],
                       c->queue ? " in queue " : "", c->queue ? c->queue : "");
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt trace_opts[] = {
    {"no-events", 0, CLI_OPT_FLAG, offsetof(struct opts, no_events), NULL,
     "from the job's record alone: does not read the queue's stream", 0, 0, NULL},
};

const struct cli_command cli_job_trace = {
    .noun = "job",
    .verb = "trace",
    .args = "ID",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Shows the life of a job in the order of time. Enqueued, each attempt with worker, duration and error, when it is due, how it "
        "ended, who runs it now; its workflow and keys. When the queue keeps events (lade queue events) it tells what they say too, "
        "also of a job that is gone; their stream is read once, whatever its length.",
    .examples = "  lade job trace 01HZX3V7Q2M4N5P6R7S8T9VWXY\n"
                "  lade job trace ID -q mail -o json",
    .opts = trace_opts,
    .n_opts = LB_ARRAY_LEN(trace_opts),
    .size = sizeof(struct opts),
    .run = run_trace,
};
