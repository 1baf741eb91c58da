/*
 * model.c - model STORE [--seed N] [--ops N] [--seconds N]: a store against the reference model
 *
 * Without a seed: seeds 1, 2, ... for some seconds, each with as many ops. When the sides differ, the run is repeated with
 * a full comparison after every op, which gives the shortest failing prefix; the command that repeats it is printed
 * with the last ops.
 */
#include "model.h"

#include <string.h>

#include "base/clock.h"
#include "support/redis_server.h"
#include "support/tmpdir.h"
#ifdef MODEL_SQLITE
#    include "store/sqlite/sqlite_store.h"
#endif
#ifdef MODEL_REDIS
#    include "store/redis/redis_store.h"
#endif
#include "store/memory/memory_store.h"

static const struct lq_store_ops *const stores[] = {
    &ls_memory_ops, /* against itself: what it shows is that a run does not depend on chance */
#ifdef MODEL_SQLITE
    &ls_sqlite_ops,
#endif
#ifdef MODEL_REDIS
    &ls_redis_ops,
#endif
};

struct options {
    uint64_t seed; /* 0 = 1, 2, ... */
    size_t ops;
    int64_t seconds;
};

static struct world world; /* too large for a stack */

static void print_trace(const struct world *w, size_t at)
{
    size_t first = at > TRACE ? at - TRACE : 0;
    for (size_t i = first; i < at; i++)
        (void)printf("  %5zu  %s\n", i, w->trace[i % TRACE]);
}

/* True when the sides stayed the same. */
static bool try_seed(const struct subject *subject, uint64_t seed, size_t ops)
{
    size_t n = tm_run(&world, subject, seed, ops, 25);
    if (!world.failure[0])
        return true;
    (void)printf("seed %llu: differs at op %zu: %s\n", (unsigned long long)seed, n, world.failure);
    size_t shortest = tm_run(&world, subject, seed, n, 1);
    if (!world.failure[0]) {
        (void)printf("the repetition of these %zu ops does not differ: chance is involved\n", n);
        return false;
    }
    print_trace(&world, shortest);
    (void)printf("shortest failing prefix: %zu ops: %s\n", shortest, world.failure);
    (void)printf("repeat: model %s --seed %llu --ops %zu\n", subject->ops->name,
                 (unsigned long long)seed, shortest);
    return false;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    for (int i = 2; i < argc; i += 2) {
        uint64_t n = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        if (strcmp(argv[i], "--seed") == 0)
            o->seed = n;
        else if (strcmp(argv[i], "--ops") == 0)
            o->ops = n;
        else if (strcmp(argv[i], "--seconds") == 0)
            o->seconds = (int64_t)n;
        else
            return false;
        if (n == 0)
            return false;
    }
    return true;
}

static bool run(const struct subject *subject, const struct options *o)
{
    if (o->seed)
        return try_seed(subject, o->seed, o->ops);
    int64_t deadline = lb_deadline_in(o->seconds * LADE_SECOND);
    uint64_t seed = 1;
    bool same = true;
    for (; same && lb_clock_mono() < deadline; seed++)
        same = try_seed(subject, seed, o->ops);
    (void)printf("%s: %llu seeds of %zu ops each, %s\n", subject->ops->name,
                 (unsigned long long)seed - 1, o->ops, same ? "no difference" : "FAILED");
    return same;
}

int main(int argc, char **argv)
{
    struct options o = {.ops = 400, .seconds = 8};
    struct subject subject = {0};
    struct ts_redis redis = {0};
    struct ts_tmpdir dir = {0};
    bool ok = argc > 1 && parse_options(argc, argv, &o);
    static const struct ts_redis_opts in_cluster = {.cluster = true};
    bool cluster = ok && strcmp(argv[1], "redis-cluster") == 0;
    for (size_t i = 0; ok && i < LB_ARRAY_LEN(stores); i++) {
        if (strcmp(stores[i]->name, cluster ? "redis" : argv[1]) == 0)
            subject.ops = stores[i];
    }
    if (!subject.ops) {
        (void)fprintf(stderr, "usage: model STORE [--seed N] [--ops N] [--seconds N]\n");
        return 2;
    }
    bool server = strcmp(subject.ops->name, "redis") == 0;
    ok = server ? ts_redis_start(&redis, cluster ? &in_cluster : NULL) : ts_tmpdir_make(&dir);
    subject.dir = dir.path;
    subject.redis_url = server ? redis.url : NULL;
    ok = ok && run(&subject, &o);
    ts_redis_stop(&redis);
    ts_tmpdir_remove(&dir);
    return ok ? 0 : 1;
}
