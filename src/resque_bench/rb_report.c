/* rb_report.c - see rb_report.h */
#include "resque_bench/rb_report.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "resque_bench/words.h"

#define COLUMNS_MAX 10
#define ROWS_MAX    (RB_TRIALS_MAX * RB_N_MODES + 1)
#define CELL        48

struct table {
    size_t columns, rows;
    char cell[ROWS_MAX][COLUMNS_MAX][CELL];
};

/* Characters, not bytes: there is a µ. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void print_rule(const size_t *width, size_t columns, char end, char fill, char cross)
{
    (void)fputc(end, rb_out);
    for (size_t c = 0; c < columns; c++) {
        for (size_t i = 0; i < width[c] + 2; i++)
            (void)fputc(fill, rb_out);
        if (c + 1 < columns)
            (void)fputc(cross, rb_out);
    }
    (void)fprintf(rb_out, "%c\n", end);
}

/* The form of comfy-table's default: "+--+", "|  |", "+==+" under the header, "|--+--|" between rows. */
static void print_table(const struct table *t)
{
    size_t width[COLUMNS_MAX] = {0};
    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < t->columns; c++)
            width[c] = LB_MAX(width[c], width_of(t->cell[r][c]));
    print_rule(width, t->columns, '+', '-', '+');
    for (size_t r = 0; r < t->rows; r++) {
        for (size_t c = 0; c < t->columns; c++) {
            const char *text = t->cell[r][c];
            (void)fprintf(rb_out, "| %s%*s ", text, (int)(width[c] - width_of(text)), "");
        }
        (void)fputs("|\n", rb_out);
        if (r == 0)
            print_rule(width, t->columns, '+', '=', '=');
        else if (r + 1 < t->rows)
            print_rule(width, t->columns, '|', '-', '+');
    }
    print_rule(width, t->columns, '+', '-', '+');
}

static struct table *new_table(const char *const *head, size_t n)
{
    static struct table t;
    memset(&t, 0, sizeof(t));
    t.columns = n;
    t.rows = 1;
    for (size_t c = 0; c < n; c++)
        (void)snprintf(t.cell[0][c], CELL, "%s", head[c]);
    return &t;
}

static void cell(struct table *t, size_t c, const char *text)
{
    (void)snprintf(t->cell[t->rows][c], CELL, "%s", text);
}

/* "50", "50 [timeout]", with several modes "50 blpop". */
static void label(struct table *t, const struct rb_options *o, const struct rb_result *r)
{
    bool plain = o->n_modes == 1 && r->mode == RB_POLL;
    (void)snprintf(t->cell[t->rows][0], CELL, "%zu%s%s%s", r->workers, plain ? "" : " ",
                   plain ? "" : rb_mode_name[r->mode], r->timed_out ? " [timeout]" : "");
}

void rb_report_header(const struct rb_server *s, const char *tag)
{
    const struct rb_options *o = s->o;
    char url[512];
    char jobs[RB_WORD];
    char queues[448];
    rb_server_url_text(s, url, sizeof(url));
    if (s->n_queues > 1)
        (void)snprintf(queues, sizeof(queues), "%zu queues (%.180s_0…%.180s_%zu)", s->n_queues,
                       o->queue, o->queue, s->n_queues - 1);
    else
        (void)snprintf(queues, sizeof(queues), "%s", o->queue);
    (void)fprintf(rb_out, "\n=== resque-bench — %s ===\n", tag);
    (void)fprintf(rb_out, "    %s  jobs=%s  queues=%s  poll-interval=%lldms\n\n", url,
                  rb_count(jobs, (uint64_t)o->jobs), queues, (long long)o->interval_ms);
}

static double rate_of(const struct rb_result *r)
{
    return r->seconds > 0 ? (double)r->jobs / r->seconds : 0;
}

static double us_at(const struct lb_hdr *h, double p)
{
    return floor((double)lb_hdr_at(h, p) / 1e3);
}

static double us_max(const struct lb_hdr *h)
{
    return floor((double)lb_hdr_max(h) / 1e3);
}

static void print_idle_line(const struct rb_result *r)
{
    const struct rb_idle *i = &r->idle;
    char a[RB_WORD];
    char b[RB_WORD];
    if (i->skipped[0]) {
        (void)fprintf(rb_out, "  [%4zu workers]  idle-poll: SKIPPED — %s\n", r->workers,
                      i->skipped);
    } else if (i->insufficient) {
        (void)fprintf(
            rb_out,
            "  [%4zu workers]  idle-poll: INSUFFICIENT — %s calls in %.1fs, less than one interval: no rate\n",
            r->workers, rb_count(a, i->polls), i->seconds);
    } else if (i->ran && r->mode == RB_NATIVE) {
        (void)fprintf(rb_out, "  [%4zu workers]  idle: %.1f commands/s on the server over %.1fs\n",
                      r->workers, (double)i->cost.commands / i->cost.seconds, i->seconds);
    } else if (i->ran) {
        (void)fprintf(
            rb_out,
            "  [%4zu workers]  idle-poll: %10s %s/s  (%.1f %s/s/worker over %.1fs, %s calls)\n",
            r->workers, rb_qps(a, i->qps), r->mode == RB_POLL ? "LPOP" : "pop", i->per_worker,
            r->mode == RB_POLL ? "LPOP" : "pop", i->seconds, rb_count(b, i->polls));
    }
    if (i->ran && !i->clean)
        (void)fprintf(
            rb_out,
            "  [%4zu workers]  idle-poll: NOT CLEAN — others put %llu jobs into the queue\n",
            r->workers, (unsigned long long)i->foreign);
}

static void print_arrivals(const struct rb_result *r, const struct rb_pickup *p, const char *name)
{
    char a[RB_WORD];
    char b[RB_WORD];
    char c[RB_WORD];
    if (p->ran)
        (void)fprintf(rb_out,
                      "  [%4zu workers]  %s: %llu jobs at %.1f/s  p50=%-8s p99=%-8s max=%s\n",
                      r->workers, name, (unsigned long long)p->done, p->offered,
                      rb_us(a, us_at(p->latency, 0.5)), rb_us(b, us_at(p->latency, 0.99)),
                      rb_us(c, us_max(p->latency)));
}

void rb_report_trial(const struct rb_options *o, const struct rb_result *r)
{
    char w[5][RB_WORD];
    const struct lb_hdr *h = r->residence;
    if (o->n_modes > 1 || r->mode != RB_POLL)
        (void)fprintf(rb_out, "  [%4zu workers]  mode %s\n", r->workers, rb_mode_name[r->mode]);
    (void)fprintf(rb_out, "  [%4zu workers]  %10s jobs/s  p50=%-8s p99=%-8s p99.9=%-8s max=%s%s\n",
                  r->workers, rb_rate(w[0], rate_of(r)), rb_us(w[1], us_at(h, 0.5)),
                  rb_us(w[2], us_at(h, 0.99)), rb_us(w[3], us_at(h, 0.999)), rb_us(w[4], us_max(h)),
                  r->timed_out ? " [TIMEOUT]" : "");
    if (r->errors || r->lost || r->foreign || r->reconnects)
        (void)fprintf(rb_out,
                      "  [%4zu workers]  errors=%llu  lost=%llu  foreign=%llu  reconnects=%llu\n",
                      r->workers, (unsigned long long)r->errors, (unsigned long long)r->lost,
                      (unsigned long long)r->foreign, (unsigned long long)r->reconnects);
    print_idle_line(r);
    print_arrivals(r, &r->pickup, "pickup");
    print_arrivals(r, &r->open, "open loop");
    (void)fflush(rb_out);
}

static void print_drain(const struct rb_options *o, const struct rb_result *r, size_t n)
{
    static const char *const head[] = {"Workers", "jobs/s", "p50", "p99", "p99.9", "max", "errors"};
    struct table *t = new_table(head, LB_ARRAY_LEN(head));
    char w[RB_WORD];
    for (size_t i = 0; i < n; i++) {
        const struct lb_hdr *h = r[i].residence;
        label(t, o, &r[i]);
        cell(t, 1, rb_rate(w, rate_of(&r[i])));
        cell(t, 2, rb_us(w, us_at(h, 0.5)));
        cell(t, 3, rb_us(w, us_at(h, 0.99)));
        cell(t, 4, rb_us(w, us_at(h, 0.999)));
        cell(t, 5, rb_us(w, us_max(h)));
        (void)snprintf(t->cell[t->rows][6], CELL, "%llu", (unsigned long long)r[i].errors);
        t->rows++;
    }
    (void)fputs("\n--- Drain summary (backlog throughput + latency) ---\n", rb_out);
    print_table(t);
}

static void print_idle(const struct rb_options *o, const struct rb_result *r, size_t n)
{
    static const char *const head[] = {"Workers", "duration_s", "LPOP calls", "LPOP/s (fleet)",
                                       "LPOP/s/worker"};
    struct table *t = new_table(head, LB_ARRAY_LEN(head));
    for (size_t i = 0; i < n; i++) {
        const struct rb_idle *idle = &r[i].idle;
        char w[RB_WORD];
        label(t, o, &r[i]);
        cell(t, 1, "SKIPPED");
        for (size_t c = 2; c < 5; c++)
            cell(t, c, "-");
        if (idle->ran && !idle->skipped[0]) {
            (void)snprintf(t->cell[t->rows][1], CELL, "%.1f", idle->seconds);
            cell(t, 2, rb_count(w, idle->polls));
            cell(t, 3, idle->insufficient ? "n/a" : rb_qps(w, idle->qps));
            if (idle->insufficient)
                cell(t, 4, "n/a");
            else
                (void)snprintf(t->cell[t->rows][4], CELL, "%.2f", idle->per_worker);
        }
        t->rows++;
    }
    (void)fputs("\n--- Idle-poll summary (steady-state polling load, empty queue) ---\n", rb_out);
    print_table(t);
}

static void number(struct table *t, size_t c, bool known, double v, int digits)
{
    if (known)
        (void)snprintf(t->cell[t->rows][c], CELL, "%.*f", digits, v);
    else
        cell(t, c, "n/a");
}

static void print_costs(const struct rb_options *o, const struct rb_result *r, size_t n)
{
    static const char *const head[] = {"Workers",       "client µs/job", "server µs/job",
                                       "commands/job",  "idle cmd/s",    "idle bytes/s",
                                       "idle server %", "pickup p50",    "pickup p99"};
    struct table *t = new_table(head, LB_ARRAY_LEN(head));
    for (size_t i = 0; i < n; i++) {
        const struct rb_cost *c = &r[i].cost;
        const struct rb_cost *d = &r[i].idle.cost;
        char w[RB_WORD];
        double jobs = r[i].jobs > 0 ? (double)r[i].jobs : 1;
        bool idle = r[i].idle.ran && d->known && d->seconds > 0;
        double seconds = idle ? d->seconds : 1;
        label(t, o, &r[i]);
        number(t, 1, r[i].jobs > 0, c->client_cpu_s * 1e6 / jobs, 1);
        number(t, 2, c->known && r[i].jobs > 0, c->server_cpu_s * 1e6 / jobs, 1);
        number(t, 3, c->known && r[i].jobs > 0, (double)c->commands / jobs, 2);
        number(t, 4, idle, (double)d->commands / seconds, 1);
        number(t, 5, idle, (double)(d->bytes_in + d->bytes_out) / seconds, 0);
        number(t, 6, idle, d->server_cpu_s * 100 / seconds, 1);
        bool pickup = r[i].pickup.ran && r[i].pickup.done > 0;
        cell(t, 7, pickup ? rb_us(w, us_at(r[i].pickup.latency, 0.5)) : "-");
        cell(t, 8, pickup ? rb_us(w, us_at(r[i].pickup.latency, 0.99)) : "-");
        t->rows++;
    }
    (void)fputs("\n--- Cost (drain per job; idle per second, seen by the server) ---\n", rb_out);
    print_table(t);
}

void rb_report_tables(const struct rb_options *o, const struct rb_result *r, size_t n)
{
    bool idle = false;
    for (size_t i = 0; i < n; i++)
        idle |= r[i].idle.ran || r[i].idle.skipped[0];
    print_drain(o, r, n);
    if (idle)
        print_idle(o, r, n);
    print_costs(o, r, n);
}
