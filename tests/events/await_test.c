/* await_test.c - waiting for jobs, results, progress and log lines, and tails of events through the public API; on each store */
#include "support/rig_test.h"

#include <pthread.h>

#include "base/clock.h"

#define WAITERS 40

/* What a handler does is in its payload. */
static lade_outcome handle(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes p = lade_job_payload(job);
    const char *what = p.data;
    switch (p.size > 0 ? what[0] : 'r') {
    case 'r': /* result: its own payload */
        return lade_job_result(job, p) == 0 ? LADE_OK : LADE_RETRY;
    case 'd':
        lade_job_error(job, "no luck");
        return LADE_DEAD;
    case 'c':
        return LADE_CANCEL;
    case 'p': /* says much */
        for (int i = 0; i <= 1000; i++) {
            if (lade_job_progress(job, i, "going on") != 0 || lade_job_log(job, "line %d", i) != 0)
                return LADE_DEAD;
        }
        return LADE_OK;
    case 'u': { /* lines that must be cut */
        static char big[LADE_LOG_LINE_MAX + 10];
        for (size_t i = 0; i + 1 < sizeof(big); i += 2)
            memcpy(big + i, "\xc3\xa9", 2);
        big[0] = 'x'; /* so that the limit falls within a character */
        memmove(big + 1, big + 2, sizeof(big) - 2);
        return lade_job_log_bytes(job, (lade_bytes){big, sizeof(big) - 1}) == 0 &&
                       lade_job_log(job, "two\nlines") == 0 && lade_job_progress(job, -5, NULL) == 0
                   ? LADE_OK
                   : LADE_DEAD;
    }
    default:
        return LADE_OK;
    }
}

struct work {
    lade_worker *w;
    pthread_t thread;
};

static void *run_worker(void *arg)
{
    lade_err err = {0};
    return lade_worker_run(arg, &err) == 0 ? NULL : arg;
}

static void start(struct work *k, lade *q)
{
    lade_worker_config config = {.concurrency = 4, .no_signals = true};
    assert_int_equal(lade_worker_open(&k->w, q, &config, NULL), 0);
    assert_int_equal(lade_worker_handle(k->w, "*", handle, NULL), 0);
    assert_int_equal(pthread_create(&k->thread, NULL, run_worker, k->w), 0);
}

static void stop(struct work *k)
{
    lade_worker_stop(k->w);
    assert_int_equal(pthread_join(k->thread, NULL), 0);
    lade_worker_close(k->w);
}

static void add(lade *q, const char *id, const char *what)
{
    lade_job_spec spec = {.kind = "k", .id = id, .payload = {what, strlen(what)}};
    assert_int_equal(lade_enqueue(q, &spec, NULL, NULL), 0);
}

static void a_wait_gives_how_the_job_ended_and_its_result(void **state)
{
    struct ts_fix *f = *state;
    struct work k;
    add(f->q, "good", "result!");
    add(f->q, "bad", "d");
    add(f->q, "off", "c");
    start(&k, f->q);
    lade_job_view *v = NULL;
    /* chasqui 50: value, reject with reason */
    assert_int_equal(lade_job_wait(f->q, "default", "good", TS_SOON, NULL, &v, NULL), 0);
    assert_int_equal(v->state, LADE_STATE_COMPLETED);
    assert_memory_equal(v->result.data, "result!", 7);
    lade_job_view_free(v);
    assert_int_equal(lade_job_wait(f->q, "default", "bad", TS_SOON, NULL, &v, NULL), 0);
    assert_int_equal(v->state, LADE_STATE_DEAD);
    assert_string_equal(v->reason, "unrecoverable");
    lade_job_view_free(v);
    assert_int_equal(lade_job_wait(f->q, "default", "off", TS_SOON, NULL, &v, NULL), 0);
    assert_int_equal(v->state, LADE_STATE_CANCELLED);
    lade_job_view_free(v);
    assert_int_equal(lade_job_wait(f->q, "default", "nobody", TS_SOON, NULL, &v, NULL),
                     LADE_NOT_FOUND);
    stop(&k);
}

/* chasqui 50 */
static void a_wait_ends_at_its_timeout_or_when_it_is_cancelled(void **state)
{
    struct ts_fix *f = *state;
    lade_job_view *v = NULL;
    lade_waiter *w = NULL;
    add(f->q, "late", "r");
    assert_int_equal(lade_job_wait(f->q, "default", "late", 0, NULL, &v, NULL), LADE_TIMEOUT);
    int64_t began = lb_clock_mono();
    assert_int_equal(lade_job_wait(f->q, "default", "late", 30 * LADE_MILLISECOND, NULL, &v, NULL),
                     LADE_TIMEOUT);
    assert_true(lb_clock_mono() - began >= 30 * LADE_MILLISECOND);
    assert_int_equal(lade_waiter_open(&w, f->q, NULL), 0);
    lade_waiter_cancel(w);
    assert_int_equal(lade_job_wait(f->q, "default", "late", LADE_FOREVER, w, &v, NULL),
                     LADE_STOPPED);
    lade_waiter_close(w);
}

struct waiter {
    pthread_t thread;
    lade *q;
    lade_waiter *by;
    char id[16];
    int rc, state;
    _Atomic bool begun;
};

static void *wait_for_one(void *arg)
{
    struct waiter *w = arg;
    lade_job_view *v = NULL;
    w->begun = true;
    w->rc = lade_job_wait(w->q, "default", w->id, 2 * TS_SOON, w->by, &v, NULL);
    w->state = v ? (int)v->state : -1;
    lade_job_view_free(v);
    return NULL;
}

/* Half wait by the worker's own handle, half by another, as another process would. (chasqui 50) */
static void many_wait_at_once_each_for_its_own_job(void **state)
{
    struct ts_fix *f = *state;
    struct waiter *w = calloc(WAITERS, sizeof(*w));
    lade *other = ts_rig_open(&f->r);
    struct work k;
    assert_non_null(w);
    for (int i = 0; i < WAITERS; i++) {
        (void)snprintf(w[i].id, sizeof(w[i].id), "j%d", i);
        add(f->q, w[i].id, i % 4 == 3 ? "d" : "r");
        w[i].q = i % 2 ? other : f->q;
        assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_one, &w[i]), 0);
    }
    start(&k, f->q);
    for (int i = 0; i < WAITERS; i++) {
        (void)pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].rc, 0);
        assert_int_equal(w[i].state, i % 4 == 3 ? LADE_STATE_DEAD : LADE_STATE_COMPLETED);
    }
    stop(&k);
    lade_close(other);
    free(w);
}

static void one_wait_is_cancelled_and_the_others_go_on(void **state)
{
    struct ts_fix *f = *state;
    struct waiter w[3] = {{.q = f->q, .id = "a"}, {.q = f->q, .id = "b"}, {.q = f->q, .id = "c"}};
    struct work k;
    for (int i = 0; i < 3; i++) {
        add(f->q, w[i].id, "r");
        assert_int_equal(lade_waiter_open(&w[i].by, f->q, NULL), 0);
        assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_one, &w[i]), 0);
    }
    lade_waiter_cancel(w[0].by); /* perhaps the one that leads */
    (void)pthread_join(w[0].thread, NULL);
    assert_int_equal(w[0].rc, LADE_STOPPED);
    start(&k, f->q);
    for (int i = 1; i < 3; i++) {
        (void)pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].rc, 0);
    }
    for (int i = 0; i < 3; i++)
        lade_waiter_close(w[i].by);
    stop(&k);
}

/* chasqui 49 */
/* chasqui 49: the time of one job's result, beside that of all */
static void a_result_is_kept_for_the_time_its_job_names(void **state)
{
    struct ts_fix *f = *state;
    struct work k;
    const char *ids[] = {"long", "brief"};
    lade_result_view *r = NULL;
    lade_job_view *v = NULL;
    uint64_t n = 0;
    for (int i = 0; i < 2; i++) {
        lade_job_spec spec = {.kind = "k",
                              .id = ids[i],
                              .payload = {"r of it", 7},
                              .result_ttl = i == 0 ? LADE_HOUR : 0};
        assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
    }
    start(&k, f->q);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lade_job_wait(f->q, "default", ids[i], TS_SOON, NULL, &v, NULL), 0);
        assert_int_equal(v->result_ttl, i == 0 ? LADE_HOUR : 0);
        assert_memory_equal(v->result.data, "r of it", 7);
        lade_job_view_free(v);
    }
    stop(&k);
    assert_int_equal(lade_queue_purge(f->q, "default", LADE_STATE_COMPLETED, 1000, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(lade_result_get_many(f->q, "default", ids, 2, &r, NULL), 0);
    assert_int_equal(r[0].outcome, 0);
    assert_int_equal(r[0].state, LADE_STATE_COMPLETED);
    assert_int_equal(r[0].result.size, 7);
    assert_memory_equal(r[0].result.data, "r of it", 7);
    assert_int_equal(r[1].outcome, LADE_NOT_FOUND);
    lade_free(r);
}

/* chasqui 49 */
static void results_of_many_come_aligned(void **state)
{
    struct ts_fix *f = *state;
    struct work k;
    lade_job_view *v = NULL;
    lade_result_view *got = NULL;
    static const char *const ids[] = {"b", "nobody", "a", "dead", "later"};
    add(f->q, "a", "r-a");
    add(f->q, "b", "r-b");
    add(f->q, "dead", "d");
    start(&k, f->q);
    for (int i = 0; i < 4; i++) {
        if (i == 1)
            continue;
        assert_int_equal(lade_job_wait(f->q, "default", ids[i], TS_SOON, NULL, &v, NULL), 0);
        lade_job_view_free(v);
    }
    stop(&k);
    add(f->q, "later", "r");
    assert_int_equal(lade_result_get_many(f->q, "default", ids, 5, &got, NULL), 0);
    assert_int_equal(got[0].outcome, 0);
    assert_memory_equal(got[0].result.data, "r-b", 3);
    assert_int_equal(got[1].outcome, LADE_NOT_FOUND);
    assert_memory_equal(got[2].result.data, "r-a", 3);
    assert_int_equal(got[3].outcome, LADE_WRONG_STATE);
    assert_int_equal(got[4].outcome, LADE_WRONG_STATE);
    assert_int_equal(got[4].state, LADE_STATE_READY);
    lade_free(got);
}

static void a_handler_that_says_much_writes_little_and_its_last_word_counts(void **state)
{
    struct ts_fix *f = *state;
    struct work k;
    lade_job_view *v = NULL;
    lade_job_notes *notes = NULL;
    assert_int_equal(lade_queue_events_set(f->q, "default", 10000, NULL), 0);
    add(f->q, "a", "p");
    add(f->q, "u", "u");
    start(&k, f->q);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lade_job_wait(f->q, "default", i ? "u" : "a", 2 * TS_SOON, NULL, &v, NULL),
                         0);
        assert_int_equal(v->state, LADE_STATE_COMPLETED);
        lade_job_view_free(v);
    }
    stop(&k);
    /* chasqui 51: clamped, bounded, paged from both ends */
    assert_int_equal(lade_job_get_notes(f->q, "default", "a", -2, 10, true, &notes, NULL), 0);
    assert_int_equal(notes->percent, 100);
    assert_string_equal(notes->note, "going on");
    assert_int_equal(notes->total, 1001);
    assert_int_equal(notes->n, 2);
    assert_int_equal(notes->line[0].number, 1001);
    assert_memory_equal(notes->line[0].text.data, "line 1000", 9);
    assert_int_equal(notes->line[1].number, 1000);
    lade_free(notes);
    assert_int_equal(lade_job_get_notes(f->q, "default", "a", 0, 1000, false, &notes, NULL), 0);
    assert_int_equal(notes->n, LADE_LOG_LINES_MAX);
    assert_int_equal(notes->line[0].number, 2);
    lade_free(notes);
    assert_int_equal(lade_job_get_notes(f->q, "default", "u", 0, 10, false, &notes, NULL), 0);
    assert_int_equal(notes->percent, 0);
    assert_int_equal(notes->n, 2);
    assert_int_equal(notes->line[0].text.size, LADE_LOG_LINE_MAX - 1); /* not half a character */
    assert_memory_equal(notes->line[1].text.data, "two", 3);
    assert_int_equal(notes->line[1].text.size, 3);
    lade_free(notes);
    /* one event for each write, not for each word */
    lade_tail *t = NULL;
    static const char *const queue[] = {"default"};
    const lade_event *e = NULL;
    size_t n = 0, progress = 0;
    assert_int_equal(lade_tail_open(&t, f->q, queue, 1, LADE_TAIL_START, NULL), 0);
    while (lade_tail_next(t, 100, 0, &e, &n, NULL) == 0) {
        for (size_t i = 0; i < n; i++)
            progress += e[i].type == LADE_EVENT_PROGRESS;
    }
    lade_tail_close(t);
    assert_in_range(progress, 2, 500);
}

struct reader {
    pthread_t thread;
    lade_tail *t;
    int rc;
    size_t n;
    char text[400];
};

static void *read_until(void *arg)
{
    struct reader *r = arg;
    const lade_event *e = NULL;
    size_t n = 0;
    while ((r->rc = lade_tail_next(r->t, 100, 2 * TS_SOON, &e, &n, NULL)) == 0) {
        for (size_t i = 0; i < n; i++, r->n++) {
            size_t at = strlen(r->text);
            (void)snprintf(r->text + at, sizeof(r->text) - at, "%s%s:%s", r->n ? " " : "",
                           lade_event_type_name(e[i].type), e[i].job);
        }
        if (r->n > 0 && e[n - 1].type == LADE_EVENT_COMPLETED)
            return NULL;
    }
    return NULL;
}

static void a_tail_waits_for_events_of_another_handle(void **state)
{
    struct ts_fix *f = *state;
    lade *other = ts_rig_open(&f->r);
    static const char *const queue[] = {"default"};
    struct reader r = {0};
    struct work k;
    assert_int_equal(lade_queue_events_set(f->q, "default", 1000, NULL), 0);
    assert_int_equal(lade_tail_open(&r.t, other, queue, 1, LADE_TAIL_START, NULL), 0);
    assert_int_equal(pthread_create(&r.thread, NULL, read_until, &r), 0);
    start(&k, f->q);
    add(f->q, "a", "r");
    (void)pthread_join(r.thread, NULL);
    stop(&k);
    assert_int_equal(r.rc, 0);
    assert_string_equal(r.text, "waiting:a active:a drained: completed:a");
    lade_tail_close(r.t);
    lade_close(other);
}

static void a_tail_is_told_what_it_missed_and_goes_on(void **state)
{
    struct ts_fix *f = *state;
    static const char *const queue[] = {"default", "nowhere"};
    const lade_event *e = NULL;
    lade_tail *t = NULL;
    lade_events_info info;
    size_t n = 0;
    assert_int_equal(lade_tail_open(&t, f->q, queue + 1, 1, LADE_TAIL_START, NULL), 0);
    assert_int_equal(lade_tail_next(t, 1, 0, &e, &n, NULL), LADE_WRONG_STATE);
    lade_tail_close(t);
    assert_int_equal(lade_queue_events_set(f->q, "default", 10, NULL), 0);
    assert_int_equal(lade_tail_open(&t, f->q, queue, 2, LADE_TAIL_START, NULL), 0);
    add(f->q, "first", "r");
    assert_int_equal(lade_tail_next(t, 1, 0, &e, &n, NULL), 0);
    uint64_t first = e->id;
    for (int i = 0; i < 400; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "x%d", i);
        add(f->q, id, "r");
    }
    assert_int_equal(lade_tail_next(t, 100, 0, &e, &n, NULL), LADE_MISSED);
    assert_int_equal(lade_queue_events_get(f->q, "default", &info, NULL), 0);
    assert_int_equal(lade_tail_missed(t), info.first - 1 - first);
    assert_int_equal(lade_tail_next(t, 100, 0, &e, &n, NULL), 0);
    assert_int_equal(e->id, info.first);
    assert_int_equal(lade_tail_seek(t, "default", info.last), 0);
    assert_int_equal(lade_tail_next(t, 100, 0, &e, &n, NULL), LADE_TIMEOUT);
    assert_int_equal(lade_tail_seek(t, "other", 1), LADE_NOT_FOUND);
    lade_tail_cancel(t);
    assert_int_equal(lade_tail_next(t, 100, LADE_FOREVER, &e, &n, NULL), LADE_STOPPED);
    lade_tail_close(t);
}

static void bad_arguments_are_refused_by_name(void **state)
{
    struct ts_fix *f = *state;
    lade_err err = {0};
    lade_job_view *v = NULL;
    lade_result_view *got = NULL;
    lade_job_notes *notes = NULL;
    static const char *const ids[] = {"a"};
    assert_int_equal(lade_job_wait(f->q, NULL, "a", 0, NULL, &v, &err), -LADE_EINVAL);
    assert_int_equal(lade_job_wait(f->q, "default", "a", -1, NULL, &v, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "timeout"));
    assert_int_equal(lade_result_get_many(f->q, "default", ids, 0, &got, &err), -LADE_EINVAL);
    assert_int_equal(lade_job_get_notes(f->q, "default", "a", 0, 1001, false, &notes, &err),
                     -LADE_EINVAL);
    assert_non_null(strstr(err.text, "limit"));
    assert_int_equal(lade_queue_events_set(f->q, "default", LADE_EVENTS_CAP_MAX + 1, &err),
                     -LADE_EINVAL);
    assert_non_null(strstr(err.text, "cap"));
    assert_int_equal(lade_queue_events_set(f->q, "no spaces", 1, &err), -LADE_EINVAL);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(a_wait_gives_how_the_job_ended_and_its_result),
        TS_TEST(a_wait_ends_at_its_timeout_or_when_it_is_cancelled),
        TS_TEST(many_wait_at_once_each_for_its_own_job),
        TS_TEST(one_wait_is_cancelled_and_the_others_go_on),
        TS_TEST(results_of_many_come_aligned),
        TS_TEST(a_result_is_kept_for_the_time_its_job_names),
        TS_TEST(a_handler_that_says_much_writes_little_and_its_last_word_counts),
        TS_TEST(a_tail_waits_for_events_of_another_handle),
        TS_TEST(a_tail_is_told_what_it_missed_and_goes_on),
        TS_TEST(bad_arguments_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
