/*
 * rig_test.h - what a test program on the rig includes: cmocka, and one fixture a test
 *
 * Each test gets a fresh rig, a handle past any proxy, a gate file that is not there yet, and room for one worker of its
 * own process and a few others. The teardown ends all of it, also when the test failed half way.
 */
#ifndef LADE_TESTS_SUPPORT_RIG_TEST_H
#define LADE_TESTS_SUPPORT_RIG_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fault.h"
#include "support/inv.h"
#include "support/rig.h"
#include "support/rig_local.h"

struct ts_fix {
    struct ts_rig r;
    lade *q;
    struct ts_local local;
    struct ts_proc a, b, c, d;
    char gate[TS_DIR_MAX + 16];
};

int ts_fix_start(void **state);
int ts_fix_start_proxied(void **state);
int ts_fix_stop(void **state);

#define TS_TEST(f)         cmocka_unit_test_setup_teardown(f, ts_fix_start, ts_fix_stop)
#define TS_TEST_PROXIED(f) cmocka_unit_test_setup_teardown(f, ts_fix_start_proxied, ts_fix_stop)

/* A job whose payload is the gate's path. */
lade_job_spec ts_fix_gated(const struct ts_fix *f, const char *kind, const char *id);
void ts_fix_open_gate(const struct ts_fix *f);
/* Until the job has so many starts. */
bool ts_fix_wait_runs(const struct ts_fix *f, const char *id, size_t n);
bool ts_fix_wait_state(const struct ts_fix *f, const char *id, int state);
/* Runs an ordinary worker process until the store is quiet, and ends it. */
void ts_fix_finish(struct ts_fix *f);

#define assert_inv(f, when) assert_true(ts_inv_check((f)->r.ledger_dir, (f)->q, when, NULL))

#endif
