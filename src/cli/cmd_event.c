/* lade events: what happens in queues, as it happens; lade queue events: whether that is kept */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/commands.h"
#include "cli/text.h"
#include "cli/view.h"

#define PAGE       500
#define AWAY_PAUSE (LADE_SECOND / 2)

static const struct cli_column event_columns[] = {
    {"ID", "id", CLI_CELL_TEXT, true, false},
    {"AT", "at", CLI_CELL_TEXT, false, false},
    {"EVENT", "event", CLI_CELL_TEXT, false, false},
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"JOB", "job", CLI_CELL_TEXT, false, false},
    {"KIND", "kind", CLI_CELL_TEXT, false, false},
    {"ATTEMPT", "attempt", CLI_CELL_TEXT, true, false},
    {"DURATION", "duration_us", CLI_CELL_TEXT, true, false},
    {"DELAY", "delay_ms", CLI_CELL_TEXT, true, false},
    {"PERCENT", "percent", CLI_CELL_TEXT, true, false},
    {"REASON", "reason", CLI_CELL_TEXT, false, false},
};

static void make_row(struct cli_row *r, const lade_event *e)
{
    const char *type = lade_event_type_name(e->type);
    cli_row_init(r);
    cli_row_u64(r, "id", e->id);
    cli_row_time(r, "at", e->at);
    cli_row_text(r, "event", type ? type : "unknown");
    cli_row_text(r, "queue", e->queue);
    if (*e->job)
        cli_row_text(r, "job", e->job);
    if (*e->kind)
        cli_row_text(r, "kind", e->kind);
    if (e->attempt > 0)
        cli_row_int(r, "attempt", e->attempt);
    if (e->type == LADE_EVENT_COMPLETED || e->type == LADE_EVENT_FAILED)
        cli_row_int(r, "duration_us", e->duration / 1000);
    if (e->type == LADE_EVENT_RETRYING)
        cli_row_int(r, "delay_ms", e->duration / LADE_MILLISECOND);
    if (e->percent >= 0)
        cli_row_int(r, "percent", e->percent);
    if (*e->reason)
        cli_row_text(r, "reason", e->reason);
}

/* A line for people. */
static void print_event(const lade_event *e)
{
    char at[CLI_TIME_LEN], took[CLI_TIME_LEN];
    const char *type = lade_event_type_name(e->type);
    struct lb_buf more;
    lb_buf_init(&more);
    cli_time_text(at, e->at);
    if (e->attempt > 0)
        lb_buf_add_fmt(&more, " attempt %d", e->attempt);
    if (e->percent >= 0)
        lb_buf_add_fmt(&more, " %d%%", e->percent);
    if (e->duration > 0) {
        cli_duration_text(took, e->duration);
        lb_buf_add_fmt(&more, "%s%s", e->type == LADE_EVENT_RETRYING ? " in " : " after ", took);
    }
    if (*e->reason) {
        lb_buf_add_str(&more, ": ");
        cli_add_printable(&more, e->reason, strlen(e->reason), SIZE_MAX);
    }
    (void)printf("%llu  %s  %-9s  %s", (unsigned long long)e->id, at, type ? type : "unknown",
                 e->queue);
    if (*e->job)
        (void)printf("  %s  %s", e->job, *e->kind ? e->kind : "-");
    (void)printf("%.*s\n", (int)more.n, more.n > 0 ? (const char *)more.p : "");
    lb_buf_fini(&more);
}

struct events {
    const char *from;
    int64_t limit;
    bool follow, limit_given;
};

static int set_limit(void *values, const char *text, lade_err *err)
{
    struct events *ev = values;
    ev->limit_given = true;
    return cli_arg_int("--limit", text, (struct cli_range){1, INT64_MAX}, &ev->limit, err);
}

static int parse_from(const struct cli *c, const struct events *ev, uint64_t *after, lade_err *err)
{
    int64_t v = 0;
    *after = ev->follow ? LADE_TAIL_NOW : LADE_TAIL_START;
    if (!ev->from)
        return 0;
    *after = LADE_TAIL_START;
    if (strcmp(ev->from, "start") == 0)
        return 0;
    *after = LADE_TAIL_NOW;
    if (strcmp(ev->from, "now") == 0)
        return 0;
    if (ev->from[0] < '0' || ev->from[0] > '9')
        return lb_fail(err, LADE_EINVAL, "events",
                       "--from: '%.40s' is no event; give the id of one, start or now", ev->from);
    int rc = cli_arg_int("--from", ev->from, (struct cli_range){1, INT64_MAX}, &v, err);
    if (rc == 0 && !c->queue)
        rc = lb_fail(err, LADE_EINVAL, "events",
                     "--from %lld is the id of an event of one queue; give it with --queue",
                     (long long)v);
    *after = (uint64_t)v;
    return rc;
}

/* The queues of the tail: c->queue, or all whose stream is on. */
static int choose_queues(struct cli *c, lade_queue_info **info, const char **queue, size_t *n,
                         lade_err *err)
{
    size_t all = 0;
    if (c->queue) {
        queue[0] = c->queue;
        *n = 1;
        return 0;
    }
    int rc = lade_queue_list(c->q, info, &all, err);
    for (size_t i = 0; rc == 0 && i < all; i++) {
        lade_events_info on = {0};
        rc = lade_queue_events_get(c->q, (*info)[i].name, &on, err);
        if (rc < 0)
            return rc;
        if (rc == 0 && on.cap > 0 && *n < LADE_TAIL_QUEUES_MAX)
            queue[(*n)++] = (*info)[i].name;
        rc = 0;
    }
    return rc;
}

static int print_batch(struct cli *c, struct cli_out *out, const lade_event *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct cli_row row;
        if (c->format == CLI_TABLE) {
            print_event(&e[i]);
            continue;
        }
        make_row(&row, &e[i]);
        cli_out_row(out, &row);
    }
    return fflush(stdout) == 0 ? 0 : -LADE_EIO;
}

/* lade_tail_next that, when following, outlasts a store that goes away; the tail stays where it was. */
static int next_events(struct cli *c, lade_tail *t, const struct events *ev, size_t max,
                       const lade_event **e, size_t *n, lade_err *err)
{
    bool is_away = false;
    for (;;) {
        /* While it is away the calls do not wait for events, so that it is told when it is back. */
        int rc = lade_tail_next(t, max, ev->follow && !is_away ? LADE_FOREVER : 0, e, n, err);
        bool was_away = is_away;
        is_away = ev->follow && rc == -LADE_EUNAVAILABLE;
        if (is_away && !was_away)
            cli_note(c, "%s; going on when it is back", err->text);
        else if (was_away && !is_away && rc >= 0)
            cli_note(c, "the store is back");
        if (is_away)
            cli_pause(AWAY_PAUSE);
        else if (!was_away || rc != LADE_TIMEOUT)
            return rc;
        lb_err_clear(err);
    }
}

/* 0 at the end, LADE_WRONG_STATE when nothing is on, or a failure. */
static int read_all(struct cli *c, lade_tail *t, const struct events *ev, struct cli_out *out,
                    lade_err *err)
{
    int64_t left = ev->limit_given ? ev->limit : INT64_MAX;
    while (left > 0) {
        const lade_event *e = NULL;
        size_t n = 0;
        int rc = next_events(c, t, ev, (size_t)LB_MIN(left, PAGE), &e, &n, err);
        if (rc == LADE_TIMEOUT)
            return 0;
        if (rc == LADE_MISSED) {
            cli_note(c, "%llu events were dropped before they were read; going on with the oldest",
                     (unsigned long long)lade_tail_missed(t));
            continue;
        }
        if (rc != 0)
            return rc;
        left -= (int64_t)n;
        if (print_batch(c, out, e, n) < 0)
            return lb_fail(err, LADE_EIO, "events", "stdout cannot be written");
    }
    return 0;
}

static enum cli_exit run_events(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    const struct events *ev = values;
    const char *queue[LADE_TAIL_QUEUES_MAX];
    lade_queue_info *info = NULL;
    lade_tail *t = NULL;
    lade_err err = {0};
    uint64_t after = 0;
    size_t n = 0;
    if (ev->follow && c->format == CLI_JSON)
        return cli_say(CLI_USAGE, "--follow never ends, so -o json cannot be; use -o ndjson");
    int rc = parse_from(c, ev, &after, &err);
    if (rc == 0)
        rc = cli_look(c, &err);
    if (rc == 0)
        rc = choose_queues(c, &info, queue, &n, &err);
    if (rc == 0 && n == 0)
        rc = LADE_WRONG_STATE;
    if (rc == 0)
        rc = lade_tail_open(&t, c->q, queue, n, after, &err);
    struct cli_out out;
    if (rc == 0) {
        if (c->format != CLI_TABLE) /* which is printed by the line */
            cli_out_begin(&out, c, event_columns, LB_ARRAY_LEN(event_columns));
        rc = read_all(c, t, ev, &out, &err);
        if (c->format != CLI_TABLE)
            rc = cli_out_finish(&out, rc, &err);
    }
    lade_tail_close(t);
    lade_free(info);
    if (rc == LADE_WRONG_STATE)
        return cli_say(CLI_CONFLICT, "events are off in %s%s; see lade queue events QUEUE on",
                       c->queue ? "queue " : "every queue", c->queue ? c->queue : "");
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static const struct cli_opt events_opts[] = {
    {"follow", 'f', CLI_OPT_FLAG, offsetof(struct events, follow), NULL,
     "go on with what happens from now on, until stopped", 0, 0, NULL},
    {"from", 0, CLI_OPT_TEXT, offsetof(struct events, from), "ID",
     "behind this event; start or now (default start, with --follow now)", 0, 0, NULL},
    {"limit", 'l', CLI_OPT_CALL, 0, "N", "stop after so many", 0, 0, set_limit},
};

const struct cli_command cli_events = {
    .noun = "events",
    .verb = "",
    .args = "",
    .about =
        "Shows what happened to jobs. Queues keep that when lade queue events has turned it on. "
        "Each event has an id; --from goes on behind it. When events fell off the cap before they were read, stderr says so. --follow outlasts a store that goes away.",
    .examples = "  lade events --follow\n  lade events -q mail --from 1790000000000123 -o ndjson",
    .opts = events_opts,
    .n_opts = LB_ARRAY_LEN(events_opts),
    .size = sizeof(struct events),
    .run = run_events,
};

/* ---- queue events ---- */

struct stream {
    int64_t cap;
};

static enum cli_exit show_stream(struct cli *c, const char *queue, lade_err *err)
{
    lade_events_info info = {0};
    int rc = lade_queue_events_get(c->q, queue, &info, err);
    if (rc == LADE_NOT_FOUND)
        return cli_say(CLI_NOT_FOUND, "%s: no such queue", queue);
    if (rc < 0)
        return cli_complain(err);
    if (c->format == CLI_TABLE) {
        if (info.cap == 0)
            (void)printf("events of %s: off\n", queue);
        else
            (void)printf("events of %s: on, cap %u, %llu kept\n", queue, info.cap,
                         (unsigned long long)(info.last + 1 - info.first));
        return CLI_OK;
    }
    struct cli_row row;
    cli_row_init(&row);
    cli_row_text(&row, "queue", queue);
    cli_row_bool(&row, "on", info.cap > 0);
    cli_row_u64(&row, "cap", info.cap);
    cli_row_u64(&row, "first", info.first);
    cli_row_u64(&row, "last", info.last);
    return cli_out_object(c, &row, err) < 0 ? cli_complain(err) : CLI_OK;
}

static enum cli_exit run_queue_events(struct cli *c, void *values, char **args, int n_args)
{
    const struct stream *s = values;
    lade_err err = {0};
    int64_t cap = s->cap > 0 ? s->cap : LADE_EVENTS_CAP;
    bool on = n_args > 1 && strcmp(args[1], "on") == 0;
    bool off = n_args > 1 && strcmp(args[1], "off") == 0;
    if (n_args > 1 && !on && !off)
        return cli_say(CLI_USAGE, "%s: give on or off", args[1]);
    if (s->cap > 0 && !on)
        return cli_say(CLI_USAGE, "--cap goes with on only");
    int rc = on ? cli_connect(c, NULL, &err) : cli_look(c, &err);
    /* On makes the queue; off of one that is not there would only hide a wrong name. */
    if (rc == 0 && off)
        rc = lade_queue_events_get(c->q, args[0], &(lade_events_info){0}, &err);
    if (rc == 0 && n_args > 1)
        rc = lade_queue_events_set(c->q, args[0], on ? (uint32_t)cap : 0, &err);
    return rc < 0 ? cli_complain(&err) : show_stream(c, args[0], &err);
}

static const struct cli_opt stream_opts[] = {
    {"cap", 0, CLI_OPT_INT, offsetof(struct stream, cap), "N",
     "keep about so many of the newest (default 100000)", 1, LADE_EVENTS_CAP_MAX, NULL},
};

const struct cli_command cli_queue_events = {
    .noun = "queue",
    .verb = "events",
    .args = "QUEUE [on|off]",
    .min_args = 1,
    .max_args = 2,
    .about =
        "Turns the stream of a queue's events on or off, or says which it is. It is off unless turned on, costs nothing then, and takes effect at once for all workers. off removes what is kept.",
    .examples = "  lade queue events mail on --cap 10000\n  lade queue events mail off",
    .opts = stream_opts,
    .n_opts = LB_ARRAY_LEN(stream_opts),
    .size = sizeof(struct stream),
    .lacks = CLI_LACKS_QUEUE,
    .run = run_queue_events,
};
