/*
 * resque_adopt.c - what became of entries that the server has handed over
 *
 * An entry that is no job kills a Ruby worker, or is lost with it. Here it goes to the failed list, its text kept in a form that
 * resque-web can show. The others become jobs, and what their slots are at is told in worker:<id>, as Ruby does after its pop.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque/resque_failure.h"
#include "resque/resque_json.h"
#include "store/resque/resque_inner.h"

struct ls_redis_cmd *ls_resque_begin_trip(struct ls_redis_conn *c, const struct ls_resque_pieces *p,
                                          size_t n_more, bool repeat)
{
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_RESQUE_LUA_TRIP, 0, 4 + 6 * p->n + n_more);
    ls_redis_arg(cmd, p->s->keys.prefix, p->s->keys.n);
    ls_redis_arg_str(cmd, p->lenient || repeat ? "1" : "0");
    ls_redis_arg_str(cmd, p->s->multi ? "1" : "0");
    ls_redis_arg_u64(cmd, p->n);
    for (size_t i = 0; i < p->n; i++) {
        const struct ls_resque_piece *it = &p->piece[i];
        const uint8_t *text = p->texts.p ? p->texts.p + it->at : NULL;
        ls_redis_arg(cmd, &it->action, 1);
        ls_redis_arg_slice(cmd, it->worker);
        ls_redis_arg_u64(cmd, it->fence);
        ls_redis_arg(cmd, text, it->n_id);
        ls_redis_arg(cmd, it->n_before > 0 ? text + it->n_id : NULL, it->n_before);
        ls_redis_arg(cmd, it->n_after > 0 ? text + it->n_id + it->n_before : NULL, it->n_after);
    }
    return cmd;
}

void ls_resque_add_failure(struct ls_resque_pieces *p, struct ls_resque_piece *piece,
                           const struct ls_resque_words *words)
{
    static const char gap[] = "\"payload\":null";
    size_t from = p->texts.n;
    struct rq_failure f = {.failed_at = lb_clock_wall() / LADE_SECOND,
                           .payload = words->payload.n > 0 ? words->payload : lb_slice_str("null"),
                           .exception = words->exception,
                           .error = words->error,
                           .worker = words->worker,
                           .queue = words->queue};
    rq_failure_write(&p->texts, &f);
    if (p->texts.failed)
        return;
    piece->n_before = p->texts.n - from;
    if (words->payload.n > 0)
        return;
    /* The entry goes where the null is; the time before it has no such text. */
    uint8_t *at = memmem(p->texts.p + from, piece->n_before, gap, strlen(gap));
    assert(at);
    at += strlen("\"payload\":");
    size_t before = (size_t)(at - p->texts.p) - from;
    size_t after = piece->n_before - before - strlen("null");
    memmove(at, at + strlen("null"), after);
    p->texts.n -= strlen("null");
    piece->n_before = before;
    piece->n_after = after;
}

struct adopt {
    struct ls_resque_store *s;
    struct ls_resque_worker *w;
    struct ls_resque_pieces failed;
    struct lb_buf working; /* of each slot that is not shown yet: its id, and what it is at */
    struct lb_buf hidden;  /* ids of slots that show what is no job, each with a NUL */
    struct lb_buf body, text;
    size_t *at; /* two for each job with a slot, and the end */
    size_t n_working;
    int64_t now_ms;
};

static void encode_working(struct ls_redis_conn *c, const struct adopt *a)
{
    if (a->n_working == 0)
        return;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 1 + 2 * a->n_working);
    ls_redis_arg_str(cmd, "MSET");
    for (size_t i = 0; i < a->n_working; i++) {
        const uint8_t *p = a->working.p;
        const size_t *at = a->at + 2 * i;
        ls_resque_key_of(cmd, a->s, "worker:", lb_slice(p + at[0], at[1] - at[0]));
        ls_redis_arg(cmd, p + at[1], at[2] - at[1]);
    }
    ls_redis_cmd_end(cmd);
}

static void encode_hidden(struct ls_redis_conn *c, const struct adopt *a)
{
    if (a->hidden.n == 0)
        return;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 1 + a->failed.n);
    ls_redis_arg_str(cmd, "DEL");
    for (size_t at = 0; at < a->hidden.n;) {
        struct lb_slice id = lb_slice_str((const char *)a->hidden.p + at);
        ls_resque_key_of(cmd, a->s, "worker:", id);
        at += id.n + 1;
    }
    ls_redis_cmd_end(cmd);
}

static void encode_adopt(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct adopt *a = ctx;
    encode_working(c, a);
    encode_hidden(c, a);
    if (a->failed.n > 0)
        ls_redis_cmd_end(ls_resque_begin_trip(c, &a->failed, 0, true));
}

/* The failed list instead. */
static void fail(struct adopt *a, const struct ls_resque_held *h, enum rq_bad bad, const char *why,
                 const struct rq_job *job)
{
    struct ls_resque_piece *piece = &a->failed.piece[a->failed.n++];
    struct ls_resque_words words = {.payload = h->entry, .queue = h->queue};
    struct lb_buf wrapped, id;
    lb_buf_init(&wrapped);
    lb_buf_init(&id);
    *piece = (struct ls_resque_piece){.action = 'F',
                                      .worker = lb_slice_str(a->w->known.id),
                                      .fence = h->fence,
                                      .at = a->failed.texts.n};
    lb_buf_clear(&a->text);
    if (h->lost) {
        struct lb_buf klass;
        lb_buf_init(&klass);
        (void)rq_json_unquote(&klass, job->klass);
        rq_prune_text(&a->text, h->former_id, lb_buf_slice(&klass));
        lb_buf_fini(&klass);
        words.exception = RQ_PRUNE_DIRTY_EXIT;
        lb_buf_add(&id, h->former_id.p, h->former_id.n);
    } else {
        lb_buf_add_fmt(&a->text, bad == RQ_FINE ? "%s" : "the entry %s", why);
        words.exception = bad == RQ_NOT_JSON ? "Resque::Helpers::DecodeException" : "ArgumentError";
        if (a->w->n_slots > 0)
            ls_resque_slot_id(a->s, a->w, 0, &id);
    }
    if (bad == RQ_NOT_JSON || bad == RQ_NOT_OBJECT) { /* the web looks for members of an object */
        lb_buf_add_str(&wrapped, "{\"class\":null,\"args\":[");
        rq_json_quote_lossy(&wrapped, h->entry);
        lb_buf_add_str(&wrapped, "]}");
        words.payload = lb_buf_slice(&wrapped);
    }
    words.error = lb_buf_slice(&a->text);
    words.worker = lb_buf_slice(&id);
    ls_resque_add_failure(&a->failed, piece, &words);
    a->failed.texts.failed =
        a->failed.texts.failed || wrapped.failed || id.failed || a->text.failed;
    lb_buf_fini(&wrapped);
    lb_buf_fini(&id);
}

/* A job in the arena. False when out of memory. */
static bool lease(struct adopt *a, const struct ls_resque_held *h, struct lq_leased_vec *out)
{
    struct lq_leased *l = &out->job[out->n];
    char id[LADE_ID_MAX + 1];
    int n = snprintf(id, sizeof(id), "%s.%llu", a->w->known.id, (unsigned long long)h->fence);
    *l = (struct lq_leased){.fence = h->fence, .lane = h->lane, .begun = h->begun};
    l->oversize = a->body.n > a->s->base.config.body_max;
    l->id = lb_arena_copy(&out->arena, id, (size_t)n);
    l->body = lb_arena_copy(&out->arena, a->body.p, l->oversize ? 0 : a->body.n);
    l->history = lb_arena_copy(&out->arena, h->history.p, h->history.n);
    (void)snprintf(l->former, sizeof(l->former), "%.*s", (int)LB_MIN(h->former.n, LADE_ID_MAX),
                   h->former.n > 0 ? (const char *)h->former.p : "");
    if (h->named)
        l->queue = (const char *)lb_arena_copy(&out->arena, h->queue.p, h->queue.n).p;
    out->n++;
    return l->id.p && l->body.p && l->history.p && (l->queue || !h->named);
}

/* The slot of a job that was taken shows it. One of a reclaim is only passed on. */
static void show(struct adopt *a, const struct ls_resque_held *h, size_t slot)
{
    a->w->slot[slot] = h->fence;
    if (h->shown)
        return;
    size_t *at = a->at + 2 * a->n_working++;
    at[0] = a->working.n;
    ls_resque_slot_id(a->s, a->w, slot, &a->working);
    at[1] = a->working.n;
    rq_working_write(&a->working, h->queue, lb_clock_wall() / LADE_SECOND, h->entry);
    at[2] = a->working.n;
}

/* It is no job after all. */
static void hide(struct adopt *a, size_t slot)
{
    ls_resque_slot_id(a->s, a->w, slot, &a->hidden);
    lb_buf_add_byte(&a->hidden, 0);
}

static int adopt_all(struct adopt *a, const struct ls_resque_held *held, size_t n,
                     struct lq_leased_vec *out, lade_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct rq_job job;
        enum rq_bad bad = rq_job_read(&job, held[i].entry);
        lb_buf_clear(&a->body);
        const char *why = bad == RQ_FINE ? NULL : rq_bad_text(bad);
        if (bad == RQ_FINE && !held[i].lost)
            why = ls_resque_body_write(&a->body, &job, a->now_ms);
        if (a->body.failed)
            return lb_fail_nomem(err, "take");
        if (why || held[i].lost) {
            fail(a, &held[i], bad, why, &job);
            if (held[i].shown && i < a->w->n_plan)
                hide(a, a->w->plan[i]);
            continue;
        }
        if (!lease(a, &held[i], out))
            return lb_fail_nomem(err, "take");
        if (held[i].former.n == 0 && i < a->w->n_plan)
            show(a, &held[i], a->w->plan[i]);
        else if (held[i].former.n == 0 && !ls_resque_ahead_add(&a->w->ahead, held[i].fence))
            return lb_fail_nomem(err, "take");
    }
    return a->working.failed || a->hidden.failed || a->failed.texts.failed
               ? lb_fail_nomem(err, "take")
               : 0;
}

static int tell(struct adopt *a, bool has_jobs, lade_err *err)
{
    if (a->n_working + a->failed.n == 0)
        return 0;
    struct ls_resque_ask ask = {encode_adopt, a, "take", false};
    struct ls_redis_conn *c;
    int rc = ls_resque_ask(a->s, &a->s->work, &ask, 1, &c, err);
    /* What is held is held: the jobs run without being shown, and bad entries stay with us until we leave. */
    return rc < 0 && has_jobs ? 0 : rc;
}

int ls_resque_adopt(struct ls_resque_store *s, struct ls_resque_worker *w,
                    const struct ls_resque_held *held, size_t n, struct lq_leased_vec *out,
                    lade_err *err)
{
    struct adopt a = {.s = s, .w = w, .failed = {.s = s}, .now_ms = lb_clock_wall() / 1000000};
    struct lq_leased *jobs = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*jobs));
    a.failed.piece = lb_calloc(n, sizeof(*a.failed.piece));
    a.at = lb_malloc((2 * n + 1) * sizeof(*a.at));
    lb_buf_init(&a.failed.texts);
    lb_buf_init(&a.working);
    lb_buf_init(&a.hidden);
    lb_buf_init(&a.body);
    lb_buf_init(&a.text);
    int rc = 0;
    if (!jobs || !a.failed.piece || !a.at) {
        rc = lb_fail_nomem(err, "take");
    } else {
        if (out->n > 0)
            memcpy(jobs, out->job, out->n * sizeof(*jobs));
        out->job = jobs;
        rc = adopt_all(&a, held, n, out, err);
    }
    if (rc == 0)
        rc = tell(&a, out->n > 0, err);
    lb_free(a.failed.piece);
    lb_free(a.at);
    lb_buf_fini(&a.failed.texts);
    lb_buf_fini(&a.working);
    lb_buf_fini(&a.hidden);
    lb_buf_fini(&a.body);
    lb_buf_fini(&a.text);
    return rc;
}
