/*
 * envelope_fuzz.c - what a store gives back as envelope or history may be anything: decoding must stay inside it
 *
 * The first byte chooses. An envelope that decodes is encoded again from what was read and must read the same; a history
 * that has records must keep them when one more is appended.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mem.h"
#include "queue/history.h"
#include "queue/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy with exactly the one spare byte that the decoder may write. */
static struct lb_mut copy_of(const uint8_t *data, size_t size)
{
    uint8_t *p = lb_malloc(size + 1);
    LB_CHECK(p);
    if (size > 0)
        memcpy(p, data, size);
    return (struct lb_mut){p, size};
}

static bool is_same(const struct lq_job *a, const struct lq_job *b)
{
    return a->level == b->level && strcmp(a->kind, b->kind) == 0 &&
           lb_slice_eq(a->payload, b->payload) && a->enqueued_ms == b->enqueued_ms &&
           a->max_attempts == b->max_attempts && strcmp(a->content_type, b->content_type) == 0 &&
           a->n_headers == b->n_headers && lb_slice_eq(a->headers, b->headers) &&
           lb_slice_eq(a->unique, b->unique);
}

static void encode_again(const struct lq_job *job)
{
    lade_header headers[LADE_HEADERS_MAX];
    size_t n = 0;
    for (size_t at = 0; n < LADE_HEADERS_MAX && lq_job_header_next(job, &at, &headers[n]);)
        n++;
    LB_CHECK(n == job->n_headers);
    lade_job_spec spec = {.kind = job->kind,
                          .payload = {job->payload.p, job->payload.n},
                          .content_type = job->content_type,
                          .headers = headers,
                          .n_headers = n,
                          .priority = LADE_PRIORITY_MAX - job->level,
                          .max_attempts = job->max_attempts,
                          .unique = {.key = {job->unique.p, job->unique.n}, .until = job->until}};
    struct lb_buf b;
    lb_buf_init(&b);
    lq_job_encode(&b, &spec, job->enqueued_ms);
    LB_CHECK(lb_buf_reserve(&b, 1));
    struct lq_job again;
    LB_CHECK(lq_job_decode((struct lb_mut){b.p, b.n}, &again, NULL) == 0);
    LB_CHECK(is_same(job, &again));
    lb_buf_fini(&b);
}

static void try_envelope(const uint8_t *data, size_t size)
{
    struct lb_mut body = copy_of(data, size);
    struct lq_job job;
    if (lq_job_decode(body, &job, NULL) == 0)
        encode_again(&job);
    lb_free(body.p);
}

static size_t count_records(struct lb_slice h)
{
    struct lq_record r;
    size_t n = 0;
    for (size_t at = 0; lq_history_next(h, &at, &r);)
        n++;
    return n;
}

static void try_history(const uint8_t *data, size_t size)
{
    struct lb_mut copy = copy_of(data, size);
    struct lb_slice old = {copy.p, copy.n};
    size_t n = count_records(old);
    struct lq_record more = {.number = 1, .event = LQ_EVENT_RETRY, .worker = lb_slice("w", 1)};
    struct lb_buf b;
    lb_buf_init(&b);
    lq_history_append(&b, old, &more, lq_history_attempts(old), lq_history_crashes(old));
    LB_CHECK(!b.failed);
    LB_CHECK(count_records(lb_buf_slice(&b)) == LB_MIN(n + 1, LQ_HISTORY_KEEP));
    lb_buf_fini(&b);
    lb_free(copy.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] & 1)
        try_history(data + 1, size - 1);
    else
        try_envelope(data + 1, size - 1);
    return 0;
}
