#include "bench/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bench/machine.h"

#define LOAD_PER_CPU_MAX 0.5

static const char *text_of(const json_t *spec, const char *key)
{
    const char *text = json_string_value(json_object_get(spec, key));
    return text ? text : "";
}

static void write_warnings(const struct bn_session *s, FILE *out)
{
    double limit = LOAD_PER_CPU_MAX * bn_machine_n_cpus();
    if (s->partial)
        (void)fputs(
            "> **Partial**: stopped by the user before the end. Cells say how many of their "
            "runs there are.\n\n",
            out);
    if (s->load_before > limit)
        (void)fprintf(
            out,
            "> **Busy machine**: load average %.2f at the start, above %.1f for each CPU. "
            "Rates are lower and intervals wider than on a quiet one.\n\n",
            s->load_before, LOAD_PER_CPU_MAX);
}

static void write_servers(const struct bn_session *s, FILE *out)
{
    const struct bn_program *p = s->server.program;
    bool newer = p && s->n_programs > 0 && p != &s->program[0];
    if (p) /* with no folder: reports are published, and where a machine keeps its programs is nobody's business */
        (void)fprintf(out, "| server | %s %s, %s, no persistence but where a row says so%s |\n",
                      p->name, p->version, s->server.tcp ? "loopback TCP" : "Unix socket",
                      newer ? "; a contender needs this version, so all run on it" : "");
    for (size_t c = 0; c < s->n_contenders; c++) {
        if (s->contender[c] && s->contender[c]->list)
            (void)fprintf(out, "| %s | %s, version %s |\n", bn_session_column(s, c),
                          text_of(s->contender[c]->driver->spec, "language"),
                          bn_contender_version(s->contender[c]));
    }
}

static void write_facts(const struct bn_session *s, const char *command, FILE *out)
{
    const char *key;
    json_t *v;
    char text[600];
    (void)fputs("## Machine\n\n| | |\n|---|---|\n", out);
    json_object_foreach(s->machine, key, v)
    {
        if (*bn_param_text(v, text, sizeof(text)))
            (void)fprintf(out, "| %s | %s |\n", key, text);
    }
    (void)fprintf(out, "| load average | %.2f before, %.2f after |\n", s->load_before,
                  s->load_after);
    write_servers(s, out);
    (void)fprintf(out, "| command | `%s` |\n| took | %.0f s |\n\n", command, s->elapsed_s);
}

static void write_reading(const struct bn_session *s, FILE *out)
{
    double coverage = 0;
    int kept = s->repeats - (s->discard < s->repeats ? s->discard : s->repeats - 1);
    size_t j = bn_stats_rank((size_t)kept, &coverage);
    if (kept == 1)
        (void)fprintf(out,
                      "Each cell is one run (%d warm-up thrown away): nothing is known about "
                      "how runs vary",
                      s->warmup);
    else
        (void)fprintf(out,
                      "Each cell is the median of %d runs (%d warm-up thrown away%s) with its "
                      "confidence interval by order statistics: [x(%zu), x(%zu)], which holds the "
                      "true median with %.1f %%",
                      s->repeats, s->warmup, s->discard ? ", slowest discarded" : "", j,
                      (size_t)kept + 1 - j, coverage * 100);
    if (kept > 1 && kept < 7)
        (void)fputs(" (98 % needs 7 runs: with fewer it is the smallest and largest run)", out);
    (void)fputs(
        ".\nA **bold** cell is apart from the next best: the intervals of at least three runs each "
        "do not overlap. ⚠: runs "
        "vary by more than 5 % (standard deviation / mean). (n/N): n of N runs were good.\n"
        "Contenders ran interleaved, repeat by repeat, in rotated order; every run's work was "
        "checked by count and checksum. `raw.jsonl` has each run in the order it happened.\n\n",
        out);
}

static void write_notes(const struct bn_session *s, FILE *out)
{
    size_t i;
    json_t *note;
    (void)fputs("## What differs\n\n", out);
    for (size_t c = 0; c < s->n_contenders; c++) {
        if (s->contender[c] && s->contender[c]->notes[0])
            (void)fprintf(out, "- %s: %s\n", bn_session_column(s, c), s->contender[c]->notes);
    }
    json_array_foreach(json_object_get(s->table->spec, "notes"), i, note)
    {
        (void)fprintf(out, "- %s\n", json_string_value(note));
    }
    for (size_t r = 0; r < s->table->n_rows; r++) {
        const char *text = text_of(s->table->rows[r].spec, "note");
        bool said = r > 0 && s->table->rows[r].spec == s->table->rows[r - 1].spec;
        if (*text && !said)
            (void)fprintf(out, "- %s: %s\n", s->table->rows[r].label, text);
    }
    if (s->table->dropped[0])
        (void)fprintf(out, "- Left out, since this process may use %d CPUs only: %s\n",
                      bn_machine_n_cpus(), s->table->dropped);
    (void)fputc('\n', out);
}

static void write_failures(const struct bn_session *s, FILE *out)
{
    bool any = false;
    for (size_t r = 0; r < s->table->n_rows; r++) {
        for (size_t c = 0; c < s->n_contenders; c++) {
            const struct bn_cell *cell = bn_session_cell(s, r, c);
            if (!cell->last_error[0])
                continue;
            if (!any)
                (void)fputs("## Failed runs\n\n", out);
            any = true;
            (void)fprintf(out, "- %s on %s: %s\n", s->table->rows[r].label, bn_session_column(s, c),
                          cell->last_error);
        }
    }
    if (any)
        (void)fputc('\n', out);
}

static void write_params(const struct bn_session *s, FILE *out)
{
    (void)fputs("## Parameters\n\n", out);
    for (size_t r = 0; r < s->table->n_rows; r++) {
        const char *key;
        json_t *v;
        char text[200];
        (void)fprintf(out, "- %s: `%s`", s->table->rows[r].label, s->table->rows[r].scenario);
        json_object_foreach(s->table->rows[r].params, key, v)
        {
            (void)fprintf(out, " %s=%s", key, bn_param_text(v, text, sizeof(text)));
        }
        for (const char *const *a = s->table->rows[r].args; *a; a++)
            (void)fprintf(out, "%s%s", a == s->table->rows[r].args ? "; server " : " ",
                          **a ? *a : "''");
        (void)fputc('\n', out);
    }
    (void)fputc('\n', out);
}

void bn_report_markdown(const struct bn_session *s, const char *command, FILE *out)
{
    (void)fprintf(out, "# %s\n\n", s->table->title);
    write_warnings(s, out);
    (void)fprintf(out, "Table `%s`, profile `%s`", s->table->name, s->profile);
    if (s->scale > 0 && fabs(s->scale - 1) > 1e-9)
        (void)fprintf(out, ", scale %g", s->scale);
    (void)fprintf(out, ". Source of the scenarios: %s\n\n", text_of(s->table->spec, "source"));
    bn_report_figures(s, out);
    write_reading(s, out);
    bn_report_targets(s, out);
    bn_report_published(s, out);
    bn_report_latency(s, out);
    bn_report_cost(s, out);
    write_failures(s, out);
    write_notes(s, out);
    write_facts(s, command, out);
    write_params(s, out);
}
