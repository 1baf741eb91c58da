/* options.h - the command line of lade-bench. Thread safety: the main thread. */
#ifndef LADE_BENCH_OPTIONS_H
#define LADE_BENCH_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define BN_IMPLS_MAX  16
#define BN_TABLES_MAX 16

enum bn_format { BN_MARKDOWN, BN_JSONL, BN_CSV, BN_JSON };

struct bn_options {
    const char *command; /* "run", "list", "build" */
    const char *tables[BN_TABLES_MAX];
    size_t n_tables;
    const char *peers, *scenarios, *profile, *out, *transport; /* NULL = default */
    const char *impl[BN_IMPLS_MAX];
    size_t n_impls;
    double scale; /* 0 = 1 */
    int repeats;  /* 0 = the table's */
    int warmup;   /* -1 = the table's */
    int discard;
    double deadline_s; /* 0 = the table's */
    enum bn_format format;
    bool format_given;
    json_t *set; /* parameters, name -> text */
};

/* 0 = go on; else the exit status + 1 (a help text was printed, or what is wrong with the command line). */
int bn_options_parse(int argc, char **argv, struct bn_options *o);

#endif
