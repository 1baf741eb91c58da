/* store_rig_test.c - see store_rig.h; named as a test, since only those may use tests/support */
#include "store/redis/store_rig.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue/beat.h"
#include "store/redis/redis_store.h"
#include "support/proxy.h"
#include "support/redis_server.h"

struct srig rig;
static struct ts_redis server;

static const char *const queue_q[] = {"q"};
static const struct lq_lanes lanes_q = {queue_q, 1};

int srig_start(void **state)
{
    (void)state;
    rig.server = &server;
    static const struct ts_redis_opts in_cluster = {.cluster = true};
    if (!ts_redis_start(&server, rig.cluster ? &in_cluster : NULL))
        return -1;
    rig.proxy = ts_proxy_start(server.socket);
    return rig.proxy ? 0 : -1;
}

int srig_stop(void **state)
{
    (void)state;
    ts_proxy_stop(rig.proxy);
    ts_redis_stop(&server);
    return 0;
}

int srig_setup(void **state)
{
    (void)state;
    static unsigned n_tests;
    (void)snprintf(rig.ns, sizeof(rig.ns), "t%u", ++n_tests);
    rig.n_stores = 0;
    rig.config = (struct lq_store_config){.timeout_ms = 10000,
                                          .connect_timeout_ms = 5000,
                                          .keep_completed = {3600000, 1000},
                                          .keep_dead = {3600000, 1000},
                                          .body_max = LADE_PAYLOAD_MAX_HARD};
    rig.got = (struct lq_leased_vec){0};
    lb_arena_init(&rig.got.arena);
    lb_arena_init(&rig.arena);
    ts_proxy_clear(rig.proxy);
    ts_proxy_refuse(rig.proxy, false);
    return 0;
}

static void report_finding(void *ctx, const char *queue, const char *text)
{
    print_error("check: queue '%s': %s\n", queue, text);
    ++*(int *)ctx;
}

int srig_teardown(void **state)
{
    (void)state;
    int findings = 0;
    ts_proxy_clear(rig.proxy);
    ts_proxy_refuse(rig.proxy, false);
    if (rig.n_stores > 0 &&
        rig.store[0]->ops->check(rig.store[0], report_finding, &findings, &rig.err) < 0) {
        print_error("check: %s\n", rig.err.text);
        findings++;
    }
    for (size_t i = 0; i < rig.n_stores; i++)
        lq_store_close(rig.store[i]);
    lb_arena_fini(&rig.got.arena);
    lb_arena_fini(&rig.arena);
    return findings;
}

void srig_want(int expected, int rc, const char *call, const char *file, int line)
{
    if (rc == expected)
        return;
    print_error("%s gives %s, expected %s\n    %s\n", call, lade_result_name(rc),
                lade_result_name(expected), rc < 0 ? rig.err.text : "");
    _fail(file, line);
}

static struct lq_store *open_url(const char *url)
{
    static const struct lq_store_ops *const stores[] = {&ls_redis_ops};
    rig.config.url = lb_arena_strdup(&rig.arena, url);
    rig.config.ns = rig.ns;
    assert_true(rig.n_stores < SRIG_STORES_MAX);
    WANT(0, lq_store_open(&rig.store[rig.n_stores], stores, 1, &rig.config, &rig.err));
    return rig.store[rig.n_stores++];
}

struct lq_store *srig_open(void)
{
    return open_url(server.url);
}

struct lq_store *srig_open_through_proxy(void)
{
    return open_url(ts_proxy_url(rig.proxy));
}

const char *srig_ask(const char *line)
{
    static char reply[16384];
    char text[512];
    const char *at = strstr(line, "%ns");
    int before = at ? (int)(at - line) : (int)strlen(line);
    (void)snprintf(text, sizeof(text), "%.*s%s%s", before, line, at ? rig.ns : "",
                   at ? at + 3 : "");
    assert_true(ts_redis_ask(&server, text, reply, sizeof(reply)));
    return reply;
}

struct lq_put srig_item(const char *id)
{
    static const char body[] = "\x01"
                               "4";
    return (struct lq_put){
        .queue = "q", .id = lb_slice_str(id), .body = lb_slice(body, 2), .level = 4};
}

void srig_put(struct lq_store *s, const char *prefix, size_t n)
{
    struct lq_put put[SRIG_BATCH];
    char id[SRIG_BATCH][32];
    assert_true(n <= SRIG_BATCH);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(id[i], sizeof(id[i]), "%s%zu", prefix, i);
        put[i] = srig_item(id[i]);
    }
    WANT(0, lq_put(s, put, n, &rig.err));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(put[i].outcome, 0);
}

void srig_join(struct lq_store *s, const char *worker)
{
    struct lq_beat beat = {.worker = worker,
                           .name = worker,
                           .lanes = lanes_q,
                           .lease_ms = 3600000,
                           .concurrency = 1,
                           .first = true};
    struct lq_stop stop[1];
    size_t n_stop;
    WANT(0, lq_renew(s, &beat, stop, 1, &n_stop, &rig.err));
}

struct lq_take srig_asking(const char *worker, size_t max)
{
    return (struct lq_take){.worker = worker, .lanes = lanes_q, .max = max, .register_idle = true};
}

size_t srig_take(struct lq_store *s, const char *worker, size_t max)
{
    struct lq_take take = srig_asking(worker, max);
    lb_arena_reset(&rig.got.arena);
    rig.got.n = 0;
    rig.got.job = NULL;
    WANT(0, AGAIN(lq_settle_take(s, NULL, 0, &take, &rig.got, &rig.err)));
    return rig.got.n;
}

void srig_settle_got(struct lq_store *s, enum lq_to to, int outcome)
{
    struct lq_settle it[SRIG_BATCH];
    assert_true(rig.got.n <= SRIG_BATCH);
    for (size_t i = 0; i < rig.got.n; i++)
        it[i] = (struct lq_settle){.queue = "q",
                                   .id = lb_slice_of(rig.got.job[i].id),
                                   .fence = rig.got.job[i].fence,
                                   .to = to,
                                   .reason = to == LQ_TO_DEAD ? LQ_REASON_EXHAUSTED : 0};
    WANT(0, lq_settle_take(s, it, rig.got.n, NULL, NULL, &rig.err));
    for (size_t i = 0; i < rig.got.n; i++)
        assert_int_equal(it[i].outcome, outcome);
}

lade_queue_info srig_info(struct lq_store *s)
{
    lade_queue_info info;
    WANT(0, s->ops->count(s, "q", &info, &rig.err));
    return info;
}

size_t srig_count(struct lq_store *s, enum lade_state state)
{
    return srig_info(s).count[state];
}
