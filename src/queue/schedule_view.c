/* schedule_view.c - a record as users see it */
#include "queue/schedule_view.h"

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"

struct view_box {
    lade_schedule_view view; /* first, so that the view's address is the box's */
    struct lb_arena arena;
    lade_schedule_spec spec;
};

void lade_schedule_view_free(lade_schedule_view *view)
{
    if (!view)
        return;
    struct view_box *box = (struct view_box *)(void *)view;
    lb_arena_fini(&box->arena);
    lb_free(box);
}

static const char *keep(struct view_box *box, const char *s, bool *ok)
{
    char *kept = lb_arena_strdup(&box->arena, s);
    *ok = *ok && kept;
    return kept ? kept : "";
}

static void fill_backoff(lade_backoff *to, const struct lq_backoff *b)
{
    to->type = b->type;
    to->base = lb_ns_of_ms(b->base_ms);
    to->cap = lb_ns_of_ms(b->cap_ms);
    to->jitter = b->jitter;
}

/* The template; `body` stays alive as long as the view. False when out of memory or damaged. */
static bool fill_job(struct view_box *box, const struct lq_schedule_spec *s)
{
    struct lq_job job;
    lade_job_spec *to = &box->spec.job;
    if (lq_job_decode(s->body, &job, NULL) < 0)
        return false;
    lade_header *header = lb_arena_alloc(&box->arena, (job.n_headers + 1) * sizeof(*header));
    size_t at = 0, n = 0;
    while (header && n < job.n_headers && lq_job_header_next(&job, &at, &header[n]))
        n++;
    *to = (lade_job_spec){.kind = job.kind,
                          .queue = s->queue,
                          .payload = {job.payload.p, job.payload.n},
                          .content_type = job.content_type,
                          .headers = header,
                          .n_headers = n,
                          .priority = LADE_PRIORITY_MAX - job.level,
                          .max_attempts = job.max_attempts,
                          .timeout = lb_ns_of_ms(job.timeout_ms),
                          .discard_dead = job.discard_dead,
                          .result_ttl = lb_ns_of_ms(job.result_ttl_ms),
                          .key = {job.key.p, job.key.n}};
    fill_backoff(&to->backoff, &job.backoff);
    if (job.unique.n > 0)
        to->unique = (lade_unique){.key = {job.unique.p, job.unique.n},
                                   .ttl = lb_ns_of_ms(s->unique_ttl_ms),
                                   .until = job.until};
    return header != NULL;
}

static bool fill_spec(struct view_box *box, const struct lq_schedule_spec *s)
{
    box->spec = (lade_schedule_spec){.id = box->view.id,
                                     .cron = *s->cron ? s->cron : NULL,
                                     .every = lb_ns_of_ms(s->every_ms),
                                     .anchor = s->anchor,
                                     .anchor_at = lb_ns_of_ms(s->anchor_ms),
                                     .tz = s->tz,
                                     .gap = s->gap,
                                     .fold = s->fold,
                                     .missed = s->missed,
                                     .missed_max = (uint32_t)s->missed_max,
                                     .missed_window = lb_ns_of_ms(s->window_ms),
                                     .overlap = s->overlap,
                                     .limit = s->limit,
                                     .start = lb_ns_of_ms(s->start_ms),
                                     .end = lb_ns_of_ms(s->end_ms),
                                     .jitter = lb_ns_of_ms(s->jitter_ms),
                                     .paused = box->view.state == LADE_SCHEDULE_PAUSED};
    return fill_job(box, s);
}

static bool fill_memo(struct view_box *box, const struct lq_memo *m)
{
    lade_schedule_view *v = &box->view;
    bool ok = true;
    lade_fire *fire = lb_arena_alloc(&box->arena, (m->n_history + 1) * sizeof(*fire));
    for (size_t i = 0; fire && i < m->n_history; i++)
        fire[i] = (lade_fire){lb_ns_of_ms(m->history[i].at_ms), lb_ns_of_ms(m->history[i].seen_ms),
                              m->history[i].outcome, m->history[i].count};
    v->history = fire;
    v->n_history = m->n_history;
    v->anchor_at = lb_ns_of_ms(m->anchor_ms);
    v->next_at = v->state == LADE_SCHEDULE_ACTIVE ? lb_ns_of_ms(m->next_ms) : 0;
    v->last_at = lb_ns_of_ms(m->last_ms);
    v->queued_at = lb_ns_of_ms(m->pending_ms);
    v->last_job = keep(box, m->last_job, &ok);
    v->n_fired = m->fired;
    v->n_missed = m->missed;
    v->n_overlaps = m->overlaps;
    v->n_duplicates = m->duplicates;
    v->created_at = lb_ns_of_ms(m->created_ms);
    v->changed_at = lb_ns_of_ms(m->changed_ms);
    v->tzdata = keep(box, m->tzdata, &ok);
    v->error = keep(box, m->error, &ok);
    return ok && fire;
}

lade_schedule_view *lq_schedule_view_make(const struct lq_schedule_row *row)
{
    struct lq_schedule_spec spec;
    struct lq_memo memo;
    lade_err err = {0};
    struct view_box *box = lb_calloc(1, sizeof(*box));
    if (!box)
        return NULL;
    lb_arena_init(&box->arena);
    struct lb_mut id = lb_arena_copy(&box->arena, row->id.p, row->id.n);
    struct lb_mut spec_bytes = lb_arena_copy(&box->arena, row->spec.p, row->spec.n);
    struct lb_mut memo_bytes = lb_arena_copy(&box->arena, row->memo.p, row->memo.n);
    bool ok = id.p && spec_bytes.p && memo_bytes.p;
    box->view = (lade_schedule_view){
        .id = (const char *)id.p, .state = row->state, .due_at = lb_ns_of_ms(row->due_ms)};
    if (ok) {
        if (lq_memo_decode(memo_bytes, &memo, &err) < 0)
            memo = (struct lq_memo){0};
        ok = fill_memo(box, &memo);
    }
    if (ok && lq_schedule_decode(spec_bytes, &spec, &err) == 0 && fill_spec(box, &spec))
        box->view.spec = &box->spec;
    if (ok && !*box->view.error && err.code < 0)
        box->view.error = keep(box, err.text, &ok);
    if (ok)
        return &box->view;
    lade_schedule_view_free(&box->view);
    return NULL;
}
