/* rb_server.c - preparing, looking, cleaning; see server.h */
#include "resque_bench/rb_server.h"

#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque_bench/words.h"

#define PROGRESS_EVERY (500 * LADE_MILLISECOND)

/* Commands of one call, as text that was put together before: encode may run several times. */
struct batch {
    struct lb_buf text;           /* the arguments, one behind the other */
    size_t *end, n, cap;          /* where each ends */
    size_t *first, n_cmds, c_cap; /* first argument of each command */
};

static void batch_cmd(struct batch *b)
{
    if (b->n_cmds == b->c_cap) {
        size_t cap = b->c_cap ? 2 * b->c_cap : 16;
        size_t *p = lb_realloc(b->first, cap * sizeof(*p));
        if (!p) {
            b->text.failed = true;
            return;
        }
        b->first = p;
        b->c_cap = cap;
    }
    b->first[b->n_cmds++] = b->n;
}

/* What was added to text since the last argument is one more. */
static void batch_arg_end(struct batch *b)
{
    if (b->n == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 64;
        size_t *p = lb_realloc(b->end, cap * sizeof(*p));
        if (!p) {
            b->text.failed = true;
            return;
        }
        b->end = p;
        b->cap = cap;
    }
    b->end[b->n++] = b->text.n;
}

static void batch_str(struct batch *b, const char *s)
{
    lb_buf_add_str(&b->text, s);
    batch_arg_end(b);
}

static void batch_key(struct batch *b, const struct rq_keys *k, const char *name)
{
    rq_key(k, &b->text, name);
    batch_arg_end(b);
}

static void batch_queue(struct batch *b, const struct rb_server *s, size_t i)
{
    rq_key_queue(&s->keys, &b->text, lb_slice_str(s->queue[i]));
    batch_arg_end(b);
}

static void batch_clear(struct batch *b)
{
    lb_buf_clear(&b->text);
    b->n = b->n_cmds = 0;
}

static void batch_fini(struct batch *b)
{
    lb_buf_fini(&b->text);
    lb_free(b->end);
    lb_free(b->first);
    *b = (struct batch){0};
}

static void encode(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    const struct batch *b = ctx;
    for (size_t i = 0; i < b->n_cmds; i++) {
        size_t last = i + 1 < b->n_cmds ? b->first[i + 1] : b->n;
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, last - b->first[i]);
        for (size_t a = b->first[i]; a < last; a++) {
            size_t at = a ? b->end[a - 1] : 0;
            ls_redis_arg(cmd, b->text.p + at, b->end[a] - at);
        }
        ls_redis_cmd_end(cmd);
    }
}

static int call(struct rb_server *s, struct batch *b, const char *where, bool once, lade_err *err)
{
    if (b->text.failed)
        return lb_fail_nomem(err, where);
    struct ls_redis_call c = {.encode = encode, .ctx = b, .where = where, .once = once};
    int rc = ls_redis_conn_call(s->conn, &c, lb_deadline_in(s->patience), err);
    if (rc < 0 && err && (strstr(err->text, "MOVED ") || strstr(err->text, "CROSSSLOT")))
        return lb_fail(
            err, LADE_EUNSUPPORTED, where,
            "this is a Redis Cluster, which resque-bench does not follow: measure one server without cluster-enabled");
    return rc;
}

int rb_server_connect(struct rb_server *s, lade_err *err)
{
    struct ls_redis_conn_config config = {.url = &s->url,
                                          .name = "resque-bench",
                                          .connect_timeout = 5 * LADE_SECOND,
                                          .reached = &s->reached,
                                          .no_spin = true};
    lade_err why = {0};
    int rc = ls_redis_conn_open(&s->conn, &config, &why);
    if (rc == 0)
        rc = ls_redis_conn_connect(s->conn, lb_deadline_in(10 * LADE_SECOND), &why);
    if (rc == -LADE_EINVAL && !s->db_given && s->url.db != 0) {
        /* Refused by its number: 13 is a default of ours, and a cluster has db 0 alone. */
        s->url.db = 0;
        ls_redis_conn_close(s->conn);
        s->conn = NULL;
        return rb_server_connect(s, err);
    }
    if (rc < 0 && err)
        *err = why;
    if (rc == 0)
        (void)snprintf(s->version, sizeof(s->version), "%s", ls_redis_conn_server(s->conn));
    return rc;
}

void rb_server_tag(const struct rb_server *s, char *out, size_t size)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s", s->version);
    char *blank = strchr(name, ' ');
    if (blank)
        *blank = '-';
    rb_tag_clean(out, size, name);
}

/* what is there ---------------------------------------------------------------------------------------------------- */

int rb_server_backlog(struct rb_server *s, int64_t *out, lade_err *err)
{
    struct batch b = {0};
    int64_t sum = 0;
    int rc = 0;
    for (size_t from = 0; from < s->n_queues && rc == 0; from += RB_PREFILL_PIPELINE) {
        size_t to = LB_MIN(from + RB_PREFILL_PIPELINE, s->n_queues);
        batch_clear(&b);
        for (size_t i = from; i < to; i++) {
            batch_cmd(&b);
            batch_str(&b, "LLEN");
            batch_queue(&b, s, i);
        }
        rc = call(s, &b, "LLEN", false, err);
        for (size_t i = from; i < to && rc == 0; i++) {
            struct ls_redis_cursor cur = ls_redis_conn_reply(s->conn, i - from);
            sum += ls_redis_read_int(&cur);
        }
    }
    batch_fini(&b);
    if (rc == 0)
        *out = sum;
    return rc;
}

static int64_t info_number(struct lb_slice info, const char *name)
{
    const char *p = memmem(info.p, info.n, name, strlen(name));
    return p ? strtoll(p + strlen(name), NULL, 10) : 0;
}

static double info_seconds(struct lb_slice info, const char *name)
{
    const char *p = memmem(info.p, info.n, name, strlen(name));
    return p ? strtod(p + strlen(name), NULL) : 0;
}

/* One section as text with a NUL; the caller's. */
static bool read_info(struct rb_server *s, const char *section, struct lb_buf *out)
{
    struct batch b = {0};
    batch_cmd(&b);
    batch_str(&b, "INFO");
    batch_str(&b, section);
    lade_err err;
    bool ok = call(s, &b, "INFO", false, &err) == 0;
    if (ok) {
        struct ls_redis_cursor cur = ls_redis_conn_reply(s->conn, 0);
        struct lb_slice text = ls_redis_read_bytes(&cur);
        lb_buf_clear(out);
        lb_buf_add_byte(out, '\n');
        lb_buf_add(out, text.p, text.n);
        lb_buf_add_byte(out, 0);
        ok = !cur.bad && !out->failed;
    }
    batch_fini(&b);
    return ok;
}

void rb_server_look(struct rb_server *s, struct rb_server_state *out)
{
    struct lb_buf text = {0};
    *out = (struct rb_server_state){0};
    bool ok = read_info(s, "cpu", &text);
    if (ok) {
        struct lb_slice info = lb_buf_slice(&text);
        out->cpu_s = info_seconds(info, "\nused_cpu_sys:") + info_seconds(info, "\nused_cpu_user:");
        ok = read_info(s, "stats", &text);
    }
    if (ok) {
        struct lb_slice info = lb_buf_slice(&text);
        out->bytes_in = info_number(info, "\ntotal_net_input_bytes:");
        out->bytes_out = info_number(info, "\ntotal_net_output_bytes:");
        out->commands = info_number(info, "\ntotal_commands_processed:");
        ok = read_info(s, "commandstats", &text);
    }
    for (size_t i = 0; ok && i < RB_N_CMDS; i++) {
        char name[48];
        (void)snprintf(name, sizeof(name), "\ncmdstat_%s:calls=", rb_cmd_name[i]);
        out->calls[i] = info_number(lb_buf_slice(&text), name);
    }
    out->known = ok;
    lb_buf_fini(&text);
}

/* clearing --------------------------------------------------------------------------------------------------------- */

bool rb_server_hold(struct rb_server *s, size_t queue, struct lb_slice entry)
{
    if (s->n_held == RB_HELD_MAX || s->held_bytes + entry.n > RB_HELD_BYTES_MAX)
        return false;
    if (s->n_held == s->held_cap) {
        size_t cap = s->held_cap ? 2 * s->held_cap : 64;
        struct rb_held **p = lb_realloc(s->held, cap * sizeof(struct rb_held *));
        if (!p)
            return false;
        s->held = p;
        s->held_cap = cap;
    }
    struct rb_held *h = lb_malloc(sizeof(*h) + entry.n);
    if (!h)
        return false;
    h->queue = queue;
    h->n = entry.n;
    memcpy(h->bytes, entry.p, entry.n);
    s->held[s->n_held++] = h;
    s->held_bytes += entry.n;
    return true;
}

/* Takes out what is in queue i: ours goes, the rest is held. */
static int empty_queue(struct rb_server *s, size_t i, lade_err *err)
{
    struct batch b = {0};
    batch_cmd(&b);
    batch_str(&b, "LPOP");
    batch_queue(&b, s, i);
    batch_str(&b, "1000");
    int rc;
    size_t n = 0;
    do {
        rc = call(s, &b, "LPOP", true, err);
        if (rc < 0)
            break;
        struct ls_redis_cursor cur = ls_redis_conn_reply(s->conn, 0);
        n = ls_redis_read_array(&cur);
        for (size_t k = 0; k < n && rc == 0; k++) {
            struct lb_slice entry = ls_redis_read_bytes(&cur);
            uint64_t index;
            int64_t at;
            if (rb_job_read(s, entry, &index, &at) != RB_OURS && !rb_server_hold(s, i, entry))
                rc = lb_fail(
                    err, LADE_ETOOBIG, "clear",
                    "the queue '%.100s' has more entries of others than can be set aside (%d); use another --queue",
                    s->queue[i], RB_HELD_MAX);
        }
    } while (rc == 0 && n > 0);
    batch_fini(&b);
    return rc;
}

int rb_server_clear(struct rb_server *s, lade_err *err)
{
    if (s->o->allow_flushdb) {
        struct batch b = {0};
        batch_cmd(&b);
        batch_str(&b, "FLUSHDB");
        int rc = call(s, &b, "FLUSHDB", false, err);
        batch_fini(&b);
        return rc;
    }
    int64_t left = 0;
    int rc = rb_server_backlog(s, &left, err);
    for (size_t i = 0; left > 0 && i < s->n_queues && rc == 0; i++)
        rc = empty_queue(s, i, err);
    return rc;
}

/* filling ---------------------------------------------------------------------------------------------------------- */

static int announce(struct rb_server *s, lade_err *err)
{
    struct batch b = {0};
    int rc = 0;
    for (size_t from = 0; from < s->n_queues && rc == 0; from += RB_PREFILL_PIPELINE) {
        size_t to = LB_MIN(from + RB_PREFILL_PIPELINE, s->n_queues);
        batch_clear(&b);
        for (size_t i = from; i < to; i++) {
            batch_cmd(&b);
            batch_str(&b, "SADD");
            batch_key(&b, &s->keys, RQ_KEY_QUEUES);
            batch_str(&b, s->queue[i]);
        }
        rc = call(s, &b, "SADD", false, err);
        for (size_t i = from; i < to && rc == 0; i++) {
            struct ls_redis_cursor cur = ls_redis_conn_reply(s->conn, i - from);
            s->added[i] |= ls_redis_read_int(&cur) == 1;
        }
    }
    batch_fini(&b);
    return rc;
}

/* On a terminal, now and then: a line that is taken away when the prefill is done. */
static void show_progress(const struct rb_server *s, uint64_t done, uint64_t n, int64_t *next)
{
    char a[RB_WORD];
    char b[RB_WORD];
    bool end = done >= n;
    if (s->o->quiet || !isatty(fileno(rb_out)) || (!end && lb_clock_mono() < *next))
        return;
    if (end)
        (void)fputs("\r\033[K", rb_out);
    else
        (void)fprintf(rb_out, "\r  prefill %s of %s", rb_count(a, done), rb_count(b, n));
    (void)fflush(rb_out);
    *next = lb_deadline_in(PROGRESS_EVERY);
}

int rb_server_prefill(struct rb_server *s, uint64_t n, lade_err *err)
{
    struct batch b = {0};
    int rc = announce(s, err);
    if (s->put_at == 0)
        s->put_at = lb_clock_wall();
    int64_t next = lb_deadline_in(PROGRESS_EVERY);
    for (uint64_t from = 0; from < n && rc == 0; from += RB_PREFILL_PIPELINE) {
        uint64_t to = LB_MIN(from + RB_PREFILL_PIPELINE, n);
        batch_clear(&b);
        for (uint64_t i = from; i < to; i++) {
            batch_cmd(&b);
            batch_str(&b, "RPUSH");
            batch_queue(&b, s, i % s->n_queues);
            rb_job_write(&b.text, s->o, i, lb_clock_wall());
            batch_arg_end(&b);
        }
        rc = call(s, &b, "RPUSH", true, err);
        if (rc == 0 && rb_interrupted())
            rc = lb_fail(err, LADE_ECLOSED, "prefill", "interrupted");
        show_progress(s, rc == 0 ? to : n, n, &next);
    }
    batch_fini(&b);
    return rc;
}

/* the end ---------------------------------------------------------------------------------------------------------- */

static int give_back(struct rb_server *s, lade_err *err)
{
    struct batch b = {0};
    int rc = 0;
    for (size_t i = 0; i < s->n_held && rc == 0; i++) {
        batch_clear(&b);
        batch_cmd(&b);
        batch_str(&b, "RPUSH");
        batch_queue(&b, s, s->held[i]->queue);
        lb_buf_add(&b.text, s->held[i]->bytes, s->held[i]->n);
        batch_arg_end(&b);
        rc = call(s, &b, "RPUSH", true, err);
    }
    batch_fini(&b);
    return rc;
}

/* A queue that we announced and that is empty now is unknown again, as it was. */
static int forget(struct rb_server *s, lade_err *err)
{
    struct batch b = {0};
    int rc = 0;
    for (size_t i = 0; i < s->n_queues && rc == 0; i++) {
        bool given = false;
        for (size_t k = 0; k < s->n_held; k++)
            given |= s->held[k]->queue == i;
        if (!s->added[i] || given)
            continue;
        batch_clear(&b);
        batch_cmd(&b);
        batch_str(&b, "SREM");
        batch_key(&b, &s->keys, RQ_KEY_QUEUES);
        batch_str(&b, s->queue[i]);
        rc = call(s, &b, "SREM", false, err);
    }
    batch_fini(&b);
    return rc;
}

/* The keys of simulated workers. */
static int remove_own(struct rb_server *s, lade_err *err)
{
    static const char *const kind[] = {RB_OWN_WORKER, RB_OWN_INFLIGHT, RB_OWN_COUNT, RB_OWN_ALL};
    size_t workers = 0;
    for (size_t i = 0; i < s->o->n_workers; i++)
        workers = LB_MAX(workers, s->o->workers[i]);
    struct batch b = {0};
    int rc = 0;
    for (size_t from = 0; from < workers && rc == 0; from += RB_PREFILL_PIPELINE) {
        batch_clear(&b);
        for (size_t i = from; i < LB_MIN(from + RB_PREFILL_PIPELINE, workers); i++) {
            batch_cmd(&b);
            batch_str(&b, "UNLINK");
            for (size_t k = 0; k < LB_ARRAY_LEN(kind); k++) {
                rb_own_key(s, &b.text, kind[k], i);
                batch_arg_end(&b);
            }
        }
        rc = call(s, &b, "UNLINK", false, err);
    }
    batch_fini(&b);
    return rc;
}

int rb_server_remove_native(struct rb_server *s, lade_err *err)
{
    char ns[64];
    char at[32] = "0";
    struct batch b = {0};
    struct batch gone = {0};
    int rc;
    rb_server_native_ns(s, ns, sizeof(ns));
    do {
        batch_clear(&b);
        batch_cmd(&b);
        batch_str(&b, "SCAN");
        batch_str(&b, at);
        batch_str(&b, "MATCH");
        lb_buf_add_fmt(&b.text, "%s:*", ns);
        batch_arg_end(&b);
        batch_str(&b, "COUNT");
        batch_str(&b, "1000");
        rc = call(s, &b, "SCAN", false, err);
        if (rc < 0)
            break;
        struct ls_redis_cursor cur = ls_redis_conn_reply(s->conn, 0);
        (void)ls_redis_read_array(&cur);
        struct lb_slice next = ls_redis_read_bytes(&cur);
        (void)snprintf(at, sizeof(at), "%.*s", (int)LB_MIN(next.n, (size_t)30),
                       (const char *)next.p);
        size_t n = ls_redis_read_array(&cur);
        batch_clear(&gone);
        batch_cmd(&gone);
        batch_str(&gone, "UNLINK");
        for (size_t i = 0; i < n; i++) {
            struct lb_slice key = ls_redis_read_bytes(&cur);
            lb_buf_add(&gone.text, key.p, key.n);
            batch_arg_end(&gone);
        }
        if (n > 0)
            rc = call(s, &gone, "UNLINK", false, err);
    } while (rc == 0 && strcmp(at, "0") != 0);
    batch_fini(&b);
    batch_fini(&gone);
    return rc;
}

void rb_server_clean(struct rb_server *s)
{
    lade_err err = {0};
    int64_t left = 0;
    int rc = 0;
    if (s->put_at > 0)
        rc = rb_server_backlog(s, &left, &err);
    for (size_t i = 0; left > 0 && i < s->n_queues && rc == 0; i++)
        rc = empty_queue(s, i, &err);
    if (rc == 0)
        rc = give_back(s, &err);
    if (rc == 0)
        rc = forget(s, &err);
    bool own = s->o->resque_profile;
    for (size_t i = 0; i < s->o->n_modes; i++)
        own |= s->o->modes[i] == RB_BLMOVE;
    if (rc == 0 && own)
        rc = remove_own(s, &err);
    if (rc < 0)
        (void)fprintf(stderr, "Warning: the queues could not be cleaned: %s\n", err.text);
}
