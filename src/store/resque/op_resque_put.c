/*
 * op_resque_put.c - enqueue as Ruby does: SADD queues, RPUSH queue:<q>; and later ones as resque-scheduler does
 *
 * One SADD for each queue of a call and as few RPUSH as there can be. Jobs of several queues, and later ones, go in one MULTI, so that they are
 * there together or not at all. A time that has passed is now, as it is to the scheduler; a part of a second counts as a whole one. A call whose reply was lost is not sent again: Resque could not tell the second from the first.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque/resque_delayed.h"
#include "store/resque/resque_inner.h"

#define PUSH_MAX 5000 /* values of one RPUSH */

struct put_call {
    const struct ls_resque_store *s;
    const struct lq_put *put;
    size_t n;
    struct lb_buf entries;
    size_t *at;   /* where each entry begins, n + 1 */
    uint32_t *of; /* index of the first item of its queue; LATER */
    size_t n_queues, n_later;
    int64_t
        now_ms; /* of the server, when something is later; of this machine, when a job says it; else 0 */
};

#define LATER UINT32_MAX

static struct lb_slice entry_of(const struct put_call *p, size_t i)
{
    return lb_slice(p->entries.p + p->at[i], p->at[i + 1] - p->at[i]);
}

static void encode_word(struct ls_redis_conn *c, const char *word)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 1);
    ls_redis_arg_str(cmd, word);
    ls_redis_cmd_end(cmd);
}

/* The entries of the queue of item `first`. */
static void encode_queue(struct ls_redis_conn *c, const struct put_call *p, size_t first)
{
    struct lb_slice queue = lb_slice_str(p->put[first].queue);
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "SADD");
    ls_resque_key(cmd, p->s, RQ_KEY_QUEUES);
    ls_redis_arg_slice(cmd, queue);
    ls_redis_cmd_end(cmd);
    cmd = NULL;
    size_t in_push = 0;
    for (size_t i = first; i < p->n; i++) {
        if (p->of[i] != first)
            continue;
        if (in_push == 0) {
            cmd = ls_redis_conn_begin(c, 2 + LB_MIN(p->n - i, PUSH_MAX));
            ls_redis_arg_str(cmd, "RPUSH");
            ls_resque_key_of(cmd, p->s, "queue:", queue);
        }
        ls_redis_arg_slice(cmd, entry_of(p, i));
        if (++in_push == PUSH_MAX) {
            ls_redis_cmd_end(cmd);
            in_push = 0;
        }
    }
    if (in_push > 0)
        ls_redis_cmd_end(cmd);
}

/* When a job is due, in seconds; 0 = it is now. */
static int64_t due_of(const struct put_call *p, const struct lq_put *put)
{
    int64_t at = put->when_ms;
    if (put->when == LQ_WHEN_NOW)
        return 0;
    if (put->when == LQ_WHEN_IN && __builtin_add_overflow(p->now_ms, at, &at))
        at = INT64_MAX;
    int64_t seconds = at / 1000 + (at % 1000 > 0);
    return seconds <= p->now_ms / 1000 ? 0 : seconds;
}

static void add_list(struct ls_redis_cmd *cmd, const char *prefix, size_t n, int64_t at)
{
    char name[64];
    int len = snprintf(name, sizeof(name), "delayed:%lld", (long long)at);
    uint8_t *to = ls_redis_arg_room(cmd, n + (size_t)len);
    if (!to)
        return;
    if (n > 0)
        memcpy(to, prefix, n);
    memcpy(to + n, name, (size_t)len);
}

/* As delayed_push. */
static void encode_later(struct ls_redis_conn *c, const struct put_call *p, size_t i)
{
    int64_t at = due_of(p, &p->put[i]);
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "RPUSH");
    add_list(cmd, p->s->keys.prefix, p->s->keys.n, at);
    ls_redis_arg_slice(cmd, entry_of(p, i));
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 3);
    ls_redis_arg_str(cmd, "SADD");
    ls_resque_key_of(cmd, p->s, "timestamps:", entry_of(p, i));
    add_list(cmd, NULL, 0, at);
    ls_redis_cmd_end(cmd);
    cmd = ls_redis_conn_begin(c, 4);
    ls_redis_arg_str(cmd, "ZADD");
    ls_resque_key(cmd, p->s, RQ_KEY_SCHEDULE);
    ls_redis_arg_int(cmd, at);
    ls_redis_arg_int(cmd, at);
    ls_redis_cmd_end(cmd);
}

static void encode_put(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct put_call *p = ctx;
    bool multi = p->n_queues > 1 || p->n_later > 0 || p->n > PUSH_MAX;
    if (multi)
        encode_word(c, "MULTI");
    for (size_t i = 0; i < p->n; i++) {
        if (p->of[i] == i)
            encode_queue(c, p, i);
        else if (p->of[i] == LATER)
            encode_later(c, p, i);
    }
    if (multi)
        encode_word(c, "EXEC");
}

/* Which items share a queue: O(n) when they come in stretches, as they do. */
static void group(struct put_call *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (due_of(p, &p->put[i]) > 0) {
            p->of[i] = LATER;
            p->n_later++;
            continue;
        }
        size_t k = 0;
        if (i > 0 && p->of[i - 1] != LATER && strcmp(p->put[i].queue, p->put[i - 1].queue) == 0)
            k = p->of[i - 1];
        while (k < i && !(p->of[k] == k && strcmp(p->put[k].queue, p->put[i].queue) == 0))
            k++;
        p->of[i] = (uint32_t)k;
        p->n_queues += k == i;
    }
}

static int write_entries(struct put_call *p, lade_err *err)
{
    for (size_t i = 0; i < p->n; i++) {
        struct ls_resque_entry e = {p->s->active, due_of(p, &p->put[i]) > 0, p->now_ms};
        p->at[i] = p->entries.n;
        int rc = ls_resque_entry_write(&p->entries, &e, &p->put[i], err);
        if (rc < 0)
            return rc;
    }
    p->at[p->n] = p->entries.n;
    return 0;
}

/* The clock of the call: the server's, which counts for what is due, is asked only then. */
static int read_clock(struct put_call *p, struct lq_store *base, lade_err *err)
{
    if (p->s->active)
        p->now_ms = lb_clock_wall() / LADE_MILLISECOND;
    for (size_t i = 0; i < p->n; i++)
        if (p->put[i].when != LQ_WHEN_NOW)
            return ls_resque_now(base, &p->now_ms, err);
    return 0;
}

int ls_resque_put(struct lq_store *base, struct lq_put *put, size_t n, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct put_call p = {.s = s, .put = put, .n = n};
    lb_buf_init(&p.entries);
    p.at = lb_malloc((n + 1) * sizeof(*p.at));
    p.of = lb_malloc(n * sizeof(*p.of));
    int rc = p.at && p.of ? read_clock(&p, base, err) : lb_fail_nomem(err, "enqueue");
    if (rc == 0 && p.at && p.of)
        rc = write_entries(&p, err);
    if (rc == 0 && n > 0 && p.of) {
        group(&p);
        struct ls_resque_ask ask = {encode_put, &p, "enqueue", true};
        struct ls_redis_conn *c;
        lr_mutex_lock(&s->put.lock);
        rc = ls_resque_ask(s, &s->put, &ask, 1, &c, err);
        if (rc == -LADE_EUNAVAILABLE && s->put.conn && ls_redis_conn_may_have_run(s->put.conn))
            rc = lb_fail(
                err, LADE_EUNAVAILABLE, "enqueue",
                "%s went away before it answered: the jobs may be there or not; look at the "
                "queue before you enqueue them again, for Resque does not know a second one",
                s->url.text);
        lr_mutex_unlock(&s->put.lock);
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        put[i].outcome = LADE_DONE;
        put[i].holder[0] = 0;
    }
    lb_free(p.at);
    lb_free(p.of);
    lb_buf_fini(&p.entries);
    return rc;
}
