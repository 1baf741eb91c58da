/* safe.c - what must be so before anything is written; see server.h */
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "resque_bench/rb_server.h"

#define DEADLINE    (10 * LADE_SECOND)
#define SPARE_FDS   32
#define WORKERS_MAX 100000 /* members of `workers` that are looked at */

static void encode(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    const char *const *word = *(const char *const **)ctx;
    size_t n = 0;
    while (word[n])
        n++;
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, n);
    for (size_t i = 0; i < n; i++)
        ls_redis_arg_str(cmd, word[i]);
    ls_redis_cmd_end(cmd);
}

/* One command of words; its reply in *cur. */
static int ask(struct rb_server *s, const char *const *word, struct ls_redis_cursor *cur,
               lade_err *err)
{
    struct ls_redis_call c = {.encode = encode, .ctx = (void *)&word, .where = word[0]};
    int rc = ls_redis_conn_call(s->conn, &c, lb_deadline_in(DEADLINE), err);
    if (rc == 0)
        *cur = ls_redis_conn_reply(s->conn, 0);
    return rc;
}

#define ASK(s, cur, err, ...) ask((s), (const char *const[]){__VA_ARGS__, NULL}, (cur), (err))

static size_t most_workers(const struct rb_options *o)
{
    size_t most = 0;
    for (size_t i = 0; i < o->n_workers; i++)
        most = LB_MAX(most, o->workers[i]);
    return most;
}

static int check_descriptors(size_t workers, lade_err *err)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)workers + SPARE_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
        return 0;
    limit.rlim_cur = LB_MIN(need, limit.rlim_max);
    if (limit.rlim_cur >= need && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    return lb_fail(
        err, LADE_EINVAL, "options",
        "--workers %zu needs %llu file descriptors and the limit is %llu: raise it with ulimit -n",
        workers, (unsigned long long)need, (unsigned long long)limit.rlim_max);
}

static int64_t number_in(struct lb_slice info, const char *name)
{
    const char *p = memmem(info.p, info.n, name, strlen(name));
    return p ? strtoll(p + strlen(name), NULL, 10) : -1;
}

/* INFO has maxclients since Redis 7.0. */
static int check_clients(struct rb_server *s, size_t workers, lade_err *err)
{
    struct ls_redis_cursor cur;
    lade_err none;
    if (ASK(s, &cur, &none, "INFO", "clients") < 0)
        return 0; /* not allowed to ask: the connects will tell */
    struct lb_slice info = ls_redis_read_bytes(&cur);
    int64_t now = number_in(info, "connected_clients:");
    int64_t max = number_in(info, "maxclients:");
    if (cur.bad || max < 0 || now < 0 || now + (int64_t)workers + 2 <= max)
        return 0;
    return lb_fail(
        err, LADE_EINVAL, "options",
        "--workers %zu needs as many connections; the server allows %lld (maxclients) and has %lld now",
        workers, (long long)max, (long long)now);
}

static int check_queues(struct rb_server *s, lade_err *err)
{
    int64_t jobs = 0;
    int rc = rb_server_backlog(s, &jobs, err);
    if (rc < 0 || jobs == 0)
        return rc;
    if (!s->o->force)
        return lb_fail(
            err, LADE_EFOREIGN, "start",
            "the queue '%.60s' holds %lld jobs already; use another --queue, or --force to set them aside and give them back",
            s->o->queue, (long long)jobs);
    if (jobs > RB_HELD_MAX)
        return lb_fail(
            err, LADE_ETOOBIG, "start",
            "the queue '%.60s' holds %lld jobs, more than can be set aside (%d); use another --queue",
            s->o->queue, (long long)jobs, RB_HELD_MAX);
    (void)fprintf(
        stderr, "Warning: %lld jobs of others are set aside and given back at the end (--force)\n",
        (long long)jobs);
    return 0;
}

/* Of the ids of a reply of SSCAN, one that serves a queue of ours; what it says in err. */
static int judge_ids(struct rb_server *s, struct ls_redis_cursor *cur, size_t n, lade_err *err)
{
    for (size_t k = 0; k < n; k++) {
        struct lb_slice text = ls_redis_read_bytes(cur);
        struct rq_id id;
        if (cur->bad || !rq_id_read(&id, text))
            continue;
        for (size_t i = 0; i < s->n_queues; i++) {
            if (!rq_id_serves(&id, lb_slice_str(s->queue[i])))
                continue;
            if (!s->o->force)
                return lb_fail(
                    err, LADE_EFOREIGN, "start",
                    "the worker '%.*s' is registered for '%.60s' and would take the jobs; use another --namespace, or --force",
                    (int)LB_MIN(text.n, (size_t)80), (const char *)text.p, s->queue[i]);
            (void)fprintf(stderr,
                          "Warning: the worker '%.*s' may take jobs of this run (--force)\n",
                          (int)LB_MIN(text.n, (size_t)80), (const char *)text.p);
            return 1;
        }
    }
    return 0;
}

static int check_workers(struct rb_server *s, lade_err *err)
{
    char at[32] = "0";
    size_t seen = 0;
    struct lb_buf key = {0};
    rq_key(&s->keys, &key, RQ_KEY_WORKERS);
    lb_buf_add_byte(&key, 0);
    int rc = key.failed ? lb_fail_nomem(err, "start") : 0;
    while (rc == 0) {
        struct ls_redis_cursor cur;
        rc = ASK(s, &cur, err, "SSCAN", (const char *)key.p, at, "COUNT", "1000");
        if (rc < 0)
            break;
        (void)ls_redis_read_array(&cur);
        struct lb_slice next = ls_redis_read_bytes(&cur);
        size_t n = ls_redis_read_array(&cur);
        (void)snprintf(at, sizeof(at), "%.*s", (int)LB_MIN(next.n, (size_t)30),
                       (const char *)next.p);
        rc = judge_ids(s, &cur, n, err);
        seen += n;
        if (cur.bad || strcmp(at, "0") == 0 || seen >= WORKERS_MAX)
            break;
    }
    lb_buf_fini(&key);
    return rc < 0 ? rc : 0;
}

static int check_flush(struct rb_server *s, lade_err *err)
{
    if (!s->o->allow_flushdb)
        return 0;
    struct ls_redis_cursor cur;
    int rc = ASK(s, &cur, err, "DBSIZE");
    if (rc < 0)
        return rc;
    int64_t keys = ls_redis_read_int(&cur);
    if (!s->o->yes_destroy && (s->url.db == 0 || keys > 0))
        return lb_fail(
            err, LADE_EFOREIGN, "start",
            "--allow-flushdb would destroy db %d with its %lld keys%s: give --yes-destroy too, or leave --allow-flushdb out",
            s->url.db, (long long)keys, s->url.db == 0 ? " (db 0, where applications live)" : "");
    (void)fprintf(stderr, "Warning: FLUSHDB of db %d before each trial; %lld keys are there now\n",
                  s->url.db, (long long)keys);
    return 0;
}

int rb_safe_check(struct rb_server *s, lade_err *err)
{
    size_t workers = most_workers(s->o);
    int rc = check_descriptors(workers, err);
    if (rc == 0)
        rc = check_clients(s, workers, err);
    if (rc == 0)
        rc = check_flush(s, err);
    if (rc == 0)
        rc = check_queues(s, err);
    return rc < 0 ? rc : check_workers(s, err);
}
