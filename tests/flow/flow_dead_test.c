/* flow_dead_test.c - dying, being told, classes, and coming back: by filter, by canary, by several hands, after a kill */
#include "support/rig_test.h"

#include <pthread.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "queue/client.h"
#include "rt/seam.h"

#define NS(ms) ((ms)*LADE_MILLISECOND)

/* What the handler and on_dead saw; the test asserts. */
static struct {
    pthread_mutex_t lock;
    int runs, told, told_discarded;
    char reason[32], kind[32], error[64], payload[64];
    int attempts;
    bool mended; /* atomic: the cause of death is gone */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reset_seen(bool mended)
{
    (void)pthread_mutex_lock(&seen.lock); /* the last death may just be told */
    seen.runs = seen.told = seen.told_discarded = seen.attempts = 0;
    (void)pthread_mutex_unlock(&seen.lock);
    __atomic_store_n(&seen.mended, mended, __ATOMIC_SEQ_CST);
}

static int read_count(const int *n)
{
    (void)pthread_mutex_lock(&seen.lock);
    int v = *n;
    (void)pthread_mutex_unlock(&seen.lock);
    return v;
}

static lade_outcome live_or_die(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes p = lade_job_payload(job);
    (void)pthread_mutex_lock(&seen.lock);
    seen.runs++;
    (void)snprintf(seen.payload, sizeof(seen.payload), "%.*s", (int)p.size,
                   p.size ? (const char *)p.data : "");
    (void)pthread_mutex_unlock(&seen.lock);
    if (__atomic_load_n(&seen.mended, __ATOMIC_SEQ_CST))
        return LADE_OK;
    lade_job_error(job, "job %s: no route to 10.0.0.%d", lade_job_id(job), lade_job_attempt(job));
    if (strcmp(lade_job_kind(job), "drop") == 0)
        return LADE_DISCARD;
    return strcmp(lade_job_kind(job), "retry") == 0 ? LADE_RETRY : LADE_DEAD;
}

static void note_death(void *ctx, const lade_death *d)
{
    (void)ctx;
    (void)pthread_mutex_lock(&seen.lock);
    seen.told++;
    seen.told_discarded += d->discarded;
    seen.attempts = d->attempts;
    (void)snprintf(seen.reason, sizeof(seen.reason), "%s", d->reason);
    (void)snprintf(seen.kind, sizeof(seen.kind), "%s", d->kind);
    (void)snprintf(seen.error, sizeof(seen.error), "%.*s", (int)d->error.size,
                   d->error.size ? (const char *)d->error.data : "");
    (void)pthread_mutex_unlock(&seen.lock);
}

static void start(struct ts_fix *f)
{
    ts_local_open(&f->local, &f->r, f->q,
                  &(lade_worker_config){.concurrency = 4, .on_dead = note_death});
    assert_int_equal(lade_worker_handle(f->local.w, "*", live_or_die, NULL), 0);
    ts_local_run(&f->local);
}

static void enqueue(struct ts_fix *f, const char *kind, const char *id, lade_job_spec spec)
{
    spec.kind = kind;
    spec.id = id;
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
}

/* n jobs PREFIX0... of a kind, dead. */
static void bury(struct ts_fix *f, const char *kind, const char *prefix, int n)
{
    uint64_t dead = ts_rig_count(f->q, LADE_STATE_DEAD);
    for (int i = 0; i < n; i++) {
        char id[32];
        (void)snprintf(id, sizeof(id), "%s%d", prefix, i);
        enqueue(f, kind, id, (lade_job_spec){.payload = LADE_STR("x")});
    }
    assert_true(TS_UNTIL(TS_SOON, ts_rig_count(f->q, LADE_STATE_DEAD) == dead + (uint64_t)n));
}

static lade_job_view *view_of(const struct ts_fix *f, const char *id)
{
    lade_job_view *v = NULL;
    assert_int_equal(lade_job_get(f->q, NULL, id, &v, NULL), 0);
    return v;
}

/* on_dead --------------------------------------------------------------------------------------------------------- */

/* chronos 12: three retries are four runs, one dead job and one call. */
static void exhausted_job_is_told_of_once(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(false);
    start(f);
    enqueue(f, "retry", "a",
            (lade_job_spec){.max_attempts = 4, .backoff = {LADE_BACKOFF_FIXED, NS(1), 0, 0}});
    assert_true(ts_fix_wait_state(f, "a", LADE_STATE_DEAD));
    assert_true(TS_UNTIL(TS_SOON, read_count(&seen.told) == 1));
    assert_int_equal(read_count(&seen.runs), 4);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_RETRYING), 0);
    assert_string_equal(seen.reason, "exhausted");
    assert_string_equal(seen.kind, "retry");
    assert_string_equal(seen.error, "job a: no route to 10.0.0.4");
    assert_int_equal(seen.attempts, 4);
    assert_int_equal(seen.told_discarded, 0);
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(seen.told, 1);
}

/* chronos 16: discarded by the handler, or by the job's own wish: told, and nothing is left. */
static void discarded_job_is_told_of_and_leaves_nothing(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(false);
    start(f);
    enqueue(f, "drop", "a", (lade_job_spec){0});
    assert_true(TS_UNTIL(TS_SOON, read_count(&seen.told) == 1));
    assert_string_equal(seen.reason, "discarded");
    assert_string_equal(seen.error, "job a: no route to 10.0.0.1");
    enqueue(f, "die", "b", (lade_job_spec){.discard_dead = true});
    assert_true(TS_UNTIL(TS_SOON, read_count(&seen.told) == 2));
    assert_string_equal(seen.reason, "unrecoverable");
    assert_int_equal(read_count(&seen.told_discarded), 2);
    assert_int_equal(ts_rig_state(f->q, "a"), -1);
    assert_int_equal(ts_rig_state(f->q, "b"), -1);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_DEAD), 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), 0);
}

/* classes --------------------------------------------------------------------------------------------------------- */

static void deaths_of_one_cause_are_one_class(void **state)
{
    struct ts_fix *f = *state;
    lade_dead_class *c = NULL;
    size_t n = 0;
    char id[LADE_DEAD_CLASS_MAX + 1];
    reset_seen(false);
    start(f);
    assert_int_equal(lade_dead_classes(f->q, NULL, &c, &n, NULL), 0);
    assert_int_equal(n, 0);
    lade_free(c);
    bury(f, "mail", "m", 12);
    bury(f, "sms", "s", 3);
    assert_int_equal(lade_dead_classes(f->q, NULL, &c, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(c[0].count, 12);
    assert_string_equal(c[0].kind, "mail");
    assert_string_equal(c[0].text, "job m<n>: no route to <addr>");
    assert_string_equal(c[0].queue, "default");
    assert_true(c[0].first_seen > 0 && c[0].last_seen >= c[0].first_seen);
    lade_dead_class_of("mail", LADE_STR("job m7: no route to 10.0.0.1"), id);
    assert_string_equal(c[0].id, id);
    assert_int_equal(c[1].count, 3);
    lade_job_view *v = view_of(f, c[1].sample);
    assert_string_equal(v->kind, "sms");
    lade_job_view_free(v);
    lade_free(c);
}

static size_t count_matches(const struct ts_fix *f, const lade_dead_filter *filter)
{
    lade_cursor cursor = {0};
    size_t all = 0;
    while (!cursor.done) {
        lade_job_view *v[4];
        size_t n = 0;
        int rc = lade_dead_list(f->q, "default", filter, &cursor, 4, v, &n, NULL);
        assert_true(rc == 0 || (rc == LADE_EMPTY && n == 0));
        for (size_t i = 0; i < n; i++)
            lade_job_view_free(v[i]);
        all += n;
    }
    return all;
}

/* chasqui 38: a look moves nothing, and shows id, reason, error, kind and payload. */
static void dead_are_listed_by_class_kind_reason_and_time(void **state)
{
    struct ts_fix *f = *state;
    char id[LADE_DEAD_CLASS_MAX + 1];
    reset_seen(false);
    start(f);
    bury(f, "mail", "m", 7);
    bury(f, "sms", "s", 3);
    lade_dead_class_of("mail", LADE_STR("job m1: no route to 10.0.0.1"), id);
    assert_int_equal(count_matches(f, NULL), 10);
    assert_int_equal(count_matches(f, &(lade_dead_filter){.class_id = id}), 7);
    assert_int_equal(count_matches(f, &(lade_dead_filter){.kind = "sms"}), 3);
    assert_int_equal(count_matches(f, &(lade_dead_filter){.class_id = id, .kind = "sms"}), 0);
    assert_int_equal(count_matches(f, &(lade_dead_filter){.reason = "unrecoverable"}), 10);
    assert_int_equal(count_matches(f, &(lade_dead_filter){.reason = "killed"}), 0);
    lade_job_view *v = view_of(f, "m6");
    assert_string_equal(v->reason, "unrecoverable");
    assert_int_equal(v->payload.size, 1);
    assert_int_equal(count_matches(f, &(lade_dead_filter){.from = v->finished_at + LADE_HOUR}), 0);
    assert_int_equal(count_matches(f, &(lade_dead_filter){.from = 1, .before = INT64_MAX}), 10);
    lade_job_view_free(v);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_DEAD), 10);
    lade_err err = {0};
    lade_cursor cursor = {0};
    size_t n = 0;
    assert_int_equal(lade_dead_list(f->q, "default", &(lade_dead_filter){.reason = "old"}, &cursor,
                                    1, &v, &n, &err),
                     -LADE_EINVAL);
    assert_non_null(strstr(err.text, "reason 'old'"));
}

/* redrive --------------------------------------------------------------------------------------------------------- */

/* Steps to the end without waiting for anything; the last report. */
static lade_redrive_report run_plan(lade *q, const lade_redrive_plan *plan)
{
    lade_redrive_report report = {0};
    lade_redrive *r = NULL;
    lade_err err = {0};
    int rc = lade_redrive_open(&r, q, plan, &err);
    while (rc == 0 && (rc = lade_redrive_step(r, &report, &err)) == LADE_MORE)
        rc = 0;
    lade_redrive_close(r);
    if (rc < 0)
        print_message("%s\n", err.text);
    return report;
}

/* chasqui 39: all attempts again, kind and number of attempts as they were. */
static void redrive_by_filter_moves_only_what_matches(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(false);
    start(f);
    bury(f, "mail", "m", 230);
    bury(f, "sms", "s", 5);
    assert_int_equal(ts_local_stop(&f->local), 0);
    lade_redrive_plan plan = {.queue = "default", .filter = {.kind = "mail"}, .limit = 120};
    lade_redrive_report r = run_plan(f->q, &plan);
    assert_int_equal(r.phase, LADE_REDRIVE_DONE);
    assert_int_equal(r.moved, 120);
    assert_int_equal(r.lost, 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 120);
    plan.limit = 0;
    r = run_plan(f->q, &plan);
    assert_int_equal(r.moved, 110);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_DEAD), 5);
    lade_job_view *v = view_of(f, "m0");
    assert_int_equal(v->attempts, 0);
    assert_int_equal(v->max_attempts, 25);
    lade_job_view_free(v);
    r = run_plan(f->q, &(lade_redrive_plan){.queue = "default", .verb = LADE_DEAD_REMOVE});
    assert_int_equal(r.moved, 5);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_DEAD), 0);
}

struct operator
{
    struct ts_fix *f;
    lade_redrive_report report;
};

static void *operate(void *arg)
{
    struct operator* o = arg;
    o->report = run_plan(o->f->q, &(lade_redrive_plan){.queue = "default"});
    return NULL;
}

static void operate_at_once(struct ts_fix *f, int round)
{
    struct operator o[4];
    pthread_t thread[4];
    uint64_t moved = 0;
    char prefix[16];
    (void)snprintf(prefix, sizeof(prefix), "m%d-", round);
    reset_seen(false);
    start(f);
    bury(f, "mail", prefix, 300);
    assert_int_equal(ts_local_stop(&f->local), 0);
    for (size_t i = 0; i < 4; i++) {
        o[i] = (struct operator){.f = f};
        assert_int_equal(pthread_create(&thread[i], NULL, operate, &o[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        moved += o[i].report.moved;
        assert_int_equal(o[i].report.phase, LADE_REDRIVE_DONE);
    }
    assert_int_equal(moved, 300);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 300);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_DEAD), 0);
    reset_seen(true);
    start(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(read_count(&seen.runs), 300);
    assert_int_equal(ts_local_stop(&f->local), 0);
}

/* C-032, C-081: of several operators at once each job is moved by one, and their sums are all of it. ROUNDS multiplies. */
static void operators_at_once_move_each_job_once(void **state)
{
    int rounds = ts_rig_rounds(1);
    for (int round = 0; round < rounds; round++)
        operate_at_once(*state, round);
    print_message("%d jobs, each moved once by one of four\n", 300 * rounds);
}

static void failing_canary_leaves_the_others_dead(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(false);
    start(f);
    bury(f, "mail", "m", 20);
    lade_redrive_plan plan = {.queue = "default", .canary = 3};
    lade_redrive_report r = run_plan(f->q, &plan);
    assert_int_equal(r.phase, LADE_REDRIVE_CANARY_FAILED);
    assert_int_equal(r.moved, 3);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_count(f->q, LADE_STATE_DEAD) == 20));
    assert_int_equal(read_count(&seen.runs), 23);
    reset_seen(true);
    r = run_plan(f->q, &plan);
    assert_int_equal(r.phase, LADE_REDRIVE_DONE);
    assert_int_equal(r.moved, 20);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(read_count(&seen.runs), 20);
}

/* What an operator does to a canary says nothing of the others. */
static void canary_killed_by_hand_is_no_failure(void **state)
{
    struct ts_fix *f = *state;
    static const char *const ids[] = {"k0", "k1", "k2"};
    int outcomes[3];
    lade_redrive *run = NULL;
    lade_redrive_report r = {0};
    for (int i = 0; i < 3; i++)
        enqueue(f, "mail", ids[i], (lade_job_spec){.priority = 0});
    assert_int_equal(lade_job_act(f->q, LADE_JOB_KILL, "default", ids, 3, outcomes, NULL), 0);
    lade_redrive_plan plan = {.queue = "default", .canary = 1};
    assert_int_equal(lade_redrive_open(&run, f->q, &plan, NULL), 0);
    while (r.moved == 0)
        assert_int_equal(lade_redrive_step(run, &r, NULL), LADE_MORE);
    for (int i = 0; i < 3; i++) {
        lade_job_view *v = view_of(f, ids[i]);
        if (v->state == LADE_STATE_READY)
            assert_int_equal(
                lade_job_act(f->q, LADE_JOB_KILL, "default", &ids[i], 1, outcomes, NULL), 0);
        lade_job_view_free(v);
    }
    int rc = LADE_MORE;
    while (rc == LADE_MORE)
        rc = lade_redrive_step(run, &r, NULL);
    lade_redrive_close(run);
    assert_int_equal(rc, 0);
    assert_int_equal(r.phase, LADE_REDRIVE_DONE);
    assert_int_equal(r.died_again, 0);
}

static void canaries_that_nobody_runs_stop_it(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(false);
    start(f);
    bury(f, "mail", "m", 5);
    assert_int_equal(ts_local_stop(&f->local), 0);
    lade_redrive_report r =
        run_plan(f->q, &(lade_redrive_plan){.queue = "default", .canary = 2, .canary_wait = NS(1)});
    assert_int_equal(r.phase, LADE_REDRIVE_CANARY_OPEN);
    assert_int_equal(r.moved, 2);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_DEAD), 3);
}

static void too_many_new_deaths_stop_it(void **state)
{
    struct ts_fix *f = *state;
    lade_redrive *run = NULL;
    lade_redrive_report r = {0};
    reset_seen(false);
    start(f);
    bury(f, "mail", "m", 250);
    lade_redrive_plan plan = {.queue = "default", .stop_on = 10};
    int64_t began = 0, now = 0;
    assert_int_equal(lade_redrive_open(&run, f->q, &plan, NULL), 0);
    assert_int_equal(lade_now(f->q, &began, NULL), 0);
    while (now / LADE_MILLISECOND <= began / LADE_MILLISECOND) /* so that all that dies is new */
        assert_int_equal(lade_now(f->q, &now, NULL), 0);
    assert_int_equal(lade_redrive_step(run, &r, NULL), LADE_MORE);
    assert_int_equal(r.moved, 100);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_count(f->q, LADE_STATE_DEAD) == 250));
    assert_int_equal(lade_redrive_step(run, &r, NULL), 0);
    assert_int_equal(r.phase, LADE_REDRIVE_STOPPED);
    assert_in_range(r.died_again, 10, 100);
    assert_int_equal(r.moved, 100);
    lade_redrive_close(run);
}

/* The rate is kept by the store's clock and told as a wait, never slept. */
static void rate_is_told_as_a_wait(void **state)
{
    struct ts_fix *f = *state;
    lade_redrive *run = NULL;
    lade_redrive_report r = {0};
    reset_seen(false);
    start(f);
    bury(f, "mail", "m", 9);
    assert_int_equal(ts_local_stop(&f->local), 0);
    lade_redrive_plan plan = {.queue = "default", .rate = 1};
    assert_int_equal(lade_redrive_open(&run, f->q, &plan, NULL), 0);
    assert_int_equal(lade_redrive_step(run, &r, NULL), LADE_MORE);
    assert_int_equal(r.moved, 1);
    assert_in_range(r.wait, 1, LADE_SECOND);
    lade_redrive_close(run);
}

/* A controller in a process of its own, one job a step, until it is killed. */
static void control_until_killed(const char *url, int64_t before)
{
    lade *q = NULL;
    lade_redrive *run = NULL;
    lade_redrive_plan plan = {.queue = "default", .filter = {.before = before}, .rate = 5};
    lade_options options = ts_rig_options();
    if (lade_open(&q, url, &options, NULL) < 0 || lade_redrive_open(&run, q, &plan, NULL) < 0)
        _exit(1);
    lade_redrive_report r = {0};
    while (lade_redrive_step(run, &r, NULL) == LADE_MORE)
        lr_sleep_until(lb_deadline_in(r.wait)); /* as the step asks its callers to */
    _exit(2);                                   /* not by itself: the rate is too low for that */
}

static void killed_controller_is_taken_up_where_it_was(void **state)
{
    struct ts_fix *f = *state;
    int64_t now = 0;
    int status = 0;
    if (f->r.store == TS_MEMORY) /* of one process: it cannot outlive a controller */
        return;
    reset_seen(false);
    start(f);
    bury(f, "mail", "m", 60);
    assert_int_equal(ts_local_stop(&f->local), 0);
    assert_int_equal(lade_now(f->q, &now, NULL), 0);
    int64_t before = now + NS(1);
    pid_t pid = fork();
    if (pid == 0)
        control_until_killed(f->r.direct, before);
    assert_true(pid > 0);
    bool moved = TS_UNTIL(TS_SOON, ts_rig_count(f->q, LADE_STATE_READY) >= 2);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(moved);
    assert_true(WIFSIGNALED(status));
    uint64_t done = ts_rig_count(f->q, LADE_STATE_READY);
    lade_redrive_plan plan = {.queue = "default", .filter = {.before = before}};
    lade_redrive_report r = run_plan(f->q, &plan);
    assert_int_equal(r.phase, LADE_REDRIVE_DONE);
    assert_int_equal(r.moved + done, 60);
    reset_seen(true);
    start(f);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(read_count(&seen.runs), 60);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_DEAD), 0);
}

/* edit and unique ------------------------------------------------------------------------------------------------- */

static void edited_job_runs_with_its_new_payload(void **state)
{
    struct ts_fix *f = *state;
    lade_err err = {0};
    reset_seen(false);
    start(f);
    bury(f, "mail", "m", 1);
    reset_seen(true);
    assert_int_equal(lade_job_edit(f->q, NULL, "m0", LADE_STR("mended"), true, NULL), 0);
    assert_true(ts_fix_wait_state(f, "m0", LADE_STATE_COMPLETED));
    assert_string_equal(seen.payload, "mended");
    assert_int_equal(lade_job_edit(f->q, NULL, "m0", LADE_STR("x"), false, NULL), LADE_WRONG_STATE);
    assert_int_equal(lade_job_edit(f->q, NULL, "none", LADE_STR("x"), false, NULL), LADE_NOT_FOUND);
    static char big[LADE_PAYLOAD_MAX + 1];
    assert_int_equal(lade_job_edit(f->q, NULL, "m0", (lade_bytes){big, sizeof(big)}, false, &err),
                     -LADE_ETOOBIG);
    enqueue(f, "mail", "later", (lade_job_spec){.in = LADE_HOUR, .priority = 2});
    assert_int_equal(lade_job_edit(f->q, "default", "later", LADE_STR("new"), false, NULL), 0);
    lade_job_view *v = view_of(f, "later");
    assert_int_equal(v->state, LADE_STATE_SCHEDULED);
    assert_int_equal(v->priority, 2);
    assert_int_equal(v->payload.size, 3);
    lade_job_view_free(v);
}

static int offer(struct ts_fix *f, lade_unique unique, const char *payload, lade_id *id)
{
    unique.key = LADE_STR("k");
    lade_job_spec spec = {.kind = "mail", .payload = {payload, strlen(payload)}, .unique = unique};
    return lade_enqueue(f->q, &spec, id, NULL);
}

static void conflict_is_kept_replaced_or_told(void **state)
{
    struct ts_fix *f = *state;
    lade_id first, id;
    assert_int_equal(offer(f, (lade_unique){0}, "one", &first), 0);
    assert_int_equal(offer(f, (lade_unique){0}, "two", &id), LADE_DUPLICATE);
    assert_string_equal(id.text, first.text);
    assert_int_equal(offer(f, (lade_unique){.on_conflict = LADE_CONFLICT_REJECT}, "two", &id),
                     LADE_CONFLICT);
    assert_string_equal(id.text, first.text);
    assert_int_equal(offer(f, (lade_unique){.on_conflict = LADE_CONFLICT_REPLACE}, "three", &id),
                     LADE_REPLACED);
    assert_string_equal(id.text, first.text);
    reset_seen(true);
    start(f);
    assert_true(ts_fix_wait_state(f, first.text, LADE_STATE_COMPLETED));
    assert_string_equal(seen.payload, "three");
    assert_int_equal(read_count(&seen.runs), 1);
}

static void burst_of_enqueues_becomes_one_run_of_the_last(void **state)
{
    struct ts_fix *f = *state;
    lade_id first, id;
    reset_seen(true);
    start(f);
    /* however slow this machine is: what came later than the wait is a second burst, and would be told as new */
    lade_unique debounce = {.debounce = LADE_MINUTE, .max_wait = LADE_HOUR};
    assert_int_equal(offer(f, debounce, "0", &first), 0);
    for (int i = 1; i < 20; i++) {
        char payload[16];
        (void)snprintf(payload, sizeof(payload), "%d", i);
        assert_int_equal(offer(f, debounce, payload, &id), LADE_REPLACED);
    }
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_SCHEDULED), 1);
    assert_int_equal(read_count(&seen.runs), 0);
    const char *one = first.text;
    assert_int_equal(lade_job_act(f->q, LADE_JOB_RETRY, NULL, &one, 1, NULL, NULL), 0);
    assert_true(ts_fix_wait_state(f, first.text, LADE_STATE_COMPLETED));
    assert_string_equal(seen.payload, "19");
    assert_int_equal(read_count(&seen.runs), 1);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(exhausted_job_is_told_of_once),
        TS_TEST(discarded_job_is_told_of_and_leaves_nothing),
        TS_TEST(deaths_of_one_cause_are_one_class),
        TS_TEST(dead_are_listed_by_class_kind_reason_and_time),
        TS_TEST(redrive_by_filter_moves_only_what_matches),
        TS_TEST(operators_at_once_move_each_job_once),
        TS_TEST(failing_canary_leaves_the_others_dead),
        TS_TEST(canary_killed_by_hand_is_no_failure),
        TS_TEST(canaries_that_nobody_runs_stop_it),
        TS_TEST(too_many_new_deaths_stop_it),
        TS_TEST(rate_is_told_as_a_wait),
        TS_TEST(killed_controller_is_taken_up_where_it_was),
        TS_TEST(edited_job_runs_with_its_new_payload),
        TS_TEST(conflict_is_kept_replaced_or_told),
        TS_TEST(burst_of_enqueues_becomes_one_run_of_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
