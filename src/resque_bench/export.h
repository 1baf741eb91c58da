/* export.h - the JSON of a run; docs/resque-bench.schema.json says what it holds. Thread safety: the main thread. */
#ifndef LADE_RESQUE_BENCH_EXPORT_H
#define LADE_RESQUE_BENCH_EXPORT_H

#include "resque_bench/rb_server.h"

/* Writes to the file `path` (whole or not at all), or to stdout for "-". */
LADE_CHECKED int rb_export(const struct rb_server *s, const char *tag, const struct rb_result *r,
                           size_t n, const char *path, lade_err *err);

#endif
