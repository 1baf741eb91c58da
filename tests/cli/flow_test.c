/* lade flow, on the store that argv names: from JSON to a picture, whole workflows by hand */
#include "cli/cli_run.h"

#include <string.h>

#include "base/base.h"

#define THUMBS                                                                \
    "{\"name\":\"thumbs\",\"on_failure\":{\"kind\":\"alarm\"},\"chain\":["    \
    "{\"kind\":\"load\",\"payload\":\"7\"},"                                  \
    "{\"group\":[{\"kind\":\"small\"},{\"kind\":\"big\",\"queue\":\"img\"}]," \
    "\"callback\":{\"kind\":\"publish\"}}]}"

static struct lade_id_text run_flow(const char *text)
{
    struct cli_run r = {0};
    struct lade_id_text id;
    RUN_IN(&r, text, strlen(text), "flow", "run", "-");
    assert_code(&r, 0);
    (void)snprintf(id.text, sizeof(id.text), "%.64s", run_word(&r));
    run_free(&r);
    return id;
}

static json_t *show(const char *id)
{
    struct cli_run r = {0};
    RUN(&r, "flow", "show", id, "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    run_free(&r);
    return o;
}

static void assert_state(const char *id, const char *state)
{
    json_t *o = show(id);
    assert_string_equal(json_text_at(o, "state"), state);
    json_decref(o);
}

static void work(const char *command)
{
    struct cli_run r = {0};
    RUN(&r, "work", "--queue", "default,img", "--kind", "*", "--drain", "--exec", command);
    run_free(&r);
}

/* chronos 41: what waits, for what, is shown. */
static void workflow_from_json_runs_and_is_shown(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct lade_id_text id = run_flow(THUMBS);
    RUN(&r, "flow", "show", id.text);
    assert_code(&r, 0);
    assert_says(r.out, "(thumbs): running, 0 of 4 steps passed");
    assert_says(r.out, "BLOCKED BY");
    assert_says(r.out, "publish");
    work("true");
    json_t *o = show(id.text);
    assert_string_equal(json_text_at(o, "state"), "completed");
    assert_int_equal(json_int_at(json_object_get(o, "counts"), "completed"), 4);
    const json_t *nodes = json_object_get(o, "nodes");
    assert_int_equal(json_array_size(nodes), 5);
    assert_int_equal(json_array_size(json_object_get(json_array_get(nodes, 3), "after")), 2);
    assert_true(json_is_true(json_object_get(json_array_get(nodes, 4), "on_failure")));
    const char *step = json_text_at(json_array_get(nodes, 2), "id");
    assert_string_equal(state_of(step), "completed");
    json_decref(o);
    run_free(&r);
}

static void pictures_name_every_step_and_edge(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct lade_id_text id = run_flow(THUMBS);
    RUN(&r, "flow", "show", id.text, "--dot");
    assert_code(&r, 0);
    assert_says(r.out, "digraph");
    assert_says(r.out, "n0 [label=\"load\\ndefault\\nenqueued\"");
    assert_says(r.out, "n1 -> n3");
    assert_says(r.out, "on failure: alarm");
    RUN(&r, "workflow", "show", id.text, "--mermaid");
    assert_code(&r, 0);
    assert_says(r.out, "flowchart LR");
    assert_says(r.out, "n2[\"big<br/>img<br/>waiting\"]:::waiting");
    assert_says(r.out, "n2 --> n3");
    RUN(&r, "flow", "show", id.text, "--mermaid", "--dot");
    assert_code(&r, 2);
    run_free(&r);
}

static void whole_workflows_are_cancelled_retried_and_removed(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct lade_id_text id = run_flow(THUMBS);
    RUN(&r, "flow", "retry", id.text);
    assert_code(&r, 4);
    RUN(&r, "flow", "cancel", id.text, "--dry-run");
    assert_code(&r, 0);
    assert_state(id.text, "running");
    RUN(&r, "flow", "cancel", id.text, "nosuch", "-o", "tsv");
    assert_code(&r, 6);
    assert_says(r.out, "id\tverb\tresult\tdry_run\n");
    assert_says(r.out, "\tcancel\tdone\tno\n");
    assert_says(r.out, "nosuch\tcancel\tnot_found\tno\n");
    assert_says(r.err, "nosuch: no such workflow");
    assert_state(id.text, "cancelled");
    RUN(&r, "flow", "cancel", id.text);
    assert_code(&r, 4);
    RUN(&r, "flow", "retry", id.text, "--json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_string_equal(json_text_at(o, "id"), id.text);
    assert_string_equal(json_text_at(o, "verb"), "retry");
    assert_string_equal(json_text_at(o, "result"), "done");
    json_decref(o);
    work("true");
    assert_state(id.text, "completed");
    RUN(&r, "flow", "rm", id.text);
    assert_code(&r, 2); /* asks, and there is nobody */
    RUN(&r, "flow", "rm", id.text, "--yes");
    assert_code(&r, 0);
    RUN(&r, "flow", "show", id.text);
    assert_code(&r, 3);
    run_free(&r);
}

static void workflows_are_listed_newest_first(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct lade_id_text first = run_flow(THUMBS), second = run_flow(THUMBS);
    RUN(&r, "flow", "ls", "-o", "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_array_size(o), 2);
    assert_string_equal(json_text_at(json_array_get(o, 0), "id"), second.text);
    assert_string_equal(json_text_at(json_array_get(o, 1), "id"), first.text);
    json_decref(o);
    RUN(&r, "flow", "list", "--limit", "1");
    assert_code(&r, 0);
    assert_says(r.out, "thumbs");
    run_free(&r);
}

/* Whoever cannot look does not say that there is none. The environment's store is a server here; the same one, as Resque's. */
static void listing_that_fails_does_not_say_none(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char url[300] = "";
    const char *redis = getenv("LADE_URL"), *path = redis ? strstr(redis, "unix://") : NULL;
    if (path != redis || !path)
        return; /* a file has workflows */
    (void)snprintf(url, sizeof(url), "resque+%s", redis);
    RUN(&r, "-u", url, "flow", "ls");
    assert_code(&r, 5);
    assert_says(r.err, "has no workflows");
    assert_null(strstr(r.err, "none"));
    run_free(&r);
}

/* A job alone is a workflow of one step. */
static void workflow_of_one_job_is_run(void **state)
{
    (void)state;
    struct lade_id_text id = run_flow("{\"name\":\"one\",\"kind\":\"load\",\"payload\":\"7\"}");
    work("cat");
    json_t *o = show(id.text);
    assert_string_equal(json_text_at(o, "state"), "completed");
    assert_string_equal(json_text_at(o, "name"), "one");
    json_decref(o);
}

/* A program gets what the steps before it gave: bytes of the first, a line of JSON for each. */
static void programs_read_the_results_of_the_steps_before(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct lade_id_text id =
        run_flow("{\"chain\":[{\"kind\":\"a\"},{\"group\":[{\"kind\":\"b\"},{\"kind\":\"c\"}],"
                 "\"callback\":{\"kind\":\"d\"}}]}");
    RUN(&r, "work", "--drain", "-k", "a", "-e", "printf 'one\\ntwo\\377'", "-k", "b", "-e",
        "cat $LADE_INPUT; echo \"/$LADE_INPUTS\"", "-k", "c", "-e", "echo $LADE_FLOW", "-k", "d",
        "-e", "cat $LADE_INPUTS_FILE");
    assert_code(&r, 0);
    static const char *const wanted[] = {NULL, "one\ntwo\377/1\n", NULL, NULL};
    for (int i = 1; i < 4; i++) {
        char job[80];
        (void)snprintf(job, sizeof(job), "%s~%d", id.text, i);
        RUN(&r, "job", "show", job, "-o", "json");
        assert_code(&r, 0);
        json_t *o = run_json(&r);
        if (i == 2)
            assert_memory_equal(json_text_at(o, "result"), id.text, strlen(id.text));
        if (i == 3) { /* two lines, in the order of the members */
            const char *text = json_text_at(o, "result");
            assert_says(text, "\"state\":\"completed\"");
            const char *second = strchr(text, '\n');
            assert_non_null(second);
            assert_says(text, "~1\"");
            assert_says(second, "~2\"");
            assert_says(second, id.text);
            assert_null(strchr(strchr(second + 1, '\n') + 1, '\n'));
        }
        if (wanted[i])
            assert_string_equal(json_text_at(o, "result_encoding"), "base64");
        json_decref(o);
    }
    run_free(&r);
    /* outside of a workflow there are none */
    RUN(&r, "enqueue", "-k", "plain", "--id", "p");
    RUN(&r, "work", "--drain", "-k", "plain", "-e", "echo \"[$LADE_FLOW$LADE_INPUT$LADE_INPUTS]\"");
    RUN(&r, "job", "show", "p", "-o", "json");
    json_t *o = run_json(&r);
    assert_string_equal(json_text_at(o, "result"), "[]\n");
    json_decref(o);
    run_free(&r);
}

/* chronos 43 and 50: with the place and the rule, before anything is written. */
static void bad_workflows_are_refused(void **state)
{
    (void)state;

    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"group\":[{\"kind\":\"a\"}]}", "no callback"},
        {"{\"group\":[],\"callback\":{\"kind\":\"a\"}}", "flow: group is empty"},
        {"{\"chain\":[{\"kind\":\"a\",\"id\":\"x\"}]}", "chain[0]: id is set"},
        {"{\"graph\":{\"a\":{\"kind\":\"a\",\"after\":[\"b\"]},"
         "\"b\":{\"kind\":\"b\",\"after\":[\"a\"]}}}",
         "cycle: graph.a runs after graph.b, which runs after it"},
        {"{\"graph\":{\"a\":{\"kind\":\"a\"},\"b\":{\"kind\":\"\",\"after\":[\"a\"]}}}",
         "graph.b: kind is missing"},
        {"{\"chain\":[{\"kind\":\"a\"},{\"group\":[{\"kind\":\"a\"}],\"callback\":{\"kind\":\"b b\"}}]}",
         "chain[1].callback: kind 'b b'"},
        {"{\"graph\":{\"a\":{\"kind\":\"a\"},\"b\":{\"kind\":\"b\",\"after\":[\"a\",\"a\"]}}}",
         "graph.b.after names graph.a twice"},
        {"{\"chain\":[{\"kind\":\"a\",\"payl\":1}]}", "chain[0]: \"payl\": unknown member"},
        {"not json", "not JSON"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        struct cli_run r = {0};
        RUN_IN(&r, bad[i].text, strlen(bad[i].text), "flow", "run", "-");
        assert_code(&r, 2);
        assert_says(r.err, bad[i].says);
        RUN_IN(&r, bad[i].text, strlen(bad[i].text), "flow", "run", "-", "--dry-run");
        assert_code(&r, 2);
        run_free(&r);
    }
    struct cli_run r = {0};
    RUN(&r, "flow", "ls", "-o", "tsv");
    assert_code(&r, 0);
    RUN_IN(&r, THUMBS, strlen(THUMBS), "flow", "run", "-", "--dry-run");
    assert_code(&r, 0);
    assert_int_equal(total_of("total_enqueued"), 0);
    RUN_IN(&r, THUMBS, strlen(THUMBS), "flow", "run", "-", "-o", "tsv");
    assert_code(&r, 0);
    assert_says(r.out, "id\tduplicate\tdry_run\n");
    RUN_IN(&r, THUMBS, strlen(THUMBS), "flow", "run", "-");
    assert_code(&r, 0);
    struct lade_id_text id;
    (void)snprintf(id.text, sizeof(id.text), "%s", run_word(&r));
    RUN(&r, "flow", "show", id.text, "-o", "tsv");
    assert_code(&r, 0);
    assert_says(r.out, "number\tstate\tkind\tqueue\tafter\tblocked_by\n");
    RUN(&r, "flow", "ls", "--limit", "1");
    assert_code(&r, 0);
    assert_says(r.err, "1 shown, more are there; --limit 0 for all");
    run_free(&r);
}

/* Of a name no control character reaches a terminal, and a picture of it can be drawn. */
static void names_of_workflows_are_printed_as_text(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char file[] =
        "{\"id\":\"f\",\"name\":\"a\\\"b\\n\\u001b[31m\\\\\",\"chain\":[{\"kind\":\"k\"}]}";
    RUN_IN(&r, file, sizeof(file) - 1, "flow", "run", "-");
    assert_code(&r, 0);
    RUN(&r, "flow", "show", "f");
    assert_says(r.out, "f (a\"b\\n\\x1b[31m\\): running");
    RUN(&r, "flow", "show", "f", "--dot");
    assert_says(r.out, "label=\"a\\\"b\\\\n\\\\x1b[31m\\\\\";");
    RUN(&r, "job", "trace", "f~0");
    assert_says(r.out, "f (a\"b\\n\\x1b[31m\\), step 0: running");
    run_free(&r);
}

static void workflow_of_a_known_id_exits_4(void **state)
{
    (void)state;
    static const char text[] = "{\"id\":\"night\",\"chain\":[{\"kind\":\"a\"}]}";
    struct cli_run r = {0};
    RUN_IN(&r, text, strlen(text), "flow", "run", "-");
    assert_code(&r, 0);
    RUN_IN(&r, text, strlen(text), "flow", "run", "-");
    assert_code(&r, 4);
    assert_string_equal(run_word(&r), "night");
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(workflow_from_json_runs_and_is_shown),
        ON_STORE(pictures_name_every_step_and_edge),
        ON_STORE(whole_workflows_are_cancelled_retried_and_removed),
        ON_STORE(workflows_are_listed_newest_first),
        ON_STORE(listing_that_fails_does_not_say_none),
        ON_STORE(workflow_of_one_job_is_run),
        ON_STORE(programs_read_the_results_of_the_steps_before),
        ON_STORE(bad_workflows_are_refused),
        ON_STORE(names_of_workflows_are_printed_as_text),
        ON_STORE(workflow_of_a_known_id_exits_4),
    };
    return run_group(argc, argv, "flow", tests, LB_ARRAY_LEN(tests));
}
