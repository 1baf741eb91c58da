#include "queue/said.h"

#include <stdarg.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/ahead.h"
#include "queue/event.h"

#define EVERY     (250 * LADE_MILLISECOND) /* between two writes of a job */
#define BYTES_MAX (256U << 10)             /* of lines that wait; then they are written at once */

struct lq_said {
    struct lb_list in_worker; /* guarded by: worker lock */
    int users;                /* guarded by: worker lock; sweep.c is at it */
    struct lr_cond unused;    /* with the worker lock */
    struct lade_job *job;
    bool listed;            /* guarded by: worker lock; in the worker's list */
    bool closing;           /* guarded by: worker lock; never listed again */
    _Atomic int64_t due_at; /* when to write; LB_FOREVER = nothing waits */

    struct lr_mutex lock;
    int64_t written_at; /* all that follows guarded by: lock */
    bool lost;          /* the lease is another's */
    int percent;        /* -1 = nothing new */
    size_t note_n;
    char note[LADE_NOTE_MAX];
    struct lb_buf text;             /* the lines, one behind the other */
    size_t n;                       /* lines */
    size_t end[LADE_LOG_LINES_MAX]; /* where each ends in text */
    int64_t ms[LADE_LOG_LINES_MAX];
};

static struct lq_said *make_said(struct lade_job *job)
{
    struct lq_said *s = lb_malloc(sizeof(*s));
    if (!s)
        return NULL;
    memset(s, 0, offsetof(struct lq_said, end));
    s->job = job;
    s->percent = -1;
    s->written_at = lb_clock_mono() - EVERY;
    s->due_at = LB_FOREVER;
    lr_mutex_init(&s->lock);
    lr_cond_init(&s->unused);
    lb_buf_init(&s->text);
    job->said = s;
    return s;
}

/* Under the lock: one op. What could not be written stays. */
static int write_said(struct lq_said *s)
{
    struct lb_slice *line = s->n > 0 ? lb_malloc(s->n * sizeof(*line)) : NULL;
    if (s->n > 0 && !line)
        return -LADE_ENOMEM;
    for (size_t i = 0, at = 0; i < s->n; at = s->end[i++])
        line[i] = lb_slice(s->text.p + at, s->end[i] - at);
    struct lq_say note = {.queue = s->job->queue,
                          .id = lb_slice_of(s->job->leased->id),
                          .fence = s->job->leased->fence,
                          .percent = s->percent,
                          .text = lb_slice(s->note, s->note_n),
                          .kind = lq_body_kind(lb_slice_of(s->job->leased->body)),
                          .line = line,
                          .line_ms = s->ms,
                          .n_lines = s->n};
    lade_err err = {0};
    s->written_at = lb_clock_mono();
    atomic_store(&s->due_at, s->written_at + EVERY);
    int rc = s->job->inlined ? 0 : lq_say(s->job->worker->q->store, &note, 1, &err);
    lb_free(line);
    if (rc < 0)
        return rc;
    s->lost = note.outcome == LADE_STALE;
    s->percent = -1;
    s->n = 0;
    lb_buf_clear(&s->text);
    atomic_store(&s->due_at, LB_FOREVER);
    return 0;
}

/* Has sweep.c look at it in time. Without the lock. */
static void remind(struct lq_said *s)
{
    struct lade_worker *w = s->job->worker;
    int64_t due = atomic_load(&s->due_at);
    if (due == LB_FOREVER)
        return;
    lr_mutex_lock(&w->lock);
    if (!s->listed && !s->closing) {
        lb_list_push_back(&w->said, &s->in_worker);
        s->listed = true;
    }
    if (s->listed && due < w->said_at) {
        w->said_at = due;
        lr_cond_wake_one(&w->sweep_wake);
    }
    lr_mutex_unlock(&w->lock);
}

/* Comes with the lock held and goes without: writes when it is time, or sees to it that somebody does. */
static int finish_saying(struct lq_said *s)
{
    int64_t now = lb_clock_mono();
    bool full = s->text.n >= BYTES_MAX || s->n == LADE_LOG_LINES_MAX;
    if (full || now - s->written_at >= EVERY)
        (void)write_said(s);
    else if (atomic_load(&s->due_at) == LB_FOREVER)
        atomic_store(&s->due_at, s->written_at + EVERY);
    int rc = s->lost ? LADE_STALE : 0;
    lr_mutex_unlock(&s->lock);
    remind(s);
    return rc;
}

static int begin_saying(lade_job *job, struct lq_said **out)
{
    int rc = lq_ahead_await(job, NULL);
    if (rc != 0)
        return rc;
    struct lq_said *s = job->said ? job->said : make_said(job);
    if (!s)
        return -LADE_ENOMEM;
    lr_mutex_lock(&s->lock);
    bool lost =
        s->lost || atomic_load_explicit(&job->cancel, memory_order_relaxed) == LQ_CANCEL_LOST;
    if (lost)
        lr_mutex_unlock(&s->lock);
    *out = s;
    return lost ? LADE_STALE : 0;
}

int lade_job_progress(lade_job *job, int percent, const char *note)
{
    struct lq_said *s = NULL;
    if (!job)
        return -LADE_EINVAL;
    int rc = begin_saying(job, &s);
    if (rc != 0)
        return rc;
    struct lb_slice cut = lq_cut_utf8(lb_slice_str(note), LADE_NOTE_MAX);
    s->percent = LB_MAX(0, LB_MIN(percent, 100));
    s->note_n = cut.n;
    if (cut.n > 0)
        memcpy(s->note, cut.p, cut.n);
    return finish_saying(s);
}

/* Room for one more line: while the store is away the oldest that wait are dropped. Under the lock. */
static void make_room(struct lq_said *s)
{
    if (s->n < LADE_LOG_LINES_MAX && s->text.n < 2 * BYTES_MAX)
        return;
    size_t drop = LB_MAX(s->n / 2, 1), at = s->end[drop - 1];
    memmove(s->text.p, s->text.p + at, s->text.n - at);
    s->text.n -= at;
    s->n -= drop;
    for (size_t i = 0; i < s->n; i++) {
        s->end[i] = s->end[i + drop] - at;
        s->ms[i] = s->ms[i + drop];
    }
}

int lade_job_log_bytes(lade_job *job, lade_bytes line)
{
    struct lq_said *s = NULL;
    if (!job || (!line.data && line.size > 0))
        return -LADE_EINVAL;
    const void *end = line.size > 0 ? memchr(line.data, '\n', line.size) : NULL;
    size_t n = end ? (size_t)((const char *)end - (const char *)line.data) : line.size;
    struct lb_slice cut = lq_cut_utf8(lb_slice(line.data, n), LADE_LOG_LINE_MAX);
    int rc = begin_saying(job, &s);
    if (rc != 0)
        return rc;
    make_room(s);
    lb_buf_add(&s->text, cut.p, cut.n);
    if (s->text.failed) {
        lb_buf_clear(&s->text);
        s->n = 0;
        lr_mutex_unlock(&s->lock);
        return -LADE_ENOMEM;
    }
    s->ms[s->n] = lq_client_now_ms(job->worker->q);
    s->end[s->n++] = s->text.n;
    return finish_saying(s);
}

int lade_job_log(lade_job *job, const char *format, ...)
{
    char text[LADE_LOG_LINE_MAX + 4]; /* so that a cut within a character is seen */
    if (!job || !format)
        return -LADE_EINVAL;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0)
        return -LADE_EINVAL;
    return lade_job_log_bytes(job, (lade_bytes){text, LB_MIN((size_t)n, sizeof(text) - 1)});
}

void lq_said_close(struct lade_job *job)
{
    struct lq_said *s = job->said;
    if (!s)
        return;
    struct lade_worker *w = job->worker;
    lr_mutex_lock(&w->lock);
    if (s->listed)
        lb_list_del(&s->in_worker);
    s->listed = false;
    s->closing = true;
    while (s->users > 0)
        (void)lr_cond_wait(&s->unused, &w->lock, LB_FOREVER); /* one trip at most */
    lr_mutex_unlock(&w->lock);
    lr_mutex_lock(&s->lock);
    bool left = atomic_load(&s->due_at) != LB_FOREVER && !s->lost;
    int rc = left ? write_said(s) : 0;
    lr_mutex_unlock(&s->lock);
    if (rc < 0)
        lq_worker_log(w, "job %s in %s: its last progress and log lines could not be stored",
                      lade_job_id(job), job->queue);
    lr_cond_fini(&s->unused);
    lr_mutex_fini(&s->lock);
    lb_buf_fini(&s->text);
    lb_free(s);
    job->said = NULL;
}

/* The first in the list that is due, out of the list; NULL when there is none: then said_at is set. Under the worker's lock. */
static struct lq_said *pick_due(struct lade_worker *w, int64_t now)
{
    w->said_at = LB_FOREVER;
    lb_list_each (it, &w->said) {
        struct lq_said *s = LB_CONTAINER_OF(it, struct lq_said, in_worker);
        int64_t due = atomic_load(&s->due_at);
        if (due <= now) {
            lb_list_del(&s->in_worker);
            s->listed = false;
            s->users++;
            return s;
        }
        w->said_at = LB_MIN(w->said_at, due);
    }
    return NULL;
}

void lq_said_flush(struct lade_worker *w, int64_t now)
{
    lr_mutex_lock(&w->lock);
    for (struct lq_said *s; (s = pick_due(w, now));) {
        lr_mutex_unlock(&w->lock);
        lr_mutex_lock(&s->lock);
        if (atomic_load(&s->due_at) != LB_FOREVER)
            (void)write_said(s);
        lr_mutex_unlock(&s->lock);
        remind(s);
        lr_mutex_lock(&w->lock);
        if (--s->users == 0)
            lr_cond_wake_all(&s->unused);
    }
    lr_mutex_unlock(&w->lock);
}
