/*
 * runner_test.c - lade-bench with drivers made of shell: good, lying, failing and hanging ones
 *
 * argv[1] is lade-bench. Each test has a folder with a bench tree of its own: one table of two rows, and a driver whose
 * contenders differ by --set mode=...
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lade/base.h>

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "support/proc.h"
#include "support/tmpdir.h"

#define SOON (60 * LADE_SECOND)

static const char *lade_bench;

/* Prints a right answer unless mode says otherwise. */
static const char script[] =
    "case $1 in --list) echo '{\"driver\":\"fake\",\"version\":\"1\",\"scenarios\":[\"count\"]}'; exit;; "
    "esac\n"
    "scenario= n= mode=good dir=$(dirname \"$0\")\n"
    "while [ $# -gt 0 ]; do case $1 in --scenario) scenario=$2;; --set) eval \"${2%%=*}='${2#*=}'\";; esac; shift 2; "
    "done\n"
    "[ \"$scenario\" = count ] || exit 2\n"
    "count=$n sum=$((n * (n - 1) / 2)) rate=$((n * 2)) errors=0\n"
    "echo x >>\"$dir/runs-$mode\"\n"
    "case $mode in\n"
    "few) count=$((n - 1));;\n"
    "sum) sum=$((sum + 1));;\n"
    "rate) rate=$((n * 3));;\n"
    "errors) errors=1;;\n"
    "other) n=$((n * 2)) ;;\n"
    "chatty) echo hello;;\n"
    "silent) exit 0;;\n"
    "cannot) echo 'not on this store' >&2; exit 2;;\n"
    "fails) echo 'no luck' >&2; exit 1;;\n"
    "second) [ $(wc -l <\"$dir/runs-second\") = 2 ] && { echo 'second time unlucky' >&2; exit 1; };;\n"
    "hangs) sleep 1000 & echo $! >\"$dir/grandchild\"; trap '' TERM; wait; wait;;\n"
    "waits) : >\"$dir/waiting\"; sleep 1000;;\n"
    "esac\n"
    "echo '{\"driver\":\"fake\",\"version\":\"1\",\"scenario\":\"count\",\"params\":{\"n\":'$n'},\"n\":'$n',"
    "\"seconds\":0.5,\"rate\":'$rate',\"printed_rate\":'$rate',\"latency\":null,\"client_cpu_s\":null,"
    "\"rss_bytes\":null,\"server_cpu_s\":null,\"server_commands\":null,\"errors\":'$errors',"
    "\"verified\":{\"count\":'$count',\"checksum\":\"'$sum'\"},\"extra\":{}}'\n";

struct fix {
    struct ts_tmpdir dir;
    char path[256]; /* of write_file and path_of */
    struct ts_proc proc;
    char *report;
    json_t *raw; /* lines of raw.jsonl */
};

static const char *path_of(struct fix *f, const char *name)
{
    (void)snprintf(f->path, sizeof(f->path), "%s/%s", f->dir.path, name);
    return f->path;
}

static void write_file(struct fix *f, const char *name, const char *text)
{
    FILE *file = fopen(path_of(f, name), "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    if (file) {
        (void)fread(text, 1, (1 << 20) - 1, file);
        (void)fclose(file);
    }
    return text;
}

/* A table whose columns are these modes, of rows "small" and "large". */
static void write_tree(struct fix *f, const char *const *modes)
{
    json_t *contenders = json_array();
    json_t *names = json_array();
    for (size_t i = 0; modes[i]; i++) {
        (void)json_array_append_new(names, json_string(modes[i]));
        (void)json_array_append_new(
            contenders, json_pack("{s:s,s:{s:s}}", "name", modes[i], "set", "mode", modes[i]));
    }
    json_t *driver =
        json_pack("{s:s,s:s,s:[s,s],s:s,s:o}", "name", "fake", "language", "shell", "run", "sh",
                  "${dir}/fake.sh", "server", "none", "contenders", contenders);
    json_t *table = json_pack(
        "{s:s,s:s,s:s,s:s,s:o,s:i,s:i,s:i,"
        "s:[{s:s,s:s,s:{s:i},s:{s:[i,i]},s:s,s:s,s:s,s:[{s:[s],s:[s],s:i}]}]}",
        "name", "t", "title", "A table", "source", "this test", "server", "none", "contenders",
        names, "repeats", 3, "warmup", 1, "deadline_s", 60, "rows", "id", "n={n}", "scenario",
        "count", "params", "n", 10, "vary", "n", 10, 1000, "count", "n", "checksum", "n*(n-1)/2",
        "work", "n", "targets", "of", "good", "over", "second", "ratio", 5);
    assert_non_null(driver);
    assert_non_null(table);
    assert_int_equal(mkdir(path_of(f, "tables"), 0700), 0);
    assert_int_equal(mkdir(path_of(f, "drivers"), 0700), 0);
    assert_int_equal(mkdir(path_of(f, "drivers/fake"), 0700), 0);
    write_file(f, "drivers/fake/fake.sh", script);
    assert_int_equal(json_dump_file(driver, path_of(f, "drivers/fake/driver.json"), 0), 0);
    assert_int_equal(json_dump_file(table, path_of(f, "tables/t.json"), 0), 0);
    json_decref(driver);
    json_decref(table);
}

static int setup(void **state)
{
    struct fix *f = calloc(1, sizeof(*f));
    *state = f;
    return f && ts_tmpdir_make(&f->dir) ? 0 : -1;
}

static int teardown(void **state)
{
    struct fix *f = *state;
    ts_proc_kill(&f->proc);
    ts_tmpdir_remove(&f->dir);
    free(f->report);
    json_decref(f->raw);
    free(f);
    return 0;
}

static void start(struct fix *f, const char *const *more)
{
    const char *argv[24] = {lade_bench, "run", "t", "--out"};
    char out[128];
    char env[128];
    char log[128];
    size_t n = 4;
    (void)snprintf(out, sizeof(out), "%s/out", f->dir.path);
    (void)snprintf(log, sizeof(log), "%s/log", f->dir.path);
    (void)snprintf(env, sizeof(env), "LADE_BENCH_DIR=%s", f->dir.path);
    argv[n++] = out;
    for (size_t i = 0; more && more[i]; i++)
        argv[n++] = more[i];
    argv[n] = NULL;
    assert_true(ts_proc_start(&f->proc, argv, (const char *[]){env, NULL}, log));
}

static void read_results(struct fix *f)
{
    char line[4096];
    f->report = read_file(path_of(f, "out/report.md"));
    f->raw = json_array();
    FILE *raw = fopen(path_of(f, "out/raw.jsonl"), "re");
    while (raw && fgets(line, sizeof(line), raw)) {
        json_t *o = json_loads(line, 0, NULL);
        assert_non_null(o);
        (void)json_array_append_new(f->raw, o);
    }
    if (raw)
        (void)fclose(raw);
}

/* Runs to the end; the exit status. */
static int run(struct fix *f, const char *const *modes, const char *const *more)
{
    write_tree(f, modes);
    start(f, more);
    assert_true(ts_proc_wait(&f->proc, SOON));
    read_results(f);
    return ts_proc_code(&f->proc);
}

static void assert_says(const struct fix *f, const char *text)
{
    if (!strstr(f->report, text))
        fail_msg("the report does not say '%s':\n%s", text, f->report);
}

static const char *field(const struct fix *f, size_t i, const char *name)
{
    return json_string_value(json_object_get(json_array_get(f->raw, i), name));
}

static void runs_are_interleaved_and_their_order_is_recorded(void **state)
{
    struct fix *f = *state;
    static const char *const modes[] = {"good", "a", "b", NULL};
    static const char *const order[] = {"good", "a", "b", "a", "b", "good", "b", "good", "a"};
    assert_int_equal(run(f, modes, (const char *[]){"--warmup", "0", NULL}), 0);
    /* Within a repeat a row is done by all before the next row. */
    assert_int_equal(json_array_size(f->raw), 3 * 2 * 3);
    for (size_t i = 0; i < json_array_size(f->raw); i++) {
        json_t *line = json_array_get(f->raw, i);
        size_t repeat = i / 6;
        size_t row = i / 3 % 2;
        assert_int_equal(json_integer_value(json_object_get(line, "seq")), i);
        assert_int_equal(json_integer_value(json_object_get(line, "repeat")), repeat);
        assert_string_equal(field(f, i, "contender"), order[(repeat + row) % 3 * 3 + i % 3]);
    }
}

static void warm_ups_are_recorded_and_thrown_away(void **state)
{
    struct fix *f = *state;
    assert_int_equal(run(f, (const char *[]){"good", "second", NULL}, NULL), 0);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(f->raw, 0), "repeat")), -1);
    assert_int_equal(json_array_size(f->raw), 4 * 2 * 2);
    /* The unlucky second run was a warm-up, so that all the measured ones are good. */
    assert_non_null(field(f, 2, "failed"));
    assert_says(f, "| n=10 | 20.0 [20.0, 20.0] | 20.0 [20.0, 20.0] | jobs/s |");
}

static void a_driver_that_lies_is_caught(void **state)
{
    struct fix *f = *state;
    static const char *const modes[] = {"good",  "few",    "sum",    "rate", "errors",
                                        "other", "chatty", "silent", NULL};
    assert_int_equal(run(f, modes, (const char *[]){"--repeats", "1", "--warmup", "0", NULL}), 1);
    assert_says(f, "- n=10 on few: the count of work is 9, must be 10");
    assert_says(f, "- n=10 on sum: the checksum is 46, must be 45");
    assert_says(f, "- n=10 on rate: rate 30.0 is not n / seconds");
    assert_says(f, "- n=10 on errors: 1 operations failed");
    assert_says(f, "- n=10 on other: ran with n=20 instead of 10");
    assert_says(f, "- n=10 on chatty: printed more instead of one line");
    assert_says(f, "- n=10 on silent: printed nothing instead of one line");
    assert_says(f, "| n=10 | 20.0 | failed (0/1)");
}

static void a_failing_driver_does_not_sink_the_run(void **state)
{
    struct fix *f = *state;
    assert_int_equal(run(f, (const char *[]){"good", "second", "fails", NULL},
                         (const char *[]){"--warmup", "0", NULL}),
                     1);
    assert_says(f, "2.00K [2.00K, 2.00K] (2/3)");
    assert_says(f, "failed (0/3): exit status 1: no luck");
    assert_says(f, "second time unlucky");
    assert_says(f, "| n=10 | good | 5x the best of second | 1.00 over second | **not met** |");
    assert_int_equal(json_array_size(f->raw), 3 * 2 * 3);
}

static void a_hanging_driver_is_ended_with_its_children(void **state)
{
    struct fix *f = *state;
    char line[32] = "";
    write_tree(f, (const char *[]){"good", "hangs", NULL});
    json_t *table = json_load_file(path_of(f, "tables/t.json"), 0, NULL);
    (void)json_object_del(json_array_get(json_object_get(table, "rows"), 0), "vary");
    assert_int_equal(json_dump_file(table, path_of(f, "tables/t.json"), 0), 0);
    json_decref(table);
    start(f, (const char *[]){"--repeats", "1", "--warmup", "0", "--deadline", "5", NULL});
    assert_true(ts_proc_wait(&f->proc, SOON));
    assert_int_equal(ts_proc_code(&f->proc), 1);
    read_results(f);
    assert_says(f, "did not end in time");
    assert_says(f, "| n=10 | 20.0 |");
    FILE *file = fopen(path_of(f, "drivers/fake/grandchild"), "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    (void)fclose(file);
    pid_t grandchild = (pid_t)strtol(line, NULL, 10);
    assert_true(grandchild > 1);
    assert_true(TS_UNTIL(SOON, kill(grandchild, 0) != 0 && errno == ESRCH));
}

static void ctrl_c_leaves_a_partial_report(void **state)
{
    struct fix *f = *state;
    write_tree(f, (const char *[]){"good", "waits", NULL});
    start(f, (const char *[]){"--warmup", "0", NULL});
    assert_true(TS_UNTIL(SOON, access(path_of(f, "drivers/fake/waiting"), F_OK) == 0));
    ts_proc_signal(&f->proc, SIGINT);
    assert_true(ts_proc_wait(&f->proc, SOON));
    assert_int_equal(ts_proc_code(&f->proc), 130);
    read_results(f);
    assert_says(f, "> **Partial**");
    assert_says(f, "| n=10 | 20.0 (1/3) | not reached (0/3) | jobs/s |");
    assert_int_equal(json_array_size(f->raw), 1);
}

static void what_cannot_run_is_named_in_its_cell(void **state)
{
    struct fix *f = *state;
    write_tree(f, (const char *[]){"good", "cannot", NULL});
    assert_int_equal(mkdir(path_of(f, "drivers/absent"), 0700), 0);
    write_file(
        f, "drivers/absent/driver.json",
        "{\"name\":\"absent\",\"build\":[\"false\"],\"run\":[\"${out}/x\"],\"server\":\"none\","
        "\"contenders\":[{\"name\":\"missing\"}]}");
    json_t *table = json_load_file(path_of(f, "tables/t.json"), 0, NULL);
    (void)json_array_append_new(json_object_get(table, "contenders"), json_string("missing"));
    (void)json_array_append_new(json_object_get(table, "contenders"), json_string("nobody"));
    (void)json_array_append_new(
        json_object_get(table, "rows"),
        json_pack("{s:s,s:s,s:{}}", "id", "odd", "scenario", "other", "params"));
    assert_int_equal(json_dump_file(table, path_of(f, "tables/t.json"), 0), 0);
    json_decref(table);
    start(f, (const char *[]){"--repeats", "1", "--warmup", "0", "--peers",
                              "missing,nobody,good,cannot", NULL});
    assert_true(ts_proc_wait(&f->proc, SOON));
    read_results(f);
    assert_int_equal(ts_proc_code(&f->proc), 0);
    assert_says(f, "| row | good | cannot | missing | nobody | unit |");
    assert_says(f, "not run: not built (scripts/setup --bench builds it)");
    assert_says(f, "not run: no driver here");
    assert_says(f, "| n=10 | 20.0 | not run: not on this store |");
    assert_says(f, "| odd | not run: good has no other |");
}

/* The contender sets mode=good, and is none for a row of mode=other; the driver is not even asked. */
static void a_row_against_a_contenders_setting_is_not_its(void **state)
{
    struct fix *f = *state;
    write_tree(f, (const char *[]){"good", NULL});
    json_t *table = json_load_file(path_of(f, "tables/t.json"), 0, NULL);
    (void)json_array_append_new(json_object_get(table, "rows"),
                                json_pack("{s:s,s:s,s:{s:i,s:s}}", "id", "odd", "scenario", "count",
                                          "params", "n", 10, "mode", "other"));
    assert_int_equal(json_dump_file(table, path_of(f, "tables/t.json"), 0), 0);
    json_decref(table);
    start(f, (const char *[]){"--repeats", "1", "--warmup", "0", NULL});
    assert_true(ts_proc_wait(&f->proc, SOON));
    read_results(f);
    assert_int_equal(ts_proc_code(&f->proc), 0);
    assert_says(f,
                "| odd | not run: not applicable: good sets mode=good, the row is of mode=other |");
    assert_int_equal(json_array_size(f->raw), 2);
}

/* By what its cells took when they last ran here. */
static void a_second_run_knows_at_its_start_how_long_it_takes(void **state)
{
    struct fix *f = *state;
    static const char *const modes[] = {"good", NULL};
    assert_int_equal(run(f, modes, (const char *[]){"--repeats", "1", "--warmup", "0", NULL}), 0);
    json_t *times = json_load_file(path_of(f, "times.json"), 0, NULL);
    assert_int_equal(json_object_size(times), 2);
    const char *key;
    json_t *v;
    json_object_foreach(times, key, v)
    {
        assert_non_null(strstr(key, "t|n=10"));
        assert_true(json_number_value(v) > 0);
        (void)json_real_set(v, 600);
    }
    assert_int_equal(json_dump_file(times, path_of(f, "times.json"), 0), 0);
    json_decref(times);
    start(f, (const char *[]){"--repeats", "3", "--warmup", "0", NULL});
    assert_true(ts_proc_wait(&f->proc, SOON));
    char *said = read_file(path_of(f, "log"));
    assert_non_null(
        strstr(said, "2 cells, 3 rounds (0 of them warm-up): about 60 min by the last runs here"));
    free(said);
}

/* The originals' flags, with one dash as there. */
static void flags_of_the_originals_reach_the_driver(void **state)
{
    struct fix *f = *state;
    const char *const modes[] = {"good", NULL};
    const char *const more[] = {"-tasks", "50",       "--repeats", "2", "--warmup",
                                "0",      "--format", "jsonl",     NULL};
    assert_int_equal(run(f, modes, more), 0);
    assert_int_equal(json_array_size(f->raw), 2); /* one row, though the table varies n */
    for (size_t i = 0; i < 2; i++) {
        json_t *line = json_array_get(f->raw, i);
        json_t *params = json_object_get(line, "params");
        assert_string_equal(field(f, i, "row"), "n=50");
        assert_int_equal(json_integer_value(json_object_get(params, "n")), 50);
    }
}

static void a_scenario_that_no_row_has_is_refused(void **state)
{
    struct fix *f = *state;
    const char *const modes[] = {"good", NULL};
    write_tree(f, modes);
    start(f, (const char *[]){"--scenario", "nothing", NULL});
    assert_true(ts_proc_wait(&f->proc, SOON));
    assert_int_not_equal(ts_proc_code(&f->proc), 0);
}

static void usage_errors_exit_with_2(void **state)
{
    struct fix *f = *state;
    static const char *const bad[] = {"--repeats", "--format", "--profile", "--frequency", "-o"};
    char log[128], said[2048];
    (void)snprintf(log, sizeof(log), "%s/log", f->dir.path);
    write_tree(f, (const char *[]){"good", NULL});
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        start(f, (const char *[]){bad[i], "0", NULL});
        assert_true(ts_proc_wait(&f->proc, SOON));
        assert_int_equal(ts_proc_code(&f->proc), 2);
        FILE *in = fopen(log, "r");
        assert_non_null(in);
        said[fread(said, 1, sizeof(said) - 1, in)] = '\0';
        (void)fclose(in);
        if (!strstr(said, bad[i]))
            fail_msg("%s is not named: %s", bad[i], said);
    }
    start(f, (const char *[]){"other", NULL});
    assert_true(ts_proc_wait(&f->proc, SOON));
    assert_int_equal(ts_proc_code(&f->proc), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(runs_are_interleaved_and_their_order_is_recorded),
        TEST(warm_ups_are_recorded_and_thrown_away),
        TEST(a_driver_that_lies_is_caught),
        TEST(a_failing_driver_does_not_sink_the_run),
        TEST(a_hanging_driver_is_ended_with_its_children),
        TEST(ctrl_c_leaves_a_partial_report),
        TEST(what_cannot_run_is_named_in_its_cell),
        TEST(a_row_against_a_contenders_setting_is_not_its),
        TEST(a_second_run_knows_at_its_start_how_long_it_takes),
        TEST(flags_of_the_originals_reach_the_driver),
        TEST(a_scenario_that_no_row_has_is_refused),
        TEST(usage_errors_exit_with_2),
    };
    if (argc < 2)
        return 2;
    lade_bench = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
