/*
 * plot.c - SVGs by gnuplot: bars by row for each unit that a table's figures have, a colour for each contender, interval as whisker
 *
 * Rows that are one thing at growing sizes ("lines" in the table) are lines over the varied number instead, both axes logarithmic: a
 * plot for each such thing and unit, a colour for each figure, solid for the first contender, dashed for the next.
 */
#include <lade/base.h>

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "bench/report.h"

#define PLOT_DEADLINE (60 * LADE_SECOND)

/* What the varied number is; NULL: the row is a bar. */
static const char *axis_of(const struct bn_row *row)
{
    return *row->vary ? json_string_value(json_object_get(row->spec, "lines")) : NULL;
}

static bool is_first_of_unit(const struct bn_session *s, size_t row, size_t view)
{
    const char *unit = s->table->rows[row].views[view].unit;
    const char *axis = axis_of(&s->table->rows[row]);
    for (size_t r = 0; r <= row; r++) {
        if (axis ? s->table->rows[r].spec != s->table->rows[row].spec
                 : axis_of(&s->table->rows[r]) != NULL)
            continue;
        for (size_t i = 0; i < s->table->rows[r].n_views && (r < row || i < view); i++) {
            if (strcmp(s->table->rows[r].views[i].unit, unit) == 0)
                return false;
        }
    }
    return true;
}

/* Sixteen that can be told apart, since gnuplot has eight. */
static const char palette[] =
    "set linetype 1 lc rgb '#1f77b4'\nset linetype 2 lc rgb '#ff7f0e'\nset linetype 3 lc rgb '#2ca02c'\n"
    "set linetype 4 lc rgb '#d62728'\nset linetype 5 lc rgb '#9467bd'\nset linetype 6 lc rgb '#8c564b'\n"
    "set linetype 7 lc rgb '#e377c2'\nset linetype 8 lc rgb '#7f7f7f'\nset linetype 9 lc rgb '#bcbd22'\n"
    "set linetype 10 lc rgb '#17becf'\nset linetype 11 lc rgb '#aec7e8'\nset linetype 12 lc rgb '#ffbb78'\n"
    "set linetype 13 lc rgb '#98df8a'\nset linetype 14 lc rgb '#ff9896'\nset linetype 15 lc rgb '#c5b0d5'\n"
    "set linetype 16 lc rgb '#393b79'\nset linetype cycle 16\n";

/* Whether a column has a bar of this unit. Sets *rows to the number of rows that have the unit. */
static bool has_bar(const struct bn_session *s, const char *unit, size_t c, size_t *rows)
{
    bool any = false;
    *rows = 0;
    for (size_t r = 0; r < s->table->n_rows; r++) {
        const struct bn_row *row = &s->table->rows[r];
        for (size_t i = 0; i < row->n_views; i++) {
            const struct bn_view *view = &row->views[i];
            struct bn_stats st;
            if (strcmp(view->unit, unit) != 0 || axis_of(row))
                continue;
            ++*rows;
            any = any || bn_session_stats(s, r, c, view->metric, view->lower, &st);
        }
    }
    return any;
}

/* Rows as lines: label, then median, low and high of each column ("?" = missing). */
static void write_data(const struct bn_session *s, const char *unit, FILE *f)
{
    for (size_t r = 0; r < s->table->n_rows; r++) {
        const struct bn_row *row = &s->table->rows[r];
        for (size_t i = 0; i < row->n_views; i++) {
            const struct bn_view *view = &row->views[i];
            if (strcmp(view->unit, unit) != 0 || axis_of(row))
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
        }
    }
}

/* A contender keeps its colour in all plots of a table, and has no place where it has no bar at all. */
static void write_script(const struct bn_session *s, const char *unit, const char *name, FILE *f)
{
    size_t rows = 0;
    size_t bars = 0;
    for (size_t c = 0; c < s->n_contenders; c++)
        bars += has_bar(s, unit, c, &rows);
    (void)fprintf(
        f,
        "set terminal svg size %zu,520 dynamic background rgb 'white' font 'sans,12'\n%s"
        "set output '%s.svg'\nset title \"%s\" noenhanced\nset ylabel '%s'\n"
        "set datafile missing '?'\nset style data histogram\n"
        "set style histogram errorbars gap 2 lw 1\nset style fill solid 1 border lc rgb '#303030'\n"
        "set logscale y\nset format y '%%.0s%%c'\nset grid ytics\nset xtics rotate by 30 right font ',11' "
        "noenhanced\nset key outside top horizontal noenhanced\nplot ",
        LB_MAX(rows * (bars * 14 + 30) + 240, (size_t)640), palette, name, s->table->title,
        strcmp(unit, "us") == 0 ? "microseconds" : unit);
    bool first = true;
    for (size_t c = 0; c < s->n_contenders; c++) {
        if (!has_bar(s, unit, c, &rows))
            continue;
        (void)fprintf(f, "%s'%s.dat' using %zu:%zu:%zu%s lt %zu title \"%s\"", first ? "" : ", ",
                      name, 2 + 3 * c, 3 + 3 * c, 4 + 3 * c, first ? ":xtic(1)" : "", c + 1,
                      bn_session_column(s, c));
        first = false;
    }
    (void)fputc('\n', f);
}

/* The rows that share the first one's spec: the number, then each figure of the unit on each contender. */
static void write_line_data(const struct bn_session *s, size_t first, const char *unit, FILE *f)
{
    const struct bn_row *of = &s->table->rows[first];
    for (size_t r = first; r < s->table->n_rows; r++) {
        const struct bn_row *row = &s->table->rows[r];
        if (row->spec != of->spec)
            continue;
        (void)fputs(row->vary, f);
        for (size_t i = 0; i < row->n_views; i++) {
            for (size_t c = 0; c < s->n_contenders && strcmp(row->views[i].unit, unit) == 0; c++) {
                struct bn_stats st;
                if (bn_session_stats(s, r, c, row->views[i].metric, row->views[i].lower, &st))
                    (void)fprintf(f, " %.9g", st.median);
                else
                    (void)fputs(" ?", f);
            }
        }
        (void)fputc('\n', f);
    }
}

/* "{n} ready" without the number. */
static const char *title_of(const struct bn_row *row)
{
    const char *rest = strstr(row->label, row->vary);
    return rest ? rest + strlen(row->vary) : row->label;
}

static void write_line_script(const struct bn_session *s, size_t first, const char *unit,
                              const char *name, FILE *f)
{
    const struct bn_row *row = &s->table->rows[first];
    size_t column = 2;
    (void)fprintf(
        f,
        "set terminal svg size 900,560 dynamic background rgb 'white' font 'sans,12'\n%s"
        "set output '%s.svg'\nset title \"%s:%s\" noenhanced\nset ylabel '%s'\n"
        "set xlabel '%s' noenhanced\nset datafile missing '?'\nset logscale xy\n"
        "set format x '10^{%%T}'\nset format y '%%.0s%%c'\nset grid\nset key outside right noenhanced\nplot ",
        palette, name, s->table->name, title_of(row),
        strcmp(unit, "us") == 0 ? "microseconds" : unit, axis_of(row));
    for (size_t i = 0, colour = 0; i < row->n_views; i++) {
        if (strcmp(row->views[i].unit, unit) != 0)
            continue;
        colour++;
        for (size_t c = 0; c < s->n_contenders; c++, column++)
            (void)fprintf(f,
                          "%s'%s.dat' using 1:%zu with linespoints lc %zu dt %zu title \"%s, %s\"",
                          column > 2 ? ", " : "", name, column, colour, c + 1, row->views[i].label,
                          bn_session_column(s, c));
    }
    (void)fputc('\n', f);
}

static bool plot_unit(const struct bn_session *s, size_t row, const char *unit, int number)
{
    char name[64];
    char path[700];
    struct bn_child_end end;
    bool lines = axis_of(&s->table->rows[row]) != NULL;
    (void)snprintf(name, sizeof(name), "plot-%d", number);
    (void)snprintf(path, sizeof(path), "%s/%s.dat", s->out, name);
    FILE *f = fopen(path, "we");
    if (!f)
        return false;
    if (lines)
        write_line_data(s, row, unit, f);
    else
        write_data(s, unit, f);
    (void)fclose(f);
    (void)snprintf(path, sizeof(path), "%s/%s.gp", s->out, name);
    f = fopen(path, "we");
    if (!f)
        return false;
    if (lines)
        write_line_script(s, row, unit, name, f);
    else
        write_script(s, unit, name, f);
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
            if (is_first_of_unit(s, r, i) && !plot_unit(s, r, s->table->rows[r].views[i].unit, n++))
                return n - 1; /* no gnuplot: the first one fails */
        }
    }
    return n;
}
