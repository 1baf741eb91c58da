/* What resque-bench does not touch, and what it refuses. */
#include "resque/rb_kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"

#define QUICK "--workers", "2", "--jobs", "20", "--no-idle"

/* resque B27 */
static void keys_of_others_survive(void **state)
{
    (void)state;
    struct cli_run r = {0};
    (void)ask("SET resque:stat:processed 41");
    (void)ask("RPUSH resque:queue:default job");
    (void)ask("SADD resque:queues default");
    (void)ask("SET other x");
    char before[512];
    (void)snprintf(before, sizeof(before), "%s", ask("DBSIZE"));
    static const char *const mode[] = {"poll", "blpop", "blmove", "native"};
    for (size_t i = 0; i < LB_ARRAY_LEN(mode); i++) {
        json_t *d = BENCH(&r, 0, QUICK, "--modes", mode[i], "--poll-profile", "resque");
        assert_string_equal(ask("DBSIZE"), before);
        json_decref(d);
    }
    assert_string_equal(ask("GET resque:stat:processed"), "$2\r\n41\r\n");
    assert_string_equal(ask("SMEMBERS resque:queues"), "*1\r\n$7\r\ndefault\r\n");
    assert_int_equal(ask_int("LLEN resque:queue:default"), 1);
    run_free(&r);
}

/* resque B27: the queue that is not named is this run's own. */
static void the_default_queue_is_nobody_elses(void **state)
{
    (void)state;
    struct cli_run r = {0};
    json_t *d = BENCH(&r, 0, QUICK);
    const char *queue = json_string_value(json_array_get(at_path(d, "config.queues"), 0));
    assert_int_equal(strncmp(queue, "bench:", 6), 0);
    assert_true(strtol(queue + 6, NULL, 10) > 1);
    assert_int_equal(ask_int("SCARD resque:queues"), 0);
    json_decref(d);
    run_free(&r);
}

/* resque B27 */
static void a_queue_with_jobs_is_left_alone(void **state)
{
    (void)state;
    struct cli_run r = {0};
    (void)ask("RPUSH resque:queue:default one two");
    RUN(&r, QUICK, "--queue", "default", "--output", "-");
    assert_code(&r, 1);
    assert_says(r.err, "holds 2 jobs already");
    assert_says(r.err, "--force");
    assert_int_equal(ask_int("DBSIZE"), 1);
    json_t *d = BENCH(&r, 0, QUICK, "--queue", "default", "--force");
    assert_int_equal(int_in(result_of(d, 0), "total_jobs"), 20);
    assert_string_equal(ask("LRANGE resque:queue:default 0 -1"),
                        "*2\r\n$3\r\none\r\n$3\r\ntwo\r\n");
    json_decref(d);
    run_free(&r);
}

/* resque B27 */
static void a_queue_with_a_worker_is_left_alone(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char *const id[] = {"vm:17:high,q", "vm:17:*"};
    for (size_t i = 0; i < LB_ARRAY_LEN(id); i++) {
        char line[80];
        (void)snprintf(line, sizeof(line), "SADD resque:workers %s", id[i]);
        (void)ask(line);
        RUN(&r, QUICK, "--queue", "q", "--output", "-");
        assert_code(&r, 1);
        assert_says(r.err, id[i]);
        json_t *d = BENCH(&r, 0, QUICK, "--queue", "q", "--force");
        assert_says(r.err, "Warning: the worker");
        json_decref(d);
        (void)ask("DEL resque:workers");
    }
    (void)ask("SADD resque:workers vm:17:another abc");
    json_t *d = BENCH(&r, 0, QUICK, "--queue", "q");
    json_decref(d);
    run_free(&r);
}

/* resque B28 */
static void flushdb_needs_a_flag_and_often_two(void **state)
{
    (void)state;
    struct cli_run r = {0};
    (void)ask("SET precious x");
    char db5[200];
    (void)snprintf(db5, sizeof(db5), "%s?db=5", kit_redis.url);
    RUN(&r, QUICK, "--allow-flushdb", "--output", "-");
    assert_code(&r, 1);
    assert_says(r.err, "--yes-destroy");
    assert_int_equal(ask_int("DBSIZE"), 1);
    monitor_start();
    json_t *d = BENCH(&r, 0, QUICK);
    json_decref(d);
    assert_null(strstr(monitor_stop(), "FLUSH"));
    /* an empty database that is not 0: one flag will do */
    monitor_start();
    d = BENCH(&r, 0, QUICK, "--url", db5, "--allow-flushdb");
    json_decref(d);
    assert_int_equal(count_of(monitor_stop(), "\"FLUSHDB\""), 1);
    assert_says(r.err, "Warning: FLUSHDB");
    assert_int_equal(ask_int("DBSIZE"), 1);
    (void)setenv("RESQUE_BENCH_ALLOW_FLUSHDB", "true", 1);
    d = BENCH(&r, 0, QUICK, "--yes-destroy");
    json_decref(d);
    (void)unsetenv("RESQUE_BENCH_ALLOW_FLUSHDB");
    assert_int_equal(ask_int("DBSIZE"), 0);
    run_free(&r);
}

/* resque B29: clients. */
static void too_few_clients_are_told_before_anything_is_put(void **state)
{
    (void)state;
    struct cli_run r = {0};
    (void)ask("CONFIG SET maxclients 20");
    RUN(&r, "--workers", "10,50", "--jobs", "10", "--output", "-");
    assert_code(&r, 1);
    assert_says(r.err, "maxclients");
    assert_int_equal(ask_int("DBSIZE"), 0);
    assert_null(strstr(ask("INFO commandstats"), "rpush"));
    run_free(&r);
}

/* resque B5: what a URL must encode goes through flags, environment and file as it is. */
static void a_password_of_any_characters_opens_the_door(void **state)
{
    (void)state;
    struct cli_run r = {0};
    static const char secret[] = "p@ss/w:o%rd";
    char url[64];
    char path[200];
    char encoded[200];
    assert_string_equal(ask("CONFIG SET requirepass p@ss/w:o%rd"), "+OK\r\n");
    kit_redis.opts.password = secret;
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d/0", kit_redis.port);
    (void)snprintf(encoded, sizeof(encoded), "redis://:p%%40ss%%2Fw%%3Ao%%25rd@127.0.0.1:%d/0",
                   kit_redis.port);
    (void)snprintf(path, sizeof(path), "%s/secret", kit_dir());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f, "%s\n", secret);
    (void)fclose(f);
    RUN(&r, QUICK, "--url", url, "--output", "-");
    assert_code(&r, 1);
    (void)setenv("REDIS_PASSWORD", secret, 1);
    for (int i = 0; i < 4; i++) {
        json_t *d = i == 0   ? BENCH(&r, 0, QUICK, "--url", url)
                    : i == 1 ? BENCH(&r, 0, QUICK, "--url", url, "--password", secret)
                    : i == 2 ? BENCH(&r, 0, QUICK, "--url", url, "--password-file", path)
                             : BENCH(&r, 0, QUICK, "--url", encoded, "--modes", "poll,native");
        (void)unsetenv("REDIS_PASSWORD");
        assert_null(strstr(r.out, "ss/w"));
        assert_null(strstr(r.err, "ss/w"));
        assert_null(strstr(r.out, "p%40"));
        assert_non_null(strstr(r.out, ":****@127.0.0.1"));
        json_decref(d);
    }
    run_free(&r);
}

/* resque B5: while it runs, ps shows stars. */
static void ps_does_not_show_the_password(void **state)
{
    (void)state;
    struct ts_proc p;
    char url[64];
    assert_string_equal(ask("CONFIG SET requirepass hunter2"), "+OK\r\n");
    kit_redis.opts.password = "hunter2";
    (void)snprintf(url, sizeof(url), "redis://x:hunter2@127.0.0.1:%d/0", kit_redis.port);
    (void)ask("ACL SETUSER x on >hunter2 ~* +@all");
    BENCH_START(&p, "--workers", "1", "--jobs", "5", "--idle-poll-duration-s", "600", "--url", url,
                "--password", "hunter2");
    assert_true(TS_UNTIL(INT64_C(60) * 1000000000, strstr(kit_log(), "workers] .") != NULL));
    char path[64];
    char line[4096];
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)p.pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(line, 1, sizeof(line), f);
    (void)fclose(f);
    assert_true(n > 0);
    assert_null(memmem(line, n, "hunter2", 7));
    assert_non_null(memmem(line, n, "*******", 7));
    ts_proc_kill(&p);
}

/* resque B30: with a client certificate too, which the server asks for. */
static void tls_is_checked_unless_told_otherwise(void **state)
{
    (void)state;
    struct cli_run r = {0};
    char cert[200];
    char key[200];
    char url[64];
    kit_start_tls(cert, key);
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d/0", kit_redis.tls_port);
    RUN(&r, QUICK, "--url", url, "--tls", "--tls-cert", cert, "--tls-key", key, "--output", "-");
    assert_code(&r, 1);
    assert_says(r.err, "not trusted");
    json_t *d = BENCH(&r, 0, QUICK, "--url", url, "--tls", "--tls-ca", cert, "--tls-cert", cert,
                      "--tls-key", key);
    assert_int_equal(int_in(result_of(d, 0), "total_jobs"), 20);
    assert_non_null(strstr(json_text_at(json_object_get(d, "config"), "url"), "rediss://"));
    json_decref(d);
    d = BENCH(&r, 0, QUICK, "--url", url, "--tls", "--tls-insecure", "--tls-cert", cert,
              "--tls-key", key, "--modes", "poll,native");
    assert_says(r.err, "Warning: the server's certificate is not checked");
    json_decref(d);
    RUN(&r, QUICK, "--url", url, "--tls", "--tls-ca", cert, "--output",
        "-"); /* without the client's certificate */
    assert_code(&r, 1);
    RUN(&r, QUICK, "--url", url, "--tls-insecure", "--output", "-");
    assert_code(&r, 1);
    assert_says(r.err, "--tls");
    run_free(&r);
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&a, n), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    (void)close(fd);
    return ntohs(a.sin_port);
}

/* A node; the port of the cluster's own traffic would else be 10,000 more, which may be too high. */
static void start_node(struct ts_redis *r, char bus[8], const char *slots)
{
    char line[64];
    char reply[64];
    (void)snprintf(bus, 8, "%d", free_port());
    const char *const args[] = {"--cluster-enabled", "yes", "--cluster-port", bus, NULL};
    const struct ts_redis_opts opts = {.tcp = true, .args = args};
    assert_true(ts_redis_start(r, &opts));
    (void)snprintf(line, sizeof(line), "CLUSTER ADDSLOTSRANGE %s", slots);
    assert_true(ts_redis_ask(r, line, reply, sizeof(reply)));
    assert_string_equal(reply, "+OK\r\n");
}

static bool is_whole(const struct ts_redis *r)
{
    char info[512];
    return ts_redis_ask(r, "CLUSTER INFO", info, sizeof(info)) &&
           strstr(info, "cluster_state:ok") && strstr(info, "cluster_known_nodes:2");
}

/* Two nodes with half of the slots each; "{a}" and "{b}" lie in different halves (15495 and 3300). */
static void a_cluster_is_entered_where_the_keys_are(void **state)
{
    (void)state;
    struct cli_run r = {0};
    struct ts_redis other = {0};
    char bus[2][8];
    char line[80];
    char url[200];
    ts_redis_stop(&kit_redis);
    start_node(&kit_redis, bus[0], "0 8191");
    start_node(&other, bus[1], "8192 16383");
    (void)snprintf(line, sizeof(line), "CLUSTER MEET 127.0.0.1 %d %s", other.port, bus[1]);
    assert_string_equal(ask(line), "+OK\r\n");
    assert_true(TS_UNTIL(INT64_C(120) * 1000000000, is_whole(&kit_redis) && is_whole(&other)));

    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", kit_redis.port);
    RUN(&r, QUICK, "--url", url, "--output", "-");
    assert_code(&r, 1);
    assert_says(r.err, "Redis Cluster");
    assert_says(r.err, "{resque}");
    RUN(&r, QUICK, "--url", url, "--namespace", "{a}", "--modes", "native", "--output", "-");
    assert_code(&r, 1);
    assert_says(r.err, "mode native");

    static const char *const ns[] = {"{a}", "{b}"};
    for (size_t i = 0; i < LB_ARRAY_LEN(ns); i++) {
        json_t *d = BENCH(&r, 0, QUICK, "--url", url, "--namespace", ns[i], "--num-queues", "2",
                          "--poll-profile", "resque", "--modes", "poll,blpop");
        assert_int_equal(int_in(result_of(d, 0), "total_jobs"), 20);
        assert_true(true_in(result_of(d, 0), "cost.commands.match"));
        assert_int_equal(int_in(result_of(d, 1), "total_jobs"), 20);
        char port[16];
        (void)snprintf(port, sizeof(port), ":%d/0", i == 0 ? other.port : kit_redis.port);
        assert_non_null(strstr(json_text_at(json_object_get(d, "config"), "url"), port));
        assert_int_equal(ask_int("DBSIZE"), 0);
        json_decref(d);
    }
    ts_redis_stop(&other);
    run_free(&r);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_others_survive),
        cmocka_unit_test(the_default_queue_is_nobody_elses),
        cmocka_unit_test(a_queue_with_jobs_is_left_alone),
        cmocka_unit_test(a_queue_with_a_worker_is_left_alone),
        cmocka_unit_test(flushdb_needs_a_flag_and_often_two),
        cmocka_unit_test(too_few_clients_are_told_before_anything_is_put),
        cmocka_unit_test(a_password_of_any_characters_opens_the_door),
        cmocka_unit_test(ps_does_not_show_the_password),
        cmocka_unit_test(tls_is_checked_unless_told_otherwise),
        cmocka_unit_test(a_cluster_is_entered_where_the_keys_are),
    };
    return kit_main(argc, argv, "resque-bench: safety", tests, LB_ARRAY_LEN(tests));
}
