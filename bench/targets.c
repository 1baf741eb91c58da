/*
 * targets.c - what lade set out to reach, and whether these runs show it
 *
 * A row's "targets" are ratios against the best of named contenders in the same runs, or bounds:
 *
 *     {"of": ["lade-redis"], "over": ["asynq", "chronos-go"], "ratio": 5}              metric: the row's first view
 *     {"of": ["lade-redis"], "metric": "extra.commands_per_s", "at_most": 0.2}
 *
 * For a figure where lower is better the ratio is the other's over ours. A target whose peers did not run is not judged.
 */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "bench/report.h"

struct judged {
    const struct bn_session *s;
    size_t row;
    const json_t *target;
    struct bn_view view;
    FILE *out;
};

static size_t find_column(const struct bn_session *s, const char *name)
{
    size_t c = 0;
    while (c < s->n_contenders && strcmp(bn_session_column(s, c), name) != 0)
        c++;
    return c;
}

static bool read_stats(const struct judged *j, const char *name, struct bn_stats *out)
{
    size_t c = find_column(j->s, name);
    return c < j->s->n_contenders &&
           bn_session_stats(j->s, j->row, c, j->view.metric, j->view.lower, out);
}

static struct bn_view view_of(const struct bn_row *row, const json_t *target)
{
    const char *metric = json_string_value(json_object_get(target, "metric"));
    for (size_t i = 0; i < row->n_views; i++) {
        if (!metric || strcmp(metric, row->views[i].metric) == 0)
            return row->views[i];
    }
    bool latency = strncmp(metric, "latency", 7) == 0;
    return (struct bn_view){"", metric, latency ? "us" : "", latency};
}

/* The best of the contenders that ran; its name, NULL when none did. */
static const char *find_best_other(const struct judged *j, struct bn_stats *best)
{
    const char *found = NULL;
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(j->target, "over"), i, name)
    {
        struct bn_stats st;
        if (!read_stats(j, json_string_value(name), &st))
            continue;
        if (!found || (j->view.lower ? st.median < best->median : st.median > best->median)) {
            *best = st;
            found = json_string_value(name);
        }
    }
    return found;
}

static void write_names(const json_t *names, FILE *out)
{
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name)
    {
        (void)fprintf(out, "%s%s", i ? ", " : "", json_string_value(name));
    }
}

static void write_target(const struct judged *j)
{
    const json_t *most = json_object_get(j->target, "at_most");
    const json_t *bound = most ? most : json_object_get(j->target, "at_least");
    char text[32];
    if (bound) {
        (void)fprintf(j->out, " %s %s |", most ? "at most" : "at least",
                      bn_report_value(json_number_value(bound), &j->view, text, sizeof(text)));
        return;
    }
    (void)fprintf(j->out, " %.3gx the best of ",
                  json_number_value(json_object_get(j->target, "ratio")));
    write_names(json_object_get(j->target, "over"), j->out);
    (void)fputs(" |", j->out);
}

static void judge_bound(const struct judged *j, const struct bn_stats *own)
{
    const json_t *most = json_object_get(j->target, "at_most");
    double bound = json_number_value(most ? most : json_object_get(j->target, "at_least"));
    bool met = most ? own->median <= bound : own->median >= bound;
    char text[32];
    (void)fprintf(j->out, " %s | %s |\n",
                  bn_report_value(own->median, &j->view, text, sizeof(text)),
                  met ? "met" : "**not met**");
}

static void judge_ratio(const struct judged *j, const struct bn_stats *own)
{
    double wanted = json_number_value(json_object_get(j->target, "ratio"));
    struct bn_stats other = {0};
    const char *name = find_best_other(j, &other);
    if (!name || !(other.median > 0) || !(own->median > 0)) {
        (void)fputs(" - | not judged: none of them ran |\n", j->out);
        return;
    }
    double ratio = j->view.lower ? other.median / own->median : own->median / other.median;
    bool apart = bn_stats_apart(own, &other);
    (void)fprintf(j->out, " %.2f over %s | %s%s |\n", ratio, name,
                  ratio >= wanted ? "met" : "**not met**",
                  apart || ratio < wanted ? "" : ", but the intervals overlap");
}

static void judge_row(const struct bn_session *s, size_t r, const json_t *target, FILE *out)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(target, "of"), i, name)
    {
        struct judged j = {.s = s, .row = r, .target = target, .out = out};
        struct bn_stats own;
        j.view = view_of(&s->table->rows[r], target);
        (void)fprintf(out, "| %s%s%s | %s |", s->table->rows[r].label,
                      json_object_get(target, "metric") ? ", " : "",
                      json_object_get(target, "metric") ? j.view.metric : "",
                      json_string_value(name));
        write_target(&j);
        if (!read_stats(&j, json_string_value(name), &own))
            (void)fputs(" - | not judged: it did not run |\n", out);
        else if (json_object_get(target, "ratio"))
            judge_ratio(&j, &own);
        else
            judge_bound(&j, &own);
    }
}

void bn_report_targets(const struct bn_session *s, FILE *out)
{
    bool any = false;
    for (size_t r = 0; r < s->table->n_rows; r++) {
        size_t i;
        json_t *target;
        json_array_foreach(json_object_get(s->table->rows[r].spec, "targets"), i, target)
        {
            if (!any)
                (void)fputs("## Targets\n\n| row | contender | target | here | |\n"
                            "|---|---|---|---|---|\n",
                            out);
            any = true;
            judge_row(s, r, target, out);
        }
    }
    if (any)
        (void)fputc('\n', out);
}
