/* fleet_step.c - what a worker sends next, and what the answers mean; see fleet.h */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "resque/resque_failure.h"
#include "resque_bench/fleet_inner.h"

#define PUT_MAX   1000 /* jobs of one write of the producer */
#define ROUND_MAX 1000 /* workers of one write */

static struct ls_redis_cmd *begin(struct rb_worker *w, size_t args, const char *name)
{
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(w->lane->conn, args);
    ls_redis_arg_str(cmd, name);
    w->replies++;
    return cmd;
}

static void add_key(struct rb_fleet *f, struct ls_redis_cmd *cmd)
{
    ls_redis_arg(cmd, f->key.p, f->key.n);
    lb_buf_clear(&f->key);
}

static void add_queue(struct rb_fleet *f, struct ls_redis_cmd *cmd, size_t i)
{
    rq_key_queue(&f->server->keys, &f->key, lb_slice_str(f->server->queue[i]));
    add_key(f, cmd);
}

static void add_own(struct rb_fleet *f, struct ls_redis_cmd *cmd, const struct rb_worker *w,
                    const char *kind)
{
    rb_own_key(f->server, &f->key, kind, w->number);
    add_key(f, cmd);
}

static void send_simple(struct rb_fleet *f, struct rb_worker *w, const char *name, const char *key)
{
    struct ls_redis_cmd *cmd = begin(w, 2, name);
    rq_key(&f->server->keys, &f->key, key);
    add_key(f, cmd);
    ls_redis_cmd_end(cmd);
}

static void send_own(struct rb_fleet *f, struct rb_worker *w, const char *name, const char *kind,
                     const char *value)
{
    struct ls_redis_cmd *cmd = begin(w, value ? 3 : 2, name);
    add_own(f, cmd, w, kind);
    if (value)
        ls_redis_arg_str(cmd, value);
    ls_redis_cmd_end(cmd);
}

static void send_doing(struct rb_fleet *f, struct rb_worker *w)
{
    struct lb_buf doing = {0};
    struct ls_redis_cmd *cmd = begin(w, 3, "SET");
    add_own(f, cmd, w, RB_OWN_WORKER);
    rq_working_write(&doing, lb_slice_str(f->server->queue[w->queue]),
                     lb_clock_wall() / LADE_SECOND, lb_buf_slice(&w->entry));
    ls_redis_arg_slice(cmd, lb_buf_slice(&doing));
    ls_redis_cmd_end(cmd);
    lb_buf_fini(&doing);
}

static struct ls_redis_cmd *begin_blpop(struct rb_fleet *f, struct rb_worker *w)
{
    struct ls_redis_cmd *cmd = begin(w, 2 + f->server->n_queues, "BLPOP");
    for (size_t i = 0; i < f->server->n_queues; i++)
        add_queue(f, cmd, i);
    ls_redis_arg_int(cmd, f->o->block_s);
    return cmd;
}

static struct ls_redis_cmd *begin_blmove(struct rb_fleet *f, struct rb_worker *w)
{
    struct ls_redis_cmd *cmd;
    if (w->entry.n > 0) { /* the one before is done */
        cmd = begin(w, 4, "LREM");
        add_own(f, cmd, w, RB_OWN_INFLIGHT);
        ls_redis_arg_str(cmd, "1");
        ls_redis_arg_slice(cmd, lb_buf_slice(&w->entry));
        ls_redis_cmd_end(cmd);
        lb_buf_clear(&w->entry);
        w->behind = true;
    }
    cmd = begin(w, 6, "BLMOVE");
    add_queue(f, cmd, 0);
    add_own(f, cmd, w, RB_OWN_INFLIGHT);
    ls_redis_arg_str(cmd, "LEFT");
    ls_redis_arg_str(cmd, "RIGHT");
    ls_redis_arg_int(cmd, f->o->block_s);
    return cmd;
}

static void send_pop(struct rb_fleet *f, struct rb_worker *w)
{
    struct ls_redis_cmd *cmd;
    f->count.polls++;
    w->behind = false;
    if (f->mode == RB_BLPOP) {
        cmd = begin_blpop(f, w);
    } else if (f->mode == RB_BLMOVE) {
        cmd = begin_blmove(f, w);
    } else {
        cmd = begin(w, 2, "LPOP");
        add_queue(f, cmd, w->queue);
    }
    ls_redis_cmd_end(cmd);
}

/* All that is due, each with the time at which it was. */
static void send_puts(struct rb_fleet *f, struct rb_worker *w)
{
    struct rb_arrivals *a = &f->arrivals;
    while (a->sent < a->n && rb_due_at(a, a->sent) <= w->sent_at && w->putting < PUT_MAX) {
        struct ls_redis_cmd *cmd = begin(w, 3, "RPUSH");
        add_queue(f, cmd, a->sent % f->server->n_queues);
        rb_job_write(&f->key, f->o, a->sent, rb_due_at(a, a->sent) + f->wall_offset);
        add_key(f, cmd);
        ls_redis_cmd_end(cmd);
        a->sent++;
        w->putting++;
    }
}

static void write_stage(struct rb_fleet *f, struct rb_worker *w)
{
    switch (w->stage) {
    case RB_ASLEEP:
    case RB_STOPPED:
    case RB_DOWN:
        break;
    case RB_PUTTING:
        send_puts(f, w);
        break;
    case RB_PAUSE:
        send_simple(f, w, "GET", RQ_KEY_PAUSE);
        break;
    case RB_NAMES:
    case RB_NAMES_2:
        send_simple(f, w, "SMEMBERS", RQ_KEY_QUEUES);
        break;
    case RB_POP:
        send_pop(f, w);
        break;
    case RB_DOING:
        send_doing(f, w);
        break;
    case RB_DOING_2:
    case RB_STATE:
        send_own(f, w, "GET", RB_OWN_WORKER, NULL);
        break;
    case RB_DONE:
        /* Resque's stat:processed is the fleet's as a whole and not ours to count in: a key beside it costs the same. */
        send_own(f, w, "DEL", RB_OWN_WORKER, NULL);
        send_own(f, w, "INCRBY", RB_OWN_ALL, "1");
        send_own(f, w, "INCRBY", RB_OWN_COUNT, "1");
        break;
    }
}

/* A job that was taken is carried to its end. */
static bool is_begun(enum rb_stage stage)
{
    return stage == RB_DOING || stage == RB_DOING_2 || stage == RB_DONE;
}

void rb_line_add(struct rb_line *l, struct rb_worker *w)
{
    w->next = NULL;
    if (l->last)
        l->last->next = w;
    else
        l->first = w;
    l->last = w;
}

struct rb_worker *rb_line_take(struct rb_line *l)
{
    struct rb_worker *w = l->first;
    if (!w)
        return NULL;
    l->first = w->next;
    if (!l->first)
        l->last = NULL;
    return w;
}

void rb_lane_flush(struct rb_fleet *f, struct rb_lane *lane)
{
    if (lane->fd < 0 || lane->answering || lane->flight.first || !lane->ready.first)
        return;
    int64_t now = lb_clock_mono();
    for (size_t n = 0; n < ROUND_MAX && lane->ready.first; n++) {
        struct rb_worker *w = rb_line_take(&lane->ready);
        if (f->quiet && !is_begun(w->stage)) {
            w->stage = RB_STOPPED;
            continue;
        }
        w->replies = 0;
        w->sent_at = now;
        if (w->cycle_at == 0)
            w->cycle_at = now;
        write_stage(f, w);
        rb_line_add(&lane->flight, w);
        f->outstanding++;
    }
    if (!lane->flight.first)
        return;
    /* A socket that takes not even commands this small is one that is dead. */
    if (ls_redis_conn_send(lane->conn, lb_deadline_in(5 * LADE_SECOND), NULL) < 0)
        rb_lane_lost(f, lane);
}

void rb_send(struct rb_fleet *f, struct rb_worker *w, enum rb_stage stage)
{
    if (f->quiet && !is_begun(stage)) {
        w->stage = RB_STOPPED;
        return;
    }
    w->stage = stage;
    rb_line_add(&w->lane->ready, w);
    rb_lane_flush(f, w->lane);
}

void rb_begin(struct rb_fleet *f, struct rb_worker *w)
{
    w->queue = 0;
    w->cycle_at = 0;
    rb_send(f, w, f->mode == RB_POLL && f->o->resque_profile ? RB_PAUSE : RB_POP);
}

/* answers ---------------------------------------------------------------------------------------------------------- */

static void count_answer(struct rb_fleet *f, const struct rb_worker *w)
{
    uint64_t *sent = f->count.sent;
    switch (w->stage) {
    case RB_PAUSE:
    case RB_STATE:
    case RB_DOING_2:
        sent[RB_GET]++;
        break;
    case RB_NAMES:
    case RB_NAMES_2:
        sent[RB_SMEMBERS]++;
        break;
    case RB_POP:
        sent[RB_LREM] += w->behind;
        sent[f->mode == RB_BLPOP ? RB_BLPOP_CMD : f->mode == RB_BLMOVE ? RB_BLMOVE_CMD : RB_LPOP]++;
        break;
    case RB_DOING:
        sent[RB_SET]++;
        break;
    case RB_DONE:
        sent[RB_DEL]++;
        sent[RB_INCRBY] += 2;
        break;
    case RB_PUTTING:
        sent[RB_RPUSH] += w->putting;
        break;
    case RB_ASLEEP:
    case RB_STOPPED:
    case RB_DOWN:
        break;
    }
}

/* A full cycle found nothing: sleep, counted from when the answer came, but not from when we were late to ask. */
static void miss(struct rb_fleet *f, struct rb_worker *w, int64_t now)
{
    int64_t late = w->planned > 0 ? LB_MAX(w->cycle_at - w->planned, 0) : 0;
    f->count.cycles++;
    f->count.cycle_ns += now - w->cycle_at;
    int64_t pause = rq_pace_miss(&w->pace);
    int64_t at = now - LB_MIN(late, pause) + pause;
    w->stage = f->quiet ? RB_STOPPED : RB_ASLEEP;
    w->planned = at;
    if (!f->quiet)
        rb_heap_add(f, w, at);
}

static void take_entry(struct rb_fleet *f, struct rb_worker *w, struct lb_slice entry, int64_t now)
{
    uint64_t index;
    int64_t put_at;
    enum rb_entry what = rb_job_read(f->server, entry, &index, &put_at);
    rq_pace_hit(&w->pace);
    if (what == RB_OURS) {
        int64_t ns = LB_MAX(now + f->wall_offset - put_at, 1000);
        f->count.hits++;
        f->count.sum += index;
        f->count.mix ^= (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
        f->last_hit = now;
        if (f->latency)
            lb_hdr_add(f->latency, ns);
        if (f->second)
            lb_hdr_add(f->second, ns);
    } else {
        if (what == RB_BROKEN) {
            f->count.broken++;
            f->count.errors++;
        } else {
            f->count.foreign++;
        }
        if (!rb_server_hold(f->server, w->queue, entry))
            f->overflow = true;
    }
    if (f->mode == RB_BLMOVE || f->o->resque_profile) {
        lb_buf_clear(&w->entry);
        lb_buf_add(&w->entry, entry.p, entry.n);
    }
}

/* Which queue a BLPOP took from, by the key that it answers. */
static uint32_t queue_of(const struct rb_fleet *f, struct lb_slice key)
{
    size_t skip = f->server->keys.n + 6; /* "queue:" */
    for (size_t i = 0; i < f->server->n_queues; i++)
        if (key.n >= skip &&
            lb_slice_eq(lb_slice(key.p + skip, key.n - skip), lb_slice_str(f->server->queue[i])))
            return (uint32_t)i;
    return 0;
}

static void next_after_hit(struct rb_fleet *f, struct rb_worker *w)
{
    w->planned = 0;
    if (f->mode == RB_POLL && f->o->resque_profile)
        rb_send(f, w, RB_DOING);
    else
        rb_begin(f, w);
}

static void popped(struct rb_fleet *f, struct rb_worker *w, int64_t now)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(w->lane->conn, w->reply + w->behind);
    enum ls_redis_type type = ls_redis_peek(&cur);
    if (f->rtt && f->mode == RB_POLL)
        lb_hdr_add(f->rtt, now - w->sent_at);
    if (type == LS_REDIS_ERROR) {
        f->count.errors++;
        miss(f, w, now);
        return;
    }
    if (type == LS_REDIS_NULL) {
        f->count.misses++;
        if (f->mode != RB_POLL) {
            rb_begin(f, w);
        } else if (++w->queue < f->server->n_queues) {
            rb_send(f, w, RB_POP);
        } else if (f->o->resque_profile) {
            rb_send(f, w, RB_STATE);
        } else {
            miss(f, w, now);
        }
        return;
    }
    if (f->mode == RB_BLPOP) {
        (void)ls_redis_read_array(&cur);
        w->queue = queue_of(f, ls_redis_read_bytes(&cur));
    }
    take_entry(f, w, ls_redis_read_bytes(&cur), now);
    next_after_hit(f, w);
}

static void put_answered(struct rb_fleet *f, struct rb_worker *w)
{
    f->arrivals.acked += w->putting;
    w->putting = 0;
    w->stage = RB_STOPPED;
    rb_put_due(f, lb_clock_mono());
}

static void answered(struct rb_fleet *f, struct rb_worker *w, int64_t now)
{
    f->outstanding--;
    count_answer(f, w);
    switch (w->stage) {
    case RB_ASLEEP:
    case RB_STOPPED:
    case RB_DOWN:
        break;
    case RB_PAUSE:
        rb_send(f, w, f->o->dynamic ? RB_NAMES : RB_POP);
        break;
    case RB_NAMES:
        rb_send(f, w, RB_POP);
        break;
    case RB_POP:
        popped(f, w, now);
        break;
    case RB_DOING:
        rb_send(f, w, RB_DOING_2);
        break;
    case RB_DOING_2:
        rb_send(f, w, RB_DONE);
        break;
    case RB_DONE:
        lb_buf_clear(&w->entry);
        rb_begin(f, w);
        break;
    case RB_STATE:
        if (f->o->dynamic)
            rb_send(f, w, RB_NAMES_2);
        else
            miss(f, w, now);
        break;
    case RB_NAMES_2:
        miss(f, w, now);
        break;
    case RB_PUTTING:
        put_answered(f, w);
        break;
    }
}

void rb_lane_answered(struct rb_fleet *f, struct rb_lane *lane, int64_t now)
{
    size_t at = 0;
    struct rb_line round = lane->flight;
    lane->flight = (struct rb_line){0};
    lane->answering = true;
    for (struct rb_worker *w = rb_line_take(&round); w; w = rb_line_take(&round)) {
        w->reply = at;
        at += w->replies;
        answered(f, w, now);
    }
    lane->answering = false;
    rb_lane_flush(f, lane);
}

/* the producer ----------------------------------------------------------------------------------------------------- */

/* The same in every run: a number mixed (splitmix64, Steele, Lea, Flood 2014) is chance enough. */
int64_t rb_due_at(const struct rb_arrivals *a, uint64_t i)
{
    uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    int64_t jitter = a->jitter ? (int64_t)(z % (uint64_t)a->gap) : 0;
    return a->from + (int64_t)i * a->gap + jitter;
}

/* Sends what is due. A job carries the time at which it was due, so that a late producer or server shows in its latency. */
void rb_put_due(struct rb_fleet *f, int64_t now)
{
    struct rb_arrivals *a = &f->arrivals;
    struct rb_worker *w = f->producer;
    if (!w || w->stage != RB_STOPPED || f->quiet)
        return;
    if (a->sent < a->n && rb_due_at(a, a->sent) <= now)
        rb_send(f, w, RB_PUTTING);
    else if (a->sent < a->n)
        rb_heap_add(f, w, rb_due_at(a, a->sent));
}
