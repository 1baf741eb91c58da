/* summary.c - the report for programs: CSV and JSON lines, one for each row, contender and figure */
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "bench/report.h"

/* Figures that every line of a row is asked for, beside the row's own. */
static const struct bn_view common[] = {
    {"", "printed_rate", "jobs/s", false}, {"", "latency.p50", "us", true},
    {"", "latency.p90", "us", true},       {"", "latency.p95", "us", true},
    {"", "latency.p99", "us", true},       {"", "latency.p999", "us", true},
    {"", "latency.max", "us", true},       {"", "client_cpu_us", "us", true},
    {"", "server_cpu_us", "us", true},     {"", "server_commands_per_job", "", true},
    {"", "rss_bytes", "B", true}};

struct line {
    const struct bn_session *s;
    size_t row, c;
    const struct bn_view *view;
    const char *status;
    struct bn_stats st;
    size_t good;
    FILE *out;
};

typedef void (*write_fn)(const struct line *l);

static void write_csv_text(const char *text, FILE *out)
{
    (void)fputc('"', out);
    for (; *text; text++)
        (void)fprintf(out, *text == '"' ? "\"%c" : "%c", *text);
    (void)fputc('"', out);
}

static void write_csv(const struct line *l)
{
    const struct bn_cell *cell = bn_session_cell(l->s, l->row, l->c);
    write_csv_text(l->s->table->name, l->out);
    (void)fputc(',', l->out);
    write_csv_text(l->s->table->rows[l->row].label, l->out);
    (void)fputc(',', l->out);
    write_csv_text(bn_session_column(l->s, l->c), l->out);
    (void)fprintf(l->out, ",%s,%s,%s,%zu,%d,", l->view->metric, l->view->unit, l->status, l->good,
                  l->s->repeats);
    if (l->st.n > 0)
        (void)fprintf(l->out, "%.9g,%.9g,%.9g,%.6g,%.9g,%.9g,%.9g,%.4g,", l->st.median, l->st.low,
                      l->st.high, l->st.coverage, l->st.min, l->st.max, l->st.mean, l->st.cv * 100);
    else
        (void)fputs(",,,,,,,,", l->out);
    write_csv_text(cell->why_not[0] ? cell->why_not : cell->last_error, l->out);
    (void)fputc('\n', l->out);
}

static void write_json(const struct line *l)
{
    const struct bn_cell *cell = bn_session_cell(l->s, l->row, l->c);
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:s}", "table", l->s->table->name, "row",
                  l->s->table->rows[l->row].label, "contender", bn_session_column(l->s, l->c),
                  "metric", l->view->metric, "unit", l->view->unit, "status", l->status, "runs",
                  (int)l->good, "expected_runs", l->s->repeats, "reason",
                  cell->why_not[0] ? cell->why_not : cell->last_error);
    if (o && l->st.n > 0)
        (void)json_object_update_new(o, json_pack("{s:f,s:f,s:f,s:f,s:f}", "median", l->st.median,
                                                  "low", l->st.low, "high", l->st.high, "coverage",
                                                  l->st.coverage, "cv_pct", l->st.cv * 100));
    (void)json_dumpf(o, l->out, JSON_COMPACT | JSON_REAL_PRECISION(9));
    (void)fputc('\n', l->out);
    json_decref(o);
}

/* One figure of one cell; a figure that no run has is left out, but for the row's first. */
static void write_one(struct line *l, const struct bn_view *view, bool always, write_fn write)
{
    const struct bn_cell *cell = bn_session_cell(l->s, l->row, l->c);
    l->view = view;
    l->good = bn_cell_good(cell);
    l->st = (struct bn_stats){0};
    bool there = bn_session_stats(l->s, l->row, l->c, view->metric, view->lower, &l->st);
    l->status = cell->why_not[0] ? "not_run"
                : l->good == 0   ? (cell->n_runs > 0 ? "failed" : "not_reached")
                : l->s->partial  ? "partial"
                                 : "ok";
    if (there || always)
        write(l);
}

static bool has_view(const struct bn_row *row, const char *metric)
{
    for (size_t i = 0; i < row->n_views; i++) {
        if (strcmp(row->views[i].metric, metric) == 0)
            return true;
    }
    return false;
}

static void write_all(const struct bn_session *s, FILE *out, write_fn write)
{
    for (size_t r = 0; r < s->table->n_rows; r++) {
        const struct bn_row *row = &s->table->rows[r];
        for (size_t c = 0; c < s->n_contenders; c++) {
            struct line l = {.s = s, .row = r, .c = c, .out = out};
            for (size_t i = 0; i < row->n_views; i++)
                write_one(&l, &row->views[i], i == 0, write);
            for (size_t i = 0; i < LB_ARRAY_LEN(common); i++) {
                if (!has_view(row, common[i].metric))
                    write_one(&l, &common[i], false, write);
            }
        }
    }
}

void bn_report_csv(const struct bn_session *s, FILE *out)
{
    (void)fputs("table,row,contender,metric,unit,status,runs,expected_runs,median,ci_low,ci_high,"
                "ci_coverage,min,max,mean,cv_pct,reason\n",
                out);
    write_all(s, out, write_csv);
}

void bn_report_json(const struct bn_session *s, FILE *out)
{
    write_all(s, out, write_json);
}
