/* report_tables.c - the tables of report.md: figures, the originals' formula, latency, cost */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bench/report.h"
#include "bench/units.h"

#define NOISE_MAX 0.05
#define RUNS_MIN  3 /* for a claim that one is best */

char *bn_report_value(double v, const struct bn_view *view, char *out, size_t size)
{
    return bn_units(v, view->unit, out, size);
}

/* Which columns are clearly best: index, or n_contenders when none is. */
static size_t find_best(const struct bn_session *s, size_t row, const struct bn_view *view)
{
    struct bn_stats best = {0};
    struct bn_stats next = {0};
    size_t at = s->n_contenders;
    char a[32];
    char b[32];
    for (size_t c = 0; c < s->n_contenders; c++) {
        struct bn_stats st;
        if ((s->contender[c] && s->contender[c]->is_floor) ||
            !bn_session_stats(s, row, c, view->metric, view->lower, &st))
            continue;
        bool better = view->lower ? st.median < best.median : st.median > best.median;
        if (best.n == 0 || better) {
            next = best;
            best = st;
            at = c;
        } else if (next.n == 0 || (view->lower ? st.median < next.median : st.median > next.median))
            next = st;
    }
    bool clear = best.n >= RUNS_MIN && next.n >= RUNS_MIN && bn_stats_apart(&best, &next) &&
                 strcmp(bn_report_value(best.median, view, a, sizeof(a)),
                        bn_report_value(next.median, view, b, sizeof(b))) != 0;
    return clear ? at : s->n_contenders;
}

static bool is_latency(const struct bn_view *view)
{
    return strncmp(view->metric, "latency", 7) == 0 || strcmp(view->unit, "us") == 0;
}

static void write_cell(const struct bn_session *s, size_t row, size_t c, const struct bn_view *view,
                       bool best, FILE *out)
{
    const struct bn_cell *cell = bn_session_cell(s, row, c);
    struct bn_stats st;
    char v[32];
    char low[32];
    char high[32];
    size_t good = bn_cell_good(cell);
    if (cell->why_not[0]) {
        (void)fprintf(out, " not run: %s |", cell->why_not);
        return;
    }
    if (!bn_session_stats(s, row, c, view->metric, view->lower, &st)) {
        if (good > 0)
            (void)fputs(" - |", out);
        else if (cell->n_runs == 0)
            (void)fprintf(out, " not reached (0/%d) |", s->repeats);
        else
            (void)fprintf(out, " failed (0/%d): %s |", s->repeats, cell->last_error);
        return;
    }
    (void)fprintf(out, " %s%s%s", best ? "**" : "", bn_report_value(st.median, view, v, sizeof(v)),
                  best ? "**" : "");
    if (st.n > 1)
        (void)fprintf(out, " [%s, %s]", bn_report_value(st.low, view, low, sizeof(low)),
                      bn_report_value(st.high, view, high, sizeof(high)));
    if (st.cv > NOISE_MAX && !is_latency(view))
        (void)fputs(" ⚠", out);
    if (good < (size_t)s->repeats)
        (void)fprintf(out, " (%zu/%d)", good, s->repeats);
    (void)fputs(" |", out);
}

static void write_head(const struct bn_session *s, const char *first, FILE *out)
{
    (void)fprintf(out, "| %s |", first);
    for (size_t c = 0; c < s->n_contenders; c++)
        (void)fprintf(out, " %s |", bn_session_column(s, c));
}

static void write_rule(size_t columns, FILE *out)
{
    (void)fputs("\n|", out);
    for (size_t i = 0; i < columns; i++)
        (void)fputs("---|", out);
    (void)fputc('\n', out);
}

void bn_report_figures(const struct bn_session *s, FILE *out)
{
    write_head(s, "row", out);
    (void)fputs(" unit |", out);
    write_rule(s->n_contenders + 2, out);
    for (size_t r = 0; r < s->table->n_rows; r++) {
        const struct bn_row *row = &s->table->rows[r];
        for (size_t i = 0; i < row->n_views; i++) {
            const struct bn_view *view = &row->views[i];
            size_t best = find_best(s, r, view);
            (void)fprintf(out, "| %s%s%s |", row->label, *view->label ? ", " : "", view->label);
            for (size_t c = 0; c < s->n_contenders; c++)
                write_cell(s, r, c, view, c == best, out);
            bool scaled = strcmp(view->unit, "us") == 0 || strcmp(view->unit, "B") == 0;
            (void)fprintf(out, " %s |\n", scaled ? "" : view->unit);
        }
    }
    (void)fputc('\n', out);
}

/* Metrics that an original printed for this row, in the order of the file. */
static void write_published_row(const struct bn_session *s, size_t r, const json_t *columns,
                                FILE *out)
{
    const struct bn_row *row = &s->table->rows[r];
    const char *metric;
    json_t *by;
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)json_object_get(row->spec, "published"), metric, by)
    {
        struct bn_view view = {"", metric, strncmp(metric, "latency", 7) == 0 ? "us" : "jobs/s",
                               false};
        char text[32];
        (void)by;
        for (size_t i = 0; i < row->n_views; i++) {
            if (strcmp(row->views[i].metric, metric) == 0)
                view = row->views[i];
        }
        (void)fprintf(out, "| %s, %s |", row->label, metric);
        for (size_t c = 0; c < s->n_contenders; c++) {
            struct bn_stats st;
            bool there = bn_session_stats(s, r, c, metric, false, &st);
            (void)fprintf(out, " %s |",
                          there ? bn_report_value(st.median, &view, text, sizeof(text)) : "-");
        }
        json_object_foreach((json_t *)columns, name, v)
        {
            double p = bn_row_published(row, metric, name);
            (void)fprintf(out, " %s |",
                          isnan(p) ? "-" : bn_report_value(p, &view, text, sizeof(text)));
        }
        (void)fputc('\n', out);
    }
}

void bn_report_published(const struct bn_session *s, FILE *out)
{
    const json_t *columns = json_object_get(s->table->spec, "published_columns");
    const char *name;
    json_t *label;
    if (!columns)
        return;
    (void)fputs("## By the originals' formula, beside what they published\n\n"
                "The last columns are the originals' own figures on their machine: not comparable "
                "with the others, but for the ratios between them.\n\n",
                out);
    write_head(s, "row", out);
    json_object_foreach((json_t *)columns, name, label)
    {
        (void)fprintf(out, " %s |", json_string_value(label));
    }
    write_rule(s->n_contenders + 1 + json_object_size(columns), out);
    for (size_t r = 0; r < s->table->n_rows; r++)
        write_published_row(s, r, columns, out);
    (void)fputc('\n', out);
}

/* A line of medians of these metrics; false, and nothing written, when the cell has none of them. */
static bool write_medians(const struct bn_session *s, size_t r, size_t c,
                          const struct bn_view *view, size_t n, FILE *out)
{
    struct bn_stats st;
    char text[32];
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || bn_session_stats(s, r, c, view[i].metric, true, &st);
    if (!any)
        return false;
    (void)fprintf(out, "| %s | %s |", s->table->rows[r].label, bn_session_column(s, c));
    for (size_t i = 0; i < n; i++) {
        bool there = bn_session_stats(s, r, c, view[i].metric, true, &st);
        (void)fprintf(out, " %s |",
                      there ? bn_report_value(st.median, &view[i], text, sizeof(text)) : "-");
    }
    return true;
}

static bool has_latency(const struct bn_session *s)
{
    struct bn_stats st;
    for (size_t r = 0; r < s->table->n_rows; r++) {
        for (size_t c = 0; c < s->n_contenders; c++) {
            if (bn_session_stats(s, r, c, "latency.p50", true, &st))
                return true;
        }
    }
    return false;
}

void bn_report_latency(const struct bn_session *s, FILE *out)
{
    static const struct bn_view view[] = {
        {"p50", "latency.p50", "us", true},    {"p90", "latency.p90", "us", true},
        {"p95", "latency.p95", "us", true},    {"p99", "latency.p99", "us", true},
        {"p99.9", "latency.p999", "us", true}, {"max", "latency.max", "us", true}};
    if (!has_latency(s))
        return;
    (void)fputs("## Latency\n\nMedians over the runs, of every operation of the window (HDR "
                "histogram). Under saturation it is mostly the backlog.\n\n"
                "| row | contender | p50 | p90 | p95 | p99 | p99.9 | max |",
                out);
    write_rule(8, out);
    for (size_t r = 0; r < s->table->n_rows; r++) {
        for (size_t c = 0; c < s->n_contenders; c++) {
            if (write_medians(s, r, c, view, LB_ARRAY_LEN(view), out))
                (void)fputc('\n', out);
        }
    }
    (void)fputc('\n', out);
}

static bool is_whole_run(const struct bn_cell *cell)
{
    for (size_t i = 0; i < cell->n_runs; i++) {
        if (json_is_true(json_object_get(cell->run[i].line, "server_whole_run")))
            return true;
    }
    return false;
}

void bn_report_cost(const struct bn_session *s, FILE *out)
{
    static const struct bn_view view[] = {{"", "client_cpu_us", "us", true},
                                          {"", "server_cpu_us", "us", true},
                                          {"", "server_commands_per_job", "", true},
                                          {"", "rss_bytes", "B", true}};
    (void)fputs("## Cost\n\nFor each job: CPU time of the contender's process and of the server, "
                "and server commands (`INFO commandstats`, those inside scripts too); largest "
                "resident size. ~: over the whole run, preload included, for each job verified.\n\n"
                "| row | contender | client CPU | server CPU | server commands | memory | |",
                out);
    write_rule(7, out);
    for (size_t r = 0; r < s->table->n_rows; r++) {
        for (size_t c = 0; c < s->n_contenders; c++) {
            if (write_medians(s, r, c, view, LB_ARRAY_LEN(view), out))
                (void)fprintf(out, " %s |\n", is_whole_run(bn_session_cell(s, r, c)) ? "~" : "");
        }
    }
    (void)fputc('\n', out);
}
