/*
 * driver.h - the programs under bench/drivers: found, asked what they can do, built
 *
 * bench/drivers/README.md is the contract. Thread safety: the main thread.
 */
#ifndef LADE_BENCH_DRIVER_H
#define LADE_BENCH_DRIVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/child.h"
#include "bench/server.h"
#include "bench/table.h"

#define BN_DRIVERS_MAX     32
#define BN_ALL_CONTENDERS  64
#define BN_DRIVER_ARGV_MAX 128

struct bn_driver {
    const char *name;
    char dir[512], out[512]; /* ${dir}, ${out} */
    json_t *spec;
};

struct bn_contender {
    const char *name;
    struct bn_driver *driver;
    const json_t *spec, *set; /* set may be NULL */
    const char *server;       /* "redis", "sqlite", "none" */
    const char *min_server;   /* NULL = any */
    const char *notes;        /* "" = none */
    const char *only; /* comma separated scenarios that it does of its driver\'s; NULL = all */
    bool is_floor;    /* a limit to compare with, not a contender for the best */
    const char *args[BN_ROW_ARGS_MAX + 1]; /* of the server instead of the row's, NULL-ended */
    const char *impl;                      /* another binary to run, NULL = the driver's */
    bool probed;
    json_t *list;     /* what --list said, NULL until probed or when it cannot run */
    char reason[320]; /* why it cannot run; "" = it can */
};

struct bn_drivers {
    struct bn_driver driver[BN_DRIVERS_MAX];
    size_t n;
    struct bn_contender contender[BN_ALL_CONTENDERS];
    size_t n_contenders;
    char bin[512], peers[512];
};

/* A command line; strings are owned. bn_argv_free. */
struct bn_argv {
    char *v[BN_DRIVER_ARGV_MAX + 1];
    size_t n;
};

/* Reads every DIR/NAME/driver.json. False on one that cannot be read, with the reason in why. */
bool bn_drivers_load(struct bn_drivers *ds, const char *dir, const char *peers, char *why,
                     size_t size);
void bn_drivers_free(struct bn_drivers *ds);
struct bn_contender *bn_drivers_find(struct bn_drivers *ds, const char *name);
/* "NAME=PATH": another binary for a contender. */
bool bn_drivers_replace(struct bn_drivers *ds, const char *impl);

/* Runs --list once; sets list or reason. */
void bn_contender_probe(struct bn_drivers *ds, struct bn_contender *c);
const char *bn_contender_version(const struct bn_contender *c);
/* "" when it can do this scenario on this server (program may be NULL), else why not. */
char *bn_contender_why_not(const struct bn_contender *c, const char *scenario,
                           const struct bn_program *program, char *out, size_t size);

/* False when it is too long. */
bool bn_argv_make(const struct bn_drivers *ds, const struct bn_contender *c,
                  const struct bn_row *row, const char *url, struct bn_argv *out);
void bn_argv_free(struct bn_argv *a);

/* Runs the driver's build command (network allowed); prints how it went. False when it failed. */
bool bn_driver_build(struct bn_driver *d);

#endif
