/*
 * flow_file.h - a workflow from JSON
 *
 *     STEP  = {"kind":...}                                a job, with the members of ndjson.h but id and unique
 *           | {"chain":[STEP, ...]}
 *           | {"group":[STEP, ...], "callback":{"kind":...}}
 *           | {"graph":{"NAME":STEP, ...}}                each with "after":["NAME", ...] where it waits for others
 *     each with "on_dead":"fail" | "continue" | "wait"
 *     FILE  = STEP with "id", "name", "on_failure":{"kind":...}, "cancel_siblings":true beside chain, group or graph
 *
 * What is not known is refused, with the place. Rules of flows themselves are left to the library.
 * Pure: bytes in, a flow out. Thread safety: all.
 */
#ifndef LADE_CLI_FLOW_FILE_H
#define LADE_CLI_FLOW_FILE_H

#include <lade/lade.h>

#include <jansson.h>

#include "base/arena.h"

struct cli_flow_job;

struct cli_flow {
    lade_flow_spec spec; /* points into the members below; valid until fini */
    json_t *root;
    struct lb_arena arena;
    struct cli_flow_job *jobs;
};

/* 0; -LADE_EINVAL with err saying what and where; -LADE_ENOMEM. On 0 the caller owes cli_flow_fini. */
LADE_CHECKED int cli_flow_parse(struct cli_flow *out, const char *text, size_t n,
                                const lade_job_spec *defaults, lade_err *err);
void cli_flow_fini(struct cli_flow *f);
/*
 * The library names a step by its place in the spec, root.steps[1].job; in *err that becomes what the file calls it:
 * chain[1].callback, graph.NAME. A place that is not of this flow is left as it is.
 */
void cli_flow_name_place(const struct cli_flow *f, lade_err *err);

#endif
