/*
 * report.h - what a session has to say: report.md, summary.csv, plots
 *
 * Thread safety: the main thread.
 */
#ifndef LADE_BENCH_REPORT_H
#define LADE_BENCH_REPORT_H

#include <stdio.h>

#include "bench/session.h"

void bn_report_markdown(const struct bn_session *s, const char *command, FILE *out);
/* One line for each row, contender and figure. */
void bn_report_csv(const struct bn_session *s, FILE *out);
/* The same as JSON lines. */
void bn_report_json(const struct bn_session *s, FILE *out);
/* OUT/NAME.svg by gnuplot, when it is in the PATH; how many. Their names are "NAME.svg" for the sections of report.md. */
int bn_report_plots(const struct bn_session *s);

/* Parts of report.md. */
void bn_report_figures(const struct bn_session *s, FILE *out);
void bn_report_published(const struct bn_session *s, FILE *out);
void bn_report_latency(const struct bn_session *s, FILE *out);
void bn_report_cost(const struct bn_session *s, FILE *out);
void bn_report_targets(const struct bn_session *s, FILE *out);

/* "186K", or "812 ns" for unit "us"; returns out. */
char *bn_report_value(double v, const struct bn_view *view, char *out, size_t size);

#endif
