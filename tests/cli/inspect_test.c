/* Looking and acting with the CLI, on the store that argv names */
#include "cli/cli_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lade/lade.h>

#include "base/base.h"

#define SECONDS(n) (INT64_C(n) * 1000 * 1000 * 1000)

/* A dead job of queue "default". */
static void make_dead(const char *id)
{
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "--id", id, "--payload", id);
    assert_code(&r, 0);
    RUN(&r, "job", "kill", id);
    assert_code(&r, 0);
    run_free(&r);
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void queues_are_listed_shown_paused_and_resumed(void **state)
{
    (void)state;
    struct cli_run r = {0};
    (void)enqueue("k", "p");
    RUN(&r, "enqueue", "-k", "k", "-q", "other", "--in", "1h");
    RUN(&r, "queue", "ls");
    assert_code(&r, 0);
    assert_says(r.out, "QUEUE");
    assert_says(r.out, "default");
    assert_says(r.out, "other");
    RUN(&r, "queue", "pause", "other", "made");
    assert_code(&r, 0);
    assert_says(r.err, "other: paused\n");
    assert_says(r.err, "made: paused (new queue: no jobs yet)");
    RUN(&r, "queue", "ls", "-o", "ndjson");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 3);
    RUN(&r, "queue", "show", "other", "--json");
    assert_code(&r, 0);
    json_t *q = run_json(&r);
    assert_true(json_is_true(json_object_get(q, "paused")));
    assert_int_equal(json_int_at(q, "scheduled"), 1);
    assert_int_equal(json_int_at(q, "total_enqueued"), 1);
    json_decref(q);
    RUN(&r, "queue", "resume", "other");
    assert_code(&r, 0);
    RUN(&r, "queue", "show", "-q", "other", "-o", "tsv");
    assert_code(&r, 0);
    assert_says(r.out, "status\topen\n");
    RUN(&r, "queue", "show", "nosuch");
    assert_code(&r, 3);
    assert_says(r.err, "nosuch: no such queue");
    RUN(&r, "queue", "show", "other", "nosuch");
    assert_code(&r, 6);
    RUN(&r, "queue", "show");
    assert_code(&r, 2);
    run_free(&r);
}

static void purge_and_rm_need_yes_and_count(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN_IN(&r, "a\nb\nc\n", 6, "enqueue", "-k", "k", "-q", "x", "--lines", "-");
    assert_code(&r, 0);
    RUN(&r, "queue", "rm", "x", "--yes");
    assert_code(&r, 4);
    assert_says(r.err, "jobs are in it");
    RUN(&r, "queue", "purge", "x", "--state", "ready");
    assert_code(&r, 2);
    assert_says(r.err, "not without --yes");
    RUN(&r, "queue", "purge", "x", "--state", "ready", "--dry-run");
    assert_code(&r, 0);
    assert_string_equal(r.out, "x\t3\n");
    assert_int_equal(total_of("ready"), 3);
    RUN(&r, "queue", "purge", "x", "--yes");
    assert_code(&r, 2);
    RUN(&r, "queue", "purge", "x", "--yes", "--state", "active");
    assert_code(&r, 2);
    RUN(&r, "queue", "purge", "x", "--yes", "--state", "nonsense");
    assert_code(&r, 2);
    RUN(&r, "queue", "purge", "x", "--yes", "--state", "all");
    assert_code(&r, 0);
    assert_string_equal(r.out, "x\t3\n");
    RUN(&r, "queue", "rm", "x");
    assert_code(&r, 2);
    RUN(&r, "queue", "rm", "x", "--yes");
    assert_code(&r, 0);
    RUN(&r, "queue", "rm", "x", "--yes");
    assert_code(&r, 3);
    run_free(&r);
}

/* One JSON text whatever is done. */
static void what_acts_prints_one_json_object_with_counts(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN_IN(&r, "a\nb\n", 4, "enqueue", "-k", "k", "-q", "x", "--lines", "-", "-o", "json", "--ids");
    assert_code(&r, 0);
    json_t *o = run_json(&r);
    assert_int_equal(json_array_size(json_object_get(o, "ids")), 2);
    assert_int_equal(json_int_at(o, "added"), 2);
    json_decref(o);
    RUN_IN(&r, "a\n", 2, "enqueue", "-k", "k", "--lines", "-", "-o", "json", "--dry-run");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_true(json_is_true(json_object_get(o, "dry_run")));
    assert_int_equal(json_int_at(o, "added"), 1);
    json_decref(o);
    RUN(&r, "enqueue", "-k", "k", "-q", "x", "--id", "a");
    RUN(&r, "enqueue", "-k", "k", "-q", "x", "--id", "b");
    RUN(&r, "job", "show", "a", "b", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_int_equal(json_array_size(o), 2);
    json_decref(o);
    RUN(&r, "job", "kill", "a", "nosuch", "-o", "json");
    assert_code(&r, 6);
    o = run_json(&r);
    assert_int_equal(json_array_size(o), 2);
    assert_string_equal(json_text_at(json_array_get(o, 0), "id"), "a");
    assert_string_equal(json_text_at(json_array_get(o, 0), "verb"), "kill");
    assert_string_equal(json_text_at(json_array_get(o, 0), "result"), "done");
    assert_string_equal(json_text_at(json_array_get(o, 1), "result"), "not_found");
    json_decref(o);
    assert_says(r.err, "nosuch: no such job");
    RUN(&r, "job", "kill", "a", "b", "-o", "tsv");
    assert_code(&r, 6);
    assert_string_equal(r.out, "id\tverb\tresult\tdry_run\na\tkill\twrong_state\tno\n"
                               "b\tkill\tdone\tno\n");
    RUN(&r, "job", "retry", "b", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_string_equal(json_text_at(o, "result"), "done");
    json_decref(o);
    RUN(&r, "dead", "redrive", "-o", "json");
    assert_code(&r, 0);
    o = run_json(&r);
    assert_int_equal(json_int_at(o, "done"), 1);
    json_decref(o);
    RUN(&r, "queue", "purge", "x", "nosuch", "--state", "all", "--yes", "-o", "json");
    assert_code(&r, 6);
    o = run_json(&r);
    assert_int_equal(json_int_at(o, "done"), 1);
    assert_int_equal(json_int_at(o, "failed"), 1);
    assert_int_equal(json_int_at(o, "removed"), 4);
    json_decref(o);
    RUN(&r, "queue", "pause", "x", "-o", "json");
    o = run_json(&r);
    assert_int_equal(json_int_at(o, "done"), 1);
    json_decref(o);
    RUN(&r, "queue", "resume", "typo", "-o", "json");
    assert_code(&r, 3);
    o = run_json(&r);
    assert_int_equal(json_int_at(o, "failed"), 1);
    json_decref(o);
    RUN(&r, "queue", "show", "typo");
    assert_code(&r, 3);
    run_free(&r);
}

static void control_characters_are_escaped_once_in_tables(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "-p", "a\rb\x1b[31m\nc");
    assert_code(&r, 0);
    RUN(&r, "job", "ls");
    assert_says(r.out, "a\\x0db\\x1b[31m\\nc");
    RUN(&r, "job", "ls", "-o", "tsv");
    assert_says(r.out, "a\\x0db\\x1b[31m\\nc");
    run_free(&r);
}

/* chronos 66 */
static void jobs_are_acted_on_by_id_and_outcomes_fold_into_the_exit_code(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-k", "k", "--id", "a", "--in", "1h");
    RUN(&r, "enqueue", "-k", "k", "--id", "b");
    RUN(&r, "job", "retry", "a");
    assert_code(&r, 0);
    assert_string_equal(state_of("a"), "ready");
    RUN(&r, "job", "retry", "a");
    assert_code(&r, 4);
    assert_says(r.err, "a: not retried: its state does not allow it");
    RUN(&r, "job", "retry", "nosuch");
    assert_code(&r, 3);
    RUN(&r, "job", "retry", "a", "nosuch");
    assert_code(&r, 4);
    RUN(&r, "job", "retry", "nosuch", "a");
    assert_code(&r, 3);
    RUN(&r, "job", "kill", "a", "nosuch");
    assert_code(&r, 6);
    assert_string_equal(state_of("a"), "dead");
    RUN(&r, "job", "cancel", "b", "--dry-run");
    assert_code(&r, 0);
    assert_string_equal(state_of("b"), "ready");
    RUN(&r, "job", "cancel", "a", "--dry-run");
    assert_code(&r, 4);
    RUN(&r, "task", "cancel", "b");
    assert_code(&r, 0);
    assert_string_equal(state_of("b"), "cancelled");
    RUN(&r, "task", "run", "a", "b");
    assert_code(&r, 0);
    RUN(&r, "task", "archive", "a");
    assert_code(&r, 0);
    RUN(&r, "task", "inspect", "a", "--json");
    assert_code(&r, 0);
    json_t *job = run_json(&r);
    assert_string_equal(json_text_at(job, "reason"), "killed");
    json_decref(job);
    RUN_IN(&r, "a\nb\n\n", 5, "job", "rm", "-");
    assert_code(&r, 2);
    RUN_IN(&r, "a\nb\n\n", 5, "job", "rm", "-", "--yes");
    assert_code(&r, 0);
    assert_string_equal(state_of("a"), "gone");
    assert_string_equal(state_of("b"), "gone");
    RUN(&r, "job", "show", "a b");
    assert_true(r.code == 2 || r.code == 3);
    RUN(&r, "job", "show");
    assert_code(&r, 2);
    run_free(&r);
}

static void dead_jobs_are_redriven_and_purged_oldest_first(void **state)
{
    (void)state;
    struct cli_run r = {0};
    make_dead("d1");
    make_dead("d2");
    make_dead("d3");
    RUN(&r, "dlq", "list", "-o", "tsv");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 4);
    assert_says(r.out, "id\tqueue\tkind\treason\ttries");
    RUN(&r, "dead", "redrive", "--dry-run");
    assert_code(&r, 0);
    assert_string_equal(r.out, "3\n");
    RUN(&r, "dead", "redrive", "--limit", "1");
    assert_code(&r, 0);
    assert_string_equal(r.out, "1\n");
    assert_string_equal(state_of("d1"), "ready");
    assert_int_equal(total_of("dead"), 2);
    RUN(&r, "dead", "purge");
    assert_code(&r, 2);
    RUN(&r, "dead", "purge", "--yes", "--limit", "1");
    assert_code(&r, 0);
    assert_string_equal(state_of("d2"), "gone");
    RUN(&r, "dead", "redrive", "-q", "default");
    assert_code(&r, 0);
    assert_string_equal(r.out, "1\n");
    assert_int_equal(total_of("ready"), 2);
    RUN(&r, "dead", "redrive", "-q", "nosuch");
    assert_code(&r, 3);
    RUN(&r, "dead", "redrive");
    assert_code(&r, 0);
    assert_string_equal(r.out, "0\n");
    run_free(&r);
}

/* C-111 (chronos 64) */
static void limits_are_bounds_and_zero_is_all(void **state)
{
    (void)state;
    char text[2600];
    size_t n = 0;
    struct cli_run r = {0};
    for (int i = 0; i < 250; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%d\n", i);
    RUN_IN(&r, text, n, "enqueue", "-k", "k", "--lines", "-");
    assert_code(&r, 0);

    static const struct {
        const char *limit;
        size_t rows;
    } cases[] = {{"0", 250}, {"1", 1}, {"99", 99}, {"101", 101}, {"250", 250}, {"10000000", 250}};

    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        RUN(&r, "job", "ls", "-o", "ndjson", "--limit", cases[i].limit);
        assert_code(&r, 0);
        assert_int_equal(count_lines(r.out), cases[i].rows);
        assert_int_equal(r.n_err > 0, cases[i].rows < 250);
    }
    RUN(&r, "job", "ls", "-o", "ndjson");
    assert_int_equal(count_lines(r.out), 100);
    assert_says(r.err, "100 of 250 shown; --limit 0 for all");
    RUN(&r, "job", "ls", "-s", "dead");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, 0);
    assert_string_equal(r.err, "lade: none\n");
    RUN(&r, "job", "ls", "--limit", "-1");
    assert_code(&r, 2);
    assert_says(r.err, "--limit: '-1' is out of range; give 0 to 10000000");
    RUN(&r, "job", "ls", "--limit", "1000000000");
    assert_code(&r, 2);
    RUN(&r, "dead", "redrive", "--limit", "0");
    assert_code(&r, 2);
    RUN(&r, "job", "ls", "--state", "dead", "--json");
    assert_code(&r, 0);
    assert_string_equal(run_word(&r), "[]");
    RUN(&r, "job", "ls", "-q", "nosuch");
    assert_code(&r, 3);
    run_free(&r);
}

/* C-093 */
static void a_list_with_binary_and_big_payloads_is_valid_json_with_previews(void **state)
{
    (void)state;
    size_t n = 5U << 20;
    char *big = malloc(n);
    struct cli_run r = {0};
    assert_non_null(big);
    memset(big, 'y', n);
    for (int i = 0; i < 20; i++)
        (void)enqueue("k", "plain \"text\" \xc3\xa9");
    RUN_IN(&r, "\0\xff\xfe", 3, "enqueue", "-k", "k", "--payload", "@-", "--id", "bin");
    assert_code(&r, 0);
    RUN_IN(&r, big, n, "enqueue", "-k", "k", "--payload", "@-", "--id", "big", "--payload-max",
           "6000000");
    assert_code(&r, 0);
    RUN(&r, "job", "ls", "-o", "json");
    assert_code(&r, 0);
    assert_true(r.n_out < 64000);
    json_t *list = run_json(&r);
    assert_int_equal(json_array_size(list), 22);
    const json_t *plain = json_array_get(list, 0);
    assert_string_equal(json_text_at(plain, "payload"), "plain \"text\" \xc3\xa9");
    const json_t *bin = json_array_get(list, 20);
    assert_string_equal(json_text_at(bin, "payload_encoding"), "base64");
    assert_string_equal(json_text_at(bin, "payload_base64"), "AP/+");
    const json_t *last = json_array_get(list, 21);
    assert_true(json_is_true(json_object_get(last, "payload_truncated")));
    assert_int_equal(json_int_at(last, "payload_size"), (int64_t)n);
    assert_int_equal(strlen(json_text_at(last, "payload")), 256);
    json_decref(list);
    RUN(&r, "job", "ls");
    assert_code(&r, 0);
    assert_says(r.out, "(3 bytes, binary)");
    assert_int_equal(count_lines(r.out), 23);
    RUN(&r, "job", "show", "big", "--payload");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, n);
    assert_memory_equal(r.out, big, n);
    RUN(&r, "job", "show", "big", "bin", "-o", "ndjson");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 2);
    free(big);
    run_free(&r);
}

/* C-017: with the CLI alone: find the job that is stuck, see who holds it, and remove it while it runs. */
static void a_stuck_job_is_found_seen_and_removed_while_it_runs(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proc p;
    struct lade_id_text id = enqueue("poison", "p");
    START(&p, "work", "--exec", "exec sleep 300", "--name", "w-1", "--lease", "1s", "--sweep",
          "100ms", "--shutdown-timeout", "1s");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of(id.text), "active") == 0));
    RUN(&r, "job", "ls", "--state", "running", "--json");
    assert_code(&r, 0);
    json_t *list = run_json(&r);
    assert_int_equal(json_array_size(list), 1);
    const json_t *job = json_array_get(list, 0);
    assert_string_equal(json_text_at(job, "id"), id.text);
    assert_string_equal(json_text_at(job, "worker"), "w-1");
    assert_true(json_int_at(job, "fence") > 0);
    assert_int_equal(strlen(json_text_at(job, "taken_at")), 24);
    assert_int_equal(strlen(json_text_at(job, "lease_until")), 24);
    (void)json_int_at(job, "held_ms");
    json_decref(list);
    RUN(&r, "worker", "ls", "--json");
    assert_code(&r, 0);
    list = run_json(&r);
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_text_at(json_array_get(list, 0), "name"), "w-1");
    assert_int_equal(json_int_at(json_array_get(list, 0), "active"), 1);
    json_decref(list);
    RUN(&r, "job", "rm", id.text, "--yes");
    assert_code(&r, 0);
    assert_string_equal(state_of(id.text), "gone");
    /* The handler is told, so the worker has a free slot again; sweeps do not bring the job back. */
    struct lade_id_text next = enqueue("poison", "p");
    RUN(&r, "job", "cancel", next.text);
    assert_int_equal(end_lade(&p), 0);
    assert_string_equal(state_of(id.text), "gone");
    assert_int_equal(total_of("active"), 0);
    assert_int_equal(total_of("completed"), 0);
    RUN(&r, "doctor");
    assert_code(&r, 0);
    run_free(&r);
}

/* C-017: and between runs, when its worker has died and the lease is not over yet. */
static void a_poison_job_is_removed_between_runs_and_stays_gone(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_proc p;
    struct ts_proc again;
    struct lade_id_text id = enqueue("poison", "p");
    START(&p, "work", "--exec", "exec sleep 300", "--lease", "1s");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of(id.text), "active") == 0));
    ts_proc_kill(&p);
    RUN(&r, "job", "ls", "-s", "active", "-o", "ndjson");
    assert_code(&r, 0);
    assert_says(r.out, id.text);
    RUN(&r, "job", "rm", id.text, "--yes");
    assert_code(&r, 0);
    struct lade_id_text other = enqueue("fine", "p");
    START(&again, "work", "--exec", "true", "--lease", "1s", "--sweep", "50ms");
    assert_true(TS_UNTIL(SECONDS(60), strcmp(state_of(other.text), "completed") == 0));
    assert_true(
        TS_UNTIL(SECONDS(60), (RUN(&r, "worker", "ls", "-o", "ndjson"), count_lines(r.out) == 1)));
    assert_string_equal(state_of(id.text), "gone");
    assert_int_equal(end_lade(&again), 0);
    assert_string_equal(state_of(id.text), "gone");
    run_free(&r);
}

static void stats_and_doctor_speak_every_format(void **state)
{
    (void)state;
    struct cli_run r = {0};
    (void)enqueue("k", "p");
    RUN(&r, "stats");
    assert_code(&r, 0);
    assert_says(r.out, "total");
    RUN(&r, "stats", "--watch", "--count", "2", "-o", "ndjson");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 2);
    assert_says(r.out, "\"held\":0");
    assert_says(r.out, "\"status\":\"open\"");
    RUN(&r, "stats", "--watch=1", "--count", "1", "-o", "tsv");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 3);
    RUN(&r, "stats", "1");
    assert_code(&r, 2);
    RUN(&r, "stats", "--watch", "0");
    assert_code(&r, 2);
    RUN(&r, "doctor");
    assert_code(&r, 0);
    assert_string_equal(run_word(&r), "sound");
    RUN(&r, "doctor", "--json");
    assert_code(&r, 0);
    assert_string_equal(run_word(&r), "[]");
    RUN(&r, "worker", "ls");
    assert_code(&r, 0);
    run_free(&r);
}

/* One line of names, one for each job, numbers as numbers, nothing cut. */
static void tsv_is_for_programs(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char long_text[301];
    char command[400];
    memset(long_text, 'e', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    RUN(&r, "enqueue", "-k", "k", "--id", "a", "-p", "x\ty", "--max-attempts", "1", "-o", "tsv");
    assert_code(&r, 0);
    assert_string_equal(r.out, "id\tduplicate\treplaced\na\tno\tno\n");
    RUN(&r, "version", "-o", "tsv");
    assert_code(&r, 0);
    assert_true(strncmp(r.out, "version\n0.", 10) == 0);
    RUN(&r, "job", "ls", "-o", "tsv");
    assert_code(&r, 0);
    assert_says(r.out, "\tage_ms\t");
    assert_null(strstr(r.out, "ms\t-\t0/1"));
    (void)snprintf(command, sizeof(command), "echo %s >&2; exit 1", long_text);
    RUN(&r, "work", "--drain", "--quiet", "--exec", command);
    assert_code(&r, 0);
    RUN(&r, "enqueue", "-k", "k", "--id", "b");
    RUN(&r, "job", "show", "a", "b", "-o", "tsv");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 3);
    assert_true(strncmp(r.out, "id\tqueue\tkind\tstate\treason\tattempts\t", 36) == 0);
    assert_says(r.out, "\na\tdefault\tk\tdead\texhausted\t1\t1\t");
    assert_says(r.out, "\tx\\ty\t");
    assert_says(r.out, long_text);
    RUN(&r, "job", "show", "a");
    assert_code(&r, 0);
    assert_says(r.out, long_text);
    run_free(&r);
}

/* chronos 64 */
static void state_names_of_other_systems_are_understood(void **state)
{
    (void)state;
    struct cli_run r = {0};
    make_dead("d");
    (void)enqueue("k", "p");
    RUN(&r, "job", "ls", "--state", "archived", "-o", "ndjson");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 1);
    RUN(&r, "job", "ls", "--state", "pending,morgue", "-o", "ndjson");
    assert_code(&r, 0);
    assert_int_equal(count_lines(r.out), 2);
    RUN(&r, "job", "ls", "--state", "asleep");
    assert_code(&r, 2);
    assert_says(r.err, "--state: 'asleep' is no state");
    run_free(&r);
}

/* chronos 66: cluster mode, which has no databases but one. */
static void database_number_is_refused_on_a_cluster(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char url[256];
    if (!is_redis())
        return;
    (void)snprintf(url, sizeof(url), "%s?db=1", getenv("LADE_URL"));
    RUN(&r, "queue", "ls", "-u", url);
    if (is_cluster()) {
        assert_true(r.code != 0);
        assert_says(r.err, "is of a cluster, which has no database 1: leave the number out");
    } else {
        assert_code(&r, 0);
    }
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(queues_are_listed_shown_paused_and_resumed),
        ON_STORE(purge_and_rm_need_yes_and_count),
        ON_STORE(what_acts_prints_one_json_object_with_counts),
        ON_STORE(control_characters_are_escaped_once_in_tables),
        ON_STORE(jobs_are_acted_on_by_id_and_outcomes_fold_into_the_exit_code),
        ON_STORE(dead_jobs_are_redriven_and_purged_oldest_first),
        ON_STORE(limits_are_bounds_and_zero_is_all),
        ON_STORE(a_list_with_binary_and_big_payloads_is_valid_json_with_previews),
        ON_STORE(a_stuck_job_is_found_seen_and_removed_while_it_runs),
        ON_STORE(a_poison_job_is_removed_between_runs_and_stays_gone),
        ON_STORE(stats_and_doctor_speak_every_format),
        ON_STORE(tsv_is_for_programs),
        ON_STORE(state_names_of_other_systems_are_understood),
        ON_STORE(database_number_is_refused_on_a_cluster),
    };
    return run_group(argc, argv, "inspect", tests, LB_ARRAY_LEN(tests));
}
