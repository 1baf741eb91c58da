/* op_resque_look.c - queues, counts, workers, check */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "resque/resque_queues.h"
#include "resque/resque_time.h"
#include "store/resque/resque_inner.h"

struct look_call {
    const struct ls_resque_store *s;
    const char *queue; /* "" = workers */
    const char *set;   /* of a SMEMBERS */
};

static void encode_set(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct look_call *l = ctx;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 2);
    ls_redis_arg_str(cmd, "SMEMBERS");
    ls_resque_key(cmd, l->s, l->set);
    ls_redis_cmd_end(cmd);
}

static void encode_look(struct ls_redis_conn *c, void *ctx, bool repeat LB_UNUSED)
{
    const struct look_call *l = ctx;
    struct ls_redis_cmd *cmd = ls_redis_script_begin(c, LS_RESQUE_LUA_LOOK, 0, 2);
    ls_redis_arg(cmd, l->s->keys.prefix, l->s->keys.n);
    ls_redis_arg_str(cmd, l->queue);
    ls_redis_cmd_end(cmd);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The members of a set, copied and sorted. The admin link is locked. */
static int read_set(struct ls_resque_store *s, const char *set, struct lb_arena *arena,
                    const char ***name, size_t *n, lade_err *err)
{
    struct look_call l = {s, "", set};
    struct ls_resque_ask ask = {encode_set, &l, "look", false};
    struct ls_redis_conn *c;
    int rc = ls_resque_ask(s, &s->admin, &ask, 1, &c, err);
    if (rc < 0)
        return rc;
    struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
    size_t there = ls_redis_read_array(&cur);
    *name = lb_arena_alloc(arena, (there + 1) * sizeof(**name));
    if (!*name)
        return lb_fail_nomem(err, "look");
    for (*n = 0; *n < there; ++*n) {
        struct lb_slice text = ls_redis_read_bytes(&cur);
        if (cur.bad)
            return ls_redis_conn_fail_reply(c, "look", err);
        (*name)[*n] = (const char *)lb_arena_copy(arena, text.p, text.n).p;
        if (!(*name)[*n])
            return lb_fail_nomem(err, "look");
    }
    qsort(*name, *n, sizeof(**name), compare);
    return 0;
}

int ls_resque_queues(struct lq_store *base, struct lb_arena *arena, const char ***name, size_t *n,
                     lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    lr_mutex_lock(&s->admin.lock);
    int rc = read_set(s, RQ_KEY_QUEUES, arena, name, n, err);
    lr_mutex_unlock(&s->admin.lock);
    return rc;
}

/* Whether a worker of the list "a,b*,!c" takes jobs of the queue. */
static bool serves(struct lb_slice list, const char *queue)
{
    char text[LQ_LANES_MAX * (LADE_NAME_MAX + 1) + 1];
    const char *name[LQ_LANES_MAX];
    size_t n = 0;
    (void)snprintf(text, sizeof(text), "%.*s", (int)LB_MIN(list.n, sizeof(text) - 1),
                   list.n > 0 ? (const char *)list.p : "");
    for (char *at = text, *one; n < LQ_LANES_MAX && (one = strsep(&at, ",")) != NULL;)
        name[n++] = one;
    return rq_queues_find(name, n, queue) != SIZE_MAX;
}

int ls_resque_count_waiting(struct ls_resque_store *s, const char *queue, lade_queue_info *out,
                            lade_err *err)
{
    struct look_call l = {s, queue, NULL};
    struct ls_resque_ask ask = {encode_look, &l, "count", false};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->admin.lock);
    int rc = ls_resque_ask(s, &s->admin, &ask, 1, &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        size_t n = ls_redis_read_array(&cur);
        bool known = ls_redis_read_int(&cur) == 1;
        lade_queue_info info = {0};
        info.count[LADE_STATE_READY] = (uint64_t)ls_redis_read_int(&cur);
        info.count[LADE_STATE_ACTIVE] = (uint64_t)ls_redis_read_int(&cur);
        info.paused = ls_redis_read_int(&cur) == 1;
        for (size_t i = 4; i < n; i++)
            info.n_workers += serves(ls_redis_read_bytes(&cur), queue);
        (void)snprintf(info.name, sizeof(info.name), "%s", queue);
        if (cur.bad)
            rc = ls_redis_conn_fail_reply(c, "count", err);
        else if (!known && info.count[LADE_STATE_READY] + info.count[LADE_STATE_ACTIVE] == 0)
            rc = LADE_NOT_FOUND;
        else
            *out = info;
    }
    lr_mutex_unlock(&s->admin.lock);
    return rc;
}

int ls_resque_count(struct lq_store *base, const char *queue, lade_queue_info *out, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    lade_queue_info info = {0};
    int rc = ls_resque_count_waiting(s, queue, &info, err);
    if (rc < 0)
        return rc;
    (void)snprintf(info.name, sizeof(info.name), "%s", queue);
    lr_mutex_lock(&s->admin.lock);
    int found = ls_resque_count_found(s, queue, &info, err);
    lr_mutex_unlock(&s->admin.lock);
    if (found < 0)
        return found;
    if (rc == LADE_NOT_FOUND && info.count[LADE_STATE_DEAD] + info.count[LADE_STATE_SCHEDULED] == 0)
        return rc;
    *out = info;
    return 0;
}

/* The next line of it, which is cut off. */
static struct lb_slice take_line(struct lb_slice *text)
{
    struct lb_slice line = *text;
    const uint8_t *end = text->n > 0 ? memchr(text->p, '\n', text->n) : NULL;
    if (end)
        line.n = (size_t)(end - text->p);
    size_t gone = LB_MIN(line.n + 1, text->n);
    *text = lb_slice(text->p + gone, text->n - gone);
    return line;
}

static void copy_text(char *to, size_t size, struct lb_slice from)
{
    size_t n = LB_MIN(from.n, size - 1);
    if (n > 0)
        memcpy(to, from.p, n);
    to[n] = 0;
}

static int64_t read_number(struct lb_slice line)
{
    char text[24];
    copy_text(text, sizeof(text), line);
    return strtoll(text, NULL, 10);
}

/* "name\nqueues\nconcurrency\nstarted", as renew writes it. The queues may be longer than what is shown of them. */
static void read_about(lade_worker_info *out, struct lb_slice about)
{
    copy_text(out->name, sizeof(out->name), take_line(&about));
    copy_text(out->queues, sizeof(out->queues), take_line(&about));
    out->concurrency = (int)read_number(take_line(&about));
    out->started_at = read_number(about) * LADE_MILLISECOND;
}

int ls_resque_list_workers(struct lq_store *base, struct lb_arena *arena, lade_worker_info **out,
                           size_t *n, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct look_call l = {s, "", NULL};
    struct ls_resque_ask ask = {encode_look, &l, "workers", false};
    struct ls_redis_conn *c;
    lr_mutex_lock(&s->admin.lock);
    int rc = ls_resque_ask(s, &s->admin, &ask, 1, &c, err);
    if (rc == 0) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(c, 0);
        size_t there = ls_redis_read_array(&cur);
        lade_worker_info *info = lb_arena_alloc(arena, (there + 1) * sizeof(*info));
        if (!info)
            rc = lb_fail_nomem(err, "workers");
        for (size_t i = 0; info && i < there; i++) {
            (void)ls_redis_read_array(&cur);
            struct lb_slice id = ls_redis_read_bytes(&cur);
            info[i] = (lade_worker_info){.lease_until = ls_redis_read_int(&cur) * LADE_MILLISECOND};
            memcpy(info[i].id, id.p, LB_MIN(id.n, LADE_ID_MAX));
            read_about(&info[i], ls_redis_read_bytes(&cur));
            info[i].n_active = (size_t)ls_redis_read_int(&cur);
            int64_t beat = 0;
            if (rq_time_read(&beat, ls_redis_read_bytes(&cur)))
                info[i].seen_at = beat * LADE_SECOND;
        }
        if (rc == 0 && cur.bad)
            rc = ls_redis_conn_fail_reply(c, "workers", err);
        if (rc == 0) {
            *out = info;
            *n = there;
        }
    }
    lr_mutex_unlock(&s->admin.lock);
    return rc;
}

/* What stops Ruby workers and breaks pages of resque-web: ids that are none, and queues that no worker can be given. */
int ls_resque_check(struct lq_store *base, lq_finding_fn report, void *ctx, lade_err *err)
{
    struct ls_resque_store *s = ls_resque_of(base);
    struct lb_arena arena;
    const char **name;
    size_t n = 0;
    char text[256];
    lb_arena_init(&arena);
    lr_mutex_lock(&s->admin.lock);
    int rc = read_set(s, RQ_KEY_WORKERS, &arena, &name, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct rq_id id;
        if (rq_id_read(&id, lb_slice_str(name[i])))
            continue;
        (void)snprintf(
            text, sizeof(text),
            "worker '%.100s' is no host:pid:queues; Ruby workers die of it at their start",
            name[i]);
        report(ctx, "workers", text);
    }
    if (rc == 0)
        rc = read_set(s, RQ_KEY_QUEUES, &arena, &name, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (!name[i][0])
            report(ctx, "queues", "there is a queue without a name, which no worker serves");
    lr_mutex_unlock(&s->admin.lock);
    lb_arena_fini(&arena);
    return rc;
}
