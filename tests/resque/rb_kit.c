/* rb_kit.c - see rb_kit.h */
#include "resque/rb_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "support/cert.h"

#define WAIT (INT64_C(60) * 1000 * 1000 * 1000)

struct ts_redis kit_redis;
static struct ts_tmpdir dir;
static struct ts_proc monitor;

const char *kit_dir(void)
{
    return dir.path;
}

static char *path_of(const char *name)
{
    static char path[160];
    return ts_tmpdir_path(&dir, name, path, sizeof(path));
}

static const char *read_file(const char *path)
{
    static char *text;
    free(text);
    text = NULL;
    FILE *f = fopen(path, "r");
    size_t n = 0;
    size_t cap = 0;
    while (f) {
        if (n + 1 >= cap) {
            cap = cap ? 2 * cap : 65536;
            text = realloc(text, cap);
            assert_non_null(text);
        }
        size_t got = fread(text + n, 1, cap - n - 1, f);
        n += got;
        text[n] = 0;
        if (got == 0)
            break;
    }
    if (f)
        (void)fclose(f);
    return text ? text : "";
}

static int set_up(void **state)
{
    (void)state;
    const struct ts_redis_opts opts = {.tcp = true};
    if (!ts_tmpdir_make(&dir) || !ts_redis_start(&kit_redis, &opts))
        return -1;
    char url[200]; /* the database that ask() looks at */
    (void)snprintf(url, sizeof(url), "%s?db=0", kit_redis.url);
    return setenv("REDIS_URL", url, 1);
}

static int tear_down(void **state)
{
    (void)state;
    ts_proc_kill_all();
    ts_redis_stop(&kit_redis);
    ts_tmpdir_remove(&dir);
    return 0;
}

int kit_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n)
{
    struct CMUnitTest own[32];
    if (argc < 2 || n > LB_ARRAY_LEN(own)) {
        (void)fprintf(stderr, "usage: %s path-of-resque-bench\n", argv[0]);
        return 2;
    }
    (void)setenv("LADE_BIN", argv[1], 1);
    (void)unsetenv("REDIS_PASSWORD");
    (void)unsetenv("REDIS_TLS");
    for (size_t i = 0; i < n; i++) {
        own[i] = tests[i];
        own[i].setup_func = set_up;
        own[i].teardown_func = tear_down;
    }
    return _cmocka_run_group_tests(name, own, n, NULL, NULL);
}

static void join(const char **out, size_t room, const char *const *first, const char *const *args)
{
    size_t n = 0;
    for (; *first; first++)
        out[n++] = *first;
    for (; *args && n + 1 < room; args++)
        out[n++] = *args;
    out[n] = NULL;
}

void kit_start_tls(char cert[200], char key[200])
{
    (void)snprintf(cert, 200, "%s/cert.pem", kit_dir());
    (void)snprintf(key, 200, "%s/key.pem", kit_dir());
    assert_true(ts_cert_make(cert, key, path_of("openssl")));
    ts_redis_stop(&kit_redis);
    const char *const args[] = {"--tls-cert-file",
                                cert,
                                "--tls-key-file",
                                key,
                                "--tls-ca-cert-file",
                                cert,
                                "--tls-auth-clients",
                                "yes",
                                NULL};
    const struct ts_redis_opts opts = {.tls = true, .args = args};
    assert_true(ts_redis_start(&kit_redis, &opts));
}

json_t *kit_bench(struct cli_run *r, int code, const char *const *args)
{
    const char *all[60];
    join(all, LB_ARRAY_LEN(all), (const char *const[]){"--output", "-", NULL}, args);
    run_args(r, NULL, all);
    assert_code(r, code);
    return r->n_out > 0 ? run_json(r) : NULL;
}

void kit_start(struct ts_proc *p, const char *const *args)
{
    char json[160];
    (void)snprintf(json, sizeof(json), "%s/out.json", dir.path);
    const char *all[60];
    join(all, LB_ARRAY_LEN(all), (const char *const[]){lade_bin(), "--output", json, NULL}, args);
    assert_true(ts_proc_start(p, all, NULL, path_of("log")));
}

json_t *kit_json(void)
{
    json_error_t e;
    json_t *o = json_load_file(path_of("out.json"), JSON_REJECT_DUPLICATES, &e);
    if (!o)
        fail_msg("no JSON: %s", e.text);
    return o;
}

const char *kit_log(void)
{
    return read_file(path_of("log"));
}

json_t *result_of(const json_t *document, size_t i)
{
    json_t *r = json_array_get(json_object_get(document, "results"), i);
    assert_non_null(r);
    return r;
}

const json_t *at_path(const json_t *o, const char *path)
{
    char name[64];
    while (o && *path) {
        size_t n = strcspn(path, ".");
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, path);
        o = json_object_get(o, name);
        path += n + (path[n] == '.');
    }
    return o;
}

int64_t int_in(const json_t *o, const char *path)
{
    const json_t *v = at_path(o, path);
    if (!json_is_integer(v))
        fail_msg("%s is no integer", path);
    return json_integer_value(v);
}

double real_in(const json_t *o, const char *path)
{
    const json_t *v = at_path(o, path);
    if (!json_is_real(v))
        fail_msg("%s is no float", path);
    return json_real_value(v);
}

bool true_in(const json_t *o, const char *path)
{
    const json_t *v = at_path(o, path);
    if (!json_is_boolean(v))
        fail_msg("%s is no boolean", path);
    return json_is_true(v);
}

const char *ask(const char *line)
{
    static char reply[16384];
    assert_true(ts_redis_ask(&kit_redis, line, reply, sizeof(reply)));
    return reply;
}

int64_t ask_int(const char *line)
{
    const char *reply = ask(line);
    if (reply[0] != ':')
        fail_msg("%s -> %s", line, reply);
    return strtoll(reply + 1, NULL, 10);
}

void monitor_start(void)
{
    (void)unlink(path_of("monitor"));
    assert_true(ts_proc_start(
        &monitor, (const char *const[]){"redis-cli", "-s", kit_redis.socket, "MONITOR", NULL}, NULL,
        path_of("monitor")));
    assert_true(TS_UNTIL(WAIT, strstr(read_file(path_of("monitor")), "OK") != NULL));
}

const char *monitor_stop(void)
{
    /* What the server did before this line it has told before it. */
    assert_true(
        TS_UNTIL(WAIT, (ask("ECHO the-end"), strstr(read_file(path_of("monitor")), "the-end"))));
    ts_proc_kill(&monitor);
    return read_file(path_of("monitor"));
}

size_t count_of(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = strstr(text, what); p; p = strstr(p + 1, what))
        n++;
    return n;
}
