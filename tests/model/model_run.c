/* model_run.c - one run: opening both sides, drawing, stepping time */
#include "model.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rt/seam.h"
#include "store/memory/memory_store.h"

static const char *const queue_names[N_QUEUES] = {"alpha", "beta", "gamma"};

const char *tm_queue(int i)
{
    return queue_names[i];
}

/* splitmix64 (https://prng.di.unimi.it/splitmix64.c): the same numbers for the same seed everywhere. */
static uint64_t draw(struct world *w)
{
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t tm_below(struct world *w, uint64_t bound)
{
    return draw(w) % bound;
}

bool tm_chance(struct world *w, unsigned percent)
{
    return tm_below(w, 100) < percent;
}

void tm_trace(struct world *w, const char *format, ...)
{
    char *line = w->trace[w->at % TRACE];
    size_t used = strlen(line), size = sizeof(w->trace[0]);
    va_list args;
    va_start(args, format);
    if (used < size - 1)
        (void)vsnprintf(line + used, size - used, format, args);
    va_end(args);
}

static int64_t read_clock(void *ctx)
{
    return ((const struct world *)ctx)->clock_ns;
}

static bool open_sides(struct world *w, const struct subject *subject, uint64_t seed)
{
    static unsigned n_runs;
    static char url[N_SIDES][256], ns[32]; /* alive until close, as the contract wants it */
    lade_err err = {0};
    n_runs++;
    (void)snprintf(ns, sizeof(ns), "m%u", n_runs);
    (void)snprintf(url[MODEL], sizeof(url[MODEL]), "memory:");
    if (subject->redis_url)
        (void)snprintf(url[STORE], sizeof(url[STORE]), "%s", subject->redis_url);
    else
        (void)snprintf(url[STORE], sizeof(url[STORE]), "%s:%s/%u.db", subject->ops->name,
                       subject->dir, n_runs);
    struct lq_store_config config = {
        .ns = ns,
        .timeout_ms = 10000,
        .connect_timeout_ms = 10000,
        .keep_completed = {600000, 12},
        .keep_dead = {1200000, seed % 5 == 0 ? 0 : 25},
        .body_max = 64,
        .clock = w->exact ? read_clock : NULL,
        .clock_ctx = w,
    };
    struct lq_store **const handle[] = {&w->s[MODEL], &w->handle[0], &w->handle[1]};
    for (int i = 0; i < (w->shared ? 3 : 2); i++) {
        const struct lq_store_ops *const table[] = {i == MODEL ? &ls_memory_ops : subject->ops};
        config.url = url[LB_MIN(i, (int)STORE)];
        if (lq_store_open(handle[i], table, 1, &config, &err) < 0) {
            tm_fail(w, "open %s: %s", config.url, err.text);
            return false;
        }
    }
    w->s[STORE] = w->handle[0];
    return true;
}

static void use_handle(struct world *w, size_t i)
{
    if (!w->shared || w->s[STORE] == w->handle[i])
        return;
    w->s[STORE] = w->handle[i];
    tm_trace(w, "(handle %zu) ", i);
}

void tm_as(struct world *w, const char *worker)
{
    use_handle(w, strtoul(worker + 1, NULL, 10) % 2);
}

static int64_t read_side(struct world *w, int side)
{
    int64_t now = 0;
    lade_err err = {0};
    if (w->s[side]->ops->now(w->s[side], &now, &err) < 0)
        tm_fail(w, "now: %s", err.text);
    return now;
}

int64_t tm_now(struct world *w)
{
    return read_side(w, MODEL);
}

/* So that what ends in two ops never ends in the same millisecond. */
static void pass_time(struct world *w)
{
    if (w->exact) {
        w->clock_ns += (int64_t)(1 + tm_below(w, 4)) * LADE_MILLISECOND;
        return;
    }
    for (int i = 0; i < N_SIDES; i++) {
        int64_t start = read_side(w, i), deadline = lb_deadline_in(5 * LADE_SECOND);
        while (read_side(w, i) <= start && !w->failure[0] && lb_clock_mono() < deadline)
            lr_sleep_until(lb_deadline_in(LADE_MILLISECOND / 5));
    }
}

size_t tm_run(struct world *w, const struct subject *subject, uint64_t seed, size_t ops,
              size_t every)
{
    memset(w, 0, sizeof(*w));
    w->exact = subject->ops->caps & LQ_CAP_CLOCK;
    w->clock_ns = INT64_C(1700000000) * LADE_SECOND;
    w->random = seed;
    w->forgets = seed % 3 == 0;
    w->keyed = seed % 2 == 0 && subject->ops->key_list;
    w->dressed = w->keyed && seed % 4 == 0;
    w->scheduled = seed / 2 % 2 == seed % 2 && subject->ops->schedules;
    w->shared = seed % 3 == 1 && (subject->ops->caps & LQ_CAP_PROCESSES);
    w->bounded = seed / 2 % 2 == 0 && subject->ops->bounds;
    w->told = seed % 5 < 2;
    lb_arena_init(&w->arena);
    if (open_sides(w, subject, seed)) {
        for (int i = 0; i < N_WORKERS; i++)
            tm_join(w, i);
    }
    for (w->at = 0; w->at < ops && !w->failure[0]; w->at++) {
        w->trace[w->at % TRACE][0] = 0;
        if (w->shared)
            use_handle(w, tm_below(w, 2));
        tm_step(w);
        if (!w->failure[0])
            tm_compare_counts(w);
        if (!w->failure[0])
            tm_compare_events(w);
        if (!w->failure[0] && (w->at % every == every - 1 || w->at == ops - 1))
            tm_compare_all(w);
        lb_arena_reset(&w->arena);
        pass_time(w);
    }
    lb_arena_fini(&w->arena);
    lq_store_close(w->s[MODEL]);
    for (size_t i = 0; i < LB_ARRAY_LEN(w->handle); i++)
        lq_store_close(w->handle[i]);
    return w->at;
}
