/* refusal_test.c - error replies, bare and wrapped, of old and new servers */
#include "store/redis/refusal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static const struct sample {
    const char *text;
    enum ls_redis_refusal refusal;
    bool wrapped;
} samples[] = {
    {"READONLY You can't write against a read only replica.", LS_REDIS_REFUSED_READONLY, false},
    {"READONLY You can't write against a read only slave.", LS_REDIS_REFUSED_READONLY, false},
    {"READONLY Can not run script with write flag on readonly replica.", LS_REDIS_REFUSED_READONLY,
     false},
    {"READONLY You can't write against a read only replica. script: "
     "7f923f79fe76194c868d7e1d0820de36700eb649, on @user_script:1.",
     LS_REDIS_REFUSED_READONLY, true},
    {"ERR Error running script (call to f_7f923f79fe76194c868d7e1d0820de36700eb649): "
     "@user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
     LS_REDIS_REFUSED_READONLY, true},
    {"ERR Error running script (call to f_7f923f): @user_script:12: READONLY You can't write.",
     LS_REDIS_REFUSED_READONLY, true},
    {"ERR Error running script (call to f_7f923f): @user_script:1: @user_script: 1: You can't "
     "write against a read only slave.",
     LS_REDIS_REFUSED_READONLY, true},
    {"ERR You can't write against a read only slave.", LS_REDIS_REFUSED_READONLY, false},
    {"LOADING Redis is loading the dataset in memory", LS_REDIS_REFUSED_LOADING, false},
    {"ERR Error running script (call to f_a): @user_script:3: -LOADING Redis is loading",
     LS_REDIS_REFUSED_LOADING, true},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     LS_REDIS_REFUSED_BUSY, false},
    {"ERR Error running script (call to f_a): @user_script:3: @user_script: 3: -BUSY Redis is busy",
     LS_REDIS_REFUSED_BUSY, true},
    {"BUSYKEY Target key name already exists.", LS_REDIS_REFUSED_OTHER, false},
    {"BUSYGROUP Consumer Group name already exists", LS_REDIS_REFUSED_OTHER, false},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     LS_REDIS_REFUSED_MASTERDOWN, false},
    {"ERR Error running script (call to f_a): @user_function:3: MASTERDOWN Link with MASTER is down",
     LS_REDIS_REFUSED_MASTERDOWN, true},
    {"OOM command not allowed when used memory > 'maxmemory'.", LS_REDIS_REFUSED_OOM, false},
    {"OOM command not allowed when used memory > 'maxmemory'. script: 7f92, on @user_script:1.",
     LS_REDIS_REFUSED_OOM, true},
    {"ERR Error running script (call to f_a): @user_script:1: @user_script: 1: -OOM command not "
     "allowed when used memory > 'maxmemory'.",
     LS_REDIS_REFUSED_OOM, true},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
     LS_REDIS_REFUSED_MISCONF, false},
    {"NOAUTH Authentication required.", LS_REDIS_REFUSED_NOAUTH, false},
    {"WRONGPASS invalid username-password pair or user is disabled.", LS_REDIS_REFUSED_NOAUTH,
     false},
    {"ERR invalid password", LS_REDIS_REFUSED_NOAUTH, false},
    {"ERR AUTH <password> called without any password configured for the default user.",
     LS_REDIS_REFUSED_NOAUTH, false},
    {"NOPERM this user has no permissions to run the 'evalsha' command", LS_REDIS_REFUSED_NOPERM,
     false},
    {"NOPERM this user has no permissions to run the 'fcall_ro' command",
     LS_REDIS_REFUSED_FUNCTIONS, false},
    {"NOPERM User lade has no permissions to run the 'fcall' command", LS_REDIS_REFUSED_FUNCTIONS,
     false},
    {"ERR unknown command 'FCALL', with args beginning with: 'x' '1' ", LS_REDIS_REFUSED_FUNCTIONS,
     false},
    {"NOSCRIPT No matching script. Please use EVAL.", LS_REDIS_REFUSED_NOSCRIPT, false},
    {"ERR Function not found", LS_REDIS_REFUSED_NOSCRIPT, false},
    {"WRONGTYPE Operation against a key holding the wrong kind of value",
     LS_REDIS_REFUSED_WRONGTYPE, false},
    {"MOVED 3999 127.0.0.1:6381", LS_REDIS_REFUSED_MOVED, false},
    {"ASK 3999 127.0.0.1:6381", LS_REDIS_REFUSED_ASK, false},
    {"CROSSSLOT Keys in request don't hash to the same slot", LS_REDIS_REFUSED_CROSSSLOT, false},
    {"CLUSTERDOWN The cluster is down", LS_REDIS_REFUSED_CLUSTERDOWN, false},
    {"TRYAGAIN Multiple keys request during rehashing of slot", LS_REDIS_REFUSED_TRYAGAIN, false},
    {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
     LS_REDIS_REFUSED_UNBLOCKED, false},
    {"NOREPLICAS Not enough good replicas to write.", LS_REDIS_REFUSED_NOREPLICAS, false},
    {"ERR max number of clients reached", LS_REDIS_REFUSED_MAXCLIENTS, false},
    {"DENIED Redis is running in protected mode because", LS_REDIS_REFUSED_DENIED, false},
    {"ERR DB index is out of range", LS_REDIS_REFUSED_DB, false},
    {"NOPROTO unsupported protocol version", LS_REDIS_REFUSED_PROTOCOL, false},
    {"ERR unknown command 'HELLO', with args beginning with: '3' ",
     LS_REDIS_REFUSED_UNKNOWN_COMMAND, false},
    {"ERR Error compiling function: @user_function:2: main function has more than 200 local variables",
     LS_REDIS_REFUSED_LUA, true},
    {"ERR Error compiling script (new function): user_script:1: unexpected symbol near '+'",
     LS_REDIS_REFUSED_LUA, false},
    {"ERR Error registering functions: ERR Function already exists in the library",
     LS_REDIS_REFUSED_LUA, false},
    {"ERR Error registering functions: ERR FUNCTION LOAD timeout", LS_REDIS_REFUSED_BUSY, false},
    {"ERR No functions registered", LS_REDIS_REFUSED_LUA, false},
    {"ERR value is not an integer or out of range", LS_REDIS_REFUSED_OTHER, false},
    {"ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: a, on "
     "@user_script:1.",
     LS_REDIS_REFUSED_OTHER, true},
    {"ERR @user_", LS_REDIS_REFUSED_OTHER, true},
    {"ERR @user_script:", LS_REDIS_REFUSED_OTHER, true},
    {"READONLY", LS_REDIS_REFUSED_READONLY, false},
    {"READONLYX", LS_REDIS_REFUSED_OTHER, false},
    {"", LS_REDIS_REFUSED_OTHER, false},
};

/* C-021 */
static void errors_are_recognised_bare_and_wrapped(void **state)
{
    (void)state;
    for (size_t i = 0; i < LB_ARRAY_LEN(samples); i++) {
        bool wrapped;
        enum ls_redis_refusal r = ls_redis_refusal_of(lb_slice_str(samples[i].text), &wrapped);
        if (r != samples[i].refusal || wrapped != samples[i].wrapped)
            print_error("%d %d: %s\n", (int)r, (int)wrapped, samples[i].text);
        assert_int_equal(r, samples[i].refusal);
        assert_int_equal(wrapped, samples[i].wrapped);
    }
}

/* What a user wrote may stand in an error; it must not steer the connection. */
static void code_words_inside_other_texts_mean_nothing(void **state)
{
    (void)state;
    static const char *const text[] = {
        "ERR unknown command 'READONLY You can't write against a read only replica'",
        "ERR wrong job id LOADING Redis is loading the dataset in memory",
        "ERR no such key BUSY 1",
    };
    for (size_t i = 0; i < LB_ARRAY_LEN(text); i++) {
        enum ls_redis_refusal r = ls_redis_refusal_of(lb_slice_str(text[i]), NULL);
        assert_int_equal(ls_redis_refusal_remedy(r), LS_REDIS_REMEDY_NONE);
    }
}

static void failures_have_a_code_and_say_what_to_do(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int code;
        const char *says;
    } want[] = {
        {"WRONGPASS invalid", LADE_EAUTH, "password"},
        {"NOPERM no", LADE_EACCESS, "ACL"},
        {"OOM no", LADE_ENOSPACE, "maxmemory"},
        {"BUSY no", LADE_EBUSY, "SCRIPT KILL"},
        {"LOADING no", LADE_EUNAVAILABLE, "loads"},
        {"READONLY no", LADE_EUNAVAILABLE, "replica"},
        {"WRONGTYPE no", LADE_EFOREIGN, "namespace"},
        {"MOVED 1 h:1", LADE_EUNSUPPORTED, "cluster"},
        {"ERR odd\r\nthing", LADE_EPROTO, "odd??thing"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(want); i++) {
        lade_err err = {0};
        int rc = ls_redis_refusal_fail(&err, "put", "redis://h:1", lb_slice_str(want[i].text));
        assert_int_equal(rc, -want[i].code);
        assert_int_equal(err.code, -want[i].code);
        assert_non_null(strstr(err.text, want[i].says));
        assert_non_null(strstr(err.text, "redis://h:1"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_recognised_bare_and_wrapped),
        cmocka_unit_test(code_words_inside_other_texts_mean_nothing),
        cmocka_unit_test(failures_have_a_code_and_say_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
