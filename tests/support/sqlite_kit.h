/*
 * sqlite_kit.h - what the tests of src/store/sqlite share: a store on a file in a directory of its own
 *
 * Setup and teardown make and remove the directory; helpers assert that what they do works. For the main thread, but
 * sk_try_* which any thread or child may call.
 */
#ifndef LADE_TESTS_SUPPORT_SQLITE_KIT_H
#define LADE_TESTS_SUPPORT_SQLITE_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_impl.h"
#include "store/sqlite/sqlite_store.h"
#include "support/proc.h"
#include "support/tmpdir.h"

struct sk {
    struct ts_tmpdir dir;
    char path[128]; /* DIR/jobs.db */
    char url[192];
    struct lq_store_config config; /* for sk_open */
    lade_err err;
};

extern struct sk sk;

int sk_setup(void **state);
int sk_teardown(void **state);
#define SK_TEST(f) cmocka_unit_test_setup_teardown(f, sk_setup, sk_teardown)

/* The result of an open with sk.config and sk.url; *out is NULL on failure. */
int sk_try_open(struct lq_store **out);
struct lq_store *sk_open(void);

/* n ready jobs named PREFIX0, PREFIX1, ... of the queue "q" in one call. */
int sk_try_put(struct lq_store *s, const char *prefix, size_t n);
void sk_put(struct lq_store *s, const char *prefix, size_t n);
/* Registers the worker for the queue "q". */
int sk_try_join(struct lq_store *s, const char *worker, int64_t lease_ms);
/* Takes up to max jobs of "q" and settles them; how many, or a failure. */
int sk_try_work(struct lq_store *s, const char *worker, size_t max, enum lq_to to);
uint64_t sk_count(struct lq_store *s, enum lade_state state);
/* The queue "q" alone. */
extern const struct lq_lanes sk_lanes;

/* Three handles on the file make changes in turn, n in all, behind one job that is put; a check each so many. */
void sk_change_in_turn(void (*change)(struct lq_store *s), int n, int check_each);

/* How many findings the store's own check has; each is printed. */
size_t sk_check(struct lq_store *s);

/* SQL on the file by a connection of its own, and the number in the first column of its first row, which there is. */
void sk_sql(const char *sql);
int64_t sk_ask(const char *sql);
/* The same by an open connection. */
int64_t sk_ask_on(sqlite3 *h, const char *sql);
/* Below n; the same run of numbers in each process. */
unsigned sk_draw(unsigned n);

/* Bytes of path + suffix, 0 when it is not there. */
size_t sk_size(const char *suffix);
/*
 * Forks a child that calls fn and exits with its result; it dies with the test. sk_wait_child returns the exit code, or
 * -signal. Fork with no store open, and wait for every child.
 */
int sk_fork(int (*fn)(const char *), const char *arg);
int sk_wait_child(int pid);

#endif
