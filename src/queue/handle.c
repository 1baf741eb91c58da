/* handle.c - what a handler may ask of its job and say about it */
#include <stdarg.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "queue/worker.h"

const char *lade_job_id(const lade_job *job)
{
    if (!job)
        return NULL;
    return (const char *)job->leased->id.p;
}

const char *lade_job_kind(const lade_job *job)
{
    if (!job)
        return NULL;
    return job->body.kind;
}

const char *lade_job_queue(const lade_job *job)
{
    if (!job)
        return NULL;
    return job->queue;
}

lade_bytes lade_job_payload(const lade_job *job)
{
    if (!job)
        return (lade_bytes){NULL, 0};
    return (lade_bytes){job->body.payload.p, job->body.payload.n};
}

const char *lade_job_content_type(const lade_job *job)
{
    if (!job)
        return NULL;
    return job->body.content_type;
}

const char *lade_job_header(const lade_job *job, const char *name)
{
    if (!job || !name)
        return NULL;
    lade_header h;
    for (size_t at = 0; lq_job_header_next(&job->body, &at, &h);) {
        if (strcmp(h.name, name) == 0)
            return h.value;
    }
    return NULL;
}

size_t lade_job_n_headers(const lade_job *job)
{
    if (!job)
        return 0;
    return job->body.n_headers;
}

lade_header lade_job_header_at(const lade_job *job, size_t i)
{
    if (!job)
        return (lade_header){NULL, NULL};
    lade_header h = {NULL, NULL};
    size_t k = 0;
    for (size_t at = 0; lq_job_header_next(&job->body, &at, &h); k++) {
        if (k == i)
            return h;
    }
    return (lade_header){NULL, NULL};
}

int lade_job_attempt(const lade_job *job)
{
    if (!job)
        return 0;
    return job->attempt;
}

int lade_job_max_attempts(const lade_job *job)
{
    if (!job)
        return 0;
    return job->body.max_attempts;
}

int lade_job_priority(const lade_job *job)
{
    if (!job)
        return 0;
    return LADE_PRIORITY_MAX - job->body.level;
}

int64_t lade_job_enqueued_at(const lade_job *job)
{
    if (!job)
        return 0;
    return lb_ns_of_ms(job->body.enqueued_ms);
}

uint64_t lade_job_fence(const lade_job *job)
{
    if (!job)
        return 0;
    return job->leased->fence;
}

int64_t lade_job_time_left(const lade_job *job)
{
    if (!job)
        return 0;
    int64_t left = atomic_load_explicit(&job->deadline, memory_order_relaxed) - lb_clock_mono();
    return LB_MAX(left, 0);
}

bool lade_job_cancelled(const lade_job *job)
{
    if (!job)
        return false;
    return atomic_load_explicit(&job->cancel, memory_order_acquire) != LQ_CANCEL_NONE;
}

int lade_job_cancel_fd(lade_job *job)
{
    if (!job)
        return -1;
    lr_mutex_lock(&job->worker->lock);
    if (job->cancel_event.fd < 0 && lr_event_init(&job->cancel_event) == 0 &&
        lade_job_cancelled(job))
        lr_event_raise(&job->cancel_event);
    int fd = job->cancel_event.fd;
    lr_mutex_unlock(&job->worker->lock);
    return fd;
}

void lade_job_retry_in(lade_job *job, int64_t delay)
{
    if (!job)
        return;
    job->retry_in = LB_MAX(delay, 0);
}

void lade_job_snooze_for(lade_job *job, int64_t delay)
{
    if (!job)
        return;
    job->snooze_for = LB_MAX(delay, 0);
}

void lade_job_error_bytes(lade_job *job, lade_bytes text)
{
    if (!job)
        return;
    lb_buf_clear(&job->error);
    lb_buf_add(&job->error, text.data, LB_MIN(text.size, LADE_ERROR_TEXT_MAX));
}

void lade_job_error(lade_job *job, const char *format, ...)
{
    if (!job)
        return;
    char text[LADE_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    lade_job_error_bytes(job, (lade_bytes){text, n < 0 ? 0 : LB_MIN((size_t)n, sizeof(text) - 1)});
}

int lade_job_result(lade_job *job, lade_bytes result)
{
    if (!job)
        return -LADE_EINVAL;
    if (result.size > LADE_RESULT_MAX)
        return -LADE_ETOOBIG;
    lb_buf_clear(&job->result);
    lb_buf_add(&job->result, result.data, result.size);
    return job->result.failed ? -LADE_ENOMEM : 0;
}
