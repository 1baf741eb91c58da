/* flow_outcome_test.c - one job from enqueue to its end, by every outcome and option, on each store */
#include "support/rig_test.h"

#include <poll.h>
#include <pthread.h>

#include "queue/client.h"
#include "queue/store.h"

#define NS(ms) ((ms)*LADE_MILLISECOND)

/* What handlers saw; they only record, the test asserts. */
struct seen {
    pthread_mutex_t lock;
    int runs, attempt;
    int64_t time_left, waited;
    bool cancelled, ok;
    _Atomic int outcome; /* what to return; a test may change its mind while the worker runs */
    int64_t delay;       /* for retry_in and snooze_for; -1 = not said */
};

static struct seen seen;

static void reset_seen(lade_outcome outcome)
{
    seen = (struct seen){.lock = PTHREAD_MUTEX_INITIALIZER, .outcome = outcome, .delay = -1};
}

static int runs_now(void)
{
    (void)pthread_mutex_lock(&seen.lock);
    int n = seen.runs;
    (void)pthread_mutex_unlock(&seen.lock);
    return n;
}

static void note_run(const lade_job *job)
{
    (void)pthread_mutex_lock(&seen.lock);
    seen.runs++;
    seen.attempt = lade_job_attempt(job);
    (void)pthread_mutex_unlock(&seen.lock);
}

static lade_outcome say(lade_job *job, void *ctx)
{
    (void)ctx;
    note_run(job);
    if (seen.delay >= 0) {
        lade_job_retry_in(job, seen.delay);
        lade_job_snooze_for(job, seen.delay);
    }
    lade_job_error(job, "text of attempt %d", lade_job_attempt(job));
    return seen.outcome;
}

static void start_with(struct ts_fix *f, lade_handler fn, const lade_worker_config *config)
{
    ts_local_open(&f->local, &f->r, f->q, config);
    assert_int_equal(lade_worker_handle(f->local.w, "job", fn, NULL), 0);
    ts_local_run(&f->local);
}

static void enqueue(struct ts_fix *f, const char *id, lade_job_spec spec)
{
    spec.kind = spec.kind ? spec.kind : "job";
    spec.id = id;
    lade_err err;
    int rc = lade_enqueue(f->q, &spec, NULL, &err);
    if (rc < 0)
        print_message("%s\n", err.text);
    assert_int_equal(rc, 0);
}

static lade_job_view *view_of(const struct ts_fix *f, const char *id)
{
    lade_job_view *v = NULL;
    assert_int_equal(lade_job_get(f->q, NULL, id, &v, NULL), 0);
    return v;
}

/* the job's own bytes ---------------------------------------------------------------------------------------------- */

static unsigned char every_byte[256];

static lade_outcome check_everything(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes p = lade_job_payload(job);
    lade_header h = lade_job_header_at(job, 1);
    bool ok = p.size == 256 && memcmp(p.data, every_byte, 256) == 0;
    ok = ok && strcmp(lade_job_id(job), "full") == 0 && strcmp(lade_job_kind(job), "job") == 0;
    ok = ok && strcmp(lade_job_queue(job), "images/large") == 0;
    ok = ok && strcmp(lade_job_content_type(job), "application/octet-stream") == 0;
    ok = ok && lade_job_n_headers(job) == 2 && strcmp(h.name, "empty") == 0 && *h.value == 0;
    ok = ok && strcmp(lade_job_header(job, "trace"), "\x01 caf\xc3\xa9 \xff") == 0;
    ok = ok && lade_job_header(job, "none") == NULL;
    ok = ok && lade_job_attempt(job) == 1 && lade_job_max_attempts(job) == 7;
    ok = ok && lade_job_priority(job) == -3 && lade_job_fence(job) > 0;
    ok = ok && lade_job_time_left(job) > NS(50000) && lade_job_time_left(job) <= NS(60000);
    ok = ok && !lade_job_cancelled(job);
    ok = ok && lade_job_result(job, (lade_bytes){every_byte, 256}) == 0;
    ok = ok && lade_job_enqueued_at(job) > 0;
    note_run(job);
    seen.ok = ok;
    return LADE_OK;
}

/* chronos 2 */
static void handler_sees_all_that_was_enqueued_and_its_result_is_kept(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_OK);
    lade_worker_queue queue = {.name = "images/large"};
    start_with(f, check_everything, &(lade_worker_config){.queues = &queue, .n_queues = 1});
    const lade_header headers[] = {{"trace", "\x01 caf\xc3\xa9 \xff"}, {"empty", ""}};
    enqueue(f, "full",
            (lade_job_spec){.queue = "images/large",
                            .payload = {every_byte, 256},
                            .content_type = "application/octet-stream",
                            .headers = headers,
                            .n_headers = 2,
                            .priority = -3,
                            .max_attempts = 7,
                            .timeout = NS(60000)});
    assert_true(ts_fix_wait_state(f, "full", LADE_STATE_COMPLETED));
    assert_true(seen.ok);
    lade_job_view *v = view_of(f, "full");
    assert_int_equal(v->result.size, 256);
    assert_memory_equal(v->result.data, every_byte, 256);
    assert_memory_equal(v->payload.data, every_byte, 256);
    assert_int_equal(v->n_headers, 2);
    assert_int_equal(v->priority, -3);
    assert_true(v->finished_at >= v->enqueued_at);
    lade_job_view_free(v);
}

static lade_outcome hash_payload(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes p = lade_job_payload(job);
    const unsigned char *b = p.data;
    bool ok = p.size == LADE_PAYLOAD_MAX;
    for (size_t i = 0; i < p.size && ok; i += 97)
        ok = b[i] == (unsigned char)(i * 31 >> 3);
    note_run(job);
    seen.ok = ok;
    return lade_job_result(job, p) == 0 ? LADE_OK : LADE_DEAD;
}

static void payload_and_result_of_one_mebibyte_pass_whole(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_OK);
    unsigned char *big = malloc(LADE_PAYLOAD_MAX + 1);
    assert_non_null(big);
    for (size_t i = 0; i <= LADE_PAYLOAD_MAX; i++)
        big[i] = (unsigned char)(i * 31 >> 3);
    start_with(f, hash_payload, NULL);
    enqueue(f, "big", (lade_job_spec){.payload = {big, LADE_PAYLOAD_MAX}});
    assert_true(ts_fix_wait_state(f, "big", LADE_STATE_COMPLETED));
    assert_true(seen.ok);
    lade_job_view *v = view_of(f, "big");
    assert_int_equal(v->result.size, LADE_PAYLOAD_MAX);
    assert_memory_equal(v->result.data, big, LADE_PAYLOAD_MAX);
    lade_job_view_free(v);
    lade_job_spec over = {.kind = "job", .id = "over", .payload = {big, LADE_PAYLOAD_MAX + 1}};
    lade_err err;
    assert_int_equal(lade_enqueue(f->q, &over, NULL, &err), -LADE_ETOOBIG);
    assert_int_equal(ts_rig_state(f->q, "over"), -1);
    free(big);
}

/* retry ------------------------------------------------------------------------------------------------------------ */

#define LATE_MS 20000 /* between the end of an attempt and its settle, on a busy machine */

/* Milliseconds between the end of the last attempt and the next one's due time. */
static int64_t delay_of(const struct ts_fix *f, const char *id)
{
    lade_job_view *v = view_of(f, id);
    assert_int_equal(v->state, LADE_STATE_RETRYING);
    assert_true(v->n_history > 0);
    int64_t ms = (v->run_at - v->history[v->n_history - 1].ended_at) / LADE_MILLISECOND;
    lade_job_view_free(v);
    return ms;
}

static void retry_now(const struct ts_fix *f, const char *id)
{
    int outcome;
    assert_int_equal(lade_job_act(f->q, LADE_JOB_RETRY, NULL, &id, 1, &outcome, NULL), 0);
}

static void check_backoff(struct ts_fix *f, const char *id, lade_backoff backoff,
                          const int64_t *expected_ms, int64_t most_percent)
{
    enqueue(f, id, (lade_job_spec){.backoff = backoff});
    for (int attempt = 1; attempt <= 3; attempt++) {
        assert_true(ts_fix_wait_state(f, id, LADE_STATE_RETRYING));
        int64_t ms = delay_of(f, id), low = expected_ms[attempt - 1];
        if (ms < low - 2 || ms > low * most_percent / 100 + LATE_MS)
            print_message("%s: attempt %d waits %lld ms\n", id, attempt, (long long)ms);
        assert_in_range(ms, low - 2, low * most_percent / 100 + LATE_MS);
        int before = runs_now();
        if (attempt < 3) {
            retry_now(f, id);
            assert_true(TS_UNTIL(TS_SOON, runs_now() > before));
        }
    }
    lade_job_view *v = view_of(f, id);
    assert_int_equal(v->attempts, 3);
    assert_string_equal(v->history[2].outcome, "retry");
    lade_job_view_free(v);
}

/* chronos 15; chasqui 28 */
static void each_backoff_waits_as_it_says(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_RETRY);
    start_with(f, say, NULL);
    check_backoff(f, "fixed", (lade_backoff){.type = LADE_BACKOFF_FIXED, .base = NS(60000)},
                  (int64_t[]){60000, 60000, 60000}, 100);
    check_backoff(f, "exponential",
                  (lade_backoff){.type = LADE_BACKOFF_EXPONENTIAL, .base = NS(60000)},
                  (int64_t[]){60000, 120000, 240000}, 100);
    check_backoff(f, "polynomial",
                  (lade_backoff){.type = LADE_BACKOFF_POLYNOMIAL, .base = NS(60000)},
                  (int64_t[]){60000, 960000, 4860000}, 100);
    check_backoff(
        f, "capped",
        (lade_backoff){.type = LADE_BACKOFF_EXPONENTIAL, .base = NS(60000), .cap = NS(90000)},
        (int64_t[]){60000, 90000, 90000}, 100);
    check_backoff(f, "jittered",
                  (lade_backoff){.type = LADE_BACKOFF_FIXED, .base = NS(100000), .jitter = 50},
                  (int64_t[]){100000, 100000, 100000}, 150);
    check_backoff(f, "default", (lade_backoff){0}, (int64_t[]){16000, 31000, 96000}, 110);
}

static int64_t custom_backoff(const lade_job *job, int attempt, void *ctx)
{
    (void)job;
    return NS(100000) * attempt + *(int64_t *)ctx;
}

/* chronos 15 */
static void function_of_the_worker_sets_the_backoff_and_the_handler_overrides_it(void **state)
{
    struct ts_fix *f = *state;
    int64_t extra = NS(7000);
    reset_seen(LADE_RETRY);
    start_with(f, say, &(lade_worker_config){.backoff = custom_backoff, .backoff_ctx = &extra});
    enqueue(f, "custom", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "custom", LADE_STATE_RETRYING));
    assert_in_range(delay_of(f, "custom"), 106998, 107000 + LATE_MS);
    seen.delay = NS(500000);
    enqueue(f, "said", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "said", LADE_STATE_RETRYING));
    assert_in_range(delay_of(f, "said"), 499998, 500000 + LATE_MS);
}

/* chronos 12; chasqui 27, 30 */
static void retry_stops_after_max_attempts_with_every_error_kept(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_RETRY);
    seen.delay = 0;
    start_with(f, say, NULL);
    enqueue(f, "hopeless", (lade_job_spec){.max_attempts = 4});
    assert_true(ts_fix_wait_state(f, "hopeless", LADE_STATE_DEAD));
    assert_int_equal(runs_now(), 4);
    lade_job_view *v = view_of(f, "hopeless");
    assert_string_equal(v->reason, "exhausted");
    assert_int_equal(v->attempts, 4);
    assert_int_equal(v->n_history, 4);
    for (int i = 0; i < 4; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "text of attempt %d", i + 1);
        assert_int_equal(v->history[i].number, i + 1);
        assert_int_equal(v->history[i].error.size, strlen(text));
        assert_memory_equal(v->history[i].error.data, text, strlen(text));
    }
    assert_string_equal(v->history[3].outcome, "dead");
    lade_job_view_free(v);

    seen.outcome = LADE_OK; /* redriven, it has all its attempts again */
    size_t n;
    assert_int_equal(lade_dead_redrive(f->q, "default", 10, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_true(ts_fix_wait_state(f, "hopeless", LADE_STATE_COMPLETED));
    assert_int_equal(seen.attempt, 1);
}

/* other outcomes --------------------------------------------------------------------------------------------------- */

/* chronos 13, 16; chasqui 32 */
static void dead_cancel_and_discard_end_a_job_at_once(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_DEAD);
    start_with(f, say, NULL);
    enqueue(f, "dead", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "dead", LADE_STATE_DEAD));
    lade_job_view *v = view_of(f, "dead");
    assert_string_equal(v->reason, "unrecoverable");
    lade_job_view_free(v);
    seen.outcome = LADE_CANCEL;
    enqueue(f, "cancel", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "cancel", LADE_STATE_CANCELLED));
    seen.outcome = LADE_DISCARD;
    enqueue(f, "discard", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "discard", -1));
    assert_int_equal(runs_now(), 3);
    seen.outcome = (lade_outcome)77; /* anything else counts as RETRY */
    enqueue(f, "odd", (lade_job_spec){.max_attempts = 1});
    assert_true(ts_fix_wait_state(f, "odd", LADE_STATE_DEAD));
}

static void snooze_spends_no_attempt(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_SNOOZE);
    seen.delay = NS(20);
    start_with(f, say, NULL);
    enqueue(f, "sleepy", (lade_job_spec){.max_attempts = 1});
    assert_true(TS_UNTIL(TS_SOON, runs_now() >= 4));
    seen.outcome = LADE_OK;
    assert_true(ts_fix_wait_state(f, "sleepy", LADE_STATE_COMPLETED));
    assert_int_equal(seen.attempt, 1);
}

/* Waits on the descriptor, as a handler inside poll() would. */
static lade_outcome wait_for_cancel(lade_job *job, void *ctx)
{
    (void)ctx;
    struct pollfd p = {.fd = lade_job_cancel_fd(job), .events = POLLIN};
    int64_t start = lb_clock_mono();
    note_run(job);
    (void)poll(&p, 1, 60000);
    seen.waited = lb_clock_mono() - start;
    seen.cancelled = lade_job_cancelled(job);
    seen.time_left = lade_job_time_left(job);
    lade_outcome outcome = seen.outcome;
    return outcome;
}

static void timeout_cancels_the_handler_and_counts_as_a_failed_attempt(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_RETRY);
    start_with(f, wait_for_cancel, NULL);
    enqueue(f, "slow", (lade_job_spec){.timeout = NS(150), .max_attempts = 1});
    assert_true(ts_fix_wait_state(f, "slow", LADE_STATE_DEAD));
    assert_true(seen.cancelled);
    assert_int_equal(seen.time_left, 0);
    assert_true(seen.waited >= NS(140));
    lade_job_view *v = view_of(f, "slow");
    assert_string_equal(v->history[0].outcome, "timeout");
    lade_job_view_free(v);
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).timed_out == 1));
    seen.outcome = LADE_OK; /* late, but done: that counts */
    enqueue(f, "late", (lade_job_spec){.timeout = NS(150)});
    assert_true(ts_fix_wait_state(f, "late", LADE_STATE_COMPLETED));
}

static void act_on_active(struct ts_fix *f, enum lade_job_verb verb, const char *id, int end)
{
    int before = runs_now(), outcome;
    enqueue(f, id, (lade_job_spec){0});
    assert_true(TS_UNTIL(TS_SOON, runs_now() > before));
    assert_int_equal(lade_job_act(f->q, verb, "default", &id, 1, &outcome, NULL), 0);
    assert_true(ts_fix_wait_state(f, id, end));
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).running == 0));
    assert_true(seen.cancelled);
    assert_int_equal(ts_rig_state(f->q, id), end);
}

static void operator_stops_a_running_job(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_RETRY);
    /* told by the next renewal, at a third of the lease */
    start_with(f, wait_for_cancel, &(lade_worker_config){.lease = NS(3 * TS_LEASE_MS)});
    act_on_active(f, LADE_JOB_CANCEL, "a", LADE_STATE_CANCELLED);
    act_on_active(f, LADE_JOB_KILL, "b", LADE_STATE_DEAD);
    act_on_active(f, LADE_JOB_REMOVE, "c", -1);
    lade_job_view *v = view_of(f, "b");
    assert_string_equal(v->reason, "killed");
    lade_job_view_free(v);
}

/* unique ----------------------------------------------------------------------------------------------------------- */

static int enqueue_unique(struct ts_fix *f, const char *id, lade_unique u, char *holder)
{
    lade_id out;
    lade_job_spec spec = {.kind = "job", .id = id, .unique = u, .in = 0};
    int rc = lade_enqueue(f->q, &spec, &out, NULL);
    (void)snprintf(holder, LADE_ID_MAX + 1, "%s", out.text);
    return rc;
}

static void unique_key_is_held_until_done_start_or_ttl(void **state)
{
    struct ts_fix *f = *state;
    char holder[LADE_ID_MAX + 1];
    reset_seen(LADE_OK);

    static const enum lade_unique_until untils[] = {LADE_UNTIL_DONE, LADE_UNTIL_START,
                                                    LADE_UNTIL_TTL};

    for (int i = 0; i < 3; i++) {
        char key[] = {'k', 0, (char)i}, first[24], second[24];
        lade_unique u = {.key = {key, 3}, .until = untils[i], .ttl = NS(600000)};
        (void)snprintf(first, sizeof(first), "u%d-1", i);
        (void)snprintf(second, sizeof(second), "u%d-2", i);
        assert_int_equal(enqueue_unique(f, first, u, holder), 0);
        assert_int_equal(enqueue_unique(f, second, u, holder), LADE_DUPLICATE);
        assert_string_equal(holder, first);
    }
    start_with(f, say, NULL);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    for (int i = 0; i < 3; i++) {
        char key[] = {'k', 0, (char)i}, third[24];
        lade_unique u = {.key = {key, 3}, .until = untils[i], .ttl = NS(600000)};
        (void)snprintf(third, sizeof(third), "u%d-3", i);
        assert_int_equal(enqueue_unique(f, third, u, holder), i == 2 ? LADE_DUPLICATE : 0);
    }
    lade_unique brief = {.key = LADE_STR("brief"), .until = LADE_UNTIL_TTL, .ttl = NS(30)};
    assert_int_equal(enqueue_unique(f, "b1", brief, holder), 0);
    assert_true(TS_UNTIL(TS_SOON, enqueue_unique(f, "b2", brief, holder) == 0));
    assert_int_equal(enqueue_unique(f, "b2", (lade_unique){0}, holder), LADE_DUPLICATE);
}

/* what nobody can run ---------------------------------------------------------------------------------------------- */

/* chronos 6 */
static void job_without_a_handler_waits_and_spends_no_attempt(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(LADE_OK);
    start_with(f, say, NULL);
    enqueue(f, "lost", (lade_job_spec){.kind = "nobody"});
    enqueue(f, "fine", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "fine", LADE_STATE_COMPLETED));
    assert_true(ts_fix_wait_state(f, "lost", LADE_STATE_SCHEDULED));
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).unroutable == 1));
    lade_job_view *v = view_of(f, "lost");
    assert_int_equal(v->attempts, 0);
    lade_job_view_free(v);
}

static void put_raw(struct ts_fix *f, const char *id, const void *body, size_t n)
{
    struct lq_put put = {.queue = "default",
                         .id = lb_slice_str(id),
                         .body = lb_slice(body, n),
                         .level = LQ_LEVEL_DEFAULT};
    assert_int_equal(lq_put(f->q->store, &put, 1, NULL), 0);
}

/* chronos 6, 33; chasqui 22, 33 */
static void corrupt_envelope_goes_to_the_dead_with_its_bytes_and_the_worker_lives(void **state)
{
    struct ts_fix *f = *state;

    static const struct {
        const char *id;
        const char *body;
        size_t n;
    } bad[] = {{"newer", "\xffzfuture", 8},
               {"short",
                "\x01"
                "4",
                2},
               {"garbage",
                "\x01"
                "4\x95\xa3kin\0\xff",
                9},
               {"notmap",
                "\x01"
                "4\xc0",
                3}};

    reset_seen(LADE_OK);
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++)
        put_raw(f, bad[i].id, bad[i].body, bad[i].n);
    start_with(f, say, NULL);
    enqueue(f, "fine", (lade_job_spec){0});
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        lade_job_view *v = view_of(f, bad[i].id);
        assert_int_equal(v->state, LADE_STATE_DEAD);
        assert_string_equal(v->reason, "unrecoverable");
        assert_true(v->corrupt);
        assert_int_equal(v->payload.size, bad[i].n);
        assert_memory_equal(v->payload.data, bad[i].body, bad[i].n);
        assert_int_equal(v->n_history, 1);
        assert_true(v->history[0].error.size > 0);
        lade_job_view_free(v);
    }
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).corrupt == 4));
    assert_int_equal(ts_rig_state(f->q, "fine"), LADE_STATE_COMPLETED);
    assert_int_equal(runs_now(), 1);
}

/* C-045 in small: what is over this worker's limit goes to the dead before it is decoded. (chasqui 33) */
static void oversize_job_goes_to_the_dead_of_a_worker_with_a_smaller_limit(void **state)
{
    struct ts_fix *f = *state;
    static char large[100000];
    lade *small;
    lade_err err;
    lade_options o = ts_rig_options();
    o.payload_max = 1000;
    assert_int_equal(lade_open(&small, f->r.direct, &o, &err), 0);
    reset_seen(LADE_OK);
    enqueue(f, "large", (lade_job_spec){.payload = {large, sizeof(large)}});
    enqueue(f, "small", (lade_job_spec){.payload = LADE_STR("x")});
    ts_local_open(&f->local, &f->r, small, NULL);
    assert_int_equal(lade_worker_handle(f->local.w, "job", say, NULL), 0);
    ts_local_run(&f->local);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(ts_rig_state(f->q, "small"), LADE_STATE_COMPLETED);
    assert_int_equal(ts_rig_state(f->q, "large"), LADE_STATE_DEAD);
    assert_int_equal(runs_now(), 1);
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).corrupt == 1));
    assert_int_equal(ts_local_stop(&f->local), 0);
    lade_close(small);
    lade_job_view *v = view_of(f, "large");
    assert_int_equal(v->payload.size, sizeof(large));
    lade_job_view_free(v);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    for (int i = 0; i < 256; i++)
        every_byte[i] = (unsigned char)i;
    const struct CMUnitTest tests[] = {
        TS_TEST(handler_sees_all_that_was_enqueued_and_its_result_is_kept),
        TS_TEST(payload_and_result_of_one_mebibyte_pass_whole),
        TS_TEST(each_backoff_waits_as_it_says),
        TS_TEST(function_of_the_worker_sets_the_backoff_and_the_handler_overrides_it),
        TS_TEST(retry_stops_after_max_attempts_with_every_error_kept),
        TS_TEST(dead_cancel_and_discard_end_a_job_at_once),
        TS_TEST(snooze_spends_no_attempt),
        TS_TEST(timeout_cancels_the_handler_and_counts_as_a_failed_attempt),
        TS_TEST(operator_stops_a_running_job),
        TS_TEST(unique_key_is_held_until_done_start_or_ttl),
        TS_TEST(job_without_a_handler_waits_and_spends_no_attempt),
        TS_TEST(corrupt_envelope_goes_to_the_dead_with_its_bytes_and_the_worker_lives),
        TS_TEST(oversize_job_goes_to_the_dead_of_a_worker_with_a_smaller_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
