/*
 * cli_run.h - runs the real binary and keeps what it said
 *
 *     struct cli_run r;
 *     RUN(&r, "enqueue", "--kind", "a");             argv after the program's name
 *     assert_code(&r, 0);
 *     assert_says(r.out, "...");
 *
 * stdin, stdout and stderr are files, so a child can neither block on them nor find a terminal. A run that takes more
 * than CLI_RUN_DEADLINE is killed and fails the test. What a run holds is freed by the next one on the same struct, or
 * by run_free.
 *
 * The fixture: one store for a test, in LADE_URL. argv[1] of a test program names which: sqlite or redis.
 *
 * Thread safety: the main thread only.
 */
#ifndef LADE_TESTS_CLI_CLI_RUN_H
#define LADE_TESTS_CLI_CLI_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdbool.h>

#include "support/proc.h"
#include "support/redis_server.h"
#include "support/tmpdir.h"

#define CLI_RUN_DEADLINE (INT64_C(180) * 1000 * 1000 * 1000)

struct cli_run {
    int code; /* exit status, or 128 + signal */
    char *out, *err;
    size_t n_out, n_err;
};

/* What a run may be given besides its arguments; zero is nothing. */
struct cli_run_with {
    const void *in;
    size_t n_in;
    bool as_nobody; /* without root's rights, when the test has them */
};

void run_args(struct cli_run *r, const struct cli_run_with *with, const char *const *args);
void run_free(struct cli_run *r);

#define RUN(r, ...) run_args((r), NULL, (const char *const[]){__VA_ARGS__, NULL})
#define RUN_IN(r, bytes, size, ...)                                      \
    run_args((r), &(struct cli_run_with){.in = (bytes), .n_in = (size)}, \
             (const char *const[]){__VA_ARGS__, NULL})

/* Fails the test with everything the run said when the exit code is another. */
void assert_code_at(const struct cli_run *r, int code, const char *file, int line);
#define assert_code(r, c) assert_code_at((r), (c), __FILE__, __LINE__)
void assert_says_at(const char *text, const char *wanted, const char *file, int line);
#define assert_says(text, wanted) assert_says_at((text), (wanted), __FILE__, __LINE__)

/* stdout as JSON; the caller's. Fails the test when it is not. */
json_t *run_json(const struct cli_run *r);
/* stdout without its last newline, in place. */
const char *run_word(struct cli_run *r);
int64_t json_int_at(const json_t *o, const char *key);
const char *json_text_at(const json_t *o, const char *key);

/* Enqueues by options and returns the id in `id`. */
struct lade_id_text {
    char text[65];
};
struct lade_id_text enqueue(const char *kind, const char *payload);

/* The whole of a job, by `job show -o json`; the caller's. NULL when it is not found. */
json_t *job_of(const char *id);
/* The state of a job as text, "gone" when it is not found. */
const char *state_of(const char *id);
/* A count of `stats`, of all queues: "ready", "total_completed". */
int64_t total_of(const char *key);

/* The program under test. */
const char *lade_bin(void);
/* Starts it in the background; output goes to a file of the fixture's directory, read by log_text. */
void start_lade(struct ts_proc *p, const char *const *args);
#define START(p, ...) start_lade((p), (const char *const[]){__VA_ARGS__, NULL})
/* What the background processes of this test have said so far; valid until the next call. */
const char *log_text(void);
/* Stops it by TERM and gives its exit code; fails the test when it does not end. */
int end_lade(struct ts_proc *p);

/* A path in the fixture's directory; valid until the next call. */
const char *file_path(const char *name);
void write_file(const char *name, const void *p, size_t n);
/* The bytes of a file as text, "" when it is not there; valid until the next call. */
const char *file_text(const char *name);

/* cmocka group and test fixtures. cli_main runs a group on the store that argv names. */
int set_up_test(void **state);
int tear_down_test(void **state);
int run_group(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n);
bool is_redis(void);
bool is_cluster(void); /* and its server is of a cluster */

#define ON_STORE(f)                                                                              \
    {                                                                                            \
        .name = #f, .test_func = (f), .setup_func = set_up_test, .teardown_func = tear_down_test \
    }

#endif
