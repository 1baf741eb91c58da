/*
 * ndjson.h - one line of NDJSON as a job
 *
 *     {"kind":"mail","queue":"out","payload":"text" | "payload_base64":"AAH/" | "payload_json":{...},"content_type":"",
 *      "id":"x1","in":"5m","at":"2026-01-31T12:00:00Z","priority":2,"max_attempts":5,"timeout":"30s",
 *      "unique":{"key":"k","ttl":"1h","until":"done"},"headers":{"name":"value"},
 *      "backoff":{"type":"fixed","base":"5s","cap":"1h","jitter":10}}
 *
 * "type" and "name" are accepted for "kind". Anything else is refused, as are repeated members, NUL in a string
 * (payload_base64 carries any bytes) and nesting deeper than CLI_NDJSON_DEPTH. Rules of jobs themselves (characters of
 * names, limits) are left to the library.
 * Pure: bytes in, a job out. Thread safety: all.
 */
#ifndef LADE_CLI_NDJSON_H
#define LADE_CLI_NDJSON_H

#include <lade/lade.h>

#include <jansson.h>

#include "base/buf.h"

#define CLI_NDJSON_DEPTH 64

struct cli_ndjson {
    lade_job_spec spec; /* points into the members below; valid until fini */
    json_t *root;
    struct lb_buf payload; /* decoded base 64, or the text of payload_json */
    lade_header *headers;
};

/* The longest line that can carry a payload of so many bytes: each may be written as \u0000, and the rest beside it. */
static inline size_t cli_ndjson_line_max(size_t payload_max)
{
    return 6 * payload_max + (1U << 20);
}

/*
 * Reads a line without its newline. What the line does not say is taken from `defaults` (borrowed).
 * 0; -LADE_EINVAL with err saying what and where; -LADE_ENOMEM. On 0 the caller owes cli_ndjson_fini.
 */
LADE_CHECKED int cli_ndjson_parse(struct cli_ndjson *out, const char *line, size_t n,
                                  const lade_job_spec *defaults, lade_err *err);
void cli_ndjson_fini(struct cli_ndjson *j);

/*
 * The same from an object that is read already, which is borrowed as long as the job. *out owes cli_ndjson_fini on 0 only.
 */
LADE_CHECKED int cli_ndjson_read(struct cli_ndjson *out, json_t *object,
                                 const lade_job_spec *defaults, lade_err *err);
/* A JSON text, nested at most `depth` deep. 0 with *out the caller's; -LADE_EINVAL, -LADE_ENOMEM. */
LADE_CHECKED int cli_json_load(json_t **out, const char *text, size_t n, size_t depth,
                               lade_err *err);

#endif
