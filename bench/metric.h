/*
 * metric.h - a number out of a result line
 *
 * Either a path ("rate", "latency.p50", "extra.bytes_per_job") or one of
 *     client_cpu_us, server_cpu_us, server_commands_per_job     for each job of the window; of the server's whole run for each
 *                                                                job verified when the line has "server_whole_run"
 */
#ifndef LADE_BENCH_METRIC_H
#define LADE_BENCH_METRIC_H

#include <jansson.h>
#include <stdbool.h>

/* False when the line has no such number. */
bool bn_metric(const json_t *line, const char *name, double *out);

#endif
