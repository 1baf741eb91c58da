/*
 * contract.c - contract STORE [PATTERN]: runs the contract suite on one store
 *
 * STORE is the name in the table of stores; PATTERN, for work on a store, runs only tests whose name contains it.
 */
#include "contract.h"

#include <stdio.h>

#include "store/memory/memory_store.h"
#ifdef CONTRACT_SQLITE
#    include "store/sqlite/sqlite_store.h"
#endif
#ifdef CONTRACT_REDIS
#    include "store/redis/redis_store.h"
#endif

#define TESTS_MAX 256

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
    &ct_put_group,    &ct_unique_group, &ct_take_group,  &ct_settle_group,
    &ct_retain_group, &ct_lease_group,  &ct_act_group,   &ct_queue_group,
    &ct_list_group,   &ct_wait_group,   &ct_share_group, &ct_nomem_group,
};

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

static bool prepare(const char *name)
{
    for (size_t i = 0; name && i < LB_ARRAY_LEN(stores); i++) {
        if (strcmp(stores[i]->name, name) == 0)
            ct.ops = stores[i];
    }
    if (!ct.ops) {
        (void)fprintf(stderr, "usage: contract STORE [PATTERN]; this build has no store '%s'\n",
                      name ? name : "");
        return false;
    }
    if (strcmp(ct.ops->name, "redis") == 0)
        return ts_redis_start(&ct.redis, NULL);
    return ts_tmpdir_make(&ct.dir);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[TESTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(groups); i++)
        n = add_tests(groups[i], argc > 2 ? argv[2] : NULL, tests, n);
    if (!prepare(argc > 1 ? argv[1] : NULL))
        return 2;
    int failed = _cmocka_run_group_tests(ct.ops->name, tests, n, NULL, NULL);
    ts_redis_stop(&ct.redis);
    ts_tmpdir_remove(&ct.dir);
    return failed != 0;
}
