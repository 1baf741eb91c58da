/* plot.c - one SVG for each unit that a table's figures have: bars by row, a colour for each contender, interval as whisker */
#include <lade/base.h>

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "bench/report.h"

#define PLOT_DEADLINE (60 * LADE_SECOND)

static bool is_first_of_unit(const struct bn_session *s, size_t row, size_t view)
{
    const char *unit = s->table->rows[row].views[view].unit;
    for (size_t r = 0; r <= row; r++) {
        for (size_t i = 0; i < s->table->rows[r].n_views && (r < row || i < view); i++) {
            if (strcmp(s->table->rows[r].views[i].unit, unit) == 0)
                return false;
        }
    }
    return true;
}

/* Rows as lines: label, then median, low and high of each column ("?" = missing). The number of lines. */
static size_t write_data(const struct bn_session *s, const char *unit, FILE *f)
{
    size_t lines = 0;
    for (size_t r = 0; r < s->table->n_rows; r++) {
        const struct bn_row *row = &s->table->rows[r];
        for (size_t i = 0; i < row->n_views; i++) {
            const struct bn_view *view = &row->views[i];
            if (strcmp(view->unit, unit) != 0)
                continue;
            (void)fprintf(f, "\"%s%s%s\"", row->label, *view->label ? ", " : "", view->label);
            for (size_t c = 0; c < s->n_contenders; c++) {
                struct bn_stats st;
                if (bn_session_stats(s, r, c, view->metric, view->lower, &st))
                    (void)fprintf(f, " %.9g %.9g %.9g", st.median, st.low, st.high);
                else
                    (void)fputs(" ? ? ?", f);
            }
            (void)fputc('\n', f);
            lines++;
        }
    }
    return lines;
}

static void write_script(const struct bn_session *s, const char *unit, size_t lines,
                         const char *name, FILE *f)
{
    (void)fprintf(
        f,
        "set terminal svg size %zu,520 dynamic background rgb 'white' font 'sans,12'\n"
        "set output '%s.svg'\nset title \"%s\" noenhanced\nset ylabel '%s'\n"
        "set datafile missing '?'\nset style data histogram\n"
        "set style histogram errorbars gap 1 lw 1\nset style fill solid 0.8 noborder\n"
        "set logscale y\nset grid ytics\nset xtics rotate by 40 right font ',10' noenhanced\n"
        "set key outside top horizontal noenhanced\nplot ",
        LB_MAX(lines * (s->n_contenders * 14 + 20) + 240, (size_t)640), name, s->table->title,
        strcmp(unit, "us") == 0 ? "microseconds" : unit);
    for (size_t c = 0; c < s->n_contenders; c++)
        (void)fprintf(f, "%s'%s.dat' using %zu:%zu:%zu%s title \"%s\"", c ? ", " : "", name,
                      2 + 3 * c, 3 + 3 * c, 4 + 3 * c, c == 0 ? ":xtic(1)" : "",
                      bn_session_column(s, c));
    (void)fputc('\n', f);
}

static bool plot_unit(const struct bn_session *s, const char *unit, int number)
{
    char name[64];
    char path[700];
    struct bn_child_end end;
    (void)snprintf(name, sizeof(name), "plot-%d", number);
    (void)snprintf(path, sizeof(path), "%s/%s.dat", s->out, name);
    FILE *f = fopen(path, "we");
    if (!f)
        return false;
    size_t lines = write_data(s, unit, f);
    (void)fclose(f);
    (void)snprintf(path, sizeof(path), "%s/%s.gp", s->out, name);
    f = fopen(path, "we");
    if (!f)
        return false;
    write_script(s, unit, lines, name, f);
    (void)fclose(f);
    (void)snprintf(path, sizeof(path), "%s.gp", name);
    struct bn_child c = {.argv = (const char *[]){"gnuplot", path, NULL},
                         .dir = s->out,
                         .deadline_ns = PLOT_DEADLINE};
    bool good = bn_child_run(&c, &end) && end.code == 0;
    bn_child_free(&end);
    return good;
}

int bn_report_plots(const struct bn_session *s)
{
    int n = 0;
    for (size_t r = 0; r < s->table->n_rows; r++) {
        for (size_t i = 0; i < s->table->rows[r].n_views; i++) {
            if (is_first_of_unit(s, r, i) && !plot_unit(s, s->table->rows[r].views[i].unit, n++))
                return n - 1; /* no gnuplot: the first one fails */
        }
    }
    return n;
}
