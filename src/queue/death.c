/* death.c - the class of a job that dies, and telling who wants to know */
#include <string.h>

#include "queue/fingerprint.h"
#include "queue/history.h"
#include "queue/names.h"
#include "queue/worker.h"

/* As much of text as may be kept, not through the middle of a character. */
static size_t cut_text(struct lb_slice text)
{
    size_t n = text.n;
    if (n <= LQ_CLASS_TEXT_MAX)
        return n;
    n = LQ_CLASS_TEXT_MAX;
    while (n > 0 && (text.p[n] & 0xc0) == 0x80)
        n--;
    return n;
}

bool lq_death_make(struct lb_buf *texts, struct lq_death *out, struct lb_slice kind,
                   struct lb_slice error)
{
    char name[LQ_FINGERPRINT_NAME + 1];
    size_t from = texts->n;
    lq_fingerprint_mask(texts, error);
    if (texts->failed)
        return false;
    lq_fingerprint_name(name, kind, lb_slice(texts->p + from, texts->n - from));
    size_t n = cut_text(lb_slice(texts->p + from, texts->n - from));
    lb_buf_add(texts, name, LQ_FINGERPRINT_NAME);
    if (texts->failed)
        return false;
    *out = (struct lq_death){
        .name = lb_slice(texts->p + texts->n - LQ_FINGERPRINT_NAME, LQ_FINGERPRINT_NAME),
        .kind = kind,
        .text = lb_slice(texts->p + from, n)};
    return true;
}

/* The error of the last record. */
static struct lb_slice last_error(struct lb_slice history)
{
    struct lq_record r;
    struct lb_slice error = {0};
    for (size_t at = 0; lq_history_next(history, &at, &r);)
        error = r.error;
    return error;
}

void lq_death_tell(const struct lade_worker *w, const struct lq_settle *s,
                   const struct lq_job *body, struct lb_slice old_history)
{
    bool dropped = s->to == LQ_TO_GONE;
    if (!w->on_dead || (s->to != LQ_TO_DEAD && !dropped))
        return;
    struct lb_slice history = s->history.n > 0 ? s->history : old_history;
    struct lb_slice error = last_error(history);
    char id[LADE_ID_MAX + 1];
    memcpy(id, s->id.p, s->id.n);
    id[s->id.n] = 0;
    lade_death death = {.queue = s->queue,
                        .id = id,
                        .kind = body ? body->kind : "",
                        .reason =
                            s->reason == LQ_REASON_NONE ? "discarded" : lq_reason_name(s->reason),
                        .discarded = dropped,
                        .error = {error.p, error.n},
                        .attempts = lq_history_attempts(history),
                        .crashes = lq_history_crashes(history)};
    if (body)
        death.payload = (lade_bytes){body->payload.p, body->payload.n};
    w->on_dead(w->on_dead_ctx, &death);
}
