/*
 * op_resque_jobs.c - jobs that lie in Resque's lists, one by one: lua/find.lua, lua/move.lua
 *
 * Resque knows a failure by its place in the list, which changes while one looks. Here it has an id: its failure_id, or "f-" and the
 * digest of its bytes; a delayed job has its time and the digest, one in a queue "r-" and the digest, one that runs its lease. To retry a failure puts the job into its queue and takes the failure away in one
 * step, so that it cannot be retried twice; resque-web leaves it there and notes retried_at.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/history.h"
#include "resque/resque_delayed.h"
#include "resque/resque_failure.h"
#include "resque/resque_json.h"
#include "resque/resque_time.h"
#include "store/resque/resque_inner.h"
#include "store/resque/resque_move.h"

/* A job that was found; the bytes are of the reply, or in an arena. */
struct found {
    struct lb_slice id, list, value;
};

struct find_call {
    struct ls_resque_store *s;
    const char *queue;
    const struct lb_slice *id; /* of "ids" */
    size_t n;
    enum lade_state state; /* of a page */
    bool counts;
    size_t limit;
    const char *from, *last; /* where the page begins: find.lua */
};

/* NULL: there are none of the state, ever. */
static const char *word_of(enum lade_state state)
{
    static const char *const words[LADE_N_STATES] = {[LADE_STATE_DEAD] = "dead",
                                                     [LADE_STATE_READY] = "ready",
                                                     [LADE_STATE_SCHEDULED] = "later",
                                                     [LADE_STATE_ACTIVE] = "active"};
    return words[state];
}

static void encode_find(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct find_call *f = ctx;
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_RESQUE_LUA_FIND, 0, f->id ? 4 + f->n : 7U + f->counts);
    ls_redis_arg(cmd, f->s->keys.prefix, f->s->keys.n);
    ls_redis_arg_str(cmd, f->s->multi ? "1" : "0");
    ls_redis_arg_str(cmd, f->queue);
    if (f->id) {
        ls_redis_arg_str(cmd, "ids");
        for (size_t i = 0; i < f->n; i++)
            ls_redis_arg_slice(cmd, f->id[i]);
    } else {
        if (f->counts)
            ls_redis_arg_str(cmd, "count");
        ls_redis_arg_str(cmd, word_of(f->state));
        ls_redis_arg_u64(cmd, f->limit);
        ls_redis_arg_str(cmd, f->from);
        ls_redis_arg_str(cmd, f->last);
    }
    ls_redis_cmd_end(cmd);
}

static bool begins(struct lb_slice text, const char *with)
{
    return text.n >= strlen(with) && memcmp(text.p, with, strlen(with)) == 0;
}

static enum lade_state state_of(const struct found *f)
{
    if (begins(f->list, "delayed:"))
        return LADE_STATE_SCHEDULED;
    if (begins(f->list, "queue:"))
        return LADE_STATE_READY;
    return memchr(f->id.p, '.', f->id.n) ? LADE_STATE_ACTIVE : LADE_STATE_DEAD;
}

/* rows ------------------------------------------------------------------------------------------------------------- */

/* "Exception: error" as the one attempt; none is kept of those before. */
static void add_history(struct lb_buf *out, const struct rq_failure_raw *f, int64_t at_ms)
{
    struct lb_buf error, worker;
    lb_buf_init(&error);
    lb_buf_init(&worker);
    if (rq_json_unquote(&error, f->exception))
        lb_buf_add_str(&error, ": ");
    (void)rq_json_unquote(&error, f->error);
    (void)rq_json_unquote(&worker, f->worker);
    struct lq_record r = {.number = 1,
                          .ended_ms = at_ms,
                          .started_ms = at_ms,
                          .event = LQ_EVENT_DEAD,
                          .worker = lb_buf_slice(&worker),
                          .error = lb_buf_slice(&error)};
    lq_history_append(out, (struct lb_slice){0}, &r, 1, 0);
    lb_buf_fini(&error);
    lb_buf_fini(&worker);
}

/* The job in an entry, as an envelope; what is none, as it stands. */
static void add_body(struct lb_buf *out, struct lb_slice entry)
{
    struct rq_job job;
    const char *bad = "";
    if (rq_job_read(&job, entry) == RQ_FINE)
        bad = ls_resque_body_write(out, &job, 0);
    if (bad) {
        lb_buf_clear(out);
        lb_buf_add(out, entry.p, entry.n);
    }
}

static void fill_dead(struct lq_row *row, const struct found *f, struct lb_buf *body,
                      struct lb_buf *history)
{
    struct rq_failure_raw raw;
    int64_t at = 0;
    struct lb_buf date;
    lb_buf_init(&date);
    (void)rq_failure_read(&raw, f->value);
    if (rq_json_unquote(&date, raw.failed_at))
        (void)rq_time_read(&at, lb_buf_slice(&date));
    row->finished_ms = at * 1000;
    add_body(body, raw.payload.n > 0 ? raw.payload : f->value);
    add_history(history, &raw, row->finished_ms);
    lb_buf_fini(&date);
}

static void fill_later(struct lq_row *row, const struct found *f, struct lb_buf *body)
{
    struct lb_buf entry, queue;
    lb_buf_init(&entry);
    lb_buf_init(&queue);
    row->run_at_ms = strtoll((const char *)f->list.p + strlen("delayed:"), NULL, 10) * 1000;
    if (rq_delayed_read(&entry, &queue, f->value) || entry.failed)
        lb_buf_add(body, f->value.p, f->value.n);
    else
        add_body(body, lb_buf_slice(&entry));
    lb_buf_fini(&entry);
    lb_buf_fini(&queue);
}

/* Fills a row of the vec's arena. False when out of memory. */
static bool make_row(struct lq_row_vec *out, const char *queue, const struct found *f)
{
    struct lq_row *row = &out->row[out->n];
    struct lb_buf body, history;
    lb_buf_init(&body);
    lb_buf_init(&history);
    *row = (struct lq_row){.queue = queue, .worker = "", .reason = LQ_REASON_NONE};
    row->state = state_of(f);
    if (row->state == LADE_STATE_SCHEDULED)
        fill_later(row, f, &body);
    else if (row->state == LADE_STATE_DEAD)
        fill_dead(row, f, &body, &history);
    else
        add_body(&body, f->value);
    if (row->state == LADE_STATE_ACTIVE)
        row->worker = (const char *)lb_arena_copy(&out->arena, f->list.p, f->list.n).p;
    row->id = lb_arena_copy(&out->arena, f->id.p, f->id.n);
    row->body = lb_arena_copy(&out->arena, body.p, body.n);
    row->history = lb_arena_copy(&out->arena, history.p, history.n);
    row->result = row->unique = lb_arena_copy(&out->arena, NULL, 0);
    bool made = row->worker && row->id.p && row->body.p && row->history.p && row->result.p &&
                !body.failed && !history.failed;
    lb_buf_fini(&body);
    lb_buf_fini(&history);
    out->n += made;
    return made;
}

static int make_rows(struct lq_row_vec *out, const char *queue, const struct found *f, size_t n,
                     lade_err *err)
{
    struct lq_row *rows = lb_arena_alloc(&out->arena, (out->n + n) * sizeof(*rows));
    char *name = lb_arena_strdup(&out->arena, queue);
    if (!rows || !name)
        return lb_fail_nomem(err, "list");
    if (out->n > 0)
        memcpy(rows, out->row, out->n * sizeof(*rows));
    out->row = rows;
    for (size_t i = 0; i < n; i++)
        if (!make_row(out, name, &f[i]))
            return lb_fail_nomem(err, "list");
    return 0;
}

/* find ------------------------------------------------------------------------------------------------------------- */

/* Found by id; {0} = not there. With the admin link locked; in the arena. */
static int find_ids(struct find_call *call, struct lb_arena *arena, struct found *f, lade_err *err)
{
    struct ls_resque_ask ask = {encode_find, call, "find", false};
    struct ls_redis_conn *c;
    int rc = ls_resque_ask(call->s, &call->s->admin, &ask, 1, &c, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur);
    bool whole = n == call->n, kept = true;
    for (size_t i = 0; whole && i < n; i++) {
        bool there = ls_redis_read_array(&cur) == 2;
        f[i] = (struct found){.id = call->id[i]};
        if (!there)
            continue;
        struct lb_slice list = ls_redis_read_bytes(&cur), value = ls_redis_read_bytes(&cur);
        kept = kept && ls_resque_keep(arena, list, &f[i].list) &&
               ls_resque_keep(arena, value, &f[i].value);
    }
    if (!whole || cur.bad)
        return ls_redis_conn_fail_reply(c, "find", err);
    return kept ? 0 : lb_fail_nomem(err, "find");
}

int ls_resque_get(struct lq_store *base, const char *queue, struct lb_slice id,
                  struct lq_row_vec *out, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct find_call call = {.s = s, .queue = queue, .id = &id, .n = 1};
    struct found f = {0};
    lr_mutex_lock(&s->admin.lock);
    int rc = find_ids(&call, &out->arena, &f, err);
    lr_mutex_unlock(&s->admin.lock);
    if (rc < 0)
        return rc;
    return f.list.n == 0 ? LADE_NOT_FOUND : make_rows(out, queue, &f, 1, err);
}

/* A page. The cursor is "from last": a place in the list and the id of the one before, or a timestamp and a place in its list. */
struct page {
    char from[32], last[LADE_ID_MAX + 1];
    bool done;
    struct found *f; /* limit of them, in the arena */
    size_t n;
};

static void begin_page(struct page *p, enum lade_state state, const char *at)
{
    const char *space = strchr(at, ' ');
    bool later = state == LADE_STATE_SCHEDULED;
    (void)snprintf(p->from, sizeof(p->from), "%.*s", space ? (int)(space - at) : 1,
                   space ? at : "0");
    (void)snprintf(p->last, sizeof(p->last), "%s", space ? space + 1 : later ? "0" : "");
}

/* Reads on from p; with the admin link locked. */
static int read_page(struct ls_resque_store *s, const char *queue, enum lade_state state,
                     size_t limit, struct lb_arena *arena, struct page *p, lade_err *err)
{
    struct find_call call = {
        .s = s, .queue = queue, .state = state, .limit = limit, .from = p->from, .last = p->last};
    struct ls_resque_ask ask = {encode_find, &call, "list", false};
    struct ls_redis_conn *c;
    int rc = ls_resque_ask(s, &s->admin, &ask, 1, &c, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur);
    n = n >= 2 ? n - 2 : SIZE_MAX;
    if (n > limit)
        return ls_redis_conn_fail_reply(c, "list", err);
    int64_t next = ls_redis_read_int(&cur), index = ls_redis_read_int(&cur);
    bool kept = true;
    for (p->n = 0; p->n < n; p->n++) {
        struct found *f = &p->f[p->n];
        (void)ls_redis_read_array(&cur);
        struct lb_slice id = ls_redis_read_bytes(&cur), list = ls_redis_read_bytes(&cur);
        struct lb_slice value = ls_redis_read_bytes(&cur);
        kept = kept && ls_resque_keep(arena, id, &f->id) && ls_resque_keep(arena, list, &f->list) &&
               ls_resque_keep(arena, value, &f->value);
    }
    if (cur.bad || !kept)
        return kept ? ls_redis_conn_fail_reply(c, "list", err) : lb_fail_nomem(err, "list");
    p->done = next < 0;
    (void)snprintf(p->from, sizeof(p->from), "%lld", (long long)next);
    if (state == LADE_STATE_SCHEDULED)
        (void)snprintf(p->last, sizeof(p->last), "%lld", (long long)index);
    else
        (void)snprintf(p->last, sizeof(p->last), "%.*s", p->n > 0 ? (int)p->f[p->n - 1].id.n : 0,
                       p->n > 0 ? (const char *)p->f[p->n - 1].id.p : "");
    return 0;
}

/* How many there are; a walk over them all, some at a time. With the admin link locked. */
static int count_all(const struct find_call *of, uint64_t *n, lade_err *err)
{
    struct find_call call = *of;
    struct page p = {0};
    begin_page(&p, call.state, "");
    call.from = p.from;
    call.last = p.last;
    call.counts = true;
    call.limit = INT32_MAX;
    for (*n = 0; !p.done;) {
        struct ls_resque_ask ask = {encode_find, &call, "count", false};
        struct ls_redis_conn *c;
        int rc = ls_resque_ask(call.s, &call.s->admin, &ask, 1, &c, err);
        if (rc < 0)
            return rc;
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        (void)ls_redis_read_array(&cur);
        int64_t next = ls_redis_read_int(&cur), index = ls_redis_read_int(&cur);
        *n += (uint64_t)ls_redis_read_int(&cur);
        if (cur.bad)
            return ls_redis_conn_fail_reply(c, "count", err);
        p.done = next < 0;
        (void)snprintf(p.from, sizeof(p.from), "%lld", (long long)next);
        if (call.state == LADE_STATE_SCHEDULED)
            (void)snprintf(p.last, sizeof(p.last), "%lld", (long long)index);
    }
    return 0;
}

int ls_resque_count_found(struct ls_resque_store *s, const char *queue, lade_queue_info *info,
                          lade_err *err)
{
    struct find_call call = {.s = s, .queue = queue, .state = LADE_STATE_DEAD};
    int rc = count_all(&call, &info->count[LADE_STATE_DEAD], err);
    call.state = LADE_STATE_SCHEDULED;
    return rc < 0 ? rc : count_all(&call, &info->count[LADE_STATE_SCHEDULED], err);
}

int ls_resque_list(struct lq_store *base, const char *queue, enum lade_state state,
                   lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct page p = {0};
    int rc;
    cursor->done = !word_of(state);
    if (cursor->done)
        return LADE_EMPTY;
    p.f = lb_arena_alloc(&out->arena, limit * sizeof(*p.f));
    if (!p.f)
        return lb_fail_nomem(err, "list");
    begin_page(&p, state, cursor->at);
    lr_mutex_lock(&s->admin.lock);
    do
        rc = read_page(s, queue, state, limit, &out->arena, &p, err);
    while (rc == 0 && p.n == 0 && !p.done);
    lr_mutex_unlock(&s->admin.lock);
    if (rc == 0)
        rc = make_rows(out, queue, p.f, p.n, err);
    if (rc < 0)
        return rc;
    cursor->done = p.done;
    (void)snprintf(cursor->at, sizeof(cursor->at), "%s %s", p.from, p.last);
    return p.n == 0 ? LADE_EMPTY : 0;
}

/* act -------------------------------------------------------------------------------------------------------------- */

/* The entry that a queue is to get of a failure's payload: its class and arguments, as they stand. False: it is no job. */
static bool add_entry(struct lb_buf *out, struct lb_slice value)
{
    struct rq_failure_raw raw;
    struct rq_job job;
    if (!rq_failure_read(&raw, value) || rq_job_read(&job, raw.payload) != RQ_FINE)
        return false;
    lb_buf_add_str(out, "{\"class\":");
    lb_buf_add(out, job.klass.p, job.klass.n);
    lb_buf_add_str(out, ",\"args\":");
    lb_buf_add(out, job.args.p, job.args.n);
    lb_buf_add_str(out, job.args.n > 0 ? "}" : "[]}");
    return true;
}

/* LADE_WRONG_STATE: the verb has no meaning for it, or it is no job that could run. */
static int plan(struct ls_resque_move *m, const struct found *f, enum lade_job_verb verb,
                const char *queue, struct lb_arena *arena, lade_err *err)
{
    struct lb_buf entry, name;
    enum lade_state state = state_of(f);
    bool waits = state == LADE_STATE_SCHEDULED || state == LADE_STATE_READY;
    *m = (struct ls_resque_move){.list = f->list, .value = f->value};
    if (state == LADE_STATE_ACTIVE)
        return LADE_WRONG_STATE;
    if (verb == LADE_JOB_REMOVE || (verb == LADE_JOB_CANCEL && waits))
        return 0;
    if (verb == LADE_JOB_KILL && waits)
        return lb_fail(err, LADE_EUNSUPPORTED, "act",
                       "kill: the resque store keeps failures alone among the dead; cancel or "
                       "remove the job");
    if (verb != LADE_JOB_RETRY || state == LADE_STATE_READY)
        return LADE_WRONG_STATE;
    lb_buf_init(&entry);
    lb_buf_init(&name);
    bool fine = waits ? !rq_delayed_read(&entry, &name, f->value) : add_entry(&entry, f->value);
    m->queue = lb_slice_str(queue);
    bool kept = !entry.failed && ls_resque_keep(arena, lb_buf_slice(&entry), &m->entry);
    lb_buf_fini(&entry);
    lb_buf_fini(&name);
    if (!fine)
        return LADE_WRONG_STATE;
    return kept ? 0 : lb_fail_nomem(err, "act");
}

struct act {
    struct ls_resque_store *s;
    const char *queue;
    enum lade_job_verb verb;
    struct lb_arena arena;
};

/* Of the n found those that are there and for which the verb has a meaning; with the admin link locked. */
static int act_on(struct act *a, const struct found *f, size_t n, int *outcome, size_t *n_moved,
                  lade_err *err)
{
    struct ls_resque_move *move = lb_arena_alloc(&a->arena, n * sizeof(*move));
    int *result = lb_arena_alloc(&a->arena, n * sizeof(*result));
    struct ls_resque_moves all = {.s = a->s, .move = move};
    *n_moved = 0;
    if (!f || !move || !result)
        return lb_fail_nomem(err, "act");
    for (size_t i = 0; i < n; i++) {
        outcome[i] = f[i].list.n == 0
                         ? LADE_NOT_FOUND
                         : plan(&move[all.n], &f[i], a->verb, a->queue, &a->arena, err);
        if (outcome[i] < 0)
            return outcome[i];
        all.n += outcome[i] == 0;
    }
    int rc = all.n > 0 ? ls_resque_move(&all, result, n_moved, err) : 0;
    for (size_t i = 0, k = 0; rc == 0 && i < n; i++)
        if (outcome[i] == 0)
            outcome[i] = result[k++];
    return rc;
}

int ls_resque_act(struct lq_store *base, const char *queue, enum lade_job_verb verb,
                  const struct lb_slice *id, size_t n, int *outcome, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct find_call call = {.s = s, .queue = queue, .id = id, .n = n};
    struct act a = {.s = s, .queue = queue, .verb = verb};
    size_t n_moved;
    if (n == 0)
        return 0;
    lb_arena_init(&a.arena);
    struct found *f = lb_arena_alloc(&a.arena, n * sizeof(*f));
    lr_mutex_lock(&s->admin.lock);
    int rc = f ? find_ids(&call, &a.arena, f, err) : lb_fail_nomem(err, "act");
    if (rc == 0)
        rc = act_on(&a, f, n, outcome, &n_moved, err);
    lr_mutex_unlock(&s->admin.lock);
    lb_arena_fini(&a.arena);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = outcome[i];
    return rc;
}

/* The oldest up to max, LADE_MORE when there may be others; what cannot run stays. */
static int act_on_all(struct act *a, enum lade_state state, size_t max, size_t *n, lade_err *err)
{
    struct page p = {0};
    int rc = 0;
    *n = 0;
    begin_page(&p, state, "");
    lr_mutex_lock(&a->s->admin.lock);
    while (rc == 0 && *n < max && !p.done) {
        int outcome[LQ_TAKE_MAX];
        size_t limit = LB_MIN(max - *n, LQ_TAKE_MAX), moved = 0;
        lb_arena_init(&a->arena);
        p.f = lb_arena_alloc(&a->arena, limit * sizeof(*p.f));
        rc = p.f ? read_page(a->s, a->queue, state, limit, &a->arena, &p, err)
                 : lb_fail_nomem(err, "act");
        if (rc == 0 && p.n > 0)
            rc = act_on(a, p.f, p.n, outcome, &moved, err);
        lb_arena_fini(&a->arena);
        *n += moved;
        if (moved > 0 && !p.done)
            begin_page(&p, state, ""); /* the places have changed */
    }
    lr_mutex_unlock(&a->s->admin.lock);
    return rc == 0 && *n == max ? LADE_MORE : rc;
}

int ls_resque_purge(struct lq_store *base, const char *queue, enum lade_state state, size_t max,
                    size_t *n, lade_err *err)
{
    struct act a = {.s = ls_resque_of(base), .queue = queue, .verb = LADE_JOB_REMOVE};
    *n = 0;
    return word_of(state) ? act_on_all(&a, state, max, n, err) : 0;
}

int ls_resque_redrive(struct lq_store *base, const char *queue, size_t max, size_t *n,
                      lade_err *err)
{
    struct act a = {.s = ls_resque_of(base), .queue = queue, .verb = LADE_JOB_RETRY};
    return act_on_all(&a, LADE_STATE_DEAD, max, n, err);
}
