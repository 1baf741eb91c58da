/*
 * job.h - the envelope: what is stored of a job, written at enqueue; only its payload may be replaced later
 *
 *     byte 0   version, LQ_BODY_VERSION
 *     byte 1   '0' + level (the only byte that stores read)
 *     then     one MessagePack array; later fields are left off when all of them have their default:
 *              kind str, payload bin, enqueued_at ms, max_attempts, timeout ms, backoff nil | [type, base ms, cap ms,
 *              jitter], content_type str, headers [name, value, ...], unique nil | [key bin, until], flags,
 *              nil | key bin, result_ttl ms
 *
 * Law of the format: a field is only ever added at the end of the array; a reader ignores fields it does not know.
 * Anything else raises the version, and a reader refuses versions it does not know. docs/format.md and the
 * golden-bytes test in job_test.c hold both sides to it.
 *
 * Thread safety: none needed; functions of their arguments.
 */
#ifndef LADE_QUEUE_JOB_H
#define LADE_QUEUE_JOB_H

#include <lade/lade.h>

#include "base/buf.h"
#include "base/slice.h"

#define LQ_BODY_VERSION 1

#define LQ_MAX_ATTEMPTS_DEFAULT 25
#define LQ_TIMEOUT_DEFAULT_MS   (INT64_C(30) * 60 * 1000)

struct lq_backoff {
    enum lade_backoff_type type;
    int64_t base_ms, cap_ms;
    uint8_t jitter;
};

/* A decoded envelope. Strings are NUL-terminated in the body itself, which the decoder writes to. */
struct lq_job {
    int level;
    char *kind;
    struct lb_slice payload;
    int64_t enqueued_ms;
    int max_attempts;
    int64_t timeout_ms;
    struct lq_backoff backoff;
    const char *content_type;
    struct lb_slice headers; /* n_headers times "name" NUL "value" NUL: lq_job_header_next */
    uint32_t n_headers;
    struct lb_slice unique;
    enum lade_unique_until until;
    bool discard_dead;
    struct lb_slice key;
    int64_t result_ttl_ms; /* 0 = with the job's record */
};

/*
 * Checks a spec against every rule. payload_max is the client's. Failures: EINVAL, ETOOBIG, with the field and the
 * rule in err; `index` is put before them when it is not SIZE_MAX.
 */
LADE_CHECKED int lq_job_check(const lade_job_spec *spec, uint32_t payload_max, size_t index,
                              lade_err *err);

/* Appends the envelope of a checked spec. */
void lq_job_encode(struct lb_buf *out, const lade_job_spec *spec, int64_t now_ms);

/*
 * Decodes in place: body.p[body.n] must be writable. On 0 the strings in *out point into body. On -LADE_EFORMAT body is
 * unchanged, *out is worth nothing, and err says at which byte.
 */
LADE_CHECKED int lq_job_decode(struct lb_mut body, struct lq_job *out, lade_err *err);

/*
 * Appends `body` with another payload; every other byte stays, also what a later writer added. -LADE_EFORMAT when it is no
 * envelope that we can read.
 */
LADE_CHECKED int lq_job_replace_payload(struct lb_buf *out, struct lb_slice body,
                                        struct lb_slice payload, lade_err *err);

/* Walks the headers of a decoded job: *at starts at 0. False at the end. */
bool lq_job_header_next(const struct lq_job *job, size_t *at, lade_header *out);

#endif
