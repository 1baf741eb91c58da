/* Slots as tasks: thousands of handlers on a few threads, beside those that hog the CPU or block. */
#include "rt_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <lade/lade.h>

#include "rt/seam.h"

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

/* By default slots are tasks, on a runtime of the worker's own unless the test has started one. */
static void work(lade *q, struct watch *w, const char *kind, lade_handler fn, int concurrency)
{
    lade_err err;
    lade_worker *worker;
    lade_worker_config c = {.concurrency = concurrency,
                            .prefetch_max = 1000,
                            .drain = true,
                            .no_signals = true,
                            .lease = 2 * LADE_SECOND};
    assert_int_equal(lade_worker_open(&worker, q, &c, &err), 0);
    assert_int_equal(lade_worker_handle(worker, kind, fn, w), 0);
    assert_int_equal(lade_worker_run(worker, &err), 0);
    lade_worker_stats s;
    lade_worker_get_stats(worker, &s);
    assert_int_equal(s.lost, 0);
    lade_worker_close(worker);
    rig_check();
}

static void ten_thousand_slots_in_one_process(void **state)
{
    (void)state;
    lade_err err;
    lade *q;
    assert_int_equal(lade_open(&q, URL, NULL, &err), 0);
    struct watch w = {.want = 10000};
#if defined(__has_feature)
#    if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
    w.want = 2000; /* each stack costs those far more memory */
#    endif
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
    if (rig_add(&w->hogs, 1) == 1) { /* the first one keeps a thread until all others are done */
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

/* Blocks its thread until all wanted handlers are inside: only possible when each has a thread. */
static lade_outcome block_thread(lade_job *job, void *ctx)
{
    struct watch *w = ctx;
    (void)job;
    rig_add(&w->running, 1);
    int64_t until = rig_in_ms(60000);
    while (rig_get(&w->running) < w->want && lade_clock_now() < until)
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    EXPECT(rig_get(&w->running) == w->want);
    rig_add(&w->done, 1);
    return LADE_OK;
}

static void eight_handlers_that_block_run_at_once_on_two_workers(void **state)
{
    (void)state;
    lade_err err;
    lade *q;
    lade_rt *rt;
    assert_int_equal(lade_rt_start(&(lade_rt_opts){.workers = 2, .spares = 16}, &rt), 0);
    assert_int_equal(lade_open(&q, URL, NULL, &err), 0);
    struct watch w = {.want = 8};
    put(q, "block", w.want);
    work(q, &w, "block", block_thread, 8);
    assert_int_equal(w.done, w.want);
    lade_rt_stats s;
    lade_rt_stats_get(&s);
    assert_in_range(s.workers, 8, 18);
    lade_close(q);
    assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
}

/* Six handlers compute, on two workers with four spares; timers and the rest go on. */
static lade_outcome compute_or_sleep(lade_job *job, void *ctx)
{
    struct watch *w = ctx;
    (void)job;
    if (rig_add(&w->hogs, 1) <= 5) {
        int64_t until = rig_in_ms(60000);
        while (rig_get(&w->done) < w->want - 5 && lade_clock_now() < until)
            ;
        EXPECT(rig_get(&w->done) >= w->want - 5);
    } else {
        (void)lade_task_sleep_until(rig_in_ms(1));
    }
    rig_add(&w->done, 1);
    return LADE_OK;
}

static void handlers_that_compute_on_every_worker_stop_nobody_else(void **state)
{
    (void)state;
    lade_err err;
    lade *q;
    lade_rt *rt;
    assert_int_equal(lade_rt_start(&(lade_rt_opts){.workers = 2, .spares = 4}, &rt), 0);
    assert_int_equal(lade_open(&q, URL, NULL, &err), 0);
    struct watch w = {.want = 100};
    put(q, "compute", w.want);
    work(q, &w, "compute", compute_or_sleep, 20);
    assert_int_equal(w.done, w.want);
    lade_close(q);
    assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
}

struct pipes {
    struct watch w;
    int to_handlers[2];
};

/* 200 handlers wait in poll's place for one byte each, by the engine's own call. */
static lade_outcome wait_for_byte(lade_job *job, void *ctx)
{
    struct pipes *p = ctx;
    (void)job;
    rig_add(&p->w.running, 1);
    struct lr_fd fd = {p->to_handlers[0], LR_READ, 0};
    char byte;
    while (read(p->to_handlers[0], &byte, 1) != 1)
        EXPECT(lr_wait_fds(&fd, 1, rig_in_ms(60000)) == 1);
    rig_add(&p->w.done, 1);
    return LADE_OK;
}

static void *feed(void *arg)
{
    struct pipes *p = arg;
    int64_t until = rig_in_ms(60000);
    while (rig_get(&p->w.running) < p->w.want && lade_clock_now() < until)
        (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    lade_rt_stats s;
    lade_rt_stats_get(&s);
    __atomic_store_n(&p->w.most, s.workers, __ATOMIC_SEQ_CST);
    char bytes[256] = {0};
    EXPECT(write(p->to_handlers[1], bytes, p->w.want) == (ssize_t)p->w.want);
    return NULL;
}

static void handlers_that_wait_for_descriptors_take_no_thread(void **state)
{
    (void)state;
    lade_err err;
    lade *q;
    lade_rt *rt;
    pthread_t feeder;
    assert_int_equal(
        lade_rt_start(&(lade_rt_opts){.workers = 2, .spares = 16, .blocking_max = 1}, &rt), 0);
    assert_int_equal(lade_open(&q, URL, NULL, &err), 0);
    struct pipes p = {.w = {.want = 200}};
    assert_int_equal(pipe2(p.to_handlers, O_CLOEXEC), 0);
    assert_true(fcntl(p.to_handlers[0], F_SETFL, O_NONBLOCK) == 0);
    put(q, "pipe", p.w.want);
    assert_int_equal(pthread_create(&feeder, NULL, feed, &p), 0);
    work(q, &p.w, "pipe", wait_for_byte, (int)p.w.want);
    assert_int_equal(pthread_join(feeder, NULL), 0);
    EXPECT(rig_get(&p.w.most) <= 18); /* for 200 that wait */
    assert_int_equal(p.w.done, p.w.want);
    lade_close(q);
    assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
    (void)close(p.to_handlers[0]);
    (void)close(p.to_handlers[1]);
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
        cmocka_unit_test(eight_handlers_that_block_run_at_once_on_two_workers),
        cmocka_unit_test(handlers_that_compute_on_every_worker_stop_nobody_else),
        cmocka_unit_test(handlers_that_wait_for_descriptors_take_no_thread),
        cmocka_unit_test(handlers_enqueue_and_call_what_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
