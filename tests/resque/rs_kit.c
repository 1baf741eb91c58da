/* rs_kit.c - see rs_kit.h */
#include "resque/rs_kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

const char *url_with(const char *tail)
{
    static char url[220];
    (void)snprintf(url, sizeof(url), "resque+unix://%s%s", kit_redis.socket, tail);
    return url;
}

const char *path_in_dir(const char *name)
{
    static char path[200];
    (void)snprintf(path, sizeof(path), "%s/%s", kit_dir(), name);
    return path;
}

void enqueue_at(const char *url, const char *kind, const char *payload)
{
    struct cli_run r = {0};
    RUN(&r, "enqueue", "-u", url, "--kind", kind, "--payload", payload);
    assert_code(&r, 0);
    run_free(&r);
}

void enqueue_job(const char *kind, const char *payload)
{
    enqueue_at(url_with(""), kind, payload);
}

void drain_at(const char *url, const char *kind, const char *command)
{
    struct cli_run r = {0};
    RUN(&r, "work", "-u", url, "--drain", "--kind", kind, "--exec", command, "-c", "2");
    assert_code(&r, 0);
    run_free(&r);
}

void start_worker(struct ts_proc *p, const char *url, const char *slots, const char *command,
                  const char *const *env)
{
    char log[200];
    (void)snprintf(log, sizeof(log), "%s", path_in_dir("worker.log"));
    const char *argv[] = {lade_bin(), "work",    "-u",     url,      "-c",    slots,    "--lease",
                          "2s",       "--sweep", "100ms",  "--kind", "Sleep", "--exec", command,
                          "--kind",   "Ok",      "--exec", "true",   NULL};
    assert_true(ts_proc_start(p, argv, env, log));
}

int end_worker(struct ts_proc *p)
{
    ts_proc_signal(p, SIGTERM);
    assert_true(ts_proc_wait(p, WAIT));
    return ts_proc_code(p);
}

void assert_reply(const char *line, const char *wanted)
{
    const char *reply = ask(line);
    if (!strstr(reply, wanted))
        fail_msg("%s -> %s, without %s", line, reply, wanted);
}

void assert_file(const char *name, const char *wanted)
{
    char text[4096] = "";
    FILE *f = fopen(path_in_dir(name), "r");
    if (f) {
        text[fread(text, 1, sizeof(text) - 1, f)] = 0;
        (void)fclose(f);
    }
    assert_string_equal(text, wanted);
}

void touch(const char *name)
{
    FILE *f = fopen(path_in_dir(name), "w");
    assert_non_null(f);
    (void)fclose(f);
}

size_t lines_of(const char *name)
{
    size_t n = 0;
    FILE *f = fopen(path_in_dir(name), "r");
    for (int c; f && (c = fgetc(f)) != EOF;)
        n += c == '\n';
    if (f)
        (void)fclose(f);
    return n;
}

int64_t calls_of(const char *command)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
    const char *at = strstr(ask("INFO commandstats"), name);
    return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}
