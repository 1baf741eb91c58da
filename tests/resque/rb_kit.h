/*
 * rb_kit.h - a private redis-server and the real resque-bench on it
 *
 *     struct cli_run r = {0};
 *     json_t *d = BENCH(&r, 0, "--jobs", "500", "--workers", "2");      runs it, checks the exit code, gives its JSON
 *     json_t *one = result_of(d, 0);
 *
 * Thread safety: the main thread only.
 */
#ifndef LADE_TESTS_RESQUE_RB_KIT_H
#define LADE_TESTS_RESQUE_RB_KIT_H

#include "cli/cli_run.h"

extern struct ts_redis kit_redis;

/* argv[1] is the path of resque-bench. Runs the group with a server that each test finds empty. */
int kit_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n);

/* Another server in its place, with TLS, which asks for its clients' certificate; the paths of a pair that will do for both sides. */
void kit_start_tls(char cert[200], char key[200]);

/* Runs it on the server with --output - and the arguments; the JSON (NULL when it printed none) is the caller's. */
json_t *kit_bench(struct cli_run *r, int code, const char *const *args);
#define BENCH(r, code, ...) kit_bench((r), (code), (const char *const[]){__VA_ARGS__, NULL})
/* Starts it in the background, JSON to a file named by kit_json_path, all text to kit_log_path. */
void kit_start(struct ts_proc *p, const char *const *args);
#define BENCH_START(p, ...) kit_start((p), (const char *const[]){__VA_ARGS__, NULL})
json_t *kit_json(void);
const char *kit_log(void); /* valid until the next call */
const char *kit_dir(void);

json_t *result_of(const json_t *document, size_t i);
int64_t int_in(const json_t *o, const char *path); /* "idle_poll.total_lpop_calls" */
double real_in(const json_t *o, const char *path);
bool true_in(const json_t *o, const char *path);
const json_t *at_path(const json_t *o, const char *path);

/* One line to the server; the raw reply, valid until the next call. */
const char *ask(const char *line);
int64_t ask_int(const char *line);

/* MONITOR from now on; what it saw so far as text, valid until the next call. */
void monitor_start(void);
const char *monitor_stop(void);
/* Lines that hold `text`. */
size_t count_of(const char *text, const char *what);

#endif
