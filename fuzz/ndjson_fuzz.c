/* Fuzzes the NDJSON of `lade enqueue`: any bytes are a job or a refusal with a text. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/ndjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t read_all(lade_bytes bytes)
{
    const uint8_t *p = bytes.data;
    size_t sum = 0;
    for (size_t i = 0; i < bytes.size; i++)
        sum += p[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile size_t sink;

    struct cli_ndjson j;
    lade_err err = {0};
    int rc = cli_ndjson_parse(&j, (const char *)data, size, &(lade_job_spec){0}, &err);
    LB_CHECK(rc <= 0 && (rc == 0) == (err.text[0] == '\0'));
    if (rc < 0)
        return 0;
    LB_CHECK(j.spec.kind && j.spec.n_headers <= LADE_HEADERS_MAX);
    LB_CHECK(j.spec.in == 0 || j.spec.at == 0);
    LB_CHECK(j.spec.in >= 0 && j.spec.at >= 0 && j.spec.timeout >= 0 && j.spec.unique.ttl >= 0);
    sink = read_all(j.spec.payload) + read_all(j.spec.unique.key) + strlen(j.spec.kind);
    for (size_t i = 0; i < j.spec.n_headers; i++)
        sink += strlen(j.spec.headers[i].name) + strlen(j.spec.headers[i].value);
    (void)sink; /* read, so that no compiler leaves the reads above out */
    cli_ndjson_fini(&j);
    return 0;
}
