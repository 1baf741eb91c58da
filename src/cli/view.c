#include "cli/view.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/text.h"

#define PREVIEW_MAX 256
#define PAGE        100

const struct cli_column cli_job_columns[] = {
    {"ID", "id", CLI_CELL_TEXT, false, false},
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"KIND", "kind", CLI_CELL_TEXT, false, false},
    {"STATE", "state", CLI_CELL_STATE, false, false},
    {"TRIES", "tries", CLI_CELL_TEXT, true, false},
    {"AGE", "age_ms", CLI_CELL_DURATION, true, false},
    {"DUE", "due_in_ms", CLI_CELL_DURATION, true, false},
    {"WORKER", "worker", CLI_CELL_TEXT, false, true},
    {"HELD", "held_ms", CLI_CELL_DURATION, true, false},
    {"LEASE", "lease_left_ms", CLI_CELL_DURATION, true, false},
    {"PAYLOAD", "payload", CLI_CELL_BYTES, false, true},
};
const size_t cli_n_job_columns = LB_ARRAY_LEN(cli_job_columns);

const struct cli_column cli_dead_columns[] = {
    {"ID", "id", CLI_CELL_TEXT, false, false},
    {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
    {"KIND", "kind", CLI_CELL_TEXT, false, false},
    {"REASON", "reason", CLI_CELL_TEXT, false, false},
    {"TRIES", "tries", CLI_CELL_TEXT, true, false},
    {"CRASHES", "crashes", CLI_CELL_TEXT, true, false},
    {"DIED", "finished_at", CLI_CELL_TEXT, false, false},
    {"ERROR", "error", CLI_CELL_BYTES, false, true},
    {"PAYLOAD", "payload", CLI_CELL_BYTES, false, true},
};
const size_t cli_n_dead_columns = LB_ARRAY_LEN(cli_dead_columns);

const struct cli_column cli_show_columns[] = {
    {"", "id", CLI_CELL_TEXT, false, false},
    {"", "queue", CLI_CELL_TEXT, false, false},
    {"", "kind", CLI_CELL_TEXT, false, false},
    {"", "state", CLI_CELL_TEXT, false, false},
    {"", "reason", CLI_CELL_TEXT, false, false},
    {"", "attempts", CLI_CELL_TEXT, false, false},
    {"", "max_attempts", CLI_CELL_TEXT, false, false},
    {"", "crashes", CLI_CELL_TEXT, false, false},
    {"", "priority", CLI_CELL_TEXT, false, false},
    {"", "timeout_ms", CLI_CELL_TEXT, false, false},
    {"", "enqueued_at", CLI_CELL_TEXT, false, false},
    {"", "run_at", CLI_CELL_TEXT, false, false},
    {"", "finished_at", CLI_CELL_TEXT, false, false},
    {"", "worker", CLI_CELL_TEXT, false, false},
    {"", "taken_at", CLI_CELL_TEXT, false, false},
    {"", "lease_until", CLI_CELL_TEXT, false, false},
    {"", "fence", CLI_CELL_TEXT, false, false},
    {"", "content_type", CLI_CELL_TEXT, false, false},
    {"", "payload", CLI_CELL_BYTES, false, false},
    {"", "result", CLI_CELL_BYTES, false, false},
    {"", "error", CLI_CELL_BYTES, false, false},
};
const size_t cli_n_show_columns = LB_ARRAY_LEN(cli_show_columns);

static int64_t ms_between(int64_t from, int64_t to)
{
    return from > 0 && to > from ? (to - from) / LADE_MILLISECOND : 0;
}

static void add_lease(struct cli_row *r, const lade_job_view *v, int64_t now)
{
    cli_row_text(r, "worker", v->worker);
    cli_row_time(r, "taken_at", v->taken_at);
    cli_row_int(r, "held_ms", ms_between(v->taken_at, now));
    cli_row_time(r, "lease_until", v->lease_until);
    cli_row_int(r, "lease_left_ms", ms_between(now, v->lease_until));
    cli_row_u64(r, "fence", v->fence);
}

static void add_facts(struct cli_row *r, const lade_job_view *v, int64_t now)
{
    char tries[32];
    (void)snprintf(tries, sizeof(tries), "%d/%d", v->attempts, v->max_attempts);
    cli_row_text(r, "id", v->id);
    cli_row_text(r, "queue", v->queue);
    cli_row_text(r, "kind", v->kind);
    cli_row_text(r, "state", lade_state_name(v->state));
    if (v->state == LADE_STATE_DEAD)
        cli_row_text(r, "reason", v->reason);
    cli_row_text(r, "tries", tries);
    cli_row_int(r, "attempts", v->attempts);
    cli_row_int(r, "max_attempts", v->max_attempts);
    cli_row_int(r, "crashes", v->crashes);
    cli_row_int(r, "priority", v->priority);
    cli_row_int(r, "timeout_ms", v->timeout / LADE_MILLISECOND);
    if (v->result_ttl > 0)
        cli_row_int(r, "result_ttl_ms", v->result_ttl / LADE_MILLISECOND);
    cli_row_time(r, "enqueued_at", v->enqueued_at);
    cli_row_int(r, "age_ms", ms_between(v->enqueued_at, now));
    if (v->state == LADE_STATE_SCHEDULED || v->state == LADE_STATE_RETRYING) {
        cli_row_time(r, "run_at", v->run_at);
        cli_row_int(r, "due_in_ms", ms_between(now, v->run_at));
    }
    if (v->finished_at > 0)
        cli_row_time(r, "finished_at", v->finished_at);
    if (v->state == LADE_STATE_ACTIVE)
        add_lease(r, v, now);
    if (v->content_type && v->content_type[0])
        cli_row_text(r, "content_type", v->content_type);
    if (v->corrupt)
        cli_row_bool(r, "corrupt", true);
}

static void add_last_error(struct cli_row *r, const lade_job_view *v, size_t max)
{
    for (size_t i = v->n_history; i-- > 0;) {
        if (v->history[i].error.size == 0)
            continue;
        cli_row_bytes(r, "error", v->history[i].error, max);
        break;
    }
}

void cli_view_row(struct cli_row *r, const lade_job_view *v, int64_t now)
{
    cli_row_init(r);
    add_facts(r, v, now);
    cli_row_bytes(r, "payload", v->payload, PREVIEW_MAX);
    add_last_error(r, v, PREVIEW_MAX);
}

void cli_view_last_error(struct cli_row *r, const lade_job_view *v)
{
    add_last_error(r, v, SIZE_MAX);
}

static void make_attempt(struct cli_row *r, const lade_attempt *a)
{
    cli_row_init(r);
    cli_row_int(r, "number", a->number);
    cli_row_text(r, "outcome", a->outcome);
    cli_row_time(r, "started_at", a->started_at);
    cli_row_time(r, "ended_at", a->ended_at);
    cli_row_int(r, "duration_ms", ms_between(a->started_at, a->ended_at));
    cli_row_text(r, "worker", a->worker);
    cli_row_bytes(r, "error", a->error, SIZE_MAX);
}

static void add_attempts(struct cli_row *r, const lade_job_view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < v->n_history; i++) {
        struct cli_row a;
        make_attempt(&a, &v->history[i]);
        r->failed |= a.failed || json_array_append(list, a.o) != 0;
        cli_row_fini(&a);
    }
    cli_row_json(r, "history", list);
}

static void make_effect(struct cli_row *r, const lade_effect_record *e)
{
    cli_row_init(r);
    cli_row_text(r, "key", e->key);
    cli_row_bytes(r, "value", e->value, SIZE_MAX);
    cli_row_time(r, "at", e->at);
}

static void add_effects(struct cli_row *r, const lade_job_view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < v->n_effects; i++) {
        struct cli_row e;
        make_effect(&e, &v->effects[i]);
        r->failed |= e.failed || json_array_append(list, e.o) != 0;
        cli_row_fini(&e);
    }
    cli_row_json(r, "effects", list);
}

static void add_headers(struct cli_row *r, const lade_job_view *v)
{
    struct cli_row h;
    cli_row_init(&h);
    for (size_t i = 0; i < v->n_headers; i++)
        cli_row_text(&h, v->headers[i].name, v->headers[i].value);
    r->failed |= h.failed || json_object_set(r->o, "headers", h.o) != 0;
    cli_row_fini(&h);
}

void cli_view_full(struct cli_row *r, const lade_job_view *v, int64_t now)
{
    cli_row_init(r);
    add_facts(r, v, now);
    cli_row_bytes(r, "payload", v->payload, SIZE_MAX);
    if (v->state == LADE_STATE_COMPLETED)
        cli_row_bytes(r, "result", v->result, SIZE_MAX);
    if (v->unique_key.size > 0)
        cli_row_bytes(r, "unique_key", v->unique_key, SIZE_MAX);
    if (v->key.size > 0)
        cli_row_bytes(r, "key", v->key, SIZE_MAX);
    add_headers(r, v);
    add_attempts(r, v);
    add_effects(r, v);
}

static void print_bytes(const char *title, lade_bytes bytes)
{
    struct lb_buf text;
    lb_buf_init(&text);
    bool is_text = cli_utf8_span(bytes.data, bytes.size) == bytes.size;
    if (is_text)
        cli_add_printable(&text, bytes.data, bytes.size, 2000);
    else
        cli_add_printable(&text, bytes.data, bytes.size, 200);
    (void)printf("%-13s %zu bytes%s\n", title, bytes.size, is_text ? "" : ", binary");
    if (bytes.size > 0 && !text.failed)
        (void)printf("    %.*s\n", (int)text.n, (const char *)text.p);
    lb_buf_fini(&text);
}

static void print_text(const char *title, const char *text)
{
    struct lb_buf line;
    lb_buf_init(&line);
    cli_add_printable(&line, text, strlen(text), SIZE_MAX);
    if (!line.failed)
        (void)printf("%-13s %.*s\n", title, (int)line.n, (const char *)line.p);
    lb_buf_fini(&line);
}

/* A fact of the row on a line of its own, when it is there. */
static void print_fact(const struct cli_row *r, const char *title, const char *key)
{
    const json_t *v = json_object_get(r->o, key);
    char text[CLI_TIME_LEN];
    size_t n = strlen(key);
    if (json_is_string(v)) {
        print_text(title, json_string_value(v));
    } else if (json_is_integer(v) && n > 3 && strcmp(key + n - 3, "_ms") == 0) {
        cli_duration_text(text, json_integer_value(v) * LADE_MILLISECOND);
        (void)printf("%-13s %s\n", title, text);
    } else if (json_is_integer(v)) {
        (void)printf("%-13s %lld\n", title, (long long)json_integer_value(v));
    } else if (json_is_true(v)) {
        (void)printf("%-13s yes\n", title);
    }
}

static void print_header(const lade_header *h)
{
    struct lb_buf text;
    lb_buf_init(&text);
    cli_add_printable(&text, h->name, strlen(h->name), LADE_NAME_MAX);
    lb_buf_add_byte(&text, '=');
    cli_add_printable(&text, h->value, strlen(h->value), 200);
    if (!text.failed)
        (void)printf("%-13s %.*s\n", "header", (int)text.n, (const char *)text.p);
    lb_buf_fini(&text);
}

static void print_card(const struct cli_row *r, const lade_job_view *v)
{
    static const char *const facts[][2] = {
        {"id", "id"},
        {"queue", "queue"},
        {"kind", "kind"},
        {"state", "state"},
        {"reason", "reason"},
        {"tries", "tries"},
        {"crashes", "crashes"},
        {"priority", "priority"},
        {"timeout", "timeout_ms"},
        {"enqueued", "enqueued_at"},
        {"due", "run_at"},
        {"finished", "finished_at"},
        {"worker", "worker"},
        {"taken", "taken_at"},
        {"held for", "held_ms"},
        {"lease until", "lease_until"},
        {"lease left", "lease_left_ms"},
        {"fence", "fence"},
        {"content type", "content_type"},
        {"corrupt", "corrupt"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(facts); i++)
        print_fact(r, facts[i][0], facts[i][1]);
    for (size_t i = 0; i < v->n_headers; i++)
        print_header(&v->headers[i]);
    if (v->unique_key.size > 0)
        print_bytes("unique key", v->unique_key);
    if (v->key.size > 0)
        print_bytes("key", v->key);
    print_bytes("payload", v->payload);
    if (v->state == LADE_STATE_COMPLETED)
        print_bytes("result", v->result);
}

static void print_lines(const char *p, size_t n)
{
    while (n > 0) {
        struct lb_buf text;
        const char *end = memchr(p, '\n', n);
        size_t len = end ? (size_t)(end - p) : n;
        lb_buf_init(&text);
        cli_add_printable(&text, p, len, SIZE_MAX);
        (void)printf("    %.*s\n", text.failed ? 0 : (int)text.n, (const char *)text.p);
        lb_buf_fini(&text);
        n -= end ? len + 1 : len;
        p += end ? len + 1 : len;
    }
}

/* Whole, for a terminal, whose table cuts them; one that is the same as the one before it only once. */
static void print_errors(const lade_job_view *v)
{
    const lade_bytes *last = NULL;
    for (size_t i = 0; i < v->n_history; i++) {
        const lade_bytes *e = &v->history[i].error;
        bool is_same = last && last->size == e->size && memcmp(last->data, e->data, e->size) == 0;
        if (e->size == 0 || is_same)
            continue;
        last = e;
        (void)printf("\nerror of attempt %d\n", v->history[i].number);
        print_lines(e->data, e->size);
    }
}

static int print_effects(const struct cli *c, const lade_job_view *v, lade_err *err)
{
    static const struct cli_column columns[] = {
        {"EFFECT", "key", CLI_CELL_TEXT, false, false},
        {"RECORDED", "at", CLI_CELL_TEXT, false, false},
        {"VALUE", "value", CLI_CELL_BYTES, false, true},
    };
    if (v->n_effects == 0)
        return 0;
    (void)putchar('\n');
    struct cli_out out;
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    for (size_t i = 0; i < v->n_effects; i++) {
        struct cli_row e;
        make_effect(&e, &v->effects[i]);
        cli_out_row(&out, &e);
    }
    return cli_out_end(&out, err);
}

int cli_view_print(const struct cli *c, const lade_job_view *v, int64_t now, lade_err *err)
{
    bool is_tty = isatty(STDOUT_FILENO);
    struct cli_column columns[] = {
        {"ATTEMPT", "number", CLI_CELL_TEXT, true, false},
        {"OUTCOME", "outcome", CLI_CELL_TEXT, false, false},
        {"ENDED", "ended_at", CLI_CELL_TEXT, false, false},
        {"TOOK", "duration_ms", CLI_CELL_DURATION, true, false},
        {"WORKER", "worker", CLI_CELL_TEXT, false, true},
        {"ERROR", "error", CLI_CELL_BYTES, false, is_tty},
    };

    struct cli_row card;
    cli_row_init(&card);
    add_facts(&card, v, now);
    if (card.failed) {
        cli_row_fini(&card);
        return lb_fail_nomem(err, "show");
    }
    print_card(&card, v);
    cli_row_fini(&card);
    int rc = print_effects(c, v, err);
    if (v->n_history == 0 || rc < 0)
        return rc;
    (void)putchar('\n');
    struct cli_out out;
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    for (size_t i = 0; i < v->n_history; i++) {
        struct cli_row a;
        make_attempt(&a, &v->history[i]);
        cli_out_row(&out, &a);
    }
    rc = cli_out_end(&out, err);
    if (rc == 0 && is_tty)
        print_errors(v);
    return rc;
}

/* What a listing carries from page to page. */
struct listing {
    struct cli *c;
    struct cli_out out;
    int64_t left; /* rows that may still be shown */
};

static int list_page(struct listing *l, const char *queue, enum lade_state state,
                     lade_cursor *cursor, lade_err *err)
{
    lade_job_view *page[PAGE];
    size_t n = 0;
    int64_t now = 0;
    int rc = lade_now(l->c->q, &now, err);
    if (rc < 0)
        return rc;
    rc = lade_job_list(l->c->q, queue, state, cursor, (size_t)LB_MIN(l->left, PAGE), page, &n, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n; i++) {
        struct cli_row row;
        cli_view_row(&row, page[i], now);
        cli_out_row(&l->out, &row);
        lade_job_view_free(page[i]);
    }
    l->left -= (int64_t)n;
    return 0;
}

static int list_queue(struct listing *l, const char *queue, unsigned states, lade_err *err)
{
    /* What runs and will run first, then what ended. */
    static const enum lade_state order[] = {
        LADE_STATE_ACTIVE, LADE_STATE_READY,     LADE_STATE_RETRYING,  LADE_STATE_SCHEDULED,
        LADE_STATE_DEAD,   LADE_STATE_CANCELLED, LADE_STATE_COMPLETED,
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(order); i++) {
        lade_cursor cursor = {0};
        int rc = 0;
        if (!(states & 1U << order[i]))
            continue;
        while (rc == 0 && !cursor.done && l->left > 0)
            rc = list_page(l, queue, order[i], &cursor, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static uint64_t count_jobs(const lade_queue_info *queues, size_t n, unsigned states)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        for (int s = 0; s < LADE_N_STATES; s++)
            sum += states & 1U << s ? queues[i].count[s] : 0;
    }
    return sum;
}

int cli_view_list(struct cli *c, unsigned states, int64_t limit, const struct cli_column *columns,
                  size_t n_columns, lade_err *err)
{
    struct listing l = {.c = c, .left = limit > 0 ? limit : INT64_MAX};
    lade_queue_info *queues = NULL;
    size_t n = 0;
    int rc = cli_view_queues(c, &queues, &n, err);
    if (rc != 0)
        return rc;
    cli_out_begin(&l.out, c, columns, n_columns);
    for (size_t i = 0; rc == 0 && i < n && l.left > 0; i++)
        rc = list_queue(&l, queues[i].name, states, err);
    uint64_t total = count_jobs(queues, n, states);
    lade_free(queues);
    rc = cli_out_finish(&l.out, rc, err);
    if (rc == 0 && l.left == 0 && l.out.n_rows < total)
        cli_note(c, "%llu of %llu shown; --limit 0 for all", (unsigned long long)l.out.n_rows,
                 (unsigned long long)total);
    return rc < 0 ? rc : 0;
}

int cli_view_queues(struct cli *c, lade_queue_info **out, size_t *n, lade_err *err)
{
    if (!c->queue)
        return lade_queue_list(c->q, out, n, err);
    lade_queue_info *one = lb_malloc(sizeof(*one));
    if (!one)
        return lb_fail_nomem(err, "queue");
    int rc = lade_queue_get(c->q, c->queue, one, err);
    if (rc != 0) {
        lb_free(one);
        if (rc > 0)
            (void)lb_fail(err, LADE_EINVAL, "queue", "%s: no such queue; see lade queue ls",
                          c->queue);
        return rc;
    }
    *out = one;
    *n = 1;
    return 0;
}

int cli_view_states(const char *what, const char *text, unsigned *out, lade_err *err)
{
    unsigned states = 0;
    if (strcmp(text, "all") == 0) {
        *out = (1U << LADE_N_STATES) - 1;
        return 0;
    }
    for (const char *p = text;;) {
        char name[32];
        size_t n = strcspn(p, ",");
        (void)snprintf(name, sizeof(name), "%.*s", (int)LB_MIN(n, sizeof(name) - 1), p);
        int state = lade_state_parse(name);
        if (state < 0)
            return lb_fail(err, LADE_EINVAL, "usage",
                           "%s: '%s' is no state; give scheduled, ready, active, retrying, "
                           "completed, dead, cancelled or all",
                           what, name);
        states |= 1U << state;
        if (!p[n])
            break;
        p += n + 1;
    }
    *out = states;
    return 0;
}
