#include "bench/server.h"

#include <lade/base.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/child.h"

#define IDLE_WAIT (20 * LADE_SECOND)

/* "Redis server v=7.0.15 sha=..." and the same of Valkey. */
static bool read_version(struct bn_program *p)
{
    struct bn_child c = {.argv = (const char *[]){p->path, "--version", NULL},
                         .deadline_ns = 10 * LADE_SECOND};
    struct bn_child_end end;
    bool good = bn_child_run(&c, &end) && end.code == 0;
    const char *v = good ? strstr(end.out, "v=") : NULL;
    if (v) {
        (void)snprintf(p->name, sizeof(p->name), "%.*s", (int)strcspn(end.out, " "), end.out);
        (void)snprintf(p->version, sizeof(p->version), "%.*s", (int)strcspn(v + 2, " \n"), v + 2);
    }
    bn_child_free(&end);
    return v != NULL;
}

static size_t add_program(struct bn_program *out, size_t n, const char *path)
{
    if (!path || !*path || n == BN_SERVERS_MAX || strlen(path) >= sizeof(out[n].path))
        return n;
    (void)snprintf(out[n].path, sizeof(out[n].path), "%s", path);
    return n + read_version(&out[n]);
}

size_t bn_server_programs(const char *peers_dir, struct bn_program out[BN_SERVERS_MAX])
{
    char pattern[600];
    glob_t found;
    size_t n = add_program(out, 0, getenv("LADE_BENCH_REDIS"));
    n = add_program(out, n, "redis-server");
    (void)snprintf(pattern, sizeof(pattern), "%s/servers/*/redis-server", peers_dir);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            n = add_program(out, n, found.gl_pathv[i]);
        globfree(&found);
    }
    return n;
}

int bn_version_compare(const char *a, const char *b)
{
    while (*a || *b) {
        char *ea = NULL;
        char *eb = NULL;
        unsigned long x = strtoul(a, &ea, 10);
        unsigned long y = strtoul(b, &eb, 10);
        if (x != y)
            return x < y ? -1 : 1;
        a = *ea == '.' ? ea + 1 : "";
        b = *eb == '.' ? eb + 1 : "";
    }
    return 0;
}

static bool have_same_args(const struct bn_server *s, const char *const *args)
{
    size_t i = 0;
    for (; s->args[i] && args && args[i]; i++) {
        if (strcmp(s->args[i], args[i]) != 0)
            return false;
    }
    return !s->args[i] && (!args || !args[i]);
}

static bool start(struct bn_server *s, const char *const *args, char *why, size_t size)
{
    size_t n = 0;
    for (; args && args[n] && n < BN_SERVER_ARGS_MAX; n++)
        s->args[n] = args[n];
    s->args[n] = NULL;
    struct ts_redis_opts opts = {.program = s->program->path, .tcp = s->tcp, .args = s->args};
    if (!ts_redis_start(&s->redis, &opts)) {
        (void)snprintf(why, size, "%s %s did not start", s->program->name, s->program->version);
        return false;
    }
    s->is_up = true;
    if (s->tcp)
        (void)snprintf(s->url, sizeof(s->url), "redis://127.0.0.1:%d", s->redis.port);
    else
        (void)snprintf(s->url, sizeof(s->url), "%s", s->redis.url);
    if (!bn_info_open(&s->info, s->url)) {
        (void)snprintf(why, size, "the server at %s does not answer", s->url);
        return false;
    }
    return true;
}

/* Ours is the last connection, no rewrite of the log runs, and it uses less than a quarter of a CPU. */
static bool is_idle(struct bn_server *s)
{
    const char *text = bn_info_ask(&s->info, "INFO clients");
    if (!text || bn_info_field(text, "connected_clients") > 1)
        return false;
    text = bn_info_ask(&s->info, "INFO persistence");
    if (!text || bn_info_field(text, "aof_rewrite_in_progress") > 0 ||
        bn_info_field(text, "aof_rewrite_scheduled") > 0)
        return false;
    struct bn_usage a;
    struct bn_usage b;
    int64_t began = lb_clock_mono();
    bool good = bn_info_usage(&s->info, &a);
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    good = good && bn_info_usage(&s->info, &b);
    return good && (b.cpu_s - a.cpu_s) * 1e9 < (double)(lb_clock_mono() - began) / 4;
}

bool bn_server_ensure(struct bn_server *s, const char *const *args, char *why, size_t size)
{
    if (!s->program) {
        (void)snprintf(why, size, "no redis-server in the PATH");
        return false;
    }
    if (s->is_up && !have_same_args(s, args))
        bn_server_stop(s);
    /* A run may have left it dead, or in a command that does not end: the next one gets a new server. */
    if (s->is_up && !bn_info_ask(&s->info, "FLUSHALL"))
        bn_server_stop(s);
    if (!s->is_up && !start(s, args, why, size))
        return false;
    int64_t deadline = lb_deadline_in(IDLE_WAIT);
    while (!is_idle(s) && lb_clock_mono() < deadline)
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return true;
}

bool bn_server_fresh_file(struct bn_server *s, char *url, size_t size)
{
    bn_server_drop_file(s);
    if (!ts_tmpdir_make(&s->files))
        return false;
    (void)snprintf(url, size, "sqlite:%s/bench.db", s->files.path);
    return true;
}

void bn_server_drop_file(struct bn_server *s)
{
    ts_tmpdir_remove(&s->files);
}

void bn_server_stop(struct bn_server *s)
{
    if (s->is_up) {
        bn_info_close(&s->info);
        ts_redis_stop(&s->redis);
    }
    s->is_up = false;
    bn_server_drop_file(s);
}
