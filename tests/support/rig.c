#include "support/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "support/rig_role.h"

#define ARGS_MAX 24

static enum ts_store the_store = TS_SQLITE;
static bool in_cluster; /* of Redis */

enum ts_store ts_rig_store(void)
{
    return the_store;
}

int ts_rig_rounds(int base)
{
    const char *text = getenv("ROUNDS");
    int rounds = text ? (int)strtol(text, NULL, 10) : 1;
    return base * LB_MAX(rounds, 1);
}

void ts_rig_main(int argc, char **argv)
{
    static const char *const names[] = {"sqlite", "redis", "memory"};
    if (argc > 1 && strcmp(argv[1], "--role") == 0)
        exit(ts_role_main(argc, argv));
    in_cluster = argc > 1 && strcmp(argv[1], "redis-cluster") == 0;
    if (in_cluster)
        the_store = TS_REDIS;
    for (int i = 0; argc > 1 && i < 3; i++) {
        if (strcmp(argv[1], names[i]) == 0)
            the_store = (enum ts_store)i;
    }
}

static _Noreturn void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "rig: %s: %s\n", what, why);
    ts_proc_kill_all();
    abort();
}

char *ts_rig_path(const struct ts_rig *r, const char *name, char *out, size_t size)
{
    return ts_tmpdir_path(&r->dir, name, out, size);
}

void ts_rig_touch(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up(path, "cannot be made");
    (void)close(fd);
}

/*
 * Servers of a cluster take two seconds until they answer, which each test would wait for: what one leaves is emptied for the next.
 * The last ones end with the program.
 */
#define SPARES_MAX 8
static struct ts_redis spare[SPARES_MAX];
static size_t n_spares;

static void stop_spares(void)
{
    while (n_spares > 0)
        ts_redis_stop(&spare[--n_spares]);
}

static bool start_redis(struct ts_redis *redis)
{
    static const struct ts_redis_opts cluster = {.cluster = true};
    static bool will_stop;
    if (!in_cluster)
        return ts_redis_start(redis, NULL);
    if (!will_stop)
        will_stop = atexit(stop_spares) == 0;
    if (n_spares == 0)
        return ts_redis_start(redis, &cluster);
    *redis = spare[--n_spares];
    return true;
}

static void stop_redis(struct ts_redis *redis)
{
    char reply[64];
    if (in_cluster && n_spares < SPARES_MAX &&
        ts_redis_ask(redis, "FLUSHALL", reply, sizeof(reply)) && strcmp(reply, "+OK\r\n") == 0)
        spare[n_spares++] = *redis;
    else
        ts_redis_stop(redis);
}

void ts_rig_start(struct ts_rig *r, enum ts_rig_way way)
{
    *r = (struct ts_rig){.store = the_store};
    if (!ts_tmpdir_make(&r->dir))
        give_up("start", "no temporary directory");
    (void)ts_rig_path(r, "ledger", r->ledger_dir, sizeof(r->ledger_dir));
    if (mkdir(r->ledger_dir, 0700) < 0 || !ts_ledger_open(&r->ledger, r->ledger_dir, "test"))
        give_up("start", "no ledger");
    if (r->store == TS_SQLITE) {
        (void)snprintf(r->direct, sizeof(r->direct), "sqlite:%s/jobs.db", r->dir.path);
    } else if (r->store == TS_MEMORY) {
        (void)snprintf(r->direct, sizeof(r->direct), "memory:rig");
    } else {
        if (!start_redis(&r->redis))
            give_up("start", "no redis-server");
        (void)snprintf(r->direct, sizeof(r->direct), "%s", r->redis.url);
    }
    (void)snprintf(r->url, sizeof(r->url), "%s", r->direct);
    if (r->store == TS_REDIS && way == TS_PROXIED) {
        r->proxy = ts_proxy_start(r->redis.socket);
        if (!r->proxy)
            give_up("start", "no proxy");
        (void)snprintf(r->url, sizeof(r->url), "%s", ts_proxy_url(r->proxy));
    }
}

void ts_rig_stop(struct ts_rig *r)
{
    ts_proc_kill_all();
    ts_proxy_stop(r->proxy);
    if (r->store == TS_REDIS)
        stop_redis(&r->redis);
    ts_ledger_close(&r->ledger);
    if (getenv("TS_KEEP")) /* for a look at what a failed test left */
        (void)fprintf(stderr, "rig: kept %s\n", r->dir.path);
    else
        ts_tmpdir_remove(&r->dir);
}

lade_options ts_rig_options(void)
{
    return (lade_options){.keep_completed = {.age = LADE_DAY, .count = 1000000},
                          .keep_dead = {.age = LADE_DAY, .count = 1000000}};
}

lade *ts_rig_open(const struct ts_rig *r)
{
    lade *q;
    lade_err err;
    lade_options o = ts_rig_options();
    if (lade_open(&q, r->direct, &o, &err) < 0)
        give_up(r->direct, err.text);
    return q;
}

/* processes ------------------------------------------------------------------------------------------------------- */

struct args {
    const char *v[ARGS_MAX];
    char text[ARGS_MAX][300];
    size_t n;
};

LADE_PRINTF(2, 3)

static void add_arg(struct args *a, const char *format, ...)
{
    va_list ap;
    LB_CHECK(a->n + 1 < ARGS_MAX);
    va_start(ap, format);
    int n = vsnprintf(a->text[a->n], sizeof(a->text[0]), format, ap);
    va_end(ap);
    LB_CHECK(n >= 0 && (size_t)n < sizeof(a->text[0]));
    a->v[a->n] = a->text[a->n];
    a->v[++a->n] = NULL;
}

static void add_text(struct args *a, const char *name, const char *value)
{
    if (value)
        add_arg(a, "%s=%s", name, value);
}

static void add_int(struct args *a, const char *name, int value)
{
    if (value)
        add_arg(a, "%s=%d", name, value);
}

static void begin_args(struct args *a, const struct ts_rig *r, const char *role, const char *url)
{
    a->n = 0;
    add_arg(a, "%s", ts_proc_self());
    add_arg(a, "--role");
    add_arg(a, "%s", role);
    add_text(a, "dir", r->ledger_dir);
    add_text(a, "url", url ? url : r->url);
}

static void start(const struct ts_rig *r, struct ts_proc *p, const struct args *a,
                  const char *const *env)
{
    char log[TS_DIR_MAX + 16];
    if (!ts_proc_start(p, a->v, env, ts_rig_path(r, "roles.log", log, sizeof(log))))
        give_up(a->v[2], "cannot be started");
}

void ts_rig_worker(struct ts_rig *r, struct ts_proc *p, const struct ts_worker_args *w)
{
    struct args a;
    begin_args(&a, r, "worker", w->url);
    add_text(&a, "name", w->name);
    add_text(&a, "queues", w->queues);
    add_int(&a, "c", w->concurrency);
    add_int(&a, "lease", w->lease_ms);
    add_int(&a, "sweep", w->sweep_ms);
    add_int(&a, "grace", w->grace_ms);
    add_int(&a, "prefetch", w->prefetch);
    add_int(&a, "max_crashes", w->max_crashes);
    add_int(&a, "timeout", w->timeout_ms);
    add_int(&a, "backoff", w->backoff_ms);
    add_int(&a, "produce", w->produce);
    add_int(&a, "drain", w->drain);
    add_int(&a, "no_sync", w->no_sync);
    start(r, p, &a, w->env);
}

void ts_rig_producer(struct ts_rig *r, struct ts_proc *p, const struct ts_producer_args *w)
{
    struct args a;
    begin_args(&a, r, "producer", w->url);
    add_text(&a, "kind", w->kind);
    add_text(&a, "queue", w->queue);
    add_text(&a, "payload", w->payload);
    add_text(&a, "prefix", w->prefix);
    add_int(&a, "n", w->n);
    add_int(&a, "batch", w->batch);
    add_int(&a, "in", w->in_ms);
    add_int(&a, "max_attempts", w->max_attempts);
    add_int(&a, "once", w->once);
    add_int(&a, "size", w->size);
    add_int(&a, "pause", w->pause_ms);
    add_int(&a, "no_sync", w->no_sync);
    start(r, p, &a, w->env);
}

void ts_rig_enqueue(struct ts_rig *r, lade *q, const lade_job_spec *spec, lade_id *id)
{
    lade_id own;
    lade_err err;
    if (lade_enqueue(q, spec, &own, &err) < 0)
        give_up("enqueue", err.text);
    ts_ledger_acked(&r->ledger, own.text);
    if (id)
        *id = own;
}

void ts_rig_kill(struct ts_rig *r, struct ts_proc *p)
{
    ts_ledger_process(&r->ledger, 'K', p->pid);
    ts_proc_kill(p);
}

void ts_rig_freeze(struct ts_rig *r, struct ts_proc *p)
{
    ts_ledger_process(&r->ledger, 'P', p->pid);
    ts_proc_signal(p, SIGSTOP);
}

void ts_rig_thaw(struct ts_rig *r, struct ts_proc *p)
{
    ts_ledger_process(&r->ledger, 'C', p->pid);
    ts_proc_signal(p, SIGCONT);
}

int ts_rig_term(struct ts_proc *p)
{
    ts_proc_signal(p, SIGTERM);
    return ts_proc_wait(p, TS_SOON) ? ts_proc_code(p) : -1;
}

/* what the store says --------------------------------------------------------------------------------------------- */

static bool is_listed(lade *q, const char *name)
{
    lade_worker_info *info;
    size_t n;
    bool found = false;
    if (lade_worker_list(q, &info, &n, NULL) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        found |= strcmp(info[i].name, name) == 0;
    lade_free(info);
    return found;
}

bool ts_rig_wait_worker(lade *q, const char *name, int64_t ns)
{
    return TS_UNTIL(ns, is_listed(q, name));
}

int ts_rig_state(lade *q, const char *id)
{
    lade_job_view *v;
    lade_err err;
    int rc = lade_job_get(q, NULL, id, &v, &err);
    if (rc < 0)
        give_up(id, err.text);
    if (rc == LADE_NOT_FOUND)
        return -1;
    int state = (int)v->state;
    lade_job_view_free(v);
    return state;
}

uint64_t ts_rig_count(lade *q, enum lade_state state)
{
    lade_queue_info *info;
    size_t n;
    uint64_t sum = 0;
    lade_err err;
    if (lade_queue_list(q, &info, &n, &err) < 0)
        give_up("queue list", err.text);
    for (size_t i = 0; i < n; i++)
        sum += info[i].count[state];
    lade_free(info);
    return sum;
}

static bool is_quiet(lade *q)
{
    return ts_rig_count(q, LADE_STATE_SCHEDULED) + ts_rig_count(q, LADE_STATE_READY) +
               ts_rig_count(q, LADE_STATE_ACTIVE) + ts_rig_count(q, LADE_STATE_RETRYING) ==
           0;
}

bool ts_rig_wait_quiet(lade *q, int64_t ns)
{
    return TS_UNTIL(ns, is_quiet(q));
}

size_t ts_rig_runs(const struct ts_rig *r, const char *id)
{
    struct ts_ledger l;
    size_t n;
    if (!ts_ledger_read(&l, r->ledger_dir))
        give_up(r->ledger_dir, "cannot be read");
    (void)ts_ledger_runs(&l, id, &n);
    ts_ledger_free(&l);
    return n;
}

size_t ts_rig_ends(const struct ts_rig *r, const char *id)
{
    struct ts_ledger l;
    if (!ts_ledger_read(&l, r->ledger_dir))
        give_up(r->ledger_dir, "cannot be read");
    size_t n = ts_ledger_ends(&l, id);
    ts_ledger_free(&l);
    return n;
}
