/*
 * rb_report.h - what people read; layout and words are those of redis-performance/resque-benchmark
 *
 * Thread safety: the main thread.
 */
#ifndef LADE_RESQUE_BENCH_RB_REPORT_H
#define LADE_RESQUE_BENCH_RB_REPORT_H

#include "resque_bench/rb_server.h"

void rb_report_header(const struct rb_server *s, const char *tag);
/* The lines of a trial as it ends. */
void rb_report_trial(const struct rb_options *o, const struct rb_result *r);
/* The tables at the end. */
void rb_report_tables(const struct rb_options *o, const struct rb_result *r, size_t n);

#endif
