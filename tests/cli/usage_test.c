/* What needs no jobs: help, bad words, bad numbers, stores that cannot be used */
#include "cli/cli_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

/* One line on stderr that starts with the program's name, nothing on stdout. */
static void assert_complains(const struct cli_run *r, int code, const char *says)
{
    assert_code(r, code);
    assert_says(r->err, says);
    assert_true(strncmp(r->err, "lade: ", 6) == 0);
    assert_ptr_equal(strchr(r->err, '\n'), r->err + r->n_err - 1);
    assert_int_equal(r->n_out, 0);
}

static void assert_help(const char *noun, const char *verb)
{
    struct cli_run r = {0};
    RUN(&r, noun, verb ? verb : "--help", verb ? "--help" : NULL);
    assert_code(&r, 0);
    assert_says(r.out, "Usage: lade ");
    assert_says(r.out, "\nExamples:\n  ");
    bool is_text = !verb && (strcmp(noun, "help") == 0 || strcmp(noun, "completion") == 0 ||
                             strcmp(noun, "export") == 0);
    assert_int_equal(strstr(r.out, "--output FORMAT") == NULL, is_text);
    assert_int_equal(r.n_err, 0);
    run_free(&r);
}

/* chasqui 59: each that `lade help` lists, and some by their other names. */
static void every_command_has_help_with_an_example(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "help");
    assert_code(&r, 0);
    char *end = strstr(r.out, "\nShort:"), *place = NULL;
    size_t n = 0;
    assert_non_null(end);
    *end = '\0';
    for (char *line = strtok_r(r.out, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
        char noun[24] = "", verb[24] = "";
        if (strncmp(line, "  ", 2) != 0 || sscanf(line, " %23s", noun) != 1)
            continue;
        const char *rest = line + 2 + strlen(noun);
        bool has_verb = rest[0] == ' ' && rest[1] != ' ' && sscanf(rest, " %23s", verb) == 1;
        assert_help(noun, has_verb ? verb : NULL);
        n++;
    }
    assert_true(n > 45);
    assert_help("enqueue", NULL);
    assert_help("work", NULL);
    assert_help("task", "list");
    assert_help("dlq", "inspect");
    assert_help("cron", "ls");
    assert_help("workflow", "show");
    RUN(&r, "help", "queue");
    assert_code(&r, 0);
    RUN(&r, "help", "queue", "purge");
    assert_code(&r, 0);
    assert_says(r.out, "Usage: lade queue purge");
    RUN(&r, "queue", "--help");
    assert_code(&r, 0);
    RUN(&r, "--help");
    assert_code(&r, 0);
    RUN(&r, "--version");
    assert_code(&r, 0);
    assert_says(r.out, "lade 0.");
    RUN(&r, "version", "--json");
    json_t *version = run_json(&r);
    (void)json_text_at(version, "version");
    json_decref(version);
    run_free(&r);
}

/* chronos 66 */
static void unknown_words_name_the_nearest(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "enqeue");
    assert_complains(&r, 2, "did you mean lade enqueue?");
    RUN(&r, "queue", "pausse");
    assert_complains(&r, 2, "did you mean pause?");
    RUN(&r, "queue", "fly");
    assert_complains(&r, 2, "give one of ls, show, pause");
    RUN(&r, "queue");
    assert_complains(&r, 2, "which verb?");
    RUN(&r, "xyzzy");
    assert_complains(&r, 2, "see lade help");
    RUN(&r, "help", "xyzzy");
    assert_complains(&r, 2, "unknown command");
    RUN(&r, "enqueue", "--kid", "a");
    assert_complains(&r, 2, "did you mean --kind?");
    RUN(&r, "enqueue", "--kind");
    assert_complains(&r, 2, "--kind: needs a value; give KIND");
    RUN(&r, "enqueue", "-k");
    assert_complains(&r, 2, "--kind: needs a value; give KIND");
    RUN(&r, "stats", "--json=5");
    assert_complains(&r, 2, "--json: takes no value");
    RUN(&r, "stats", "-Z");
    assert_complains(&r, 2, "-Z: unknown option");
    RUN(&r, "stats", "--\x1b[31m");
    assert_complains(&r, 2, "unknown option");
    assert_null(strchr(r.err, '\x1b'));
    RUN(&r, "stats", "-o", "xml");
    assert_complains(&r, 2, "--output: 'xml' is unknown; give table, json, ndjson or tsv");
    RUN(&r, "completion", "tcsh");
    assert_complains(&r, 2, "give bash, zsh or fish");
    RUN(&r, "queue", "ls", "extra");
    assert_complains(&r, 2, "too many arguments");
    run_free(&r);
}

static void dry_run_is_refused_where_it_would_be_ignored(void **state)
{
    (void)state;

    static const char *const cases[][5] = {
        {"work", "--exec", "true", "--dry-run"},
        {"queue", "pause", "q", "--dry-run"},
        {"queue", "resume", "q", "--dry-run"},
        {"queue", "ls", "--dry-run"},
        {"stats", "--dry-run"},
        {"doctor", "--dry-run"},
    };

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        run_args(&r, NULL, cases[i]);
        assert_complains(&r, 2, "--dry-run: not for this command");
    }
    run_free(&r);
}

static void a_namespace_for_a_file_is_said_to_be_without_effect(void **state)
{
    (void)state;
    static const char *const schemes[] = {"sqlite:", "file:"};
    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(schemes); i++) {
        char url[400];
        (void)snprintf(url, sizeof(url), "%s%s", schemes[i], file_path("one.db"));
        RUN(&r, "enqueue", "-k", "k", "-n", "a", "-u", url);
        assert_code(&r, 0);
        assert_says(r.err, "a file has one namespace");
    }
    run_free(&r);
}

static void small_complaints_say_what_is_true(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "stats", "--count", "3");
    assert_complains(&r, 2, "--count: only with --watch");
    RUN(&r, "enqueue", "-k", "k", "--timeout", "0");
    assert_complains(&r, 2, "give 1ms to 36525d");
    RUN(&r, "enqueue", "-k", "k", "--in", "200000d");
    assert_complains(&r, 2, "--in: 200000d is over the limit of 36525d");
    RUN(&r, "enqueue", "-k", "k", "--at", "+200000d");
    assert_complains(&r, 2, "--at: 200000d is over the limit of 36525d");
    RUN(&r, "enqueue", "-k", "k", "--in", "1h", "--at", "2030-01-01T00:00:00Z");
    assert_complains(&r, 2, "--in: not with --at");
    RUN(&r, "enqueue", "-k", "k", "--at", "2030-01-01T00:00:00Z", "--in", "1h");
    assert_complains(&r, 2, "--in: not with --at");
    RUN(&r, "enqueue", "-k", "k", "--in", "5s", "--at", "+5s");
    assert_complains(&r, 2, "--in: not with --at");
    RUN(&r, "enqueue", "-k", "k", "-H", "a b=c");
    assert_complains(&r, 2, "header 0 'a b'");
    RUN(&r, "enqueue", "-k", "k", "--payload-max", "65MiB");
    assert_complains(&r, 2, "--payload-max: '65MiB' is out of range; give 1 to 67108864");
    RUN(&r, "enqueue", "-k", "k", "--payload-max", "64MiB", "--payload", "@/dev/zero");
    assert_complains(&r, 2, "over 67108864 bytes, the most there can be");
    assert_null(strstr(r.err, "--payload-max"));
    RUN(&r, "enqueue", "-k", "k", "--payload-max", "2KiB", "--payload", "@/dev/zero");
    assert_complains(&r, 2, "over 2048 bytes; store big data elsewhere");
    RUN(&r, "doctor", "x");
    assert_complains(&r, 2, "lade: doctor: too many arguments");
    RUN_IN(&r, "12345678\n", 9, "enqueue", "-k", "k", "--lines", "-", "--payload-max", "4",
           "--quiet");
    assert_complains(&r, 2, "lade: stdin: line 1 is over 4 bytes");
    run_free(&r);
}

static void a_local_file_that_cannot_be_read_is_a_usage_error(void **state)
{
    (void)state;

    static const char *const cases[][3] = {
        {"--payload", "@/nonexistent/x", "/nonexistent/x: cannot be read"},
        {"--payload", "@/", "/: cannot be read: Is a directory"},
        {"--payload", "@", "no file is named"},
        {"--lines", "/nonexistent/x", "/nonexistent/x: cannot be read"},
        {"--lines", "/", "/: cannot be read: Is a directory"},
        {"--ndjson", "/nonexistent/x", "/nonexistent/x: cannot be read"},
        {"--ndjson", "", "no file is named"},
    };

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        RUN(&r, "enqueue", "-k", "k", cases[i][0], cases[i][1]);
        assert_complains(&r, 2, cases[i][2]);
    }
    run_free(&r);
}

/* C-096 (chasqui 59) */
static void every_numeric_option_refuses_what_is_no_number_or_does_not_fit(void **state)
{
    (void)state;
    static const char *const options[][3] = {
        {"enqueue", "k", "--priority"},    {"enqueue", "k", "--max-attempts"},
        {"enqueue", "k", "--payload-max"}, {"enqueue", "k", "--in"},
        {"enqueue", "k", "--timeout"},     {"enqueue", "k", "--unique-ttl"},
        {"work", "k", "--concurrency"},    {"work", "k", "--max-crashes"},
        {"work", "k", "--prefetch"},       {"work", "k", "--lease"},
        {"work", "k", "--sweep"},          {"work", "k", "--shutdown-timeout"},
    };
    static const char *const bad[] = {
        "",
        " ",
        "x",
        "-99",
        "2147483648",
        "4294967295",
        "4294967296",
        "9223372036854775808",
        "18446744073709551616",
        "1e9999",
        "0x10",
        "1 ",
        "1.5",
        "9999999999999999999999s",
    };

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(options); i++) {
        for (size_t k = 0; k < LB_ARRAY_LEN(bad); k++) {
            RUN(&r, options[i][0], "--kind", options[i][1], options[i][2], bad[k]);
            assert_complains(&r, 2, options[i][2]);
            assert_says(r.err, "give ");
        }
    }
    for (size_t k = 0; k < LB_ARRAY_LEN(bad); k++) {
        RUN(&r, "job", "ls", "--limit", bad[k]);
        assert_complains(&r, 2, "--limit");
        RUN(&r, "stats", "--watch", bad[k]);
        assert_complains(&r, 2, "--watch");
        RUN(&r, "stats", "--watch", "--count", bad[k]);
        assert_complains(&r, 2, "--count");
        RUN(&r, "enqueue", "--kind", "k", "--at", bad[k]);
        assert_complains(&r, 2, "--at");
        RUN(&r, "enqueue", "--kind", "k", "--backoff", bad[k]);
        assert_complains(&r, 2, "--backoff");
    }
    run_free(&r);
}

static void global_options_stand_before_and_after_the_command(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char url[300];
    (void)snprintf(url, sizeof(url), "sqlite:%s", file_path("other.db"));
    RUN(&r, "-u", url, "-o", "tsv", "enqueue", "--kind", "k", "--id", "a");
    assert_code(&r, 0);
    RUN(&r, "--url", url, "job", "ls", "-o", "tsv");
    assert_code(&r, 0);
    assert_says(r.out, "\na\t");
    RUN(&r, "job", "show", "a", "-u", url, "--json");
    assert_code(&r, 0);
    RUN(&r, "job", "ls", "-o", "ndjson");
    assert_code(&r, 0);
    assert_int_equal(r.n_out, 0);
    run_free(&r);
}

/* As lade_open: what REDIS_URL names is the data of another program. */
static void only_lade_url_names_a_store_and_redis_url_is_not_asked(void **state)
{
    (void)state;
    struct cli_run r = {0};
    (void)setenv("REDIS_URL", "foo:1", 1);
    RUN(&r, "stats", "--json");
    assert_code(&r, 0);
    (void)unsetenv("LADE_URL");
    (void)setenv("XDG_DATA_HOME", file_path("xdg"), 1);
    RUN(&r, "stats", "--json");
    assert_complains(&r, 3, "xdg/lade/jobs.db: no such file");
    assert_int_equal(access(file_path("xdg"), F_OK), -1);
    RUN(&r, "enqueue", "--kind", "k");
    assert_code(&r, 0);
    assert_int_equal(access(file_path("xdg/lade/jobs.db"), R_OK), 0);
    (void)unsetenv("XDG_DATA_HOME");
    (void)unsetenv("REDIS_URL");
    run_free(&r);
}

static void looking_makes_no_store(void **state)
{
    (void)state;

    static const char *const cases[][4] = {
        {"queue", "ls"},      {"queue", "pause", "q"}, {"job", "ls"},
        {"job", "show", "a"}, {"job", "kill", "a"},    {"dead", "redrive"},
        {"worker", "ls"},     {"flow", "ls"},          {"stats"},
        {"doctor"},
    };

    struct cli_run r = {0};
    char url[300];
    (void)snprintf(url, sizeof(url), "sqlite:%s", file_path("typo.db"));
    (void)setenv("LADE_URL", url, 1);
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        run_args(&r, NULL, cases[i]);
        assert_complains(&r, 3, "typo.db: no such file");
    }
    assert_int_equal(access(file_path("typo.db"), F_OK), -1);
    RUN(&r, "enqueue", "-k", "k");
    assert_code(&r, 0);
    RUN(&r, "queue", "ls");
    assert_code(&r, 0);
    run_free(&r);
}

static void a_home_that_is_not_there_is_named_and_not_made(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char home[300];
    char before[300];
    const char *was = getenv("HOME");
    (void)snprintf(before, sizeof(before), "%s", was ? was : "");
    (void)snprintf(home, sizeof(home), "%s", file_path("nobody"));
    (void)unsetenv("LADE_URL");
    (void)setenv("HOME", home, 1);
    RUN(&r, "enqueue", "-k", "k");
    int code = r.code;
    bool is_made = access(home, F_OK) == 0;
    assert_int_equal(mkdir(home, 0700), 0);
    RUN(&r, "enqueue", "-k", "k", "-p", "with a home");
    if (was)
        (void)setenv("HOME", before, 1);
    assert_code(&r, 0);
    assert_int_equal(code, 2);
    assert_false(is_made);
    assert_int_equal(access(file_path("nobody/.local/share/lade/jobs.db"), F_OK), 0);
    run_free(&r);
}

/* Nothing is done whose result could not be told. */
static void a_closed_or_full_stdout_is_told_with_what_was_done(void **state)
{
    (void)state;
    char command[500];
    struct cli_run r = {0};
    (void)snprintf(command, sizeof(command), "%s enqueue -k k --id a >&- 2> %s", lade_bin(),
                   file_path("err"));
    int status = system(command);
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_says(file_text("err"), "stdout: closed; nothing was done");
    assert_string_equal(state_of("a"), "gone");
    (void)snprintf(command, sizeof(command), "%s enqueue -k k --id b > /dev/full 2> %s", lade_bin(),
                   file_path("err"));
    status = system(command);
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_says(file_text("err"), "the job was enqueued: b");
    assert_string_equal(state_of("b"), "ready");
    run_free(&r);
}

static void urls_that_cannot_be_used_are_told_with_their_reason(void **state)
{
    (void)state;

    static const struct {
        const char *url;
        int code;
    } cases[] = {
        {"foo:bar", 2},
        {"nonsense", 2},
        {"sqlite:", 2},
        {"redis://127.0.0.1:notaport", 2},
        {"redis://127.0.0.1:99999", 2},
        {"redis://127.0.0.1:1", 5}, /* nobody listens there */
        {"unix:///nonexistent/redis.sock", 5},
        {"sqlite:/nonexistent/dir/jobs.db", 5},
        {"sqlite:/", 2},
    };

    struct cli_run r = {0};
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        RUN(&r, "enqueue", "--kind", "k", "-u", cases[i].url);
        assert_complains(&r, cases[i].code, "");
    }
    RUN(&r, "stats", "-u", "foo:bar");
    assert_complains(&r, 2, "foo");
    run_free(&r);
}

static void a_wrong_password_is_told_and_exits_5(void **state)
{
    (void)state;
    struct ts_redis server = {0};
    struct cli_run r = {0};
    char url[200];
    assert_true(ts_redis_start(&server, &(struct ts_redis_opts){.password = "right", .tcp = true}));
    (void)snprintf(url, sizeof(url), "redis://:wrong@127.0.0.1:%d", server.port);
    RUN(&r, "stats", "-u", url);
    int wrong = r.code;
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", server.port);
    RUN(&r, "stats", "-u", url);
    int none = r.code;
    (void)snprintf(url, sizeof(url), "redis://:right@127.0.0.1:%d", server.port);
    RUN(&r, "enqueue", "--kind", "k", "-u", url);
    ts_redis_stop(&server);
    assert_int_equal(wrong, 5);
    assert_int_equal(none, 5);
    assert_code(&r, 0);
    run_free(&r);
}

static void a_file_that_is_no_database_or_too_new_is_told_and_left_alone(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char url[300];
    char before[64];
    write_file("text", "this is a text, not a database, and long enough to be read as one", 65);
    (void)snprintf(url, sizeof(url), "sqlite:%s", file_path("text"));
    RUN(&r, "enqueue", "--kind", "k", "-u", url);
    assert_complains(&r, 5, "text");
    assert_says(file_text("text"), "this is a text");

    /* user_version lies at byte 60 of the header; lade keeps its schema version there. */
    (void)snprintf(url, sizeof(url), "sqlite:%s", file_path("new.db"));
    RUN(&r, "enqueue", "--kind", "k", "-u", url);
    assert_code(&r, 0);
    FILE *f = fopen(file_path("new.db"), "r+e");
    assert_non_null(f);
    assert_int_equal(fread(before, 1, sizeof(before), f), sizeof(before));
    assert_int_equal(fseek(f, 60, SEEK_SET), 0);
    assert_int_equal(fwrite("\x7f\x00\x00\x00", 1, 4, f), 4);
    assert_int_equal(fclose(f), 0);
    RUN(&r, "stats", "-u", url);
    assert_complains(&r, 5, "newer");
    run_free(&r);
}

static void a_read_only_directory_is_told_and_exits_5(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char url[300];
    char dir[256];
    (void)snprintf(dir, sizeof(dir), "%s", file_path("ro"));
    (void)snprintf(url, sizeof(url), "sqlite:%s/jobs.db", dir);
    assert_int_equal(mkdir(dir, 0555), 0);
    assert_int_equal(chmod(file_path(""), 0755), 0);
    run_args(&r, &(struct cli_run_with){.as_nobody = true},
             (const char *const[]){"enqueue", "--kind", "k", "-u", url, NULL});
    assert_complains(&r, 5, "cannot be written");
    run_free(&r);
}

static void completion_is_a_script_that_bash_can_read(void **state)
{
    (void)state;
    struct cli_run r = {0};
    RUN(&r, "completion", "bash");
    assert_code(&r, 0);
    assert_says(r.out, "complete -o default -F _lade lade");
    write_file("completion", r.out, r.n_out);
    char command[400];
    (void)snprintf(command, sizeof(command), "bash -n %s", file_path("completion"));
    assert_int_equal(system(command), 0);
    run_free(&r);
}

/* Asks bash itself: what it offers behind each line is what the tables say. */
static void completion_offers_what_stands_at_that_place(void **state)
{
    (void)state;

    static const struct {
        const char *line; /* the words so far, the last is what is being typed */
        const char *offers;
    } cases[] = {
        {"lade jo", "job"},
        {"lade job s", "show"},
        {"lade task k", "kill"},
        {"lade dlq re", "redrive"},
        {"lade job tr", "trace"},
        {"lade to", "top"},
        {"lade exp", "export"},
        {"lade export --state ret", "retrying"},
        {"lade import --sk", "--skip-bad"},
        {"lade top --int", "--interval"},
        {"lade dash --on", "--once"},
        {"lade top --sort fai", "failed"},
        {"lade worker st", "stop stacks"},
        {"lade worker quiet --wa", "--wait"},
        {"lade worker show --qu", "--quiet"},
        {"lade job trace --no-e", "--no-events"},
        {"lade cron pre", "preview"},
        {"lade queue ls --sort la", "latency"},
        {"lade repeatable pau", "pause"},
        {"lade -u redis://x --json queue pu", "purge"},
        {"lade job ls --st", "--state"},
        {"lade job ls --state de", "dead"},
        {"lade job list --state=x --l", "--limit"},
        {"lade job ls -o n", "ndjson"},
        {"lade queue ls --y", ""}, /* asks for nothing */
        {"lade queue purge --y", "--yes"},
        {"lade queue ls --kin", ""},
        {"lade enqueue --kin", "--kind"},
        {"lade work --ex", "--exec --executor"},
        {"lade completion z", "zsh"},
        {"lade version --u", ""}, /* opens no store */
        {"lade job ls --limit ", ""},
    };

    struct cli_run r = {0};
    RUN(&r, "completion", "bash");
    write_file("completion", r.out, r.n_out);
    for (size_t i = 0; i < LB_ARRAY_LEN(cases); i++) {
        char command[1200], script[256];
        (void)snprintf(script, sizeof(script), "%s", file_path("completion"));
        (void)snprintf(
            command, sizeof(command),
            "bash --norc -c '. %s; read -ra COMP_WORDS <<< \"$1\"; case $1 in *\" \") COMP_WORDS+=(\"\");; esac; "
            "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _lade; echo \"${COMPREPLY[*]}\"' x '%s' > %s",
            script, cases[i].line, file_path("offers"));
        assert_int_equal(system(command), 0);
        char offers[400];
        (void)snprintf(offers, sizeof(offers), "%s\n", cases[i].offers);
        if (strcmp(file_text("offers"), offers) != 0)
            print_message("%s\n", cases[i].line);
        assert_string_equal(file_text("offers"), offers);
    }
    for (int i = 0; i < 2; i++) {
        RUN(&r, "completion", i ? "zsh" : "fish");
        assert_code(&r, 0);
        assert_says(r.out, "redrive");
        assert_says(r.out, i ? "compdef _lade lade"
                             : "complete -c lade -n '__lade_is queue purge' -l yes");
    }
    run_free(&r);
}

static void a_full_stdout_is_an_error(void **state)
{
    (void)state;
    char command[400];
    (void)snprintf(command, sizeof(command), "%s help > /dev/full 2> %s", lade_bin(),
                   file_path("err"));
    int status = system(command);
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_says(file_text("err"), "stdout: cannot be written");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_STORE(every_command_has_help_with_an_example),
        ON_STORE(unknown_words_name_the_nearest),
        ON_STORE(dry_run_is_refused_where_it_would_be_ignored),
        ON_STORE(small_complaints_say_what_is_true),
        ON_STORE(a_namespace_for_a_file_is_said_to_be_without_effect),
        ON_STORE(a_local_file_that_cannot_be_read_is_a_usage_error),
        ON_STORE(every_numeric_option_refuses_what_is_no_number_or_does_not_fit),
        ON_STORE(global_options_stand_before_and_after_the_command),
        ON_STORE(only_lade_url_names_a_store_and_redis_url_is_not_asked),
        ON_STORE(looking_makes_no_store),
        ON_STORE(a_home_that_is_not_there_is_named_and_not_made),
        ON_STORE(a_closed_or_full_stdout_is_told_with_what_was_done),
        ON_STORE(urls_that_cannot_be_used_are_told_with_their_reason),
        ON_STORE(a_wrong_password_is_told_and_exits_5),
        ON_STORE(a_file_that_is_no_database_or_too_new_is_told_and_left_alone),
        ON_STORE(a_read_only_directory_is_told_and_exits_5),
        ON_STORE(completion_is_a_script_that_bash_can_read),
        ON_STORE(completion_offers_what_stands_at_that_place),
        ON_STORE(a_full_stdout_is_an_error),
    };
    return run_group(argc, argv, "usage", tests, LB_ARRAY_LEN(tests));
}
