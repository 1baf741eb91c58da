#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "base/mem.h"
#include "cli/flow_file.h"

static int parse(struct cli_flow *f, const char *text, lade_err *err)
{
    return cli_flow_parse(f, text, strlen(text), &(lade_job_spec){.queue = "q"}, err);
}

static void shapes_nest_and_keep_their_order(void **state)
{
    (void)state;
    struct cli_flow f;
    assert_int_equal(
        parse(&f,
              "{\"id\":\"n1\",\"name\":\"nightly\",\"cancel_siblings\":true,\"on_dead\":\"wait\","
              "\"on_failure\":{\"kind\":\"alarm\"},\"chain\":[{\"kind\":\"load\",\"queue\":\"in\"},"
              "{\"group\":[{\"kind\":\"a\",\"on_dead\":\"continue\"},{\"chain\":[{\"kind\":\"b\"},"
              "{\"kind\":\"c\"}]}],\"callback\":{\"kind\":\"done\",\"in\":\"5s\"}}]}",
              NULL),
        0);
    const lade_flow_step *chain = &f.spec.root, *group = &chain->steps[1];
    assert_string_equal(f.spec.id, "n1");
    assert_string_equal(f.spec.name, "nightly");
    assert_true(f.spec.cancel_siblings);
    assert_string_equal(f.spec.on_failure->kind, "alarm");
    assert_int_equal(chain->type, LADE_FLOW_CHAIN);
    assert_int_equal(chain->on_dead, LADE_FLOW_WAIT);
    assert_int_equal(chain->n_steps, 2);
    assert_string_equal(chain->steps[0].job->queue, "in");
    assert_int_equal(group->type, LADE_FLOW_GROUP);
    assert_string_equal(group->job->kind, "done");
    assert_string_equal(group->job->queue, "q");
    assert_int_equal(group->job->in, 5 * LADE_SECOND);
    assert_int_equal(group->steps[0].on_dead, LADE_FLOW_CONTINUE);
    assert_string_equal(group->steps[1].steps[1].job->kind, "c");
    cli_flow_fini(&f);
}

static void graph_names_become_numbers(void **state)
{
    (void)state;
    struct cli_flow f;
    assert_int_equal(parse(&f,
                           "{\"graph\":{\"x\":{\"kind\":\"a\",\"after\":[\"z\",\"y\"]},"
                           "\"y\":{\"kind\":\"b\"},\"z\":{\"chain\":[{\"kind\":\"c\"}]}}}",
                           NULL),
                     0);
    const lade_flow_step *g = &f.spec.root;
    assert_int_equal(g->type, LADE_FLOW_GRAPH);
    assert_int_equal(g->n_steps, 3);
    assert_int_equal(g->steps[0].n_after, 2);
    assert_int_equal(g->steps[0].after[0], 2);
    assert_int_equal(g->steps[0].after[1], 1);
    assert_int_equal(g->steps[2].type, LADE_FLOW_CHAIN);
    cli_flow_fini(&f);
}

static void bad_files_are_refused_with_the_place(void **state)
{
    (void)state;

    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[]", "not an object"},
        {"{\"name\":\"a\"}", "no \"chain\""},
        {"{\"chain\":{}}", "array"},
        {"{\"chain\":[1]}", "chain[0]: a step must be"},
        {"{\"chain\":[{\"kind\":\"a\"},{\"kinf\":\"b\"}]}", "chain[1]: \"kinf\""},
        {"{\"chain\":[{}]}", "chain[0]: no \"kind\""},
        {"{\"chain\":[],\"group\":[]}", "one of chain, group, graph"},
        {"{\"chain\":[{\"kind\":\"a\"}],\"callback\":{\"kind\":\"b\"}}", "only a group"},
        {"{\"group\":[{\"kind\":\"a\"}],\"callbac\":{}}", "unknown member"},
        {"{\"group\":[{\"kind\":\"a\"}],\"callback\":{}}", "callback: no \"kind\""},
        {"{\"chain\":[{\"kind\":\"a\",\"on_dead\":\"die\"}]}", "\"on_dead\""},
        {"{\"graph\":{\"publish\":{\"kind\":\"a\"},\"b\":{\"kind\":\"b\",\"after\":[\"publsh\"]}}}",
         "did you mean \"publish\""},
        {"{\"graph\":{\"a\":{\"kind\":\"a\",\"after\":\"b\"}}}", "array of names"},
        {"{\"chain\":[],\"id\":7}", "strings"},
        {"{\"chain\":[],\"cancel_siblings\":1}", "true or false"},
        {"{\"chain\":[", "not JSON"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct cli_flow f;
        lade_err err = {0};
        assert_int_equal(parse(&f, bad[i].text, &err), -LADE_EINVAL);
        if (!strstr(err.text, bad[i].says))
            print_message("%s gives: %s\n", bad[i].text, err.text);
        assert_non_null(strstr(err.text, bad[i].says));
    }
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    static char text[20000];
    for (int depth = 30; depth <= 300; depth += 10) {
        char *at = text;
        struct cli_flow f;
        for (int i = 0; i < depth; i++)
            at += sprintf(at, "{\"chain\":[");
        at += sprintf(at, "{\"kind\":\"a\"}");
        for (int i = 0; i < depth; i++)
            at += sprintf(at, "]}");
        lade_err err = {0};
        int rc = parse(&f, text, &err);
        assert_int_equal(rc, depth < LADE_FLOW_DEPTH_MAX ? 0 : -LADE_EINVAL);
        if (rc == 0)
            cli_flow_fini(&f);
        else
            assert_non_null(strstr(err.text, "deeper"));
    }
}

static void running_out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    int rc = -LADE_ENOMEM;
    for (uint64_t n = 1; rc == -LADE_ENOMEM && n < 1000; n++) {
        struct cli_flow f;
        lb_mem_fail_after(n);
        rc = parse(&f,
                   "{\"graph\":{\"a\":{\"kind\":\"a\",\"payload_json\":[1]},"
                   "\"b\":{\"group\":[{\"kind\":\"c\",\"headers\":{\"a\":\"b\"}}],"
                   "\"callback\":{\"kind\":\"d\"},\"after\":[\"a\"]}}}",
                   NULL);
        lb_mem_fail_after(0);
        if (rc == 0)
            cli_flow_fini(&f);
    }
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_nest_and_keep_their_order),
        cmocka_unit_test(graph_names_become_numbers),
        cmocka_unit_test(bad_files_are_refused_with_the_place),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(running_out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
