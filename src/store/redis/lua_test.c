/* lua_test.c - the joined Lua of the store compiles on a server, how near it is to Lua's limits, and what a text that does not compile brings */
#include "store/redis/conn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "store/redis/store_inner.h"
#include "store/redis/store_rig.h"

/* Lua 5.1 allows 200 locals at a time in a chunk. This many are to stay free, for a day's work of several people. */
#define LOCALS_MAX  200U
#define LOCALS_FREE 10U

/* A text with more locals at its beginning. */
struct text {
    bool is_library;
    const char *name;
    const char *head, *body;
    size_t head_len, body_len;
    unsigned extra;
};

static struct rig lua_rig;

static void encode_load(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)repeat;
    const struct text *t = ctx;
    char extra[2048] = "";
    size_t n = 0;
    for (unsigned i = 0; i < t->extra; i++)
        n += (size_t)snprintf(extra + n, sizeof(extra) - n, "%sx%u", i == 0 ? "local " : ",", i);
    extra[n++] = ' '; /* no line of its own, so that those in errors stay right */
    struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 4);
    ls_redis_arg_str(cmd, t->is_library ? "FUNCTION" : "SCRIPT");
    ls_redis_arg_str(cmd, "LOAD");
    if (t->is_library)
        ls_redis_arg_str(cmd, "REPLACE");
    uint8_t *to = ls_redis_arg_room(cmd, t->head_len + n + t->body_len);
    assert_non_null(to);
    memcpy(to, t->head, t->head_len);
    memcpy(to + t->head_len, extra, n);
    memcpy(to + t->head_len + n, t->body, t->body_len);
    ls_redis_cmd_end(cmd);
}

/* The server's error, or empty; until the next call. */
static struct lb_slice load(struct text *t, unsigned extra)
{
    t->extra = extra;
    struct ls_redis_call call = {.encode = encode_load, .ctx = t, .where = t->name, .raw = true};
    srig_want(0, ls_redis_conn_call(lua_rig.c, &call, lb_deadline_in(LADE_MINUTE), &lua_rig.err),
              t->name, __FILE__, __LINE__);
    struct ls_redis_cursor cur = ls_redis_conn_reply(lua_rig.c, 0);
    struct ls_redis_value v = ls_redis_read(&cur);
    return v.type == LS_REDIS_ERROR ? v.bytes : lb_slice("", 0);
}

/* How many locals a text that compiles has at most at a time. */
static unsigned count_locals(struct text *t)
{
    unsigned fits = 0, beyond = LOCALS_MAX + 1;
    while (beyond - fits > 1) {
        unsigned mid = (fits + beyond) / 2;
        if (load(t, mid).n == 0)
            fits = mid;
        else
            beyond = mid;
    }
    return LOCALS_MAX - fits;
}

/* The library, then the script of each op. */
static size_t n_texts(void)
{
    return 1 + ls_redis_scripts.n;
}

static struct text text_of(size_t i)
{
    static char head[2 * LS_REDIS_LIBRARY_NAME + 40];
    const struct ls_redis_script_table *all = &ls_redis_scripts;
    if (i == 0) {
        int n = snprintf(head, sizeof(head), "#!lua name=%s\nlocal LIBRARY = '%s'\n",
                         all->library_name, all->library_name);
        return (struct text){.is_library = true,
                             .name = "the function library (all of lua/)",
                             .head = head,
                             .head_len = (size_t)n,
                             .body = ls_redis_scripts.functions,
                             .body_len = ls_redis_scripts.functions_len};
    }
    const struct ls_redis_script *s = &ls_redis_scripts.script[i - 1];
    const char *line = strchr(s->source, '\n');
    assert_non_null(line);
    size_t n = (size_t)(line + 1 - s->source);
    return (struct text){.name = s->name,
                         .head = s->source,
                         .head_len = n,
                         .body = s->source + n,
                         .body_len = s->source_len - n};
}

static int start(void **state)
{
    if (srig_start(state) < 0 || srig_setup(state) < 0)
        return -1;
    (void)srig_open(); /* names the library */
    rig_open(&lua_rig, rig.config.url, NULL);
    return 0;
}

static int stop(void **state)
{
    rig_close(&lua_rig);
    (void)srig_teardown(state);
    return srig_stop(state);
}

/* Functions hide a script that does not compile and scripts hid a library that did not, until a user's server takes the other way. */
static void library_and_every_script_compile_on_the_server(void **state)
{
    (void)state;
    size_t n_bad = 0;
    for (size_t i = 0; i < n_texts(); i++) {
        struct text t = text_of(i);
        struct lb_slice error = load(&t, 0);
        if (error.n == 0)
            continue;
        print_error("%s, as src/store/redis/CMakeLists.txt joins it, does not compile: %.*s\n",
                    t.name, (int)error.n, (const char *)error.p);
        n_bad++;
    }
    assert_int_equal(n_bad, 0);
}

static void every_text_stays_clear_of_the_200_locals_of_lua(void **state)
{
    (void)state;
    size_t n_bad = 0;
    for (size_t i = 0; i < n_texts(); i++) {
        struct text t = text_of(i);
        if (load(&t, LOCALS_FREE).n == 0)
            continue;
        print_error(
            "%s: %u locals at a time, more than %u; put helpers of one file into a table (as K of lua/keys.lua) or call another "
            "op by `ops` from a block of its own (`called` in src/store/redis/CMakeLists.txt)\n",
            t.name, count_locals(&t), LOCALS_MAX - LOCALS_FREE);
        n_bad++;
    }
    assert_int_equal(n_bad, 0);
}

/* For who writes Lua: the fullest. */
static void the_fullest_texts_are_printed(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_texts(); i++) {
        struct text t = text_of(i);
        if (load(&t, 40).n > 0)
            print_message("%s: %u of %u locals\n", t.name, count_locals(&t), LOCALS_MAX);
    }
}

#define GOOD "return 1"

static void encode_good(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    (void)ctx;
    (void)repeat;
    ls_redis_cmd_end(ls_redis_script_begin(c, 0, 0, 0));
}

/* Its scripts are whole, and would do: nobody would learn of it. */
static void library_that_does_not_load_is_an_error_and_not_a_reason_to_use_scripts(void **state)
{
    (void)state;

    static const struct {
        const char *text, *says;
    } bad[] = {
        {"local a = +\n", "unexpected symbol"},
        {"global = 1\n", "readonly"},
        {"local f = function() return 1 end\n"
         "redis.register_function(LIBRARY .. '_good', f)\n"
         "redis.register_function(LIBRARY .. '_good', f)\n",
         "already exists in the library"},
        {"local a = 1\n", "No functions registered"},
    };
    static const struct ls_redis_script good[] = {{"good", GOOD, sizeof(GOOD) - 1, 0}};
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct ls_redis_script_table table = {
            .script = good, .n = 1, .functions = bad[i].text, .functions_len = strlen(bad[i].text)};
        ls_redis_library_name(&table);
        struct rig r;
        rig_open(&r, rig.config.url, &(struct ls_redis_conn_config){.scripts = &table});
        struct ls_redis_call call = {.encode = encode_good, .where = "good"};
        int rc = ls_redis_conn_call(r.c, &call, lb_deadline_in(5 * LADE_SECOND), &r.err);
        srig_want(-LADE_EPROTO, rc, bad[i].text, __FILE__, __LINE__);
        assert_non_null(strstr(r.err.text, bad[i].says));
        assert_non_null(strstr(r.err.text, "fault of lade"));
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_and_every_script_compile_on_the_server),
        cmocka_unit_test(every_text_stays_clear_of_the_200_locals_of_lua),
        cmocka_unit_test(the_fullest_texts_are_printed),
        cmocka_unit_test(library_that_does_not_load_is_an_error_and_not_a_reason_to_use_scripts),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
