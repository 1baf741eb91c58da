/* The dead and unique jobs with the CLI, on the store that argv names */
#include "cli/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lade/lade.h>

#include "base/base.h"

/* Jobs of a kind whose handler fails with `error` for good. */
static void bury(const char *kind, int n, const char *error)
{
    struct cli_run r = {0};
    char command[128];
    for (int i = 0; i < n; i++) {
        RUN(&r, "enqueue", "-k", kind, "--max-attempts", "1", "--payload", "p");
        assert_code(&r, 0);
    }
    (void)snprintf(command, sizeof(command), "echo '%s' >&2; exit 1", error);
    RUN(&r, "work", "--drain", "--kind", kind, "--exec", command);
    assert_code(&r, 0);
    run_free(&r);
}

/* Field i of line `line` of TSV, from 0 on; the caller's. */
static char *field(const char *tsv, int line, int i)
{
    for (; line > 0; line--) {
        tsv = strchr(tsv, '\n');
        assert_non_null(tsv);
        tsv++;
    }
    for (; i > 0; i--)
        tsv += strcspn(tsv, "\t\n") + 1;
    return strndup(tsv, strcspn(tsv, "\t\n"));
}

static void dead_are_classed_listed_and_redriven_by_class(void **state)
{
    (void)state;
    struct cli_run r = {0};
    bury("mail", 4, "no route to 10.0.0.1 after 17 ms");
    bury("sms", 2, "no such user");
    RUN(&r, "dead", "classes");
    assert_code(&r, 0);
    assert_says(r.out, "no route to <addr> after <n> ms");
    RUN(&r, "dead", "classes", "-o", "json");
    json_t *list = run_json(&r);
    assert_int_equal(json_array_size(list), 2);
    assert_int_equal(json_int_at(json_array_get(list, 0), "count"), 4);
    assert_string_equal(json_text_at(json_array_get(list, 0), "kind"), "mail");
    json_decref(list);
    RUN(&r, "dead", "classes", "-q", "nowhere");
    assert_code(&r, 3);
    assert_says(r.err, "no such queue");
    RUN(&r, "dead", "classes", "-o", "tsv");
    char *class_id = field(r.out, 1, 0);
    assert_int_equal(strlen(class_id), 12);
    RUN(&r, "dead", "ls", "--class", class_id, "-o", "json");
    list = run_json(&r);
    assert_int_equal(json_array_size(list), 4);
    json_decref(list);
    RUN(&r, "dead", "ls", "--class", "nope");
    assert_code(&r, 3);
    assert_says(r.err, "nope: no job is dead of this class; see lade dead classes");
    RUN(&r, "dead", "ls", "--class", "");
    assert_code(&r, 2);
    assert_says(r.err, "--class: empty");
    RUN(&r, "dead", "ls", "--kind", "sms", "--older", "1h");
    assert_code(&r, 0);
    assert_says(r.err, "none");
    RUN(&r, "dead", "redrive", "--where", "kind=mail", "--dry-run", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "done\n4\n");
    RUN(&r, "dead", "redrive", "--rate", "3/2s");
    assert_code(&r, 2);
    assert_says(r.err, "--rate: '3/2s' is not a whole number a second");
    RUN(&r, "dead", "redrive", "--class", class_id, "--limit", "3", "--rate", "60000/1m", "-o",
        "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_int_at(o, "done"), 3);
    assert_int_equal(json_int_at(o, "lost"), 0);
    assert_true(json_is_null(json_object_get(o, "stopped")));
    json_decref(o);
    assert_int_equal(total_of("ready"), 3);
    RUN(&r, "dead", "purge", "--class", class_id, "--yes", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "done\n1\n");
    assert_int_equal(total_of("dead"), 2);
    free(class_id);
    RUN(&r, "dead", "redrive", "--where", "colour=red");
    assert_code(&r, 2);
    assert_says(r.err, "--where");
    run_free(&r);
}

static void canary_that_nobody_runs_stops_a_redrive(void **state)
{
    (void)state;
    struct cli_run r = {0};
    bury("mail", 3, "broken");
    RUN(&r, "dead", "redrive", "--canary", "1", "--canary-wait", "1ms");
    assert_code(&r, 6);
    assert_string_equal(r.out, "1\n");
    assert_says(r.err, "the canaries have not run in time");
    assert_says(r.err, "--before");
    assert_int_equal(total_of("dead"), 2);
    run_free(&r);
}

static void edit_changes_the_payload_of_a_dead_job(void **state)
{
    (void)state;
    struct cli_run r = {0};
    bury("mail", 1, "broken");
    RUN(&r, "dead", "ls", "-o", "tsv");
    char *id = field(r.out, 1, 0);
    RUN(&r, "job", "edit", id, "--payload", "mended", "--retry");
    assert_code(&r, 0);
    assert_string_equal(state_of(id), "ready");
    RUN(&r, "job", "show", id, "--payload");
    assert_string_equal(r.out, "mended");
    RUN(&r, "job", "edit", id, "--payload", "x", "--retry");
    assert_code(&r, 4);
    RUN(&r, "job", "edit", "nosuch", "--payload", "x");
    assert_code(&r, 3);
    RUN(&r, "job", "edit", id);
    assert_code(&r, 2);
    assert_says(r.err, "--payload: missing");
    free(id);
    run_free(&r);
}

static void unique_jobs_are_replaced_debounced_and_refused(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char lines[] =
        "{\"kind\":\"i\",\"unique\":{\"key\":\"d\"},\"payload\":\"1\"}\n"
        "{\"kind\":\"i\",\"unique\":{\"key\":\"d\",\"on_conflict\":\"replace\"},\"payload\":\"2\"}\n";
    RUN(&r, "enqueue", "-k", "i", "--unique-key", "a", "--payload", "1", "--debounce", "1h");
    assert_code(&r, 0);
    RUN(&r, "enqueue", "-k", "i", "--unique-key", "a", "--payload", "2", "--debounce", "1h", "-o",
        "json");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_true(json_is_true(json_object_get(o, "replaced")));
    assert_true(json_is_false(json_object_get(o, "duplicate")));
    RUN(&r, "job", "show", json_text_at(o, "id"), "--payload");
    assert_string_equal(r.out, "2");
    json_decref(o);
    assert_int_equal(total_of("scheduled"), 1);
    RUN(&r, "enqueue", "-k", "i", "--unique-key", "b", "--throttle", "1h");
    assert_code(&r, 0);
    RUN(&r, "enqueue", "-k", "i", "--unique-key", "b", "--throttle", "1h");
    assert_code(&r, 4);
    RUN(&r, "enqueue", "-k", "i", "--unique", "b", "--on-conflict", "reject");
    assert_code(&r, 4);
    assert_says(r.err, "refused");
    RUN(&r, "enqueue", "-k", "i", "--debounce", "1s");
    assert_code(&r, 2);
    assert_says(r.err, "--unique: missing");
    RUN(&r, "enqueue", "-k", "i", "--unique", "c", "--debounce", "1s", "--throttle", "1s");
    assert_code(&r, 2);
    RUN_IN(&r, lines, sizeof(lines) - 1, "enqueue", "--ndjson", "-");
    assert_code(&r, 0);
    assert_says(r.err, "2 added, 0 duplicates");
    run_free(&r);
}

static void counts_in_tsv_have_their_line_of_names(void **state)
{
    (void)state;
    struct cli_run r = {0};
    (void)enqueue("k", "p");
    RUN(&r, "queue", "purge", "default", "--state", "ready", "--yes", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "queue\tremoved\ndefault\t1\n");
    assert_string_equal(r.err, "lade: default: 1 job removed\n");
    RUN(&r, "queue", "pause", "default", "other", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "queue\ndefault\nother\n");
    RUN(&r, "queue", "resume", "nope", "default", "-o", "tsv");
    assert_code(&r, 6);
    assert_string_equal(r.out, "queue\ndefault\n");
    RUN(&r, "queue", "rm", "other", "--yes", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "queue\nother\n");
    RUN(&r, "dead", "redrive", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "done\n0\n");
    RUN(&r, "dead", "purge", "--yes", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "done\n0\n");
    run_free(&r);
}

static void dry_runs_make_no_store(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char flow[] = "{\"chain\":[{\"kind\":\"load\"}]}";
    char url[512];
    (void)snprintf(url, sizeof(url), "sqlite:%s", file_path("none.db"));
    RUN(&r, "enqueue", "-u", url, "-k", "k", "--dry-run");
    assert_code(&r, 0);
    RUN_IN(&r, "a\nb\n", 4, "enqueue", "-u", url, "-k", "k", "--lines", "-", "--dry-run");
    assert_code(&r, 0);
    RUN_IN(&r, flow, sizeof(flow) - 1, "flow", "run", "-", "-u", url, "--dry-run");
    assert_code(&r, 0);
    assert_int_equal(access(file_path("none.db"), F_OK), -1);
    assert_int_equal(access(file_path("none.db-bell"), F_OK), -1);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(dead_are_classed_listed_and_redriven_by_class),
        ON_STORE(canary_that_nobody_runs_stops_a_redrive),
        ON_STORE(edit_changes_the_payload_of_a_dead_job),
        ON_STORE(unique_jobs_are_replaced_debounced_and_refused),
        ON_STORE(counts_in_tsv_have_their_line_of_names),
        ON_STORE(dry_runs_make_no_store),
    };
    return run_group(argc, argv, "dead", tests, LB_ARRAY_LEN(tests));
}
