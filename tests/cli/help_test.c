/* What help says is so: its examples are understood, and an option that would do nothing is refused */
#include "cli/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* The examples of one command, each as a shell runs it, on a store that cannot be: what is told then is not about the words. */
static void run_examples(const char *name, const char *examples)
{
    static const char *const wrong[] = {"unknown",     "too many arguments", "too few arguments",
                                        "needs a",     ": missing;",         "not for this command",
                                        "which verb?", "not with --"};

    char command[4096], dir[256];
    (void)snprintf(dir, sizeof(dir), "%s", file_path("."));
    int n = snprintf(command, sizeof(command),
                     "exec 2>'%s/said' >/dev/null </dev/null; cd '%s'; unset LADE_NAMESPACE; "
                     "export LADE_URL=sqlite:/no/such/place/jobs.db; lade() { '%s' \"$@\"; }\n%s",
                     dir, dir, file_path("lade"), examples);
    assert_true(n > 0 && (size_t)n < sizeof(command));
    (void)system(command);
    const char *said = file_text("said");
    for (size_t i = 0; i < LB_ARRAY_LEN(wrong); i++) {
        if (strstr(said, wrong[i]))
            fail_msg("%s: %s\n%s", name, examples, said);
    }
}

static void examples_of_every_help_are_understood(void **state)
{
    (void)state;
    struct cli_run all = {0}, r = {0};
    char *bin = realpath(lade_bin(), NULL);
    char link[600];
    assert_non_null(bin);
    (void)snprintf(link, sizeof(link), "ln -s '%s' '%s'", bin, file_path("lade"));
    assert_int_equal(system(link), 0);
    RUN(&all, "help");
    assert_code(&all, 0);
    size_t n = 0;
    char *end = strstr(all.out, "\nShort:");
    assert_non_null(end);
    *end = '\0';
    char *place = NULL;
    for (char *line = strtok_r(all.out, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
        char noun[24] = "", verb[24] = "";
        if (strncmp(line, "  ", 2) != 0 || sscanf(line, " %23s", noun) != 1)
            continue;
        const char *rest = line + 2 + strlen(noun);
        if (rest[0] == ' ' && rest[1] != ' ')
            assert_int_equal(sscanf(rest, " %23s", verb), 1);
        RUN(&r, "help", noun, verb[0] ? verb : NULL);
        assert_code(&r, 0);
        const char *examples = strstr(r.out, "\nExamples:\n");
        assert_non_null(examples);
        run_examples(line, examples + strlen("\nExamples:\n"));
        n++;
    }
    assert_true(n > 45);
    free(bin);
    run_free(&r);
    run_free(&all);
}

/* A filter that is passed over shows, or does, more than was asked for. */
static void queue_is_refused_where_it_would_be_ignored(void **state)
{
    (void)state;

    static const char *const cases[][6] = {
        {"schedule", "ls", "-q", "mail"},
        {"schedule", "pause", "-q", "mail", "nightly"},
        {"flow", "ls", "-q", "mail"},
        {"flow", "show", "-q", "mail", "id"},
        {"doctor", "-q", "mail"},
        {"worker", "ls", "--queue", "mail"},
        {"queue", "events", "-q", "mail", "other"},
        {"version", "-q", "mail"},
    };

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        run_args(&r, NULL, cases[i]);
        assert_code(&r, 2);
        assert_string_equal(r.err, "lade: --queue: not for this command\n");
    }
    run_free(&r);
}

static void options_that_do_nothing_without_or_beside_another_are_refused(void **state)
{
    (void)state;

    static const struct {
        const char *args[10], *says;
    } cases[] = {
        {{"dead", "redrive", "--canary-wait", "1s"}, "--canary-wait: needs --canary"},
        {{"dead", "ls", "--older", "1d", "--newer", "1h"}, "--newer: no time is left before"},
        {{"dead", "redrive", "--newer", "1h", "--before", "2020-01-01T00:00:00Z"},
         "--newer: no time is left before --before"},
        {{"job", "show", "a", "--payload", "--result"}, "--payload: not with --result"},
        {{"schedule", "preview", "--cron", "@daily", "--anchor", "start"},
         "--anchor: not with --cron"},
        {{"schedule", "set", "a", "-k", "k", "--cron", "@daily", "--anchor", "start"},
         "--anchor: not with --cron"},
        {{"schedule", "preview", "--cron", "@daily", "--tz", ""}, "--tz: empty; give UTC"},
        {{"events", "--from", "yesterday"}, "give the id of one, start or now"},
    };

    struct cli_run r = {0};
    RUN(&r, "enqueue", "--kind", "k", "--id", "a");
    assert_code(&r, 0);
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        run_args(&r, NULL, cases[i].args);
        assert_code(&r, 2);
        assert_says(r.err, cases[i].says);
        assert_int_equal(r.n_out, 0);
    }
    run_free(&r);
}

/* What is given to a schedule's job is shown, in every format. */
static void show_of_a_schedule_has_all_of_its_job(void **state)
{
    (void)state;
    static const char line[] =
        "{\"id\":\"full\",\"every\":\"1h\",\"kind\":\"k\",\"content_type\":\"text/x\",\"priority\":2,"
        "\"max_attempts\":3,\"result_ttl\":\"1h\",\"unique\":{\"key\":\"only\"},\"key\":\"acme\","
        "\"discard_dead\":true,\"headers\":{\"h\":\"v\"}}\n";

    struct cli_run r = {0};
    RUN_IN(&r, line, sizeof(line) - 1, "schedule", "set", "--file", "-");
    assert_code(&r, 0);
    RUN(&r, "schedule", "show", "full");
    assert_code(&r, 0);
    static const char *const facts[] = {
        "content_type   text/x\n", "priority       2\n",    "max_attempts   3\n",
        "result_ttl_ms  3600000",  "unique_key     only\n", "key            acme\n",
        "discard_dead   yes\n",    "header         h=v\n",
    };
    for (size_t i = 0; i < LB_ARRAY_LEN(facts); i++)
        assert_says(r.out, facts[i]);
    RUN(&r, "schedule", "show", "full", "-o", "json");
    json_t *o = run_json(&r);
    assert_string_equal(json_text_at(o, "key"), "acme");
    assert_true(json_is_true(json_object_get(o, "discard_dead")));
    json_decref(o);
    run_free(&r);
}

static void help_shows_only_the_global_options_a_command_takes(void **state)
{
    (void)state;

    static const struct {
        const char *words[2];
        const char *has, *lacks;
    } cases[] = {
        {{"version", NULL}, "--output", "--dry-run"},
        {{"version", NULL}, "--json", "--queue"},
        {{"version", NULL}, "--help", "--yes"},
        {{"help", NULL}, "--help", "--url"},
        {{"job", "ls"}, "--queue", "--yes"},
        {{"job", "ls"}, "only this queue", "--dry-run"},
        {{"job", "rm"}, "--yes", NULL},
        {{"job", "kill"}, "--dry-run", "--yes"},
        {{"enqueue", NULL}, "where to", "--yes"},
        {{"work", NULL}, "a=3,b=1", "--dry-run"},
        {{"flow", "ls"}, "--url", "--queue"},
        {{"doctor", NULL}, "--url", "--queue"},
    };

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        const char *args[] = {"help", cases[i].words[0], cases[i].words[1], NULL};
        run_args(&r, NULL, args);
        assert_code(&r, 0);
        const char *globals = strstr(r.out, "Global options:");
        assert_non_null(globals);
        assert_says(globals, cases[i].has);
        if (cases[i].lacks)
            assert_null(strstr(globals, cases[i].lacks));
    }
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(help_shows_only_the_global_options_a_command_takes),
        ON_STORE(examples_of_every_help_are_understood),
        ON_STORE(queue_is_refused_where_it_would_be_ignored),
        ON_STORE(options_that_do_nothing_without_or_beside_another_are_refused),
        ON_STORE(show_of_a_schedule_has_all_of_its_job),
    };
    return run_group(argc, argv, "help", tests, LB_ARRAY_LEN(tests));
}
