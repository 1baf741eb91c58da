/*
 * op_list.c - what operators see; lua/count.lua, page.lua, rows.lua, check.lua
 *
 * A listing is two steps: the ids of a page with the place of each, then the jobs themselves as far as LS_REDIS_ANSWER_BYTES
 * go. A job that left the state in between is passed over; the cursor stands behind the last job looked at. Active
 * jobs are found by scanning the leases in small steps, so no step holds the server for long; they come by fence.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/redis/packs.h"
#include "store/redis/rows.h"
#include "store/redis/store_inner.h"

#define SCAN_STEP 500

/* Holds the admin link from begin to end. */
static int begin_look(struct ls_redis_store *s, struct ls_redis_conn **c, lade_err *err)
{
    lr_mutex_lock(&s->admin.lock);
    return ls_redis_link_conn(s, &s->admin, c, err);
}

static void end_look(struct ls_redis_store *s)
{
    lr_mutex_unlock(&s->admin.lock);
}

/* queues ---------------------------------------------------------------------------------------------------------- */

static void encode_queues(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct ls_redis_store *s = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "SMEMBERS");
    ls_redis_key_ns(cmd, s->base.config.ns, "queues");
    ls_redis_cmd_end(cmd);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_names(struct ls_redis_conn *c, struct lb_arena *arena, const char ***name,
                      size_t *n, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t there = ls_redis_read_array(&cur);
    const char **all = lb_arena_alloc(arena, (there + 1) * sizeof(*all));
    if (!all)
        return lb_fail_nomem(err, "queues");
    for (size_t i = 0; i < there; i++) {
        struct lb_slice q = ls_redis_read_bytes(&cur);
        if (cur.bad || q.n > LADE_NAME_MAX)
            return ls_redis_conn_fail_reply(c, "queues", err);
        all[i] = (const char *)lb_arena_copy(arena, q.p, q.n).p;
        if (!all[i])
            return lb_fail_nomem(err, "queues");
    }
    qsort(all, there, sizeof(*all), compare_names);
    *name = all;
    *n = there;
    return 0;
}

int ls_redis_queues(struct lq_store *base, struct lb_arena *arena, const char ***name, size_t *n,
                    lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct ls_redis_ask ask = {encode_queues, s, "queues", false, NULL, 0};
    struct ls_redis_conn *c;
    int rc = begin_look(s, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(s, c, &ask, 1, err);
    if (rc == 0)
        rc = read_names(c, arena, name, n, err);
    end_look(s);
    return rc;
}

/* count ----------------------------------------------------------------------------------------------------------- */

struct about_queue {
    const struct ls_redis_store *s;
    enum ls_redis_lua script;
    const char *queue;
    const char *text, *text2; /* arguments, or NULL */
    int64_t number;           /* between them, or -1 */
};

static void encode_about(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct about_queue *a = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, a->script, 1, 4);
    ls_redis_key(cmd, a->s->base.config.ns, a->queue, "meta");
    if (a->text)
        ls_redis_arg_str(cmd, a->text);
    if (a->number >= 0)
        ls_redis_arg_int(cmd, a->number);
    if (a->text2)
        ls_redis_arg_str(cmd, a->text2);
    ls_redis_cmd_end(cmd);
}

static int read_count(struct ls_redis_conn *c, const char *queue, lade_queue_info *out,
                      lade_err *err)
{
    static const enum lade_state order[] = {
        LADE_STATE_SCHEDULED, LADE_STATE_READY, LADE_STATE_ACTIVE,   LADE_STATE_RETRYING,
        LADE_STATE_COMPLETED, LADE_STATE_DEAD,  LADE_STATE_CANCELLED};
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    lade_queue_info info = {.latency = 0};
    size_t n = ls_redis_read_array(&cur);
    if (!cur.bad && n == 0)
        return LADE_NOT_FOUND;
    int64_t now = ls_redis_read_int(&cur);
    for (size_t i = 0; i < LB_ARRAY_LEN(order); i++)
        info.count[order[i]] = (uint64_t)ls_redis_read_int(&cur);
    info.paused = ls_redis_read_int(&cur) != 0;
    info.total_enqueued = (uint64_t)ls_redis_read_int(&cur);
    info.total_completed = (uint64_t)ls_redis_read_int(&cur);
    info.total_failed = (uint64_t)ls_redis_read_int(&cur);
    info.total_dead = (uint64_t)ls_redis_read_int(&cur);
    info.n_workers = (size_t)ls_redis_read_int(&cur);
    info.held = (uint64_t)ls_redis_read_int(&cur);
    for (size_t i = 15; i + 1 < n; i += 2) {
        int64_t ms = ls_redis_id_time(ls_redis_read_bytes(&cur));
        int64_t since = ls_redis_read_int(&cur);
        ms = since ? since : ms;
        if (ms > 0 && ms < now)
            info.latency = LB_MAX(info.latency, (now - ms) * LADE_MILLISECOND);
    }
    if (cur.bad || n < 15)
        return ls_redis_conn_fail_reply(c, "count", err);
    (void)snprintf(info.name, sizeof(info.name), "%s", queue);
    *out = info;
    return 0;
}

int ls_redis_count(struct lq_store *base, const char *queue, lade_queue_info *out, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct about_queue a = {s, LS_REDIS_LUA_COUNT, queue, NULL, NULL, -1};
    struct ls_redis_ask ask = {encode_about, &a, "count", false, &queue, 1};
    struct ls_redis_conn *c;
    int rc = begin_look(s, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(s, c, &ask, 1, err);
    if (rc == 0)
        rc = read_count(c, queue, out, err);
    end_look(s);
    return rc;
}

/* get and list ---------------------------------------------------------------------------------------------------- */

int ls_redis_get(struct lq_store *base, const char *queue, struct lb_slice id,
                 struct lq_row_vec *out, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct ls_redis_rows r = {.s = s, .queue = queue, .id = &id, .n = 1, .state = -1};
    struct ls_redis_conn *c;
    size_t before = out->n;
    int rc = begin_look(s, &c, err);
    if (rc == 0)
        rc = ls_redis_rows_read(&r, c, out, err);
    end_look(s);
    return rc == 0 && out->n == before ? LADE_NOT_FOUND : rc;
}

/* A page of ids, and where each stands. */
struct page {
    struct lb_arena arena;
    struct lb_slice *id, *place;
    size_t n;
    bool end;
};

static int read_page(struct ls_redis_conn *c, struct page *p, size_t limit, lade_err *err)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t n = ls_redis_read_array(&cur) / 2;
    p->end = ls_redis_read_int(&cur) != 0;
    if (cur.bad || n > limit)
        return ls_redis_conn_fail_reply(c, "list", err);
    p->id = lb_arena_alloc(&p->arena, (n + 1) * sizeof(*p->id));
    p->place = lb_arena_alloc(&p->arena, (n + 1) * sizeof(*p->place));
    if (!p->id || !p->place)
        return lb_fail_nomem(err, "list");
    for (size_t i = 0; i < n; i++) {
        struct lb_slice id = ls_redis_read_bytes(&cur), place = ls_redis_read_bytes(&cur);
        if (cur.bad || place.n >= sizeof(((lade_cursor *)0)->at))
            return ls_redis_conn_fail_reply(c, "list", err);
        p->id[i] = lb_slice_of(lb_arena_copy(&p->arena, id.p, id.n));
        p->place[i] = lb_slice_of(lb_arena_copy(&p->arena, place.p, place.n));
        if (!p->id[i].p || !p->place[i].p)
            return lb_fail_nomem(err, "list");
    }
    p->n = n;
    return 0;
}

static int find_page(struct ls_redis_store *s, struct ls_redis_conn *c, const char *queue,
                     enum lade_state state, const lade_cursor *cursor, size_t limit, struct page *p,
                     lade_err *err)
{
    struct about_queue a = {s,          LS_REDIS_LUA_PAGE, queue, lade_state_name(state),
                            cursor->at, (int64_t)limit};
    struct ls_redis_ask ask = {encode_about, &a, "list", false, &queue, 1};
    int rc = ls_redis_ask(s, c, &ask, 1, err);
    return rc < 0 ? rc : read_page(c, p, limit, err);
}

struct class_page {
    const struct ls_redis_store *s;
    const char *queue;
    struct lb_slice class_;
    int64_t from_ms;
    size_t most;
    const char *place;
};

static void encode_class_page(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct class_page *a = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_REDIS_LUA_LIST_CLASS, 1, 5);
    ls_redis_key(cmd, a->s->base.config.ns, a->queue, "meta");
    ls_redis_arg_slice(cmd, a->class_);
    ls_redis_arg_int(cmd, a->from_ms);
    ls_redis_arg_u64(cmd, a->most);
    ls_redis_arg_str(cmd, a->place);
    ls_redis_cmd_end(cmd);
}

/* active ---------------------------------------------------------------------------------------------------------- */

struct leases;

struct scan {
    const struct ls_redis_store *s;
    const char *queue;
    const char *hash; /* of leases of single jobs, or of packs */
    void (*keep)(struct leases *l, struct lb_slice field, struct lb_slice value);
    char cursor[24];
};

static void encode_scan(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct scan *sc = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 5);
    ls_redis_arg_str(cmd, "HSCAN");
    ls_redis_key(cmd, sc->s->base.config.ns, sc->queue, sc->hash);
    ls_redis_arg_str(cmd, sc->cursor);
    ls_redis_arg_str(cmd, "COUNT");
    ls_redis_arg_int(cmd, SCAN_STEP);
    ls_redis_cmd_end(cmd);
}

struct lease {
    uint64_t fence;
    char id[LADE_ID_MAX + 1];
    size_t id_n;
};

struct leases {
    struct lease *v; /* the `max` first behind `after`, unsorted until full */
    size_t n, max;
    struct lease after; /* by fence, then id */
};

static int compare_leases(const void *a, const void *b)
{
    const struct lease *x = a, *y = b;
    if (x->fence != y->fence)
        return x->fence < y->fence ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void keep_one(struct leases *l, struct lb_slice id, uint64_t fence)
{
    struct lease new = {.fence = fence, .id_n = id.n};
    memcpy(new.id, id.p, id.n);
    if (compare_leases(&new, &l->after) <= 0)
        return;
    if (l->n == l->max) {
        /* Sorts when twice the page is there and keeps the lower half: linear in all. */
        qsort(l->v, l->n, sizeof(*l->v), compare_leases);
        l->n = l->max / 2;
    }
    l->v[l->n++] = new;
}

/* id -> "fence level worker"; the one without a name is no lease: lua/lib.lua */
static void keep_lease(struct leases *l, struct lb_slice id, struct lb_slice lease)
{
    if (id.n > 0 && id.n <= LADE_ID_MAX)
        keep_one(l, id, (uint64_t)ls_redis_take_number(&lease));
}

/*
 * name -> "from n state;from n state;": those active are "a<fence> <worker>". Of a folded flow there is a head and ':' before it, of jobs in
 * company a 'k'.
 */
static void keep_pack(struct leases *l, struct lb_slice name, struct lb_slice states)
{
    const uint8_t *head = states.n > 0 ? memchr(states.p, ':', states.n) : NULL;
    if (head)
        states = lb_slice(head + 1, states.n - (size_t)(head + 1 - states.p));
    else if (states.n > 0 && states.p[0] == 'k')
        states = lb_slice(states.p + 1, states.n - 1);
    while (name.n > 0 && states.n > 0) {
        int64_t from = ls_redis_take_number(&states), n = ls_redis_take_number(&states);
        const uint8_t *end = states.n ? memchr(states.p, ';', states.n) : NULL;
        if (!end || from > LS_REDIS_PLACES || n > LS_REDIS_PLACES - from)
            return;
        struct lb_slice state = lb_slice(states.p + 1, (size_t)(end - states.p));
        uint64_t fence = states.p[0] == 'a' ? (uint64_t)ls_redis_take_number(&state) : 0;
        for (int64_t i = from; fence && i < from + n; i++) {
            char id[LADE_ID_MAX + 1];
            size_t length = ls_redis_id_at(id, name, (size_t)i);
            if (length > 0)
                keep_one(l, lb_slice(id, length), fence);
        }
        states = lb_slice(end + 1, states.n - (size_t)(end + 1 - states.p));
    }
}

static int scan_step(struct ls_redis_store *s, struct ls_redis_conn *c, struct scan *sc,
                     struct leases *l, lade_err *err)
{
    struct ls_redis_ask ask = {encode_scan, sc, "list", false, &sc->queue, 1};
    int rc = ls_redis_ask(s, c, &ask, 1, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    (void)ls_redis_read_array(&cur);
    struct lb_slice next = ls_redis_read_bytes(&cur);
    if (cur.bad || next.n >= sizeof(sc->cursor))
        return ls_redis_conn_fail_reply(c, "list", err);
    memcpy(sc->cursor, next.p, next.n);
    sc->cursor[next.n] = 0;
    size_t n = ls_redis_read_array(&cur);
    for (size_t i = 0; i + 1 < n; i += 2) {
        struct lb_slice id = ls_redis_read_bytes(&cur), lease = ls_redis_read_bytes(&cur);
        if (cur.bad)
            return ls_redis_conn_fail_reply(c, "list", err);
        sc->keep(l, id, lease);
    }
    return 0;
}

static int fill_page(struct page *p, const struct leases *l, size_t limit, lade_err *err)
{
    size_t n = LB_MIN(l->n, limit);
    p->id = lb_arena_alloc(&p->arena, (n + 1) * sizeof(*p->id));
    p->place = lb_arena_alloc(&p->arena, (n + 1) * sizeof(*p->place));
    if (!p->id || !p->place)
        return lb_fail_nomem(err, "list");
    for (size_t i = 0; i < n; i++) {
        char place[sizeof(((lade_cursor *)0)->at)];
        int len = snprintf(place, sizeof(place), "%" PRIu64 " %s", l->v[i].fence, l->v[i].id);
        p->id[i] = lb_slice_of(lb_arena_copy(&p->arena, l->v[i].id, l->v[i].id_n));
        p->place[i] = lb_slice_of(lb_arena_copy(&p->arena, place, (size_t)len));
        if (!p->id[i].p || !p->place[i].p)
            return lb_fail_nomem(err, "list");
    }
    p->n = n;
    p->end = l->n <= limit;
    return 0;
}

static int find_active(struct ls_redis_store *s, struct ls_redis_conn *c, const char *queue,
                       const lade_cursor *cursor, size_t limit, struct page *p, lade_err *err)
{
    struct scan scan[] = {{s, queue, "lease", keep_lease, "0"}, {s, queue, "pack", keep_pack, "0"}};
    struct leases l = {.max = 2 * (limit + 1)};
    const char *blank = strchr(cursor->at, ' ');
    l.after.fence = strtoull(cursor->at, NULL, 10);
    (void)snprintf(l.after.id, sizeof(l.after.id), "%s", blank ? blank + 1 : "");
    l.v = lb_malloc(l.max * sizeof(*l.v));
    if (!l.v)
        return lb_fail_nomem(err, "list");
    int rc = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(scan) && rc == 0; i++) {
        do {
            rc = scan_step(s, c, &scan[i], &l, err);
        } while (rc == 0 && strcmp(scan[i].cursor, "0") != 0);
    }
    if (rc == 0) {
        qsort(l.v, l.n, sizeof(*l.v), compare_leases);
        /* A scan may tell an entry twice. */
        size_t kept = 0;
        for (size_t i = 0; i < l.n; i++) {
            if (kept == 0 || compare_leases(&l.v[kept - 1], &l.v[i]) != 0)
                l.v[kept++] = l.v[i];
        }
        l.n = kept;
        rc = fill_page(p, &l, limit, err);
    }
    lb_free(l.v);
    return rc;
}

/* One page into rows. Advances the cursor behind the last job looked at. */
static int read_rows_of_page(struct ls_redis_store *s, struct ls_redis_conn *c, const char *queue,
                             enum lade_state state, lade_cursor *cursor, const struct page *p,
                             struct lq_row_vec *out, lade_err *err)
{
    struct ls_redis_rows r = {.s = s, .queue = queue, .id = p->id, .n = p->n, .state = (int)state};
    int rc = p->n > 0 ? ls_redis_rows_read(&r, c, out, err) : 0;
    if (rc < 0)
        return rc;
    if (r.looked > 0) {
        struct lb_slice at = p->place[r.looked - 1];
        memcpy(cursor->at, at.p, at.n);
        cursor->at[at.n] = 0;
    }
    cursor->done = p->end && r.looked == p->n;
    return 0;
}

int ls_redis_list(struct lq_store *base, const char *queue, enum lade_state state,
                  lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct ls_redis_conn *c;
    size_t before = out->n;
    lade_cursor at = *cursor;
    limit = LB_MIN(LB_MAX(limit, 1), LQ_TAKE_MAX);
    int rc = begin_look(s, &c, err);
    /* A page whose jobs have all moved on gives no rows: the next one. */
    while (rc == 0 && !at.done && out->n == before) {
        struct page p = {.n = 0};
        lb_arena_init(&p.arena);
        if (state == LADE_STATE_ACTIVE)
            rc = find_active(s, c, queue, &at, limit, &p, err);
        else
            rc = find_page(s, c, queue, state, &at, limit, &p, err);
        if (rc == 0)
            rc = read_rows_of_page(s, c, queue, state, &at, &p, out, err);
        lb_arena_fini(&p.arena);
    }
    end_look(s);
    if (rc < 0)
        return rc;
    *cursor = at;
    return out->n == before ? LADE_EMPTY : 0;
}

int ls_redis_list_class(struct lq_store *base, const char *queue, struct lb_slice name,
                        int64_t from_ms, lade_cursor *cursor, size_t limit, struct lq_row_vec *out,
                        lade_err *err)
{
    struct ls_redis_store *s = ls_redis_of(base);
    struct ls_redis_conn *c;
    size_t before = out->n;
    lade_cursor at = *cursor;
    limit = LB_MIN(LB_MAX(limit, 1), LQ_TAKE_MAX);
    int rc = begin_look(s, &c, err);
    while (rc == 0 && !at.done && out->n == before) {
        struct page p = {.n = 0};
        struct class_page a = {s, queue, name, from_ms, limit, at.at};
        struct ls_redis_ask ask = {encode_class_page, &a, "list", false, &queue, 1};
        lb_arena_init(&p.arena);
        rc = ls_redis_ask(s, c, &ask, 1, err);
        if (rc == 0)
            rc = read_page(c, &p, limit, err);
        if (rc == 0)
            rc = read_rows_of_page(s, c, queue, LADE_STATE_DEAD, &at, &p, out, err);
        lb_arena_fini(&p.arena);
    }
    end_look(s);
    if (rc < 0)
        return rc;
    *cursor = at;
    return out->n == before ? LADE_EMPTY : 0;
}

/* check ----------------------------------------------------------------------------------------------------------- */

#define FINDINGS_MAX 100 /* of each queue */

static int check_queue(struct ls_redis_store *s, const char *queue, lq_finding_fn report, void *ctx,
                       lade_err *err)
{
    struct about_queue a = {s, LS_REDIS_LUA_CHECK, queue, NULL, NULL, FINDINGS_MAX};
    struct ls_redis_ask ask = {encode_about, &a, "check", false, &queue, 1};
    struct ls_redis_conn *c;
    int rc = begin_look(s, &c, err);
    if (rc == 0)
        rc = ls_redis_ask(s, c, &ask, 1, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        size_t n = ls_redis_read_array(&cur);
        for (size_t i = 0; i < n; i++) {
            char line[256];
            struct lb_slice text = ls_redis_read_bytes(&cur);
            (void)snprintf(line, sizeof(line), "%.*s", (int)LB_MIN(text.n, sizeof(line) - 1),
                           text.n ? (const char *)text.p : "");
            if (!cur.bad)
                report(ctx, queue, line);
        }
        if (cur.bad)
            rc = ls_redis_conn_fail_reply(c, "check", err);
    }
    end_look(s);
    return rc;
}

int ls_redis_check(struct lq_store *base, lq_finding_fn report, void *ctx, lade_err *err)
{
    struct lb_arena arena;
    const char **name = NULL;
    size_t n = 0;
    lb_arena_init(&arena);
    int rc = ls_redis_queues(base, &arena, &name, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = check_queue(ls_redis_of(base), name[i], report, ctx, err);
    lb_arena_fini(&arena);
    if (rc == 0)
        rc = ls_redis_flows_check(base, report, ctx, err);
    return rc < 0 ? rc : ls_redis_schedules_check(base, report, ctx, err);
}
