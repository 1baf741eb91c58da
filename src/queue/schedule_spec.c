#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/names.h"
#include "queue/pack.h"
#include "queue/schedule.h"

#define N_FIELDS       18
#define MISSED_MAX     100                            /* default */
#define UNIQUE_TTL_MS  (INT64_C(24) * 60 * 60 * 1000) /* default, as enqueue has it */
#define JITTER_MAX     (24 * LADE_HOUR)
#define DURATION_MAX   (36525 * LADE_DAY) /* 100 years, as enqueue has it */
#define YEAR_2000      (INT64_C(946684800) * LADE_SECOND)
#define GAPS_LOOKED_AT 64 /* of two fires, for jitter */

#define REFUSE(code, ...) lb_fail(err, (code), "schedule", __VA_ARGS__)

bool lq_schedule_id_is_valid(const char *id)
{
    return lq_id_is_valid(id) && strlen(id) <= LADE_SCHEDULE_ID_MAX;
}

/* check ------------------------------------------------------------------------------------------------------------ */

static int check_time(int64_t at, const char *field, lade_err *err)
{
    if (at != 0 && at < YEAR_2000)
        return REFUSE(LADE_EINVAL,
                      "%s is %lld, before the year 2000; times are nanoseconds since 1970", field,
                      (long long)at);
    if (at >= LB_CLOCK_END)
        return REFUSE(LADE_EINVAL, "%s is %lld, beyond the year 2261", field, (long long)at);
    return 0;
}

static int check_duration(int64_t ns, const char *field, lade_err *err)
{
    if (ns < 0)
        return REFUSE(LADE_EINVAL, "%s is negative", field);
    if (ns > 0 && ns < LADE_MILLISECOND)
        return REFUSE(LADE_EINVAL,
                      "%s is %lld ns, below one millisecond, the resolution of the stores", field,
                      (long long)ns);
    return ns > DURATION_MAX ? REFUSE(LADE_EINVAL, "%s is over 100 years", field) : 0;
}

static int check_words(const lade_schedule_spec *s, lade_err *err)
{
    if ((unsigned)s->anchor > LADE_ANCHOR_TIME)
        return REFUSE(LADE_EINVAL, "anchor %d is unknown", (int)s->anchor);
    if ((unsigned)s->gap > LADE_GAP_SKIP)
        return REFUSE(LADE_EINVAL, "gap %d is unknown", (int)s->gap);
    if ((unsigned)s->fold > LADE_FOLD_SECOND)
        return REFUSE(LADE_EINVAL, "fold %d is unknown", (int)s->fold);
    if ((unsigned)s->missed > LADE_MISSED_ALL)
        return REFUSE(LADE_EINVAL, "missed %d is unknown", (int)s->missed);
    if ((unsigned)s->overlap > LADE_OVERLAP_QUEUE_ONE)
        return REFUSE(LADE_EINVAL, "overlap %d is unknown", (int)s->overlap);
    if (s->missed_max > LADE_MISSED_MAX)
        return REFUSE(LADE_EINVAL, "missed_max %u is not within 1 to %d", s->missed_max,
                      LADE_MISSED_MAX);
    if (s->limit < 0)
        return REFUSE(LADE_EINVAL, "limit %lld is negative; it is a number of fires, 0 = no limit",
                      (long long)s->limit);
    return 0;
}

/* The rule's own fields; what they mean together, the calendar checks. */
static int check_rule(const lade_schedule_spec *s, lade_err *err)
{
    if ((s->cron != NULL) == (s->every != 0))
        return REFUSE(LADE_EINVAL, "%s: give exactly one of them",
                      s->cron ? "both cron and every are set" : "neither cron nor every is set");
    if (s->cron && strlen(s->cron) > LADE_CRON_MAX)
        return REFUSE(LADE_ETOOBIG, "cron has %zu bytes; the limit is %d", strlen(s->cron),
                      LADE_CRON_MAX);
    if (!s->cron && (s->every < LADE_SECOND || s->every > DURATION_MAX))
        return REFUSE(LADE_EINVAL, "every must be within 1 s and 100 years");
    if (s->tz && strlen(s->tz) > LADE_TZ_MAX)
        return REFUSE(LADE_ETOOBIG, "tz has %zu bytes; the limit is %d", strlen(s->tz),
                      LADE_TZ_MAX);
    if (s->tz && *s->tz && !s->cron)
        return REFUSE(LADE_EINVAL, "tz is for cron; every counts elapsed time");
    if (!s->cron && (s->gap != LADE_GAP_SHIFT || s->fold != LADE_FOLD_FIRST))
        return REFUSE(LADE_EINVAL, "%s is for cron; every counts elapsed time",
                      s->gap != LADE_GAP_SHIFT ? "gap" : "fold");
    if (s->cron && s->anchor != LADE_ANCHOR_EPOCH)
        return REFUSE(LADE_EINVAL, "anchor is for every; a cron expression says when by itself");
    if (s->anchor == LADE_ANCHOR_TIME && s->anchor_at == 0)
        return REFUSE(LADE_EINVAL, "anchor_at is missing");
    int rc = check_time(s->anchor_at, "anchor_at", err);
    if (rc == 0)
        rc = check_time(s->start, "start", err);
    if (rc == 0)
        rc = check_time(s->end, "end", err);
    if (rc == 0 && s->end != 0 && s->end <= s->start)
        rc = REFUSE(LADE_EINVAL, "end must be later than start");
    return rc;
}

static int64_t anchor_of(const lade_schedule_spec *s)
{
    if (s->anchor == LADE_ANCHOR_EPOCH)
        return 0;
    return s->anchor == LADE_ANCHOR_TIME || s->start == 0 ? s->anchor_at : s->start;
}

int lq_schedule_open(const lade_schedule_spec *s, struct lq_calendar *c, lade_err *err)
{
    struct lq_calendar_spec spec = {.cron = s->cron,
                                    .zone = s->tz,
                                    .every = s->every,
                                    .anchor = anchor_of(s),
                                    .gap = (enum lq_gap)s->gap,
                                    .fold = (enum lq_fold)s->fold,
                                    .start = s->start,
                                    .end = s->end};
    int rc = check_rule(s, err);
    if (rc == 0)
        rc = check_words(s, err);
    return rc < 0 ? rc : lq_calendar_init(c, &spec, err);
}

/* Two fires must not change places. The distances of some tell, from the start or from now on. */
static int check_jitter(const lade_schedule_spec *s, const struct lq_calendar *c, lade_err *err)
{
    int64_t at = lq_calendar_next(c, LB_MAX(s->start, lb_clock_wall())), least = INT64_MAX;
    for (int i = 0; i < GAPS_LOOKED_AT && at != LQ_NEVER; i++) {
        int64_t next = lq_calendar_next(c, at);
        if (next != LQ_NEVER)
            least = LB_MIN(least, next - at);
        at = next;
    }
    if (s->jitter < least)
        return 0;
    return REFUSE(LADE_EINVAL, "jitter must be shorter than the distance of two fires, here %.3f s",
                  (double)least / (double)LADE_SECOND);
}

static int check_job(const lade_job_spec *job, uint32_t payload_max, lade_err *err)
{
    if (job->id)
        return REFUSE(LADE_EINVAL, "job.id is set; each fire has an id of its own, SCHEDULE:TIME");
    if (job->in != 0 || job->at != 0)
        return REFUSE(LADE_EINVAL, "job.%s is set; the schedule says when", job->in ? "in" : "at");
    const lade_unique *u = &job->unique;
    if (u->on_conflict != 0 || u->debounce != 0 || u->max_wait != 0 || u->throttle != 0 ||
        u->trailing)
        return REFUSE(LADE_EINVAL,
                      "job.unique: a schedule's job takes key, ttl and until, nothing else; its "
                      "times are the schedule's");
    return lq_job_check(job, payload_max, SIZE_MAX, err);
}

int lq_schedule_check(const lade_schedule_spec *s, uint32_t payload_max, lade_err *err)
{
    struct lq_calendar c;
    if (s->id && !lq_schedule_id_is_valid(s->id))
        return REFUSE(LADE_EINVAL, "id '%.60s' must be 1 to %d characters of A-Z a-z 0-9 . _ : -",
                      s->id, LADE_SCHEDULE_ID_MAX);
    int rc = check_job(&s->job, payload_max, err);
    if (rc == 0)
        rc = check_duration(s->jitter, "jitter", err);
    if (rc == 0)
        rc = check_duration(s->missed_window, "missed_window", err);
    if (rc == 0 && s->jitter > JITTER_MAX)
        rc = REFUSE(LADE_EINVAL, "jitter is over 24 hours");
    if (rc == 0)
        rc = lq_schedule_open(s, &c, err);
    if (rc < 0)
        return rc;
    if (s->jitter > 0)
        rc = check_jitter(s, &c, err);
    lq_calendar_fini(&c);
    return rc;
}

/* id --------------------------------------------------------------------------------------------------------------- */

struct digest {
    uint64_t h;
};

/* FNV-1a; each field with its length, so that two of them cannot run into each other. */
static void digest(struct digest *d, const void *p, size_t n)
{
    const uint8_t *b = p;
    for (unsigned i = 0; i < 8; i++)
        d->h = (d->h ^ (uint8_t)((uint64_t)n >> (8 * i))) * UINT64_C(1099511628211);
    for (size_t i = 0; i < n; i++)
        d->h = (d->h ^ b[i]) * UINT64_C(1099511628211);
}

static void digest_text(struct digest *d, const char *text)
{
    digest(d, text, text ? strlen(text) : 0);
}

void lq_schedule_make_id(const lade_schedule_spec *s, char out[LADE_SCHEDULE_ID_MAX + 1])
{
    struct digest d = {UINT64_C(14695981039346656037)};
    char kind[LADE_SCHEDULE_ID_MAX - 16];
    (void)snprintf(kind, sizeof(kind), "%s", s->job.kind);
    for (char *c = kind; *c; c++) {
        if (*c == '/')
            *c = '.';
    }
    digest_text(&d, s->job.kind);
    digest_text(&d, s->cron);
    digest(&d, &s->every, s->every ? sizeof(s->every) : 0);
    digest_text(&d, s->tz);
    digest_text(&d, s->job.queue ? s->job.queue : "default");
    digest(&d, s->job.payload.data, s->job.payload.size);
    (void)snprintf(out, LADE_SCHEDULE_ID_MAX + 1, "%s-%016llx", kind, (unsigned long long)d.h);
}

/* encode and decode ------------------------------------------------------------------------------------------------ */

static uint64_t ms_of(int64_t ns)
{
    return (uint64_t)lb_ms_up(ns);
}

void lq_schedule_encode(struct lb_buf *out, const lade_schedule_spec *s)
{
    struct lb_buf body;
    lb_buf_init(&body);
    lq_job_encode(&body, &s->job, 0);
    lb_buf_add_byte(out, LQ_SCHEDULE_VERSION);
    lq_pack_array(out, N_FIELDS);
    lq_pack_str(out, lb_slice_str(s->cron ? s->cron : ""));
    lq_pack_uint(out, ms_of(s->every));
    lq_pack_uint(out, (uint64_t)s->anchor);
    lq_pack_uint(out, s->anchor == LADE_ANCHOR_TIME ? ms_of(s->anchor_at) : 0);
    lq_pack_str(out, lb_slice_str(s->tz ? s->tz : ""));
    lq_pack_uint(out, (uint64_t)s->gap);
    lq_pack_uint(out, (uint64_t)s->fold);
    lq_pack_uint(out, ms_of(s->start));
    lq_pack_uint(out, ms_of(s->end));
    lq_pack_uint(out, ms_of(s->jitter));
    lq_pack_uint(out, (uint64_t)s->missed);
    lq_pack_uint(out, s->missed_max ? s->missed_max : MISSED_MAX);
    lq_pack_uint(out, ms_of(s->missed_window));
    lq_pack_uint(out, (uint64_t)s->overlap);
    lq_pack_uint(out, (uint64_t)s->limit);
    lq_pack_str(out, lb_slice_str(s->job.queue ? s->job.queue : "default"));
    lq_pack_bin(out, lb_buf_slice(&body));
    lq_pack_uint(out, s->job.unique.ttl > 0 ? ms_of(s->job.unique.ttl) : UNIQUE_TTL_MS);
    out->failed = out->failed || body.failed;
    lb_buf_fini(&body);
}

static int64_t unpack_number(struct lq_unpack *u, uint64_t max)
{
    uint64_t v = lq_unpack_uint(u);
    if (v > max)
        u->bad = true;
    return u->bad ? 0 : (int64_t)v;
}

static struct lb_mut unpack_text(struct lq_unpack *u, size_t max)
{
    struct lb_mut s = lq_unpack_str(u);
    if (s.n > max || (s.n > 0 && memchr(s.p, 0, s.n)))
        u->bad = true;
    return s;
}

static void unpack_fields(struct lq_unpack *u, struct lq_schedule_spec *s, struct lb_mut text[3])
{
    const uint64_t time_max = INT64_MAX / LADE_MILLISECOND;
    if (lq_unpack_array(u) < N_FIELDS)
        u->bad = true;
    text[0] = unpack_text(u, LADE_CRON_MAX);
    s->every_ms = unpack_number(u, time_max);
    s->anchor = (enum lade_schedule_anchor)unpack_number(u, LADE_ANCHOR_TIME);
    s->anchor_ms = unpack_number(u, time_max);
    text[1] = unpack_text(u, LADE_TZ_MAX);
    s->gap = (enum lade_schedule_gap)unpack_number(u, LADE_GAP_SKIP);
    s->fold = (enum lade_schedule_fold)unpack_number(u, LADE_FOLD_SECOND);
    s->start_ms = unpack_number(u, time_max);
    s->end_ms = unpack_number(u, time_max);
    s->jitter_ms = unpack_number(u, JITTER_MAX / LADE_MILLISECOND);
    s->missed = (enum lade_schedule_missed)unpack_number(u, LADE_MISSED_ALL);
    s->missed_max = unpack_number(u, LADE_MISSED_MAX);
    s->window_ms = unpack_number(u, time_max);
    s->overlap = (enum lade_schedule_overlap)unpack_number(u, LADE_OVERLAP_QUEUE_ONE);
    s->limit = unpack_number(u, INT64_MAX);
    text[2] = unpack_text(u, LADE_NAME_MAX);
    s->body = lq_unpack_bin(u);
    s->unique_ttl_ms = unpack_number(u, time_max);
    if (text[2].n == 0 || s->body.n < 2 || (text[0].n == 0) == (s->every_ms == 0))
        u->bad = true;
}

int lq_schedule_decode(struct lb_mut bytes, struct lq_schedule_spec *s, lade_err *err)
{
    if (bytes.n < 2 || bytes.p[0] != LQ_SCHEDULE_VERSION)
        return REFUSE(LADE_EFORMAT, "its spec has version %d, not %d; is a newer lade writing?",
                      bytes.n ? bytes.p[0] : 0, LQ_SCHEDULE_VERSION);
    struct lq_unpack u = {bytes.p + 1, bytes.p + bytes.n, false};
    struct lb_mut text[3] = {{NULL, 0}};
    *s = (struct lq_schedule_spec){0};
    unpack_fields(&u, s, text);
    if (u.bad)
        return REFUSE(LADE_EFORMAT, "its spec of %zu bytes is damaged near byte %td", bytes.n,
                      u.p - bytes.p);
    for (size_t i = 0; i < LB_ARRAY_LEN(text); i++)
        text[i].p[text[i].n] = 0; /* over the tag of what follows, which has been read */
    s->cron = (const char *)text[0].p;
    s->tz = (const char *)text[1].p;
    s->queue = (const char *)text[2].p;
    return 0;
}

int lq_schedule_calendar(const struct lq_schedule_spec *s, int64_t anchor_ms,
                         struct lq_calendar *out, lade_err *err)
{
    struct lq_calendar_spec spec = {.cron = *s->cron ? s->cron : NULL,
                                    .zone = s->tz,
                                    .every = lb_ns_of_ms(s->every_ms),
                                    .anchor = lb_ns_of_ms(anchor_ms),
                                    .gap = (enum lq_gap)s->gap,
                                    .fold = (enum lq_fold)s->fold,
                                    .start = lb_ns_of_ms(s->start_ms),
                                    .end = lb_ns_of_ms(s->end_ms)};
    return lq_calendar_init(out, &spec, err);
}

bool lq_schedule_same_rule(const struct lq_schedule_spec *a, const struct lq_schedule_spec *b)
{
    return strcmp(a->cron, b->cron) == 0 && strcmp(a->tz, b->tz) == 0 &&
           a->every_ms == b->every_ms && a->anchor == b->anchor && a->anchor_ms == b->anchor_ms &&
           a->gap == b->gap && a->fold == b->fold && a->start_ms == b->start_ms &&
           a->end_ms == b->end_ms;
}

/* [version, level, array head, kind, payload, time of enqueue, rest]: all but the time as they are. */
bool lq_schedule_body(struct lb_buf *out, struct lb_mut body, int64_t now_ms)
{
    struct lq_unpack u = {body.p + 2, body.p + body.n, body.n < 2};
    (void)lq_unpack_array(&u);
    lq_unpack_skip(&u);
    lq_unpack_skip(&u);
    uint8_t *from = u.p;
    (void)lq_unpack_uint(&u);
    if (u.bad)
        return false;
    lb_buf_add(out, body.p, (size_t)(from - body.p));
    lq_pack_uint(out, (uint64_t)now_ms);
    lb_buf_add(out, u.p, (size_t)(u.end - u.p));
    return true;
}

bool lq_schedule_put_of(struct lq_put *put, const struct lq_schedule_spec *spec,
                        struct lb_mut scratch)
{
    struct lq_job job;
    if (lq_job_decode(scratch, &job, NULL) < 0)
        return false;
    *put = (struct lq_put){.queue = spec->queue,
                           .level = job.level,
                           .key = job.key,
                           .unique = job.unique,
                           .unique_ttl_ms = job.unique.n > 0 ? spec->unique_ttl_ms : 0,
                           .until = job.until};
    return true;
}
