/* function_test.c - the function library: forgotten, refused, kept beside those of other versions */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "store/redis/script.h"
#include "store/redis/store_rig.h"

static const char *const queue_q[] = {"q"};
static const struct lq_lanes lanes_q = {queue_q, 1};

/* Calls of a command since the last CONFIG RESETSTAT; those that were refused too. */
static long calls_of(const char *command)
{
    char mark[64];
    (void)snprintf(mark, sizeof(mark), "cmdstat_%s:calls=", command);
    const char *at = strstr(srig_ask("INFO commandstats"), mark);
    return at ? strtol(at + strlen(mark), NULL, 10) : 0;
}

static size_t count_libraries(void)
{
    size_t n = 0;
    for (const char *p = srig_ask("FUNCTION LIST"); (p = strstr(p, "library_name")); p++)
        n++;
    return n;
}

static void set_rights(const char *rules)
{
    char line[128];
    (void)snprintf(line, sizeof(line), "ACL SETUSER default %s", rules);
    assert_string_equal(srig_ask(line), "+OK\r\n");
}

static void restore_rights(void)
{
    set_rights("+@all");
    (void)srig_ask("FUNCTION FLUSH");
    (void)srig_ask("SCRIPT FLUSH");
}

/* One job from beginning to end. */
static void work_one(struct lq_store *s, const char *prefix)
{
    srig_put(s, prefix, 1);
    assert_int_equal(srig_take(s, "w", 9), 1);
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
}

static void ops_are_functions_of_one_library_loaded_once(void **state)
{
    (void)state;
    (void)srig_ask("FUNCTION FLUSH");
    (void)srig_ask("CONFIG RESETSTAT");
    struct lq_store *a = srig_open(), *b = srig_open();
    srig_join(a, "w");
    work_one(a, "a");
    WANT(0, lq_leave(a, "w", lanes_q, &rig.err));
    srig_join(b, "w");
    work_one(b, "b");
    assert_int_equal(calls_of("function|load"), 1);
    assert_int_equal(count_libraries(), 1);
    assert_true(calls_of("fcall") >= 8);
    assert_int_equal(calls_of("script|load"), 0);
    assert_int_equal(calls_of("evalsha"), 0);
}

/* chasqui 23: FUNCTION FLUSH and SCRIPT FLUSH in the middle of work. */
static void functions_the_server_forgot_are_loaded_again(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    (void)srig_ask("CONFIG RESETSTAT");
    for (int i = 0; i < 3; i++) {
        (void)srig_ask("FUNCTION FLUSH");
        srig_put(s, i == 0 ? "a" : i == 1 ? "b" : "c", 2);
        (void)srig_ask("FUNCTION FLUSH");
        (void)srig_ask("SCRIPT FLUSH");
        assert_int_equal(srig_take(s, "w", 9), 2);
        (void)srig_ask("FUNCTION FLUSH");
        srig_settle_got(s, LQ_TO_COMPLETED, 0);
    }
    assert_int_equal(srig_info(s).total_completed, 6);
    assert_int_equal(calls_of("evalsha"), 0);
}

/* A user who may call no function, and one who may load none: the same by EVALSHA. */
static void server_that_refuses_functions_is_asked_by_scripts(void **state)
{
    (void)state;
    static const char *const rules[] = {"-fcall -fcall_ro", "-function",
                                        "-function -fcall -fcall_ro"};
    for (size_t i = 0; i < LB_ARRAY_LEN(rules); i++) {
        (void)srig_ask("FUNCTION FLUSH");
        set_rights(rules[i]);
        struct lq_store *s = srig_open();
        srig_join(s, "w");
        (void)srig_ask("CONFIG RESETSTAT");
        work_one(s, i == 0 ? "a" : i == 1 ? "b" : "c");
        assert_true(calls_of("evalsha") >= 3);
        (void)srig_ask("SCRIPT FLUSH");
        work_one(s, i == 0 ? "d" : i == 1 ? "e" : "f");
        WANT(0, lq_leave(s, "w", lanes_q, &rig.err));
        restore_rights();
    }
}

/* The rights of a user change, and come back, while a store is open. */
static void rights_that_change_change_the_way_of_asking(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    work_one(s, "a");
    set_rights("-fcall -fcall_ro -function");
    work_one(s, "b");
    assert_int_equal(srig_info(s).total_completed, 2);
    restore_rights();
    (void)srig_ask("CLIENT KILL TYPE normal");
    (void)srig_ask("CONFIG RESETSTAT");
    WANT(0, AGAIN(lq_settle_take(s, NULL, 0,
                                 &(struct lq_take){.worker = "w", .lanes = lanes_q, .max = 1},
                                 &rig.got, &rig.err)));
    assert_int_equal(calls_of("evalsha"), 0);
    work_one(s, "c");
}

/* C-019: a full server that has lost its functions takes no library, and settles all the same. */
static void full_server_without_functions_settles(void **state)
{
    (void)state;
    struct lq_store *s = srig_open();
    srig_join(s, "w");
    srig_put(s, "j", 5);
    assert_int_equal(srig_take(s, "w", 5), 5);
    (void)srig_ask("FUNCTION FLUSH");
    assert_string_equal(srig_ask("CONFIG SET maxmemory 1"), "+OK\r\n");
    srig_settle_got(s, LQ_TO_COMPLETED, 0);
    assert_int_equal(count_libraries(), 0);
    assert_string_equal(srig_ask("CONFIG SET maxmemory 0"), "+OK\r\n");
    assert_int_equal(srig_count(s, LADE_STATE_COMPLETED), 5);
}

static void load_another(const char *name)
{
    char line[256];
    (void)snprintf(
        line, sizeof(line),
        "FUNCTION LOAD \"#!lua name=%s\\nredis.register_function('%s_f', function() return 1 end)\"",
        name, name);
    assert_true(srig_ask(line)[0] == '$');
}

/* Other versions are left alone until there are more than LS_REDIS_LIBRARIES_MAX; strangers always. */
static void libraries_of_old_versions_are_bounded(void **state)
{
    (void)state;
    (void)srig_ask("FUNCTION FLUSH");
    load_another("stranger");
    for (unsigned i = 0; i < LS_REDIS_LIBRARIES_MAX - 1; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "lade_%016x", i);
        load_another(name);
    }
    (void)srig_open();
    assert_int_equal(count_libraries(), LS_REDIS_LIBRARIES_MAX + 1);
    load_another("lade_ffffffffffffffff");
    struct lq_store *s = srig_open(); /* nothing is loaded now */
    assert_int_equal(count_libraries(), LS_REDIS_LIBRARIES_MAX + 2);
    (void)srig_ask("FUNCTION DELETE lade_0000000000000000");
    char line[64] = "FUNCTION DELETE ";
    const char *own = strstr(srig_ask("FUNCTION LIST"), "_packs_put");
    assert_non_null(own);
    (void)snprintf(line + strlen(line), sizeof(line) - strlen(line), "%.21s", own - 21);
    assert_string_equal(srig_ask(line), "+OK\r\n");
    load_another("lade_0000000000000000");
    srig_put(s, "j", 1);
    assert_int_equal(count_libraries(), 2);
    assert_non_null(strstr(srig_ask("FUNCTION LIST"), "stranger"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SRIG_TEST(ops_are_functions_of_one_library_loaded_once),
        SRIG_TEST(functions_the_server_forgot_are_loaded_again),
        SRIG_TEST(server_that_refuses_functions_is_asked_by_scripts),
        SRIG_TEST(rights_that_change_change_the_way_of_asking),
        SRIG_TEST(full_server_without_functions_settles),
        SRIG_TEST(libraries_of_old_versions_are_bounded),
    };
    return cmocka_run_group_tests(tests, srig_start, srig_stop);
}
