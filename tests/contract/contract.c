/*
 * contract.c - contract STORE [PATTERN]: runs the contract suite on one store
 *
 * STORE is the name in the table of stores, or redis-scripts, redis-cluster, redis-1-byte or redis-random: see start_redis; PATTERN, for work on a store, runs only tests whose name contains it.
 */
#include "flow_kit.h"
#include "key_kit.h"

#include <stdio.h>
#include <string.h>

#include "store/memory/memory_store.h"
#ifdef CONTRACT_SQLITE
#    include "store/sqlite/sqlite_store.h"
#endif
#ifdef CONTRACT_REDIS
#    include "store/redis/redis_store.h"
#endif

#define TESTS_MAX 1024

#include "support/proxy.h"

static const struct lq_store_ops *const stores[] = {
    &ls_memory_ops,
#ifdef CONTRACT_SQLITE
    &ls_sqlite_ops,
#endif
#ifdef CONTRACT_REDIS
    &ls_redis_ops,
#endif
};

static const struct ct_group *const groups[] = {
    &ct_put_group,      &ct_unique_group,        &ct_take_group,     &ct_settle_group,
    &ct_retain_group,   &ct_lease_group,         &ct_act_group,      &ct_queue_group,
    &ct_list_group,     &ct_wait_group,          &ct_share_group,    &ct_batch_group,
    &ct_nomem_group,    &ct_flow_group,          &ct_flow_act_group, &ct_flow_hop_group,
    &ct_flow_far_group, &ct_go_on_group,         &ct_note_group,     &ct_conflict_group,
    &ct_dead_group,     &ct_event_group,         &ct_watch_group,    &ct_result_group,
    &ct_say_group,      &ct_key_group,           &ct_limit_group,    &ct_schedule_group,
    &ct_single_group,   &ct_bound_group,         &ct_control_group,  &ct_bytes_group,
    &ct_company_group,  &ct_company_batch_group,
};

static struct ts_proxy *proxy; /* NULL when the line is whole */

static size_t add_tests(const struct ct_group *group, const char *pattern, struct CMUnitTest *tests,
                        size_t n)
{
    for (size_t i = 0; i < group->n; i++) {
        if (pattern && !strstr(group->tests[i].name, pattern))
            continue;
        LB_CHECK(n < TESTS_MAX);
        tests[n++] = group->tests[i];
    }
    return n;
}

/* For a user who may call no functions, so that all goes by scripts. */
static bool forbid_functions(void)
{
    char reply[64];
    return ts_redis_ask(&ct.redis, "ACL SETUSER default -function -fcall -fcall_ro", reply,
                        sizeof(reply)) &&
           strcmp(reply, "+OK\r\n") == 0;
}

/* C-028: the whole suite over a line that cuts what it carries into pieces of 1 byte, or of 1 to 64 at random. */
static bool start_redis(const char *way)
{
    static const struct ts_redis_opts in_cluster = {.cluster = true};
    bool cluster = way && strcmp(way, "-cluster") == 0;
    if (!way || !ts_redis_start(&ct.redis, cluster ? &in_cluster : NULL))
        return false;
    if (!*way || cluster)
        return true;
    if (strcmp(way, "-scripts") == 0)
        return forbid_functions();
    proxy = ts_proxy_start(ct.redis.socket);
    if (!proxy)
        return false;
    ts_proxy_chunk(proxy, strcmp(way, "-1-byte") == 0 ? 1 : -1);
    (void)snprintf(ct.redis.url, sizeof(ct.redis.url), "%s", ts_proxy_url(proxy));
    return true;
}

static bool prepare(const char *name)
{
    size_t len = name ? strcspn(name, "-") : 0;
    for (size_t i = 0; name && i < LB_ARRAY_LEN(stores); i++) {
        if (strlen(stores[i]->name) == len && strncmp(stores[i]->name, name, len) == 0)
            ct.ops = stores[i];
    }
    if (!ct.ops) {
        (void)fprintf(stderr, "usage: contract STORE [PATTERN]; this build has no store '%s'\n",
                      name ? name : "");
        return false;
    }
    if (strcmp(ct.ops->name, "redis") == 0)
        return start_redis(name + len);
    return ts_tmpdir_make(&ct.dir);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[TESTS_MAX];
    size_t n = 0;
    if (!prepare(argc > 1 ? argv[1] : NULL))
        return 2;
    for (size_t i = 0; i < LB_ARRAY_LEN(groups); i++) {
        bool lacks = (groups[i] == &ct_conflict_group && !(ct.ops->caps & LQ_CAP_CONFLICT)) ||
                     (groups[i] == &ct_dead_group && !ct.ops->change) ||
                     ((groups[i] == &ct_key_group || groups[i] == &ct_limit_group ||
                       groups[i] == &ct_company_group || groups[i] == &ct_company_batch_group) &&
                      !ct.ops->key_list) ||
                     (groups[i] == &ct_schedule_group && !ct.ops->schedules);
        if (!lacks)
            n = add_tests(groups[i], argc > 2 ? argv[2] : NULL, tests, n);
    }
    int failed = _cmocka_run_group_tests(ct.ops->name, tests, n, NULL, NULL);
    ts_proxy_stop(proxy);
    ts_redis_stop(&ct.redis);
    ts_tmpdir_remove(&ct.dir);
    return failed != 0;
}
