#include "support/rig_test.h"

static int start_fix(void **state, enum ts_rig_way way)
{
    struct ts_fix *f = calloc(1, sizeof(*f));
    if (!f)
        return -1;
    ts_rig_start(&f->r, way);
    f->q = ts_rig_open(&f->r);
    (void)ts_rig_path(&f->r, "gate", f->gate, sizeof(f->gate));
    *state = f;
    return 0;
}

int ts_fix_start(void **state)
{
    return start_fix(state, TS_PLAIN);
}

int ts_fix_start_proxied(void **state)
{
    return start_fix(state, TS_PROXIED);
}

int ts_fix_stop(void **state)
{
    struct ts_fix *f = *state;
#ifdef LADE_FAULTS
    lb_fault_arm(NULL);
#endif
    ts_rig_touch(f->gate); /* so that no handler of a failed test is waited for */
    if (f->local.w) {
        if (f->local.running)
            lade_worker_stop(f->local.w);
        (void)ts_local_stop(&f->local);
    }
    lade_close(f->q);
    ts_rig_stop(&f->r);
    free(f);
    return 0;
}

lade_job_spec ts_fix_gated(const struct ts_fix *f, const char *kind, const char *id)
{
    return (lade_job_spec){
        .kind = kind,
        .id = id,
        .payload = {f->gate, strlen(f->gate)},
        .backoff = {.type = LADE_BACKOFF_FIXED, .base = 10 * LADE_MILLISECOND},
    };
}

void ts_fix_open_gate(const struct ts_fix *f)
{
    ts_rig_touch(f->gate);
}

bool ts_fix_wait_runs(const struct ts_fix *f, const char *id, size_t n)
{
    return TS_UNTIL(TS_SOON, ts_rig_runs(&f->r, id) >= n);
}

bool ts_fix_wait_state(const struct ts_fix *f, const char *id, int state)
{
    return TS_UNTIL(TS_SOON, ts_rig_state(f->q, id) == state);
}

void ts_fix_finish(struct ts_fix *f)
{
    struct ts_proc p;
    ts_rig_worker(&f->r, &p,
                  &(struct ts_worker_args){
                      .name = "finisher", .drain = true, .url = f->r.direct, .backoff_ms = 10});
    assert_true(ts_proc_wait(&p, 2 * TS_SOON));
    assert_int_equal(ts_proc_code(&p), 0);
}
