/*
 * words.h - how resque-bench reads and writes numbers and names
 *
 * Thread safety: all functions; no state.
 */
#ifndef LADE_RESQUE_BENCH_WORDS_H
#define LADE_RESQUE_BENCH_WORDS_H

#include "resque_bench/rb.h"

#define RB_WORD 32

/* 620 "620 µs", 3100 "3.1 ms", 50800000 "50.80 s". Returns out. */
char *rb_us(char out[RB_WORD], double us);
/* 1234567 -> "1,234,567". */
char *rb_count(char out[RB_WORD], uint64_t n);
/* Whole jobs a second with commas; "n/a" when negative or not finite. */
char *rb_rate(char out[RB_WORD], double rate);
/* One digit after the point; "n/a". */
char *rb_qps(char out[RB_WORD], double qps);

/* max, mean, or p and 1 to 15 digits: p50 is 50 %, p999 99.9 %, p5 5 %, p100 max. */
LADE_CHECKED int rb_percentile_parse(struct rb_percentile *out, const char *text, lade_err *err);
/* What a histogram of ns has there, in us. */
int64_t rb_percentile_of(const struct lb_hdr *h, const struct rb_percentile *p);

/* Keeps A-Z a-z 0-9 . _ -, makes others '-', empty "unknown". */
void rb_tag_clean(char *out, size_t size, const char *tag);
#define RB_OUTPUT_MAX 4000

/* 0; -LADE_EINVAL: it goes up by "..", or is too long. */
LADE_CHECKED int rb_output_check(const char *path, lade_err *err);
/* Makes the folders of a path; an error when nothing can be written there. */
LADE_CHECKED int rb_output_prepare(const char *path, lade_err *err);
/* A device or a pipe, which nothing may be renamed to. */
bool rb_output_is_special(const char *path);

/* The name of queue i: base alone when there is one, else base_i. */
void rb_queue_name(char *out, size_t size, const struct rb_options *o, size_t i);

/* polls / seconds and by worker; 0 where that is no number. */
void rb_idle_rate(uint64_t polls, double seconds, size_t workers, double *qps, double *per_worker);

#endif
