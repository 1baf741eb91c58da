#include "cli/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/out.h"
#include "cli/text.h"
#include "cli/view.h"

/* looking ---------------------------------------------------------------------------------------------------------- */

static const struct cli_top_queue *find_queue(const struct cli_top *top, const char *name)
{
    for (size_t i = 0; i < top->n_queues; i++) {
        if (strcmp(top->queue[i].info.name, name) == 0)
            return &top->queue[i];
    }
    return NULL;
}

static double rate(uint64_t before, uint64_t now, double seconds)
{
    return now < before || seconds <= 0 ? -1 : (double)(now - before) / seconds;
}

static void add_rates(struct cli_top_queue *q, const struct cli_top *before, double seconds)
{
    const struct cli_top_queue *was = before->at > 0 ? find_queue(before, q->info.name) : NULL;
    q->in = q->done = q->failed = -1;
    if (!was)
        return;
    q->in = rate(was->info.total_enqueued, q->info.total_enqueued, seconds);
    q->done = rate(was->info.total_completed, q->info.total_completed, seconds);
    q->failed = rate(was->info.total_failed, q->info.total_failed, seconds);
}

int cli_top_look(struct cli *c, struct cli_top *top, const struct cli_queue_sort *sort,
                 lade_err *err)
{
    struct cli_top now = {0};
    lade_queue_info *queues = NULL;
    int rc = lade_now(c->q, &now.at, err);
    if (rc == 0)
        rc = cli_view_queues(c, &queues, &now.n_queues, err);
    if (rc == 0)
        rc = lade_worker_list(c->q, &now.workers, &now.n_workers, err);
    if (rc == 0) {
        now.queue = lb_calloc(now.n_queues + 1, sizeof(*now.queue));
        rc = now.queue ? 0 : lb_fail_nomem(err, "top");
    }
    if (rc != 0 || !now.queue) {
        lade_free(queues);
        lade_free(now.workers);
        return rc;
    }
    now.every = top->at > 0 ? (double)(now.at - top->at) / (double)LADE_SECOND : 0;
    cli_queue_sort(sort, queues, now.n_queues);
    for (size_t i = 0; queues && i < now.n_queues; i++) {
        now.queue[i].info = queues[i];
        add_rates(&now.queue[i], top, now.every);
    }
    lade_free(queues);
    cli_top_fini(top);
    *top = now;
    return 0;
}

void cli_top_fini(struct cli_top *top)
{
    lb_free(top->queue);
    lade_free(top->workers);
    *top = (struct cli_top){0};
}

/* as a row --------------------------------------------------------------------------------------------------------- */

static void add_rate(struct cli_row *r, const char *key, double v)
{
    cli_row_json(r, key, v < 0 ? json_null() : json_real(v));
}

static void fill_queue(struct cli_row *r, const struct cli_top_queue *q)
{
    cli_row_init(r);
    cli_row_text(r, "queue", q->info.name);
    cli_row_bool(r, "paused", q->info.paused);
    for (int s = 0; s < LADE_N_STATES; s++)
        cli_row_u64(r, lade_state_name((enum lade_state)s), q->info.count[s]);
    cli_row_u64(r, "held", q->info.held);
    cli_row_int(r, "latency_ms", q->info.latency / LADE_MILLISECOND);
    cli_row_u64(r, "workers", q->info.n_workers);
    add_rate(r, "in_per_s", q->in);
    add_rate(r, "done_per_s", q->done);
    add_rate(r, "failed_per_s", q->failed);
}

static void fill_worker(struct cli_row *r, const lade_worker_info *w, int64_t now)
{
    cli_row_init(r);
    cli_row_text(r, "name", w->name);
    cli_row_text(r, "id", w->id);
    cli_row_text(r, "queues", w->queues);
    cli_row_u64(r, "active", w->n_active);
    cli_row_int(r, "concurrency", w->concurrency);
    cli_row_int(r, "up_ms", LB_MAX(now - w->started_at, 0) / LADE_MILLISECOND);
    cli_row_int(r, "seen_ago_ms", LB_MAX(now - w->seen_at, 0) / LADE_MILLISECOND);
}

static void add_known(double *sum, double v)
{
    if (v >= 0)
        *sum = LB_MAX(*sum, 0) + v;
}

static void add_up(const struct cli_top *top, struct cli_top_queue *sum)
{
    *sum = (struct cli_top_queue){.info.name = "total", .in = -1, .done = -1, .failed = -1};
    for (size_t i = 0; i < top->n_queues; i++) {
        const struct cli_top_queue *q = &top->queue[i];
        for (int s = 0; s < LADE_N_STATES; s++)
            sum->info.count[s] += q->info.count[s];
        sum->info.held += q->info.held;
        sum->info.latency = LB_MAX(sum->info.latency, q->info.latency);
        add_known(&sum->in, q->in);
        add_known(&sum->done, q->done);
        add_known(&sum->failed, q->failed);
    }
    sum->info.n_workers = top->n_workers;
}

static void append(struct cli_row *all, json_t *list, struct cli_row *row)
{
    all->failed = all->failed || row->failed || !list || json_array_append(list, row->o) != 0;
    cli_row_fini(row);
}

void cli_top_row(struct cli_row *r, const struct cli_top *top)
{
    struct cli_row row;
    struct cli_top_queue sum;
    json_t *queues = json_array(), *workers = json_array();
    cli_row_init(r);
    cli_row_time(r, "at", top->at);
    cli_row_json(r, "seconds", top->every > 0 ? json_real(top->every) : json_null());
    for (size_t i = 0; i < top->n_queues; i++) {
        fill_queue(&row, &top->queue[i]);
        append(r, queues, &row);
    }
    for (size_t i = 0; i < top->n_workers; i++) {
        fill_worker(&row, &top->workers[i], top->at);
        append(r, workers, &row);
    }
    cli_row_json(r, "queues", queues);
    cli_row_json(r, "workers", workers);
    add_up(top, &sum);
    fill_queue(&row, &sum);
    r->failed = r->failed || row.failed || json_object_set(r->o, "total", row.o) != 0;
    cli_row_fini(&row);
}

/* as a screen ------------------------------------------------------------------------------------------------------ */

struct screen {
    struct lb_buf *out;
    size_t rows, columns; /* left; 0 columns = any */
    bool ansi, color;
};

/* A line, cut at the right edge; nothing below the last row. `style` is of SGR, "" none. */
static void put_line(struct screen *s, const char *text, const char *style)
{
    if (s->rows == 0)
        return;
    s->rows--;
    size_t n = strlen(text);
    if (s->columns > 0 && n > s->columns) /* the texts are ASCII, see put_name */
        n = s->columns;
    if (s->color && *style)
        lb_buf_add_fmt(s->out, "\033[%sm", style);
    lb_buf_add(s->out, text, n);
    if (s->color && *style)
        lb_buf_add_str(s->out, "\033[0m");
    lb_buf_add_str(s->out, s->ansi ? "\033[K\r\n" : "\n");
}

static const char *rate_text(char out[16], double v)
{
    if (v < 0)
        (void)snprintf(out, 16, "-");
    else if (v > 0 && v < 10)
        (void)snprintf(out, 16, "%.1f", v);
    else if (v < 1e6)
        (void)snprintf(out, 16, "%.0f", v);
    else
        (void)snprintf(out, 16, "%.2e", v);
    return out;
}

static const char *short_duration(char out[CLI_TIME_LEN], int64_t ns)
{
    if (ns <= 0)
        (void)snprintf(out, CLI_TIME_LEN, "-");
    else
        cli_duration_text(out, ns);
    return out;
}

static void draw_queue(struct screen *s, const struct cli_top_queue *q, const char *style)
{
    char line[320], in[16], done[16], failed[16], latency[CLI_TIME_LEN];
    const uint64_t *n = q->info.count;
    (void)snprintf(
        line, sizeof(line), "%-20.40s %9llu %9llu %9llu %7llu %8llu %8s %8s %8s %8s %4zu%s",
        q->info.name, (unsigned long long)n[LADE_STATE_READY],
        (unsigned long long)n[LADE_STATE_SCHEDULED], (unsigned long long)n[LADE_STATE_RETRYING],
        (unsigned long long)n[LADE_STATE_ACTIVE], (unsigned long long)n[LADE_STATE_DEAD],
        rate_text(in, q->in), rate_text(done, q->done), rate_text(failed, q->failed),
        short_duration(latency, q->info.latency), q->info.n_workers,
        q->info.paused ? " paused" : "");
    put_line(s, line, style);
}

static void draw_worker(struct screen *s, const lade_worker_info *w, int64_t now)
{
    char line[320], up[CLI_TIME_LEN], seen[CLI_TIME_LEN], slots[32];
    struct lb_buf name; /* which may have bytes that a terminal obeys */
    lb_buf_init(&name);
    cli_add_printable(&name, w->name, strlen(w->name), LADE_NAME_MAX);
    for (size_t i = 0; i < name.n; i++) /* one byte, one column */
        name.p[i] = name.p[i] < 0x80 ? name.p[i] : '?';
    (void)snprintf(slots, sizeof(slots), "%zu/%d", w->n_active, w->concurrency);
    (void)snprintf(line, sizeof(line), "%-28.*s %9s %9s %9s  %.160s",
                   name.failed ? 0 : (int)LB_MIN(name.n, (size_t)40), (const char *)name.p, slots,
                   short_duration(up, now - w->started_at), short_duration(seen, now - w->seen_at),
                   w->queues);
    put_line(s, line, "");
    lb_buf_fini(&name);
}

static const char *style_of(const struct cli_top_queue *q)
{
    return q->info.paused ? "33" : q->failed > 0 ? "31" : "";
}

/* Some of the rows for workers, when there are more than fit. */
static size_t rows_for_queues(const struct cli_top *top, size_t rows)
{
    size_t others = 7 + LB_MIN(top->n_workers, LB_MAX(rows / 3, 3));
    return rows > others + 1 ? rows - others : 1;
}

static void draw_head(struct screen *s, const struct cli *c, const struct cli_top *top)
{
    char at[CLI_TIME_LEN], line[320];
    const char *url = cli_url(c), *end = strrchr(url, '@');
    cli_time_text(at, top->at);
    /* Without what stands before @: a password. */
    (void)snprintf(line, sizeof(line), "lade %s  %s  %zu queues, %zu workers%s%.100s",
                   lade_version(), at, top->n_queues, top->n_workers, *url ? "  " : "",
                   end ? end + 1 : url);
    put_line(s, line, "1");
    put_line(s, "", "");
}

void cli_top_draw(struct lb_buf *out, const struct cli *c, const struct cli_top *top, size_t rows,
                  size_t columns, bool ansi)
{
    struct screen s = {out, rows > 0 ? rows : SIZE_MAX, columns, ansi,
                       ansi && !c->no_color && !getenv("NO_COLOR")};
    struct cli_top_queue sum;
    size_t room = rows > 0 ? rows_for_queues(top, rows) : SIZE_MAX;
    char line[96];
    if (ansi)
        lb_buf_add_str(out, "\033[H");
    draw_head(&s, c, top);
    put_line(&s,
             "QUEUE                    READY SCHEDULED  RETRYING  ACTIVE     DEAD     IN/s   DONE/s"
             "   FAIL/s  LATENCY WORK",
             "7");
    for (size_t i = 0; i < top->n_queues && i < room; i++)
        draw_queue(&s, &top->queue[i], style_of(&top->queue[i]));
    if (top->n_queues > room) {
        (void)snprintf(line, sizeof(line), "... %zu more queues", top->n_queues - room);
        put_line(&s, line, "2");
    }
    add_up(top, &sum);
    draw_queue(&s, &sum, "1");
    put_line(&s, "", "");
    put_line(&s, "WORKER                           BUSY        UP      SEEN  QUEUES", "7");
    size_t i = 0;
    for (; i < top->n_workers && (s.rows > 1 || i + 1 == top->n_workers); i++)
        draw_worker(&s, &top->workers[i], top->at);
    if (i < top->n_workers) {
        (void)snprintf(line, sizeof(line), "... %zu more workers", top->n_workers - i);
        put_line(&s, line, "2");
    }
    if (ansi)
        lb_buf_add_str(out, "\033[J");
}
