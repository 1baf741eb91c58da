/* flow_order_test.c - which job runs when: priorities, delays, queues, pause, prefetch, drain, stop; on each store */
#include "support/rig_test.h"

#include <pthread.h>

#include "queue/worker.h"

#define NS(ms)   ((ms)*LADE_MILLISECOND)
#define SEEN_MAX 4096

/* The order of the runs; handlers only record. */
static struct {
    pthread_mutex_t lock;
    char id[SEEN_MAX][24];
    char queue[SEEN_MAX][24];
    int64_t at[SEEN_MAX];
    int n;
    int nap_ms; /* what each run takes */
    bool hold;  /* atomic: runs do not end while set */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reset_seen(int nap_ms)
{
    seen.n = 0;
    seen.nap_ms = nap_ms;
    __atomic_store_n(&seen.hold, false, __ATOMIC_RELEASE);
}

static int count_seen(void)
{
    (void)pthread_mutex_lock(&seen.lock);
    int n = seen.n;
    (void)pthread_mutex_unlock(&seen.lock);
    return n;
}

static lade_outcome record(lade_job *job, void *ctx)
{
    (void)ctx;
    (void)pthread_mutex_lock(&seen.lock);
    if (seen.n < SEEN_MAX) {
        (void)snprintf(seen.id[seen.n], sizeof(seen.id[0]), "%.23s", lade_job_id(job));
        (void)snprintf(seen.queue[seen.n], sizeof(seen.queue[0]), "%.23s", lade_job_queue(job));
        seen.at[seen.n++] = lb_clock_mono();
    }
    (void)pthread_mutex_unlock(&seen.lock);
    if (seen.nap_ms)
        ts_nap_ms(seen.nap_ms);
    while (__atomic_load_n(&seen.hold, __ATOMIC_ACQUIRE) && !lade_job_cancelled(job))
        ts_nap_ms(1);
    return __atomic_load_n(&seen.hold, __ATOMIC_ACQUIRE) ? LADE_RETRY : LADE_OK;
}

static void open_worker(struct ts_fix *f, const lade_worker_config *config)
{
    ts_local_open(&f->local, &f->r, f->q, config);
    assert_int_equal(lade_worker_handle(f->local.w, "*", record, NULL), 0);
}

static void enqueue(struct ts_fix *f, const char *queue, const char *id, lade_job_spec spec)
{
    spec.kind = "job";
    spec.queue = queue;
    spec.id = id;
    assert_int_equal(lade_enqueue(f->q, &spec, NULL, NULL), 0);
}

/* n jobs PREFIX-0 ... of one queue in one call. */
static void enqueue_n(struct ts_fix *f, const char *queue, const char *prefix, int n)
{
    lade_job_spec spec[512];
    char id[512][24];
    assert_in_range(n, 1, 512);
    for (int i = 0; i < n; i++) {
        (void)snprintf(id[i], sizeof(id[i]), "%.10s-%d", prefix, i);
        spec[i] = (lade_job_spec){.kind = "job", .queue = queue, .id = id[i]};
    }
    assert_int_equal(lade_enqueue_many(f->q, spec, (size_t)n, NULL, NULL, NULL), 0);
}

static void higher_priorities_run_first_and_equals_in_order(void **state)
{
    struct ts_fix *f = *state;
    char expected[90][32];
    int at = 0;
    reset_seen(0);
    for (int i = 0; i < 10; i++) {
        for (int p = LADE_PRIORITY_MIN; p <= LADE_PRIORITY_MAX; p++) {
            char id[32];
            (void)snprintf(id, sizeof(id), "p%d-%d", p, i);
            enqueue(f, "default", id, (lade_job_spec){.priority = p});
        }
    }
    for (int p = LADE_PRIORITY_MAX; p >= LADE_PRIORITY_MIN; p--) {
        for (int i = 0; i < 10; i++)
            (void)snprintf(expected[at++], sizeof(expected[0]), "p%d-%d", p, i);
    }
    open_worker(f, &(lade_worker_config){.concurrency = 1, .drain = true});
    ts_local_run(&f->local);
    assert_true(ts_local_wait(&f->local, TS_SOON));
    assert_int_equal(count_seen(), 90);
    for (int i = 0; i < 90; i++)
        assert_string_equal(seen.id[i], expected[i]);
}

/* chronos 18; chasqui 13 */
static void delayed_jobs_run_when_due_and_not_before(void **state)
{
    struct ts_fix *f = *state;
    static const int delays[] = {400, 1, 50, 250, 120, 10, 333};

    enum { N = LB_ARRAY_LEN(delays) };

    int64_t before[N];
    reset_seen(0);
    open_worker(f, NULL);
    ts_local_run(&f->local);
    for (int i = 0; i < N; i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "d-%d", i);
        before[i] = lb_clock_mono();
        enqueue(f, "default", id, (lade_job_spec){.in = NS(delays[i])});
    }
    int64_t now;
    assert_int_equal(lade_now(f->q, &now, NULL), 0);
    enqueue(f, "default", "absolute", (lade_job_spec){.at = now + NS(200)});
    enqueue(f, "default", "past", (lade_job_spec){.at = now - NS(5000)});
    assert_true(TS_UNTIL(TS_SOON, count_seen() == N + 2));
    for (int k = 0; k < N + 2; k++) {
        if (seen.id[k][1] != '-')
            continue;
        int i = (int)strtol(seen.id[k] + 2, NULL, 10);
        int64_t late = seen.at[k] - before[i] - NS(delays[i]);
        print_message("%s: %lld ms late\n", seen.id[k], (long long)(late / NS(1)));
        assert_true(late >= -NS(2)); /* stores keep whole milliseconds */
    }
}

/* chronos 37 */
static void strict_order_serves_a_later_queue_only_while_the_earlier_are_empty(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    enqueue_n(f, "low", "low", 20);
    enqueue_n(f, "high", "high", 20);
    lade_worker_queue queues[] = {{.name = "high"}, {.name = "low"}};
    open_worker(
        f, &(lade_worker_config){.concurrency = 1, .queues = queues, .n_queues = 2, .drain = true});
    ts_local_run(&f->local);
    assert_true(ts_local_wait(&f->local, TS_SOON));
    assert_int_equal(count_seen(), 40);
    for (int i = 0; i < 40; i++)
        assert_string_equal(seen.queue[i], i < 20 ? "high" : "low");
}

/* How many of n that were seen, from one on, are of the queue. */
static int count_queue(const char *name, int from, int n)
{
    int found = 0;
    for (int i = from; i < from + n; i++)
        found += strcmp(seen.queue[i], name) == 0;
    return found;
}

/* A worker that takes nothing ahead, until n jobs were seen. */
static void run_weighted(struct ts_fix *f, const lade_worker_queue *queues, size_t n_queues,
                         int concurrency, int n)
{
    open_worker(f, &(lade_worker_config){.concurrency = concurrency,
                                         .queues = queues,
                                         .n_queues = n_queues,
                                         .order = LADE_ORDER_WEIGHTED,
                                         .prefetch_max = -1});
    ts_local_run(&f->local);
    assert_true(TS_UNTIL(TS_SOON, count_seen() >= n));
    assert_int_equal(ts_local_stop(&f->local), 0);
}

/* chronos 35, 36: exact in every window as long as the sum of the weights, wherever it begins; names and ties decide nothing by chance. */
static void weights_between_queues_are_exact_in_every_window(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(1);
    enqueue_n(f, "heavy", "heavy", 200);
    enqueue_n(f, "light", "light", 200);
    enqueue_n(f, "middle", "middle", 200);
    lade_worker_queue queues[] = {
        {.name = "heavy", .weight = 4}, {.name = "light"}, {.name = "middle", .weight = 2}};
    run_weighted(f, queues, 3, 1, 150);
    for (int from = 0; from + 7 <= 150; from++) {
        assert_int_equal(count_queue("heavy", from, 7), 4);
        assert_int_equal(count_queue("middle", from, 7), 2);
        assert_int_equal(count_queue("light", from, 7), 1);
    }
}

/* Several at once and taken by the batch: as near as batches are, and nobody starves; huge weights do not overflow. (chronos 35, 36) */
static void weighted_order_starves_no_queue_and_follows_the_weights(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(1);
    enqueue_n(f, "heavy", "heavy", 500);
    enqueue_n(f, "light", "light", 500);
    lade_worker_queue queues[] = {{.name = "heavy", .weight = 4000000000},
                                  {.name = "light", .weight = 1000000000}};
    run_weighted(f, queues, 2, 2, 400);
    int light = count_queue("light", 0, 400);
    print_message("weights 4:1 gave %d:%d of 400\n", 400 - light, light);
    assert_in_range(light, 50, 110); /* 80 expected; takes of two and of one */
}

/* Nothing starts after the pause has returned, so that the 100 ms of the contract are kept on any machine. (chronos 39; chasqui 52) */
static void pause_stops_a_queue_at_once_and_no_other(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    lade_worker_queue queues[] = {{.name = "busy"}, {.name = "other"}};
    open_worker(f, &(lade_worker_config){
                       .concurrency = 2, .queues = queues, .n_queues = 2, .prefetch_max = -1});
    ts_local_run(&f->local);
    __atomic_store_n(&seen.hold, true, __ATOMIC_RELEASE);
    enqueue_n(f, "busy", "busy", 100);
    assert_true(TS_UNTIL(TS_SOON, count_seen() == 2));
    assert_int_equal(lade_queue_pause(f->q, "busy", NULL), 0);
    __atomic_store_n(&seen.hold, false, __ATOMIC_RELEASE);
    enqueue_n(f, "other", "other", 100);
    assert_true(TS_UNTIL(TS_SOON, ts_rig_count(f->q, LADE_STATE_COMPLETED) == 102));
    assert_int_equal(count_seen(), 102);
    lade_queue_info info;
    assert_int_equal(lade_queue_get(f->q, "busy", &info, NULL), 0);
    assert_true(info.paused);
    assert_int_equal(info.count[LADE_STATE_READY], 98);
    assert_int_equal(lade_queue_resume(f->q, "busy", NULL), 0);
    assert_true(TS_UNTIL(TS_SOON, count_seen() == 200));
}

/* Fall due while nothing of the queue may run, and are taken in their order once it may. */
static void fall_due_while_held(struct ts_fix *f, void (*hold)(struct ts_fix *f, bool on))
{
    char id[24];
    hold(f, true);
    reset_seen(0);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof(id), "d%02d", i);
        enqueue(f, "default", id, (lade_job_spec){.in = NS(20 + 5 * i), .priority = i % 2});
    }
    assert_true(TS_UNTIL(TS_SOON, ts_rig_count(f->q, LADE_STATE_READY) == 20));
    assert_int_equal(count_seen(), 0);
    hold(f, false);
    assert_true(TS_UNTIL(TS_SOON, count_seen() == 20));
    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof(id), "d%02d", i < 10 ? 2 * i + 1 : 2 * (i - 10));
        assert_string_equal(seen.id[i], id);
    }
}

static void pause_default(struct ts_fix *f, bool on)
{
    assert_int_equal(
        on ? lade_queue_pause(f->q, "default", NULL) : lade_queue_resume(f->q, "default", NULL), 0);
}

/* C-071: jobs that fall due in a paused queue are ready when it is resumed, in their order. (chronos 39) */
static void c071_jobs_fall_due_while_their_queue_is_paused(void **state)
{
    struct ts_fix *f = *state;
    open_worker(f, &(lade_worker_config){.concurrency = 1});
    ts_local_run(&f->local);
    fall_due_while_held(f, pause_default);
}

/* On: one an hour, and that one has run. */
static void limit_default(struct ts_fix *f, bool on)
{
    lade_limit l = {.rate = {on ? 1 : 0, on ? LADE_HOUR : 0, on ? 1 : 0}};
    assert_int_equal(lade_limit_set(f->q, "default", LADE_LIMIT_QUEUE, (lade_bytes){0}, &l, NULL),
                     0);
    if (!on)
        return;
    enqueue(f, "default", "first", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "first", LADE_STATE_COMPLETED));
}

/* C-071: the same where a rate holds the queue. */
static void c071_jobs_fall_due_while_their_queue_is_rate_limited(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    open_worker(f, &(lade_worker_config){.concurrency = 1});
    ts_local_run(&f->local);
    fall_due_while_held(f, limit_default);
}

/* Slow jobs spread: a second worker that is idle gets its share although the first was there before it. (chasqui 25) */
static void prefetch_leaves_slow_jobs_to_an_idle_worker(void **state)
{
    struct ts_fix *f = *state;
    struct ts_local second;
    reset_seen(50);
    open_worker(f, &(lade_worker_config){.concurrency = 2, .name = "first"});
    ts_local_run(&f->local);
    enqueue_n(f, "default", "warm", 10); /* teaches it how long jobs take */
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    __atomic_store_n(&seen.hold, true, __ATOMIC_RELEASE); /* the first has both hands full */
    enqueue_n(f, "default", "slow", 40);
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).running == 2));
    ts_local_open(&second, &f->r, f->q, &(lade_worker_config){.concurrency = 2, .name = "second"});
    assert_int_equal(lade_worker_handle(second.w, "*", record, NULL), 0);
    ts_local_run(&second);
    bool both = TS_UNTIL(TS_SOON, ts_local_stats(&second).running == 2);
    int held = ts_local_stats(&f->local).queued;
    __atomic_store_n(&seen.hold, false, __ATOMIC_RELEASE);
    bool quiet = ts_rig_wait_quiet(f->q, TS_SOON);
    uint64_t share = ts_local_stats(&second).completed;
    int rc = ts_local_stop(&second);
    assert_true(both);
    assert_true(quiet);
    assert_int_equal(rc, 0);
    print_message("40 jobs of 50 ms on 2 x 2 slots: %d were prefetched, second worker ran %llu\n",
                  held, (unsigned long long)share);
    assert_true(share >= 2);
}

static void fast_jobs_are_prefetched(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    open_worker(f, &(lade_worker_config){.concurrency = 2});
    ts_local_run(&f->local);
    enqueue_n(f, "default", "fast", 500);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    enqueue_n(f, "default", "again", 500);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    assert_int_equal(count_seen(), 1000);
}

static void drain_waits_for_scheduled_jobs_and_ends_by_itself(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    enqueue(f, "default", "now", (lade_job_spec){0});
    enqueue(f, "default", "later", (lade_job_spec){.in = NS(400)});
    open_worker(f, &(lade_worker_config){.drain = true});
    ts_local_run(&f->local);
    assert_true(ts_local_wait(&f->local, TS_SOON));
    assert_int_equal(count_seen(), 2);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), 2);
    assert_int_equal(ts_local_stop(&f->local), 0);
    lade_worker_info *info;
    size_t n;
    assert_int_equal(lade_worker_list(f->q, &info, &n, NULL), 0);
    assert_int_equal(n, 0); /* it signed off */
    lade_free(info);
}

/* Teaches a worker that jobs are fast, then lets it prefetch while its slots are held. */
static void fill_hands(struct ts_fix *f, int n)
{
    enqueue_n(f, "default", "warm", 300);
    assert_true(ts_rig_wait_quiet(f->q, TS_SOON));
    __atomic_store_n(&seen.hold, true, __ATOMIC_RELEASE);
    enqueue_n(f, "default", "held", n);
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).running == 2));
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).queued > 0));
}

static void check_all_handed_back(struct ts_fix *f, int n)
{
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_ACTIVE), 0);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), n);
    for (int i = 0; i < n; i++) {
        char id[24];
        lade_job_view *v;
        (void)snprintf(id, sizeof(id), "held-%d", i);
        assert_int_equal(lade_job_get(f->q, NULL, id, &v, NULL), 0);
        assert_int_equal(v->attempts, 0);
        assert_int_equal(v->crashes, 0);
        lade_job_view_free(v);
    }
    /* Those that had not begun stand in their old order again, behind the two that ran. */
    lade_cursor cursor = {0};
    lade_job_view *v[200];
    size_t found = 0;
    assert_int_equal(
        lade_job_list(f->q, "default", LADE_STATE_READY, &cursor, LB_ARRAY_LEN(v), v, &found, NULL),
        0);
    assert_int_equal(found, n);
    for (int i = 0; i < n; i++) {
        char id[24];
        (void)snprintf(id, sizeof(id), "held-%d", i);
        if (i >= 2)
            assert_string_equal(v[i]->id, id);
        lade_job_view_free(v[i]);
    }
}

/* chronos 32 */
static void stop_lets_handlers_finish_and_hands_the_prefetched_back(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    open_worker(f, &(lade_worker_config){.concurrency = 2});
    ts_local_run(&f->local);
    fill_hands(f, 100);
    lade_worker_stop(f->local.w);
    assert_true(TS_UNTIL(TS_SOON, ts_local_stats(&f->local).queued == 0));
    assert_false(ts_local_wait(&f->local, NS(50)));
    __atomic_store_n(&seen.hold, false, __ATOMIC_RELEASE);
    assert_true(ts_local_wait(&f->local, TS_SOON));
    int finished = count_seen() - 300;
    assert_int_equal(finished, 2);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_COMPLETED), 302);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 98);
    assert_int_equal(ts_rig_count(f->q, LADE_STATE_ACTIVE), 0);
}

static void second_stop_cancels_handlers_and_hands_everything_back(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    open_worker(f, &(lade_worker_config){.concurrency = 2, .shutdown_timeout = 60 * LADE_SECOND});
    ts_local_run(&f->local);
    fill_hands(f, 100);
    lade_worker_stop(f->local.w);
    lade_worker_stop(f->local.w);
    assert_true(ts_local_wait(&f->local, TS_SOON)); /* half of the grace */
    check_all_handed_back(f, 100);
}

/* chronos 32; chasqui 41 */
static void shutdown_timeout_cancels_handlers_and_hands_them_back(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    open_worker(f, &(lade_worker_config){.concurrency = 2, .shutdown_timeout = NS(200)});
    ts_local_run(&f->local);
    fill_hands(f, 50);
    lade_worker_stop(f->local.w);
    assert_true(ts_local_wait(&f->local, TS_SOON));
    check_all_handed_back(f, 50);
}

static void *stop_soon(void *w)
{
    struct timespec pause = {.tv_nsec = (long)(lb_clock_mono() / 16 % 400000)};
    (void)nanosleep(&pause, NULL);
    lade_worker_stop(w);
    return NULL;
}

/* A stop that meets a take under way, at any moment: what it brings must go back, not stay with a worker that is gone. */
static void take_under_way_at_a_stop_is_handed_back(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    enqueue_n(f, "default", "job", 500);
    for (int round = 0; round < 100; round++) {
        lade_worker *w;
        pthread_t stopper;
        lade_worker_config config = {.concurrency = 1, .no_signals = true, .prefetch_max = -1};
        assert_int_equal(lade_worker_open(&w, f->q, &config, NULL), 0);
        assert_int_equal(lade_worker_handle(w, "*", record, NULL), 0);
        assert_int_equal(pthread_create(&stopper, NULL, stop_soon, w), 0);
        assert_int_equal(lade_worker_run(w, NULL), 0);
        (void)pthread_join(stopper, NULL);
        lade_worker_close(w);
        assert_int_equal(ts_rig_count(f->q, LADE_STATE_ACTIVE), 0);
    }
}

static bool is_quiet(struct lade_worker *w)
{
    lr_mutex_lock(&w->lock);
    bool quiet = w->phase == LQ_PHASE_QUIET;
    lr_mutex_unlock(&w->lock);
    return quiet;
}

/* chasqui 52 */
static void quiet_worker_finishes_and_takes_no_more(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    open_worker(f, &(lade_worker_config){.concurrency = 2});
    ts_local_run(&f->local);
    enqueue(f, "default", "first", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "first", LADE_STATE_COMPLETED));
    lade_worker_quiet(f->local.w);
    assert_true(TS_UNTIL(TS_SOON, is_quiet(f->local.w)));
    enqueue(f, "default", "probe", (lade_job_spec){0}); /* for a take that was under way */
    ts_nap_ms(100);
    int n = count_seen();
    enqueue_n(f, "default", "more", 20);
    ts_nap_ms(300);
    assert_int_equal(count_seen(), n);
    assert_false(ts_local_wait(&f->local, 0));
    lade_worker_info *info;
    size_t workers;
    assert_int_equal(lade_worker_list(f->q, &info, &workers, NULL), 0);
    assert_int_equal(workers, 1); /* still there, still renewing */
    lade_free(info);
    assert_int_equal(ts_local_stop(&f->local), 0);
}

/* chasqui 52 */
static void a_paused_worker_takes_no_more_and_goes_on_at_once_when_it_is_resumed(void **state)
{
    struct ts_fix *f = *state;
    reset_seen(0);
    open_worker(f, &(lade_worker_config){.concurrency = 2});
    ts_local_run(&f->local);
    enqueue(f, "default", "first", (lade_job_spec){0});
    assert_true(ts_fix_wait_state(f, "first", LADE_STATE_COMPLETED));
    for (int round = 1; round <= 3; round++) {
        lade_worker_pause(f->local.w);
        assert_true(TS_UNTIL(TS_SOON, is_quiet(f->local.w)));
        enqueue_n(f, "default", round == 1 ? "a" : round == 2 ? "b" : "c", 20);
        ts_nap_ms(100); /* one that takes all the same would have by now */
        assert_int_equal(count_seen(), 1 + 20 * (round - 1));
        assert_int_equal(ts_rig_count(f->q, LADE_STATE_READY), 20);
        lade_worker_resume(
            f->local.w); /* which wakes it: nothing else would before its next look */
        assert_true(TS_UNTIL(TS_SOON, count_seen() == 1 + 20 * round));
    }
    assert_int_equal(ts_local_stop(&f->local), 0);
}

int main(int argc, char **argv)
{
    ts_rig_main(argc, argv);
    const struct CMUnitTest tests[] = {
        TS_TEST(higher_priorities_run_first_and_equals_in_order),
        TS_TEST(delayed_jobs_run_when_due_and_not_before),
        TS_TEST(strict_order_serves_a_later_queue_only_while_the_earlier_are_empty),
        TS_TEST(weights_between_queues_are_exact_in_every_window),
        TS_TEST(weighted_order_starves_no_queue_and_follows_the_weights),
        TS_TEST(pause_stops_a_queue_at_once_and_no_other),
        TS_TEST(c071_jobs_fall_due_while_their_queue_is_paused),
        TS_TEST(c071_jobs_fall_due_while_their_queue_is_rate_limited),
        TS_TEST(prefetch_leaves_slow_jobs_to_an_idle_worker),
        TS_TEST(fast_jobs_are_prefetched),
        TS_TEST(drain_waits_for_scheduled_jobs_and_ends_by_itself),
        TS_TEST(stop_lets_handlers_finish_and_hands_the_prefetched_back),
        TS_TEST(second_stop_cancels_handlers_and_hands_everything_back),
        TS_TEST(shutdown_timeout_cancels_handlers_and_hands_them_back),
        TS_TEST(take_under_way_at_a_stop_is_handed_back),
        TS_TEST(quiet_worker_finishes_and_takes_no_more),
        TS_TEST(a_paused_worker_takes_no_more_and_goes_on_at_once_when_it_is_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
