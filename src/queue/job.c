#include "queue/job.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/names.h"
#include "queue/pack.h"
#include "queue/store.h"
#include "queue/unique.h"

#define FLAG_DISCARD_DEAD 1 /* flags of the envelope; unknown ones are a later writer's */

#define CAP_DEFAULT_MS (INT64_C(24) * 60 * 60 * 1000)

/* Where in a batch a bad spec stands: "job 17: " or nothing. */
struct place {
    char text[32];
};

static struct place place_of(size_t index)
{
    struct place p = {""};
    if (index != SIZE_MAX)
        (void)snprintf(p.text, sizeof(p.text), "job %zu: ", index);
    return p;
}

#define REFUSE(code, ...) lb_fail(err, (code), "enqueue", __VA_ARGS__)

static int check_names(const lade_job_spec *s, const char *at, lade_err *err)
{
    if (!s->kind || !*s->kind)
        return REFUSE(LADE_EINVAL, "%skind is missing; name the handler that shall run the job",
                      at);
    if (!lq_name_is_valid(s->kind))
        return REFUSE(LADE_EINVAL,
                      "%skind '%.60s' must be 1 to %d characters of A-Z a-z 0-9 . _ : / -", at,
                      s->kind, LADE_NAME_MAX);
    if (s->queue && !lq_name_is_valid(s->queue))
        return REFUSE(LADE_EINVAL,
                      "%squeue '%.60s' must be 1 to %d characters of A-Z a-z 0-9 . _ : / -", at,
                      s->queue, LADE_NAME_MAX);
    if (s->id && !lq_id_is_valid(s->id))
        return REFUSE(LADE_EINVAL, "%sid '%.70s' must be 1 to %d characters of A-Z a-z 0-9 . _ : -",
                      at, s->id, LADE_ID_MAX);
    if (s->content_type && strlen(s->content_type) > LADE_NAME_MAX)
        return REFUSE(LADE_ETOOBIG, "%scontent_type is longer than %d bytes", at, LADE_NAME_MAX);
    return 0;
}

static int check_headers(const lade_job_spec *s, const char *at, lade_err *err)
{
    if (s->n_headers > LADE_HEADERS_MAX)
        return REFUSE(LADE_ETOOBIG, "%s%zu headers; at most %d are kept", at, s->n_headers,
                      LADE_HEADERS_MAX);
    if (s->n_headers > 0 && !s->headers)
        return REFUSE(LADE_EINVAL, "%sheaders is NULL, but n_headers is %zu", at, s->n_headers);
    size_t bytes = 0;
    for (size_t i = 0; i < s->n_headers; i++) {
        const lade_header *h = &s->headers[i];
        if (!h->name || !*h->name || !h->value)
            return REFUSE(LADE_EINVAL, "%sheader %zu '%.60s' has no %s", at, i,
                          h->name ? h->name : "", h->name && *h->name ? "value" : "name");
        for (const char *c = h->name; *c; c++) {
            if (*c < 0x21 || *c > 0x7e)
                return REFUSE(
                    LADE_EINVAL,
                    "%sheader %zu '%.60s': its name must be printable ASCII without spaces", at, i,
                    h->name);
        }
        if (strlen(h->name) > LADE_NAME_MAX)
            return REFUSE(LADE_ETOOBIG, "%sheader %zu '%.60s...': its name is longer than %d bytes",
                          at, i, h->name, LADE_NAME_MAX);
        bytes += strlen(h->name) + strlen(h->value);
    }
    if (bytes > LADE_HEADERS_BYTES)
        return REFUSE(LADE_ETOOBIG, "%sheaders have %zu bytes; the limit is %u", at, bytes,
                      LADE_HEADERS_BYTES);
    return 0;
}

#define YEAR_2000 (INT64_C(946684800) * LADE_SECOND)
#define DURATION_MAX \
    (36525 * LADE_DAY) /* now plus this is still a time that nanoseconds can hold */

/* Durations that would vanish in milliseconds are refused, not rounded (C-073). */
int lq_duration_check(int64_t ns, const char *field, const char *at, lade_err *err)
{
    if (ns < 0)
        return REFUSE(LADE_EINVAL, "%s%s is negative", at, field);
    if (ns > 0 && ns < LADE_MILLISECOND)
        return REFUSE(LADE_EINVAL,
                      "%s%s is %lld ns, below one millisecond, the resolution of the stores; "
                      "durations are nanoseconds: 5 * LADE_SECOND",
                      at, field, (long long)ns);
    if (ns > DURATION_MAX)
        return REFUSE(LADE_EINVAL, "%s%s is over 100 years", at, field);
    return 0;
}

static int check_backoff(const lade_backoff *b, const char *at, lade_err *err)
{
    int rc = lq_duration_check(b->base, "backoff.base", at, err);
    if (rc == 0)
        rc = lq_duration_check(b->cap, "backoff.cap", at, err);
    if (rc < 0)
        return rc;
    if ((unsigned)b->type > LADE_BACKOFF_POLYNOMIAL)
        return REFUSE(LADE_EINVAL, "%sbackoff.type %d is unknown", at, (int)b->type);
    if (b->jitter > 100)
        return REFUSE(LADE_EINVAL, "%sbackoff.jitter %d is over 100 percent", at, b->jitter);
    if (b->type != LADE_BACKOFF_DEFAULT && b->base == 0)
        return REFUSE(LADE_EINVAL, "%sbackoff.base is missing; it is at least 1 ms", at);
    return 0;
}

static int check_times(const lade_job_spec *s, const char *at, lade_err *err)
{
    int rc = lq_duration_check(s->in, "in", at, err);
    if (rc == 0)
        rc = lq_duration_check(s->timeout, "timeout", at, err);
    if (rc == 0)
        rc = lq_duration_check(s->result_ttl, "result_ttl", at, err);
    if (rc == 0)
        rc = check_backoff(&s->backoff, at, err);
    if (rc < 0)
        return rc;
    if (s->at != 0 && s->at < YEAR_2000)
        return REFUSE(LADE_EINVAL,
                      "%sat is %lld, before the year 2000; times are nanoseconds since 1970: "
                      "(int64_t)time(NULL) * LADE_SECOND",
                      at, (long long)s->at);
    if (s->at > 0 && s->in > 0)
        return REFUSE(LADE_EINVAL, "%sat and in are both set; give one", at);
    return 0;
}

int lq_job_check(const lade_job_spec *s, uint32_t payload_max, size_t index, lade_err *err)
{
    struct place p = place_of(index);
    const char *at = p.text;
    int rc = check_names(s, at, err);
    if (rc == 0)
        rc = check_headers(s, at, err);
    if (rc == 0)
        rc = check_times(s, at, err);
    if (rc < 0)
        return rc;
    if (s->payload.size > payload_max)
        return REFUSE(LADE_ETOOBIG,
                      "%spayload has %zu bytes; the limit is %u (lade_options.payload_max)", at,
                      s->payload.size, payload_max);
    if (s->payload.size > 0 && !s->payload.data)
        return REFUSE(LADE_EINVAL, "%spayload is NULL with a size", at);
    if (s->priority < LADE_PRIORITY_MIN || s->priority > LADE_PRIORITY_MAX)
        return REFUSE(LADE_EINVAL, "%spriority %d is not within %d to %d", at, s->priority,
                      LADE_PRIORITY_MIN, LADE_PRIORITY_MAX);
    if (s->max_attempts < 0 || s->max_attempts > 1000)
        return REFUSE(LADE_EINVAL, "%smax_attempts %d is not within 1 to 1000", at,
                      s->max_attempts);
    if (s->key.size > LADE_KEY_MAX)
        return REFUSE(LADE_ETOOBIG, "%skey has %zu bytes; the limit is %d", at, s->key.size,
                      LADE_KEY_MAX);
    if (s->key.size > 0 && !s->key.data)
        return REFUSE(LADE_EINVAL, "%skey is NULL with a size", at);
    if (s->key.size > 0 && lq_unique_may_replace(&s->unique))
        return REFUSE(LADE_EINVAL,
                      "%skey is set; a job that may replace another (unique: on_conflict REPLACE, "
                      "debounce, trailing) has none",
                      at);
    return lq_unique_check(&s->unique, s->at > 0 || s->in > 0, at, err);
}

static bool has_backoff(const lade_job_spec *s)
{
    return s->backoff.type != LADE_BACKOFF_DEFAULT;
}

/* How many fields the array needs: up to the last one that differs from its default. */
static uint32_t n_fields(const lade_job_spec *s)
{
    if (s->result_ttl > 0)
        return 12;
    if (s->key.size > 0)
        return 11;
    if (s->discard_dead)
        return 10;
    if (s->unique.key.size > 0)
        return 9;
    if (s->n_headers > 0)
        return 8;
    if (s->content_type && *s->content_type)
        return 7;
    if (has_backoff(s))
        return 6;
    if (s->timeout > 0)
        return 5;
    if (s->max_attempts > 0)
        return 4;
    return 3;
}

static void pack_backoff(struct lb_buf *out, const lade_backoff *b)
{
    if (b->type == LADE_BACKOFF_DEFAULT) {
        lq_pack_nil(out);
        return;
    }
    lq_pack_array(out, 4);
    lq_pack_uint(out, (uint64_t)b->type);
    lq_pack_uint(out, (uint64_t)lb_ms_up(b->base));
    lq_pack_uint(out, b->cap > 0 ? (uint64_t)lb_ms_up(b->cap) : (uint64_t)CAP_DEFAULT_MS);
    lq_pack_uint(out, b->jitter);
}

static void pack_headers(struct lb_buf *out, const lade_job_spec *s)
{
    lq_pack_array(out, (uint32_t)(2 * s->n_headers));
    for (size_t i = 0; i < s->n_headers; i++) {
        lq_pack_str(out, lb_slice_str(s->headers[i].name));
        lq_pack_str(out, lb_slice_str(s->headers[i].value));
    }
}

static void pack_unique(struct lb_buf *out, const lade_unique *unique)
{
    if (unique->key.size == 0) {
        lq_pack_nil(out);
        return;
    }
    lq_pack_array(out, 2);
    lq_pack_bin(out, lb_slice(unique->key.data, unique->key.size));
    lq_pack_uint(out, (uint64_t)lq_unique_until(unique));
}

void lq_job_encode(struct lb_buf *out, const lade_job_spec *s, int64_t now_ms)
{
    uint32_t n = n_fields(s);
    lb_buf_add_byte(out, LQ_BODY_VERSION);
    lb_buf_add_byte(out, (uint8_t)('0' + LADE_PRIORITY_MAX - s->priority));
    lq_pack_array(out, n);
    lq_pack_str(out, lb_slice_str(s->kind));
    lq_pack_bin(out, lb_slice(s->payload.data, s->payload.size));
    lq_pack_uint(out, (uint64_t)now_ms);
    if (n > 3)
        lq_pack_uint(out,
                     s->max_attempts > 0 ? (uint64_t)s->max_attempts : LQ_MAX_ATTEMPTS_DEFAULT);
    if (n > 4)
        lq_pack_uint(out, s->timeout > 0 ? (uint64_t)lb_ms_up(s->timeout)
                                         : (uint64_t)LQ_TIMEOUT_DEFAULT_MS);
    if (n > 5)
        pack_backoff(out, &s->backoff);
    if (n > 6)
        lq_pack_str(out, lb_slice_str(s->content_type ? s->content_type : ""));
    if (n > 7)
        pack_headers(out, s);
    if (n > 8)
        pack_unique(out, &s->unique);
    if (n > 9)
        lq_pack_uint(out, s->discard_dead ? FLAG_DISCARD_DEAD : 0);
    if (n > 10 && s->key.size > 0)
        lq_pack_bin(out, lb_slice(s->key.data, s->key.size));
    else if (n > 10)
        lq_pack_nil(out);
    if (n > 11)
        lq_pack_uint(out, (uint64_t)lb_ms_up(s->result_ttl));
}

/* A number that must fit; a larger one is damage. */
static int64_t unpack_number(struct lq_unpack *u, uint64_t max)
{
    uint64_t v = lq_unpack_uint(u);
    if (v > max)
        u->bad = true;
    return u->bad ? 0 : (int64_t)v;
}

static void unpack_backoff(struct lq_unpack *u, struct lq_backoff *b)
{
    if (lq_unpack_nil(u))
        return;
    if (lq_unpack_array(u) != 4)
        u->bad = true;
    b->type = (enum lade_backoff_type)unpack_number(u, LADE_BACKOFF_POLYNOMIAL);
    b->base_ms = unpack_number(u, INT64_MAX / LADE_MILLISECOND);
    b->cap_ms = unpack_number(u, INT64_MAX / LADE_MILLISECOND);
    b->jitter = (uint8_t)unpack_number(u, 100);
}

static void unpack_headers(struct lq_unpack *u, struct lq_job *job)
{
    uint32_t n = lq_unpack_array(u);
    if (n % 2 != 0 || n > 2 * LADE_HEADERS_MAX)
        u->bad = true;
    job->headers.p = u->p;
    for (uint32_t i = 0; i < n && !u->bad; i++) {
        struct lb_mut s = lq_unpack_str(u);
        if (!u->bad && s.n > 0 && memchr(s.p, 0, s.n))
            u->bad = true; /* a C string cannot hold it; no writer makes it */
    }
    job->headers.n = (size_t)(u->p - job->headers.p);
    job->n_headers = n / 2;
}

static void unpack_unique(struct lq_unpack *u, struct lq_job *job)
{
    if (lq_unpack_nil(u))
        return;
    if (lq_unpack_array(u) != 2)
        u->bad = true;
    job->unique = lb_slice_of(lq_unpack_bin(u));
    job->until = (enum lade_unique_until)unpack_number(u, LADE_UNTIL_TTL);
}

/* Everything of the array; strings are not terminated yet. */
static void unpack_fields(struct lq_unpack *u, struct lq_job *job, struct lb_mut *kind,
                          struct lb_mut *type)
{
    uint32_t n = lq_unpack_array(u);
    if (n < 3)
        u->bad = true;
    *kind = lq_unpack_str(u);
    job->payload = lb_slice_of(lq_unpack_bin(u));
    job->enqueued_ms = unpack_number(u, INT64_MAX / LADE_MILLISECOND);
    if (n > 3)
        job->max_attempts = (int)unpack_number(u, 1000);
    if (n > 4)
        job->timeout_ms = unpack_number(u, INT64_MAX / LADE_MILLISECOND);
    if (n > 5)
        unpack_backoff(u, &job->backoff);
    if (n > 6)
        *type = lq_unpack_str(u);
    if (n > 7)
        unpack_headers(u, job);
    if (n > 8)
        unpack_unique(u, job);
    if (n > 9)
        job->discard_dead = (lq_unpack_uint(u) & FLAG_DISCARD_DEAD) != 0;
    if (n > 10)
        job->key = lq_unpack_nil(u) ? (struct lb_slice){0} : lb_slice_of(lq_unpack_bin(u));
    if (n > 11)
        job->result_ttl_ms = unpack_number(u, INT64_MAX / LADE_MILLISECOND);
    if (kind->n == 0 || kind->n > LADE_NAME_MAX || job->max_attempts == 0)
        u->bad = true;
    if (!u->bad && (memchr(kind->p, 0, kind->n) || (type->n && memchr(type->p, 0, type->n))))
        u->bad = true;
}

/*
 * Drops the tags so that the strings stand one after the other, each with its NUL. A string loses at least one tag byte
 * and gains one NUL, so writing never overtakes reading.
 */
static void terminate_headers(struct lq_job *job)
{
    uint8_t *first = (uint8_t *)job->headers.p;
    struct lq_unpack u = {first, first + job->headers.n, false};
    uint8_t *to = first;
    for (uint32_t i = 0; i < 2 * job->n_headers; i++) {
        struct lb_mut s = lq_unpack_str(&u);
        memmove(to, s.p, s.n);
        to[s.n] = 0;
        to += s.n + 1;
    }
    job->headers.n = (size_t)(to - first);
}

int lq_job_decode(struct lb_mut body, struct lq_job *out, lade_err *err)
{
    if (body.n < 2 || body.p[0] != LQ_BODY_VERSION)
        return lb_fail(err, LADE_EFORMAT, "decode",
                       "envelope version %d is not %d; is a newer lade writing?",
                       body.n ? body.p[0] : 0, LQ_BODY_VERSION);
    struct lq_unpack u = {body.p + 2, body.p + body.n, false};
    *out = (struct lq_job){.level = body.p[1] - '0',
                           .content_type = "",
                           .max_attempts = LQ_MAX_ATTEMPTS_DEFAULT,
                           .timeout_ms = LQ_TIMEOUT_DEFAULT_MS,
                           .headers = {body.p + body.n, 0}};
    struct lb_mut kind = {0};
    struct lb_mut type = {0};
    unpack_fields(&u, out, &kind, &type);
    if (u.bad || out->level < 0 || out->level >= LQ_N_LEVELS)
        return lb_fail(err, LADE_EFORMAT, "decode",
                       "envelope of %zu bytes is damaged near byte %td", body.n, u.p - body.p);
    terminate_headers(out);
    kind.p[kind.n] = 0;
    out->kind = (char *)kind.p;
    if (type.n > 0) {
        type.p[type.n] = 0;
        out->content_type = (char *)type.p;
    }
    return 0;
}

int lq_job_replace_payload(struct lb_buf *out, struct lb_slice body, struct lb_slice payload,
                           lade_err *err)
{
    if (body.n < 2 || body.p[0] != LQ_BODY_VERSION)
        return lb_fail(err, LADE_EFORMAT, "edit", "the envelope has version %d, not %d",
                       body.n ? body.p[0] : 0, LQ_BODY_VERSION);
    struct lq_unpack u = {(uint8_t *)body.p + 2, (uint8_t *)body.p + body.n, false};
    uint32_t n = lq_unpack_array(&u);
    (void)lq_unpack_str(&u);
    size_t head = (size_t)(u.p - body.p);
    (void)lq_unpack_bin(&u);
    if (u.bad || n < 3)
        return lb_fail(err, LADE_EFORMAT, "edit",
                       "the envelope of %zu bytes is damaged near byte %zu", body.n, head);
    lb_buf_add(out, body.p, head);
    lq_pack_bin(out, payload);
    lb_buf_add(out, u.p, (size_t)(body.p + body.n - u.p));
    return out->failed ? lb_fail_nomem(err, "edit") : 0;
}

bool lq_job_header_next(const struct lq_job *job, size_t *at, lade_header *out)
{
    if (*at >= job->headers.n || job->n_headers == 0)
        return false;
    out->name = (const char *)job->headers.p + *at;
    out->value = out->name + strlen(out->name) + 1;
    *at += strlen(out->name) + strlen(out->value) + 2;
    return true;
}
