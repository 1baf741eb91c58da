/*
 * table.h - what a table of the suite consists of, read from bench/tables/NAME.json
 *
 * The file's keys are described in bench/README.md. A row of the file becomes one row for each combination of its `vary`
 * values; parameters are those of the row, then of the profile, then scaled, then what the user set.
 */
#ifndef LADE_BENCH_TABLE_H
#define LADE_BENCH_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BN_ROWS_MAX       160
#define BN_VIEWS_MAX      16
#define BN_CONTENDERS_MAX 16
#define BN_ROW_ARGS_MAX   16

/* A figure of a run that the report shows as a line of its own. */
struct bn_view {
    const char *label;  /* "" = the row's own */
    const char *metric; /* as bn_metric takes it */
    const char *unit;   /* as bn_units takes it, shown in the table */
    bool lower;         /* lower is better */
};

struct bn_row {
    char label[96]; /* "e2e C=16" */
    char vary[32];  /* value of the first varied parameter, "16"; "" = none */
    const char *scenario;
    json_t *params; /* owned: name -> integer, real or string */
    const json_t *spec;
    struct bn_view views[BN_VIEWS_MAX];
    size_t n_views;
    int cpus;                              /* pinned to so many; 0 = not */
    const char *args[BN_ROW_ARGS_MAX + 1]; /* of the server, NULL-ended */
};

struct bn_table {
    const char *name, *title;
    json_t *spec;
    struct bn_row rows[BN_ROWS_MAX];
    size_t n_rows;
    const char *contenders[BN_CONTENDERS_MAX];
    size_t n_contenders;
    const char *profile; /* the one chosen */
    int repeats, warmup;
    double deadline_s;
    bool tcp;
    char dropped[1024]; /* rows that this machine is too small for; "" = none */
};

/* What the user chose; zero = the table's own in every field. */
struct bn_choice {
    const char *profile;   /* "full", "smoke", "quick"; NULL = the table's default */
    double scale;          /* of the parameters that the table calls scalable; 0 = 1 */
    const char *scenarios; /* comma separated */
    const json_t *set;     /* name -> text: replaces parameters that a row has */
    int n_cpus;            /* of the machine */
};

/* NULL, with a reason in why. bn_table_free. */
struct bn_table *bn_table_load(const char *path, const struct bn_choice *choice, char *why,
                               size_t size);
void bn_table_free(struct bn_table *t);
/* The text of a parameter as a driver gets it; returns out. */
char *bn_param_text(const json_t *v, char *out, size_t size);
/* `name` is one of the comma separated words. */
bool bn_is_listed(const char *list, const char *name);
/* The value of formula `key` of the row ("count": "n"), over params and then `more`. False: none, or why says so. */
bool bn_row_formula(const struct bn_row *row, const json_t *more, const char *key, uint64_t *out,
                    char *why, size_t size);
/* What the original printed for this contender, NAN when nothing. */
double bn_row_published(const struct bn_row *row, const char *metric, const char *contender);

#endif
