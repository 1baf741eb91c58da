/*
 * crash_schedule_test.c - schedulers killed around their fires, again and again: no time is missed, none comes twice
 *
 * chronos 58, C-066 for schedules. Each round is a process of its own that looks and fires until it is killed at a fault point, drawn
 * at random among all it reaches: before and after each op, and on both sides of each commit. The next one goes on, half of the time
 * as another holder, which has to wait for the lease. On SQLite the clock is stepped and shared, on Redis time really passes and
 * there are many schedules a second.
 */
#include "support/rig_test.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/ident.h"
#include "queue/scheduler.h"
#include "rt/seam.h"

#define BEGIN  (INT64_C(1800000000) * LADE_SECOND)
#define ROUNDS 500 /* on each store */
#define N_LIVE 40  /* schedules of one second on Redis */

struct shared {
    int64_t clock; /* of SQLite */
    uint64_t seed;
};

static struct shared *shared;
static struct ts_rig rig;

static int64_t read_clock(void *ctx)
{
    (void)ctx;
    return __atomic_load_n(&shared->clock, __ATOMIC_SEQ_CST);
}

static bool is_stepped(void)
{
    return rig.store != TS_REDIS;
}

static lade *open_store(void)
{
    lade *q = NULL;
    lade_err err = {0};
    lade_options o = {.keep_completed = {.age = 1000 * LADE_DAY, .count = 1000000}};
    if (is_stepped())
        o.clock = read_clock;
    if (lade_open(&q, rig.url, &o, &err) < 0)
        fail_msg("open: %s", err.text);
    return q;
}

static void ignore_line(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

/* xorshift: the same in every process that is given the seed. */
static uint64_t draw(uint64_t *x, uint64_t bound)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x % bound;
}

/* One life of a scheduler; ends by SIGKILL, or by itself after some steps. */
static void live(uint64_t seed)
{
    char fault[32];
    lade_scheduler *s = NULL;
    lade *q = open_store();
    lade_scheduler_config config = {.lease = LADE_SECOND, .log = ignore_line};
    if (lade_scheduler_open(&s, q, &config, NULL) < 0)
        _exit(3);
    bool stays = !is_stepped() || draw(&seed, 2);
    (void)snprintf(s->holder, sizeof(s->holder), "%s", stays ? "one" : "two");
    (void)snprintf(fault, sizeof(fault), "*:%d:kill", 1 + (int)draw(&seed, is_stepped() ? 60 : 12));
    lb_fault_arm(fault);
    for (int i = 0; i < 200; i++) {
        int64_t until = 0;
        if (lq_scheduler_look(s, &until, NULL) < 0)
            _exit(4);
        if (is_stepped())
            (void)__atomic_add_fetch(&shared->clock, LADE_SECOND / 2, __ATOMIC_SEQ_CST);
        else
            lr_sleep_until(LB_MIN(until, lb_deadline_in(20 * LADE_MILLISECOND)));
    }
    _exit(0);
}

/* Runs the rounds; how many were killed. */
static int run_rounds(int rounds)
{
    int killed = 0;
    for (int i = 0; i < rounds; i++) {
        uint64_t seed = shared->seed + (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
        (void)fflush(NULL);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            live(seed | 1);
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0)
            fail_msg("round %d of seed %llu: exit %d", i, (unsigned long long)shared->seed,
                     WEXITSTATUS(status));
    }
    return killed;
}

static void set(lade *q, const char *id, int64_t offset)
{
    lade_err err = {0};
    lade_schedule_spec spec = {.id = id,
                               .every = LADE_SECOND,
                               .missed = LADE_MISSED_ALL,
                               .missed_max = LADE_MISSED_MAX,
                               .job = {.kind = "k"}};
    if (offset > 0) {
        spec.anchor = LADE_ANCHOR_TIME;
        spec.anchor_at = BEGIN + offset;
    }
    if (lade_schedule_set(q, &spec, NULL, NULL, &err) != 0)
        fail_msg("set: %s", err.text);
}

/* From the first time on, one job each second up to the last. Returns how many. */
static uint64_t check_fires(lade *q, const char *id, int64_t first)
{
    lade_schedule_view *v = NULL;
    assert_int_equal(lade_schedule_get(q, id, &v, NULL), 0);
    uint64_t n = (uint64_t)((v->last_at - first) / LADE_SECOND) + 1;
    assert_int_equal(v->n_fired, n);
    assert_int_equal(v->n_missed + v->n_duplicates + v->n_overlaps, 0);
    for (uint64_t i = 0; i < n; i++) {
        char job[LADE_ID_MAX + 1];
        lade_job_view *j = NULL;
        int64_t at = first + (int64_t)i * LADE_SECOND;
        (void)snprintf(job, sizeof(job), "%s:%lld", id, (long long)(at / LADE_MILLISECOND));
        if (lade_job_get(q, "default", job, &j, NULL) != 0)
            fail_msg("seed %llu: %s was missed", (unsigned long long)shared->seed, job);
        lade_job_view_free(j);
    }
    lade_schedule_view_free(v);
    return n;
}

static void kills_around_fires_lose_no_time_and_double_none(void **state)
{
    (void)state;
    char id[N_LIVE][8];
    int64_t first[N_LIVE];
    int n_schedules = is_stepped() ? 3 : N_LIVE, rounds = ts_rig_rounds(ROUNDS);
    lade *q = open_store();
    for (int i = 0; i < n_schedules; i++) {
        lade_schedule_view *v = NULL;
        (void)snprintf(id[i], sizeof(id[i]), "s%d", i % 1000);
        set(q, id[i], is_stepped() ? 0 : i * LADE_SECOND / N_LIVE);
        assert_int_equal(lade_schedule_get(q, id[i], &v, NULL), 0);
        first[i] = v->next_at;
        lade_schedule_view_free(v);
    }
    lade_close(q); /* no handle is open while processes are forked */
    int killed = run_rounds(rounds);
    print_message("%d rounds, %d killed\n", rounds, killed);
    assert_true(killed > rounds / 2);
    q = open_store();
    lade_scheduler *s = NULL;
    lade_scheduler_config config = {.lease = LADE_SECOND, .log = ignore_line};
    assert_int_equal(lade_scheduler_open(&s, q, &config, NULL), 0);
    (void)snprintf(s->holder, sizeof(s->holder), "one");
    int64_t until = 0, give_up = lb_deadline_in(TS_SOON);
    if (is_stepped())
        shared->clock += 10 * LADE_SECOND;
    do
        assert_int_equal(lq_scheduler_look(s, &until, NULL), 0);
    while (until <= lb_clock_mono() && lb_clock_mono() < give_up);
    lade_scheduler_close(s);
    uint64_t sum = 0;
    for (int i = 0; i < n_schedules; i++)
        sum += check_fires(q, id[i], first[i]);
    lade_queue_info info;
    assert_int_equal(lade_queue_get(q, "default", &info, NULL), 0);
    assert_int_equal(info.total_enqueued, sum);
    lade_finding *f = NULL;
    size_t n = 0;
    assert_int_equal(lade_check(q, &f, &n, NULL), 0);
    assert_int_equal(n, 0);
    lade_free(f);
    lade_close(q);
    print_message("%llu fires, each once\n", (unsigned long long)sum);
}

static int start(void **state)
{
    (void)state;
    ts_rig_start(&rig, TS_PLAIN);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -1;
    const char *seed = getenv("SCHEDULE_SEED"); /* NOLINT(concurrency-mt-unsafe): one thread */
    shared->clock = BEGIN;
    shared->seed = seed ? strtoull(seed, NULL, 0) : lb_rand();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    (void)munmap(shared, sizeof(*shared));
    ts_rig_stop(&rig);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kills_around_fires_lose_no_time_and_double_none, start,
                                        stop),
    };
    ts_rig_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
