/*
 * op_put.c - new -> ready | scheduled; lua/put.lua, and short ways for usual ones
 *
 * One call of the script holds all items, grouped by queue in the order in which the queues first appear. Where all items of
 * a queue are fresh and plain, those whose ids follow each other go as packs (packs.h).
 *
 * A few fresh plain jobs that came one by one go to the queue's inbox (lua/inbox.lua) by RPUSHX: one native command, a twentieth of what
 * the script costs. Behind it goes the question whether workers wait; when they do, or when the inbox has become long, lua/gather.lua
 * is called, with the RPUSHX itself where the last such put met waiting workers. A put that dies in between has put its jobs: a worker
 * that waits finds them when it renews.
 *
 * Fresh jobs that are due later and nothing else go by lua/later_put.lua.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/redis/inbox.h"
#include "store/redis/packs.h"
#include "store/redis/put_lanes.h"
#include "store/redis/slots.h"

static void encode_special(struct ls_redis_cmd *cmd, const struct lq_put *p, size_t index)
{
    ls_redis_arg_u64(cmd, index);
    ls_redis_arg_int(cmd, p->when);
    ls_redis_arg_int(cmd, p->when_ms);
    ls_redis_arg_slice(cmd, p->unique);
    ls_redis_arg_int(cmd, LB_MAX(p->unique_ttl_ms, 1));
    char until[32];
    int n = snprintf(until, sizeof(until), "%d", (int)p->until);
    if (p->conflict == LQ_CONFLICT_REPLACE)
        n = snprintf(until, sizeof(until), "%dr%" PRId64, (int)p->until, p->bound_ms);
    if (p->conflict == LQ_CONFLICT_TRAIL)
        n = snprintf(until, sizeof(until), "%dt", (int)p->until);
    ls_redis_arg(cmd, until, (size_t)n);
    ls_redis_arg_slice(cmd, p->key);
}

/* The first run of this level from `at` on, or the end of the lane. */
static size_t find_run(const struct ls_redis_put_call *pc, const struct ls_redis_put_lane *l,
                       char level, size_t at)
{
    size_t end = l->first + l->n;
    while (at < end && pc->put[pc->order[at]].body.p[LQ_BODY_LEVEL_AT] != (uint8_t)level)
        at += pc->run[at];
    return at;
}

/* What stands in the ready list for the run at `at`. */
static void add_entry(struct ls_redis_cmd *cmd, const struct ls_redis_put_call *pc, size_t at)
{
    char entry[LS_REDIS_PACK_ID + 12];
    struct lb_slice id = pc->put[pc->order[at]].id;
    int len = snprintf(entry, sizeof(entry), "%.*s+%" PRIu32, LS_REDIS_PACK_ID, (const char *)id.p,
                       pc->run[at]);
    if (pc->run[at] == 1 && !pc->company)
        ls_redis_arg_slice(cmd, id);
    else
        ls_redis_arg(cmd, entry, (size_t)len);
}

/* One level of a packed lane: entries of its ready list, then fields and values. */
static void encode_level(struct ls_redis_cmd *cmd, const struct ls_redis_put_call *pc,
                         const struct ls_redis_put_lane *l, char level)
{
    size_t end = l->first + l->n, m = 0;
    for (size_t at = find_run(pc, l, level, l->first); at < end;
         at = find_run(pc, l, level, at + pc->run[at]))
        m++;
    ls_redis_arg(cmd, &level, 1);
    ls_redis_arg_u64(cmd, m);
    for (size_t at = find_run(pc, l, level, l->first); at < end;
         at = find_run(pc, l, level, at + pc->run[at])) {
        add_entry(cmd, pc, at);
    }
    for (size_t at = find_run(pc, l, level, l->first); at < end;
         at = find_run(pc, l, level, at + pc->run[at])) {
        const struct lq_put *p = &pc->put[pc->order[at]];
        if (pc->run[at] == 1) {
            ls_redis_arg_slice(cmd, p->id);
            ls_redis_arg_slice(cmd, p->body);
        } else {
            char name[LS_REDIS_PACK_NAME_MAX + 1];
            ls_redis_pack_name(name, p->id);
            ls_redis_arg_str(cmd, name);
            ls_redis_pack_add(cmd, pc->put, &pc->order[at], pc->run[at], true);
        }
    }
}

static void encode_singly(struct ls_redis_cmd *cmd, const struct ls_redis_put_call *pc,
                          const struct ls_redis_put_lane *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct lq_put *p = &pc->put[pc->order[l->first + i]];
        ls_redis_arg_slice(cmd, p->id);
        ls_redis_arg_slice(cmd, p->body);
    }
    for (size_t i = 0; l->n_special > 0 && i < l->n; i++) {
        const struct lq_put *p = &pc->put[pc->order[l->first + i]];
        if (ls_redis_put_is_special(p))
            encode_special(cmd, p, i + 1);
    }
}

static void encode_lane(struct ls_redis_cmd *cmd, const struct ls_redis_put_call *pc,
                        const struct ls_redis_put_lane *l)
{
    ls_redis_arg_u64(cmd, l->n);
    ls_redis_arg_u64(cmd, l->longest > LS_REDIS_BIG_BODY ? l->longest : 0);
    ls_redis_arg_int(cmd, l->untimed);
    if (ls_redis_put_is_packed(l)) {
        ls_redis_arg_str(cmd, "p");
        ls_redis_arg_u64(cmd, (unsigned)__builtin_popcount(l->levels));
        for (int level = 0; level < LQ_N_LEVELS; level++) {
            if (l->levels & 1U << level)
                encode_level(cmd, pc, l, (char)('0' + level));
        }
        return;
    }
    char plain[3] = "f0";
    plain[1] = (char)('0' + LB_MAX(l->level, 0));
    ls_redis_arg_str(cmd, l->level < 0 ? "" : plain + l->known);
    ls_redis_arg_u64(cmd, l->n_special);
    encode_singly(cmd, pc, l);
}

/* Entries that a script may have as arguments of one command. */
#define QUICK_MAX 100

static bool count_packs(struct ls_redis_put_call *pc)
{
    size_t m = 0;
    for (size_t at = 0; at < pc->n; at += pc->run[at], m++)
        pc->n_packs += pc->run[at] > 1 || pc->company;
    return m <= QUICK_MAX;
}

/* Whether the usual way will do: one queue, one level, all fresh and plain. Counts the packs. */
static bool is_quick(struct ls_redis_put_call *pc)
{
    const struct ls_redis_put_lane *l = &pc->lane[0];
    if (pc->n_lanes != 1 || !ls_redis_put_is_packed(l) || l->level < 0 ||
        l->longest > LS_REDIS_BIG_BODY)
        return false;
    return count_packs(pc);
}

static void encode_keys(struct ls_redis_cmd *cmd, const struct ls_redis_put_call *pc)
{
    ls_redis_arg_int(cmd, pc->time);
    ls_redis_arg_u64(cmd, pc->n_own);
    for (size_t i = 0; i < pc->n_keys; i++) {
        if (pc->keys[i].own)
            continue;
        ls_redis_arg_slice(cmd, pc->keys[i].key);
        ls_redis_arg_u64(cmd, pc->keys[i].n);
    }
}

/* The bodies of packs as plain commands, then the script that takes them. */
static void encode_quick(struct ls_redis_conn *c, const struct ls_redis_put_call *pc)
{
    const char *ns = pc->s->base.config.ns;
    const struct ls_redis_put_lane *l = &pc->lane[0];
    if (pc->company) /* may make the queue */
        ls_redis_name_queues(c, pc->s, &l->queue, 1);
    char key[LS_REDIS_PACK_NAME_MAX + 3] = "b:", text[32];
    char level = (char)('0' + l->level);
    if (pc->company)
        level = pc->company_list;
    size_t m = 0;
    for (size_t at = 0; at < pc->n; at += pc->run[at], m++) {
        if (pc->run[at] == 1 && !pc->company)
            continue;
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 6);
        ls_redis_pack_name(key + 2, pc->put[pc->order[at]].id);
        ls_redis_arg_str(cmd, "SET");
        ls_redis_key(cmd, ns, l->queue, key);
        ls_redis_pack_add(cmd, pc->put, &pc->order[at], pc->run[at], false);
        ls_redis_arg_str(cmd, "NX");
        ls_redis_arg_str(cmd, "PX");
        ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
        ls_redis_cmd_end(cmd);
    }
    struct ls_redis_cmd *cmd = ls_redis_script_begin(
        c, pc->company ? LS_REDIS_LUA_COMPANY_PUT : LS_REDIS_LUA_PACKS_PUT, 1 + pc->company,
        6 + 3 * m + (pc->company ? 2 + 2 * pc->n_counted : 0));
    ls_redis_key(cmd, ns, l->queue, "meta");
    if (pc->company)
        ls_redis_key_shared(cmd, pc->s, l->queue, "queues");
    ls_redis_arg_str(cmd, pc->s->client);
    ls_redis_arg_u64(cmd, pc->s->put_seq);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
    ls_redis_arg_u64(cmd, pc->n);
    ls_redis_arg(cmd, &level, 1);
    ls_redis_arg_u64(cmd, m);
    for (size_t at = 0; at < pc->n; at += pc->run[at]) {
        const struct lq_put *p = &pc->put[pc->order[at]];
        add_entry(cmd, pc, at);
        if (pc->run[at] == 1 && !pc->company) {
            ls_redis_arg_str(cmd, "");
            ls_redis_arg_slice(cmd, p->body);
            continue;
        }
        ls_redis_arg_u64(cmd, ls_redis_pack_size(pc->put, &pc->order[at], pc->run[at]));
        (void)snprintf(text, sizeof(text), "%s%d %" PRIu32 " r;", pc->company ? "k" : "",
                       ls_redis_place_of(p->id), pc->run[at]);
        ls_redis_arg_str(cmd, text);
    }
    if (pc->company)
        encode_keys(cmd, pc);
    ls_redis_cmd_end(cmd);
}

#define INBOX_JOBS  32    /* of one put */
#define INBOX_BYTES 16384 /* of their bodies */

static bool fits_inbox(const struct ls_redis_put_call *pc)
{
    size_t bytes = 0;
    if (pc->n_lanes != 1 || pc->n > INBOX_JOBS ||
        !(pc->company || ls_redis_put_is_packed(&pc->lane[0])))
        return false;
    for (size_t at = 0; at < pc->n; at++) {
        bytes += pc->put[at].body.n;
        if (pc->run[at] != 1)
            return false;
    }
    return bytes <= INBOX_BYTES;
}

static void add_key(struct ls_redis_cmd *cmd, struct lb_slice key)
{
    uint8_t *to = ls_redis_arg_room(cmd, 1 + key.n);
    if (!to)
        return;
    to[0] = '=';
    memcpy(to + 1, key.p, key.n);
}

static void encode_inbox(struct ls_redis_conn *c, const struct ls_redis_put_call *pc)
{
    const char *queue = pc->lane[0].queue;
    struct ls_redis_cmd *cmd = ls_redis_inbox_begin(c, pc->s, queue, (pc->company ? 3 : 2) * pc->n);
    for (size_t at = 0; at < pc->n; at++) {
        if (pc->company)
            add_key(cmd, pc->put[at].key);
        ls_redis_arg_slice(cmd, pc->put[at].id);
        ls_redis_arg_slice(cmd, pc->put[at].body);
    }
    ls_redis_cmd_end(cmd);
    ls_redis_inbox_look(c, pc->s, queue, pc->n);
}

/* All are due later and fresh, and nothing else is special about them. */
static bool may_be_later(const struct ls_redis_put_call *pc)
{
    const struct ls_redis_put_lane *l = &pc->lane[0];
    if (pc->n_lanes != 1 || l->known || l->longest > LS_REDIS_BIG_BODY)
        return false;
    for (size_t i = 0; i < pc->n; i++) {
        const struct lq_put *p = &pc->put[i];
        if (p->when == LQ_WHEN_NOW || p->unique.n > 0 || p->key.n > 0)
            return false;
    }
    return true;
}

static void encode_later(struct ls_redis_conn *c, const struct ls_redis_put_call *pc)
{
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_LATER_PUT, 1, 4 + 4 * pc->n);
    ls_redis_key(cmd, pc->s->base.config.ns, pc->lane[0].queue, "meta");
    ls_redis_arg_str(cmd, pc->s->client);
    ls_redis_arg_u64(cmd, pc->s->put_seq);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
    for (size_t i = 0; i < pc->n; i++) {
        const struct lq_put *p = &pc->put[i];
        ls_redis_arg_slice(cmd, p->id);
        ls_redis_arg_slice(cmd, p->body);
        ls_redis_arg_int(cmd, p->when_ms);
        ls_redis_arg_int(cmd, p->when);
    }
    ls_redis_cmd_end(cmd);
}

/* how: '0'; '1' a repeat; '2' only asks whether there is room; '3' does not ask, '4' nor does this repeat. */
static void encode_lanes(struct ls_redis_conn *c, const struct ls_redis_put_call *pc,
                         const struct ls_redis_put_lane *lane, size_t n, char how)
{
    const char *ns = pc->s->base.config.ns;
    struct ls_redis_cmd *cmd =
        ls_redis_script_begin(c, LS_REDIS_LUA_PUT, n + 1, n * 6 + 9 * pc->n + 5);
    ls_redis_key_shared(cmd, pc->s, lane[0].queue, "queues");
    for (size_t i = 0; i < n; i++)
        ls_redis_key(cmd, ns, lane[i].queue, "meta");
    ls_redis_arg_str(cmd, pc->s->client);
    ls_redis_arg_u64(cmd, pc->s->put_seq);
    ls_redis_arg(cmd, &how, 1);
    ls_redis_arg_int(cmd, LS_REDIS_MEMORY_MS);
    for (size_t i = 0; i < n; i++)
        encode_lane(cmd, pc, &lane[i]);
    ls_redis_cmd_end(cmd);
}

static void encode_put(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    struct ls_redis_put_call *pc = ctx;
    pc->sent_inbox = pc->inbox && !repeat;
    if (pc->sent_inbox) {
        encode_inbox(c, pc);
        return;
    }
    pc->sent_later = pc->later && !repeat;
    if (pc->sent_later) {
        encode_later(c, pc);
        return;
    }
    pc->sent_quick = pc->quick && !repeat;
    if (pc->sent_quick) {
        encode_quick(c, pc);
        return;
    }
    ls_redis_name_queues(c, pc->s, &pc->lane[0].queue, 1);
    encode_lanes(c, pc, pc->lane, pc->n_lanes, repeat ? '1' : '0');
}

static int note_all_put(const struct ls_redis_put_call *pc)
{
    for (size_t i = 0; i < pc->n; i++) {
        pc->put[i].outcome = 0;
        pc->put[i].holder[0] = 0;
    }
    return 0;
}

/* The answer {0, lane, ...} of n numbers: these lanes, counted from `first`, are full. False when it is no such answer. */
static bool read_full(const struct ls_redis_put_call *pc, struct ls_redis_cursor cur, size_t n,
                      size_t first)
{
    if (ls_redis_read_array(&cur) == 0 || ls_redis_read_int(&cur) != 0 || cur.bad)
        return false;
    for (size_t i = 1; i < n; i++) {
        int64_t lane = ls_redis_read_int(&cur);
        if (cur.bad || lane < 1 || (size_t)lane > pc->n_lanes - first)
            return false;
        const struct ls_redis_put_lane *l = &pc->lane[first + (size_t)lane - 1];
        for (size_t k = 0; k < l->n; k++)
            pc->put[pc->order[l->first + k]].outcome = LADE_FULL;
    }
    return n > 1;
}

/* The answer to a call about the lanes from `first` on. */
static int read_answer(const struct ls_redis_put_call *pc, struct ls_redis_conn *c,
                       struct ls_redis_cursor cur, size_t first, lade_err *err)
{
    struct ls_redis_cursor look = cur;
    size_t n = ls_redis_read_array(&look);
    for (size_t i = 0; i < n; i += 3) {
        int64_t lane = ls_redis_read_int(&look), at = ls_redis_read_int(&look);
        struct lb_slice holder = ls_redis_read_bytes(&look);
        if (look.bad || n % 3 != 0 || lane < 1 || (size_t)lane > pc->n_lanes - first || at < 1 ||
            (size_t)at > pc->lane[first + (size_t)lane - 1].n || holder.n > LADE_ID_MAX + 1)
            return ls_redis_conn_fail_reply(c, "put", err);
    }
    if (look.bad)
        return ls_redis_conn_fail_reply(c, "put", err);
    (void)ls_redis_read_array(&cur);
    for (size_t i = 0; i < n; i += 3) {
        const struct ls_redis_put_lane *l = &pc->lane[first + (size_t)ls_redis_read_int(&cur) - 1];
        struct lq_put *p = &pc->put[pc->order[l->first + (size_t)ls_redis_read_int(&cur) - 1]];
        struct lb_slice holder = ls_redis_read_bytes(&cur);
        bool replaced = holder.n > 0 && holder.p[0] == '=';
        holder = replaced ? lb_slice(holder.p + 1, holder.n - 1) : holder;
        p->outcome = replaced ? LADE_REPLACED : LADE_DUPLICATE;
        memcpy(p->holder, holder.p, holder.n);
        p->holder[holder.n] = 0;
    }
    return 0;
}

static int read_put(const struct ls_redis_put_call *pc, struct ls_redis_conn *c, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0), look = cur;
    (void)note_all_put(pc);
    if (read_full(pc, cur, ls_redis_read_array(&look), 0))
        return LADE_FULL;
    return read_answer(pc, c, cur, 0, err);
}

static int check_bodies(const struct ls_redis_put_call *pc, lade_err *err)
{
    for (size_t i = 0; pc->s->bulk_max > 0 && i < pc->n; i++) {
        if (pc->put[i].body.n > (size_t)pc->s->bulk_max)
            return lb_fail(err, LADE_ETOOBIG, "put",
                           "job %zu has %zu bytes, the server takes %" PRId64
                           ": raise its proto-max-bulk-len",
                           i, pc->put[i].body.n, pc->s->bulk_max);
    }
    return 0;
}

/* One round trip, in either way. */
static int ask_put(struct ls_redis_put_call *pc, struct ls_redis_conn *c,
                   const struct ls_redis_ask *ask, lade_err *err)
{
    int rc = ls_redis_ask(pc->s, c, ask, 0, err);
    size_t n = pc->sent_inbox ? 2 : pc->sent_quick ? pc->n_packs + 1 : 1;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, i);
        if (ls_redis_peek(&cur) == LS_REDIS_ERROR)
            rc = ls_redis_refuse(pc->s, c, ask, i, err);
    }
    return rc;
}

/* NOT_FOUND: not put so. */
static int finish_inbox(struct ls_redis_put_call *pc, struct ls_redis_conn *c, lade_err *err)
{
    int rc = ls_redis_inbox_finish(pc->s, c, 0, pc->lane[0].queue, pc->n, "put", err);
    if (rc >= 0)
        ls_redis_detour_note(&pc->s->inbox, rc == LADE_NOT_FOUND);
    return rc == 0 ? note_all_put(pc) : rc;
}

/* The answer to one of the short ways that ask a script. */
static int read_short(const struct ls_redis_put_call *pc, struct ls_redis_conn *c, int64_t *answer,
                      lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, pc->sent_quick ? pc->n_packs : 0);
    *answer = ls_redis_read_int(&cur);
    return cur.bad ? ls_redis_conn_fail_reply(c, "put", err) : 0;
}

static int run_put(struct ls_redis_put_call *pc, const struct ls_redis_ask *ask, lade_err *err)
{
    struct ls_redis_conn *c;
    pc->s->put_seq++;
    int rc = ls_redis_link_conn(pc->s, &pc->s->admin, &c, err);
    if (rc == 0)
        rc = ask_put(pc, c, ask, err);
    if (rc == 0 && pc->sent_inbox) {
        rc = finish_inbox(pc, c, err);
        if (rc != LADE_NOT_FOUND)
            return rc;
        pc->inbox = false; /* the next one makes what is missing */
        pc->quick = pc->company && pc->quick;
        if (pc->quick)
            ls_redis_company_count(pc);
        rc = ask_put(pc, c, ask, err);
    }
    if (rc == 0 && (pc->sent_quick || pc->sent_later)) {
        int64_t done;
        rc = read_short(pc, c, &done, err);
        if (rc == 0 && pc->company && done != 0 && !ls_redis_company_note(pc, done)) {
            rc = ask_put(pc, c, ask, err);
            if (rc == 0 && !pc->sent_quick) /* by a repeat */
                return read_put(pc, c, err);
            if (rc == 0)
                rc = read_short(pc, c, &done, err);
            if (rc == 0 && done > 0)
                (void)ls_redis_company_note(pc, done);
        }
        if (rc < 0)
            return rc;
        ls_redis_detour_note(pc->company      ? &pc->s->company
                             : pc->sent_quick ? &pc->s->quick
                                              : &pc->s->later,
                             done == 0);
        if (done > 0)
            return note_all_put(pc);
        pc->quick = pc->later = false;
        rc = ask_put(pc, c, ask, err);
    }
    return rc == 0 ? read_put(pc, c, err) : rc;
}

/*
 * in slots, several queues: a call for each. First all are asked for room, so that it is all or nothing; who takes that room in the moment
 * between lets a queue have some jobs more than its bound.
 */
static void encode_many(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    const struct ls_redis_put_call *pc = ctx;
    const char *how = pc->asks ? "2" : repeat ? "4" : "3";
    for (size_t i = 0; i < pc->n_lanes; i++)
        ls_redis_name_queues(c, pc->s, &pc->lane[i].queue, 1);
    for (size_t i = 0; i < pc->n_lanes; i++)
        encode_lanes(c, pc, &pc->lane[i], 1, *how);
}

static int put_many(struct ls_redis_put_call *pc, const struct ls_redis_ask *about, lade_err *err)
{
    struct ls_redis_ask ask = *about;
    struct ls_redis_conn *c;
    bool full = false;
    pc->s->put_seq++;
    ask.encode = encode_many;
    int rc = ls_redis_link_conn(pc->s, &pc->s->admin, &c, err);
    if (rc < 0)
        return rc;
    pc->asks = true;
    rc = ls_redis_ask(pc->s, c, &ask, pc->n_lanes, err);
    (void)note_all_put(pc);
    for (size_t i = 0; rc == 0 && i < pc->n_lanes; i++) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, i), look = cur;
        full = read_full(pc, cur, ls_redis_read_array(&look), i) || full;
    }
    if (rc < 0 || full)
        return rc < 0 ? rc : LADE_FULL;
    pc->asks = false;
    rc = ls_redis_ask(pc->s, c, &ask, pc->n_lanes, err);
    (void)note_all_put(pc);
    for (size_t i = 0; rc == 0 && i < pc->n_lanes; i++)
        rc = read_answer(pc, c, ls_redis_conn_reply(c, i), i, err);
    return rc;
}

/* Not those that were in vain of late; company by a script is behind its inbox, the general one behind all others. */
static void choose_way(struct ls_redis_put_call *pc)
{
    struct ls_redis_store *s = pc->s;
    if (pc->inbox && !ls_redis_detour_is_open(&s->inbox)) {
        pc->inbox = false;
        pc->quick = pc->quick && pc->company;
    }
    if (!pc->inbox && pc->quick)
        pc->quick = ls_redis_detour_is_open(pc->company ? &s->company : &s->quick);
    if (pc->later)
        pc->later = ls_redis_detour_is_open(&s->later);
    if (pc->company && pc->quick && !pc->inbox)
        ls_redis_company_count(pc);
}

int ls_redis_put(struct lq_store *base, struct lq_put *put, size_t n, lade_err *err)
{
    if (n == 0)
        return 0;
    struct ls_redis_put_call pc = {.s = ls_redis_of(base), .put = put, .n = n};
    int rc = check_bodies(&pc, err);
    if (rc == 0)
        rc = ls_redis_put_group(&pc, err);
    if (rc == 0)
        rc = ls_redis_put_company(&pc, err);
    if (rc == 0) {
        const char **queue = lb_malloc(pc.n_lanes * sizeof(*queue));
        for (size_t i = 0; queue && i < pc.n_lanes; i++)
            queue[i] = pc.lane[i].queue;
        struct ls_redis_ask ask = {encode_put, &pc, "put", false, queue, queue ? pc.n_lanes : 0};
        pc.inbox = fits_inbox(&pc);
        pc.quick = pc.company ? count_packs(&pc) : is_quick(&pc);
        pc.later = may_be_later(&pc);
        lr_mutex_lock(&pc.s->admin.lock);
        choose_way(&pc);
        rc = ls_redis_in_slots(pc.s) && pc.n_lanes > 1 ? put_many(&pc, &ask, err)
                                                       : run_put(&pc, &ask, err);
        if (rc == 0)
            rc = ls_redis_replicate(pc.s, pc.s->admin.conn, "put", err);
        lr_mutex_unlock(&pc.s->admin.lock);
        lb_free(queue);
    }
    lb_free(pc.order);
    lb_free(pc.run);
    lb_free(pc.keys);
    lb_free(pc.lane);
    return rc;
}
