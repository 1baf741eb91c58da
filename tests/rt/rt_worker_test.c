/* Slots as tasks: thousands of handlers on a few threads, beside those that hog the CPU or block. */
#include "rt_rig.h"

#include <pthread.h>
#include <unistd.h>

#include <lade/lade.h>

#define URL "memory:"

struct watch {
    uint64_t running, most, done, hogs;
    unsigned want;
    lade *q;
};

/* Waits until as many as wanted are inside at once: only possible when each has a slot. */
static lade_outcome gather(lade_job *job, void *ctx)
{
    struct watch *w = ctx;
    (void)job;
    EXPECT(lade_task_self().at != NULL);
    uint64_t n = rig_add(&w->running, 1);
    for (uint64_t most = rig_get(&w->most); n > most; most = rig_get(&w->most)) {
        if (__atomic_compare_exchange_n(&w->most, &most, n, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            break;
    }
    int64_t until = rig_patience();
    while (rig_get(&w->most) < w->want && lade_clock_now() < until)
        (void)lade_task_sleep_until(rig_in_ms(20));
    rig_add(&w->running, (uint64_t)-1);
    rig_add(&w->done, 1);
    return LADE_OK;
}

static void put(lade *q, const char *kind, unsigned n)
{
    lade_err err;
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(lade_enqueue(q, &(lade_job_spec){.kind = kind}, NULL, &err), 0);
}

static void work(lade *q, struct watch *w, const char *kind, lade_handler fn, int concurrency)
{
    lade_err err;
    lade_worker *worker;
    lade_worker_config c = {.concurrency = concurrency,
                            .prefetch_max = 1000,
                            .drain = true,
                            .no_signals = true,
                            .lease = 2 * LADE_SECOND,
                            .executor = LADE_EXECUTOR_TASK};
    assert_int_equal(lade_worker_open(&worker, q, &c, &err), 0);
    assert_int_equal(lade_worker_handle(worker, kind, fn, w), 0);
    assert_int_equal(lade_worker_run(worker, &err), 0);
    lade_worker_stats s;
    lade_worker_get_stats(worker, &s);
    assert_int_equal(s.lost, 0); /* the lease was renewed all the while */
    lade_worker_close(worker);
    rig_check();
}

static void ten_thousand_slots_in_one_process(void **state)
{
    (void)state;
    lade_err err;
    lade *q;
    assert_int_equal(lade_open(&q, URL, NULL, &err), 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    struct watch w = {.want = 2000};
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
    struct watch w = {.want = 500};
#    else
    struct watch w = {.want = 10000};
#    endif
#else
    struct watch w = {.want = 10000};
#endif
    put(q, "gather", w.want);
    work(q, &w, "gather", gather, (int)w.want);
    assert_int_equal(w.most, w.want);
    assert_int_equal(w.done, w.want);
    lade_close(q);
}

static lade_outcome hog_or_not(lade_job *job, void *ctx)
{
    struct watch *w = ctx;
    if (rig_add(&w->hogs, 1) == 1) { /* the first one keeps a thread for longer than its lease */
        int64_t until = rig_patience();
        while (lade_clock_now() < until && rig_get(&w->done) < w->want - 1)
            ;
        EXPECT(rig_get(&w->done) == w->want - 1); /* all the others ran meanwhile */
    }
    (void)job;
    rig_add(&w->done, 1);
    return LADE_OK;
}

static void a_handler_that_hogs_the_cpu_stops_nobody_else(void **state)
{
    (void)state;
    lade_err err;
    lade *q;
    assert_int_equal(lade_open(&q, URL, NULL, &err), 0);
    struct watch w = {.want = 200};
    put(q, "hog", w.want);
    work(q, &w, "hog", hog_or_not, 10);
    assert_int_equal(w.done, w.want);
    lade_close(q);
}

static void block(void *arg)
{
    (void)usleep(10000);
    rig_add(arg, 1);
}

static lade_outcome enqueue_and_block(lade_job *job, void *ctx)
{
    struct watch *w = ctx;
    lade_err err;
    EXPECT(lade_blocking_run(block, &w->hogs) == 0);
    EXPECT(lade_enqueue(w->q, &(lade_job_spec){.kind = "other", .queue = "elsewhere"}, NULL,
                        &err) == 0);
    (void)job;
    rig_add(&w->done, 1);
    return LADE_OK;
}

static void handlers_enqueue_and_call_what_blocks(void **state)
{
    (void)state;
    lade_err err;
    lade *q;
    assert_int_equal(lade_open(&q, URL, NULL, &err), 0);
    struct watch w = {.want = 100, .q = q};
    put(q, "block", w.want);
    work(q, &w, "block", enqueue_and_block, 50);
    assert_int_equal(w.done, w.want);
    assert_int_equal(w.hogs, w.want);
    lade_close(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_slots_in_one_process),
        cmocka_unit_test(a_handler_that_hogs_the_cpu_stops_nobody_else),
        cmocka_unit_test(handlers_enqueue_and_call_what_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
