/* Last words, in a child process - what it says and how it ends - and dumps: R23, R24, R25. */
#include "rt_rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*handle_fault)(int) = SIG_DFL; /* in the child */
static lade_rt_opts in_child = {.workers = 2};

static int run_in_child(int (*fn)(void *), void *arg, int *status, char *said, size_t size)
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(out[1], STDERR_FILENO);
        (void)close(out[0]);
        (void)close(out[1]);
        (void)signal(SIGSEGV, handle_fault);
        (void)signal(SIGABRT, SIG_DFL);
        (void)alarm(120);
        _exit(lade_rt_run(&in_child, fn, arg) & 0x7f);
    }
    (void)close(out[1]);
    size_t n = 0;
    ssize_t got;
    while (n < size - 1 && (got = read(out[0], said + n, size - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = '\0';
    (void)close(out[0]);
    assert_int_equal(waitpid(pid, status, 0), pid);
    return 0;
}

static int deadlock(void *arg)
{
    (void)arg;
    lade_task_name("waits in vain");
    lade_chan *c = lade_chan_new(LADE_CHAN_MPMC, 8, 0);
    uint64_t v;
    return lade_chan_recv(c, &v);
}

static void r24_a_deadlock_is_reported_with_what_each_task_waits_for(void **state)
{
    (void)state;
    char said[4096];
    int status;
    int64_t t0 = lade_clock_now();
    (void)run_in_child(deadlock, NULL, &status, said, sizeof(said));
    assert_true(rig_in_time(lade_clock_now() - t0, 100));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    assert_non_null(strstr(said, "all tasks are asleep"));
    assert_non_null(strstr(said, "waits in vain"));
    assert_non_null(strstr(said, "receive from channel"));
}

static lade_mutex mutex_a, mutex_b;
static lade_rwlock rwlock_a;

static int lock_b_then_a(void *arg)
{
    lade_task_name("second");
    EXPECT(lade_mutex_lock(&mutex_b) == 0);
    rig_add(arg, 1);
    return lade_mutex_lock(&mutex_a);
}

static int wait_to_read(void *arg)
{
    lade_task_name("reader");
    rig_add(arg, 1);
    return lade_rwlock_rdlock(&rwlock_a);
}

static int lock_in_a_circle(void *arg)
{
    static uint64_t locked;
    lade_taskgroup g = {0};
    (void)arg;
    lade_task_name("first");
    (void)lade_mutex_lock(&mutex_a);
    (void)lade_rwlock_wrlock(&rwlock_a);
    (void)lade_taskgroup_start(&g, NULL, lock_b_then_a, &locked);
    (void)lade_taskgroup_start(&g, NULL, wait_to_read, &locked);
    (void)rig_reaches(&locked, 2);
    return lade_mutex_lock(&mutex_b);
}

static void r24_a_deadlock_report_names_who_has_the_locks(void **state)
{
    (void)state;
    char said[8192];
    int status;
    (void)run_in_child(lock_in_a_circle, NULL, &status, said, sizeof(said));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    int first = 0;
    int second = 0;
    for (const char *at = said; (at = strstr(at, " held by task "));) {
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        first += end - at > 6 && strncmp(end - 6, " first", 6) == 0;
        second += end - at > 7 && strncmp(end - 7, " second", 7) == 0;
        at = end;
    }
    assert_int_equal(first, 2); /* the second waits for its mutex, the reader for its lock */
    assert_int_equal(second, 1);
}

/* What the callback of a deadlock does about it. */
enum rescue { OPEN_GATE, CANCEL, ARM_TIMER, START_TASK, OTHER_THREAD, N_RESCUES };

struct stuck {
    enum rescue how;
    lade_gate gate;
    lade_task self;
    lade_timer timer;
    pthread_t thread;
    uint64_t called, by_thread;
};

static void open_gate(void *arg)
{
    EXPECT(lade_gate_open(arg) == 0);
}

static void *open_gate_later(void *arg)
{
    struct stuck *s = arg;
    while (rig_get(&s->by_thread) == 0)
        (void)usleep(1000);
    open_gate(&s->gate);
    return NULL;
}

static void rescue(void *arg)
{
    struct stuck *s = arg;
    if (rig_add(&s->called, 1) > 1)
        return;
    EXPECT(lade_gate_wait(&s->gate) == -LADE_EPERM);
    switch (s->how) {
    case OPEN_GATE:
        open_gate(&s->gate);
        break;
    case CANCEL:
        EXPECT(lade_task_cancel(s->self) == 0);
        break;
    case ARM_TIMER:
        EXPECT(lade_timer_arm(&s->timer, rig_in_ms(5), open_gate, &s->gate) == 0);
        break;
    case START_TASK:
        EXPECT(lade_task_start(NULL, open_gate, &s->gate) == 0);
        break;
    case OTHER_THREAD: /* it opens the gate when we are asleep, or about to be */
        EXPECT(pthread_create(&s->thread, NULL, open_gate_later, s) == 0);
        rig_add(&s->by_thread, 1);
        break;
    case N_RESCUES:
        break;
    }
}

static int get_stuck(void *arg)
{
    struct stuck *s = arg;
    s->self = lade_task_self();
    int rc = lade_gate_wait(&s->gate);
    EXPECT(rc == (s->how == CANCEL ? -LADE_ECANCELED : 0));
    return 7;
}

static void r24_what_the_callback_of_a_deadlock_wakes_runs(void **state)
{
    (void)state;
    for (int how = 0; how < N_RESCUES; how++) {
        for (unsigned w = 1; w <= 3; w++) {
            struct stuck s = {.how = (enum rescue)how};
            lade_rt_opts o = {.workers = w, .on_deadlock = rescue, .ctx = &s};
            assert_int_equal(lade_rt_run(&o, get_stuck, &s), 7);
            rig_check();
            assert_true(s.called == 1 || (how == OTHER_THREAD && s.called > 0));
            if (how == OTHER_THREAD)
                assert_int_equal(pthread_join(s.thread, NULL), 0);
        }
    }
}

static int not_a_deadlock(void *arg)
{
    (void)arg;
    lade_fd *l;
    EXPECT(lade_task_sleep_until(rig_in_ms(30)) == 0); /* a timer */
    EXPECT(lade_net_listen("127.0.0.1:0", &l) == 0);
    lade_fd *c;
    EXPECT(lade_net_accept(l, rig_in_ms(30), &c) == -LADE_ETIMEDOUT);
    EXPECT(lade_fd_close(l) == 0);
    lade_bridge *b;
    EXPECT(lade_bridge_open(NULL, &b) == 0);
    lade_gate g = {0};
    EXPECT(lade_gate_wait_until(&g, rig_in_ms(30)) == -LADE_ETIMEDOUT);
    lade_bridge_close(b);
    return 0;
}

static void r24_timers_descriptors_and_bridges_are_no_deadlock(void **state)
{
    (void)state;
    assert_int_equal(rig_run(2, not_a_deadlock, NULL), 0);
    assert_int_equal(rig_run(1, not_a_deadlock, NULL), 0);
}

static __attribute__((noinline)) int eat_the_stack(int depth)
{
    volatile char page[1024];
    page[0] = (char)depth;
    return depth <= 0 ? page[0] : eat_the_stack(depth - 1) + page[0];
}

static int overflow(void *arg)
{
    lade_task_name("too deep");
    return eat_the_stack(*(int *)arg);
}

static void r25_a_stack_overflow_is_named_and_ends_the_process(void **state)
{
    (void)state;
    char said[8192];
    int status;
    int depth = 1000000;
    (void)run_in_child(overflow, &depth, &status, said, sizeof(said));
    assert_non_null(strstr(said, "stack overflow in task too deep"));
    assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ||
                (WIFEXITED(status) && WEXITSTATUS(status) != 0)); /* a sanitizer ends it its way */
}

/* One array that is larger than the stack: the frame is past its end before anything is written. */
#define ARRAY_OF(n)                                     \
    static __attribute__((noinline)) int fill_##n(void) \
    {                                                   \
        volatile char array[n];                         \
        for (int i = 0; i < 20000; i++)                 \
            array[i] = (char)i;                         \
        return array[5] == 5 ? 0 : 1;                   \
    }                                                   \
    static int use_##n(void *arg)                       \
    {                                                   \
        (void)arg;                                      \
        lade_task_name("wide");                         \
        return fill_##n();                              \
    }
ARRAY_OF(100000)
ARRAY_OF(400000)

static void r25_an_array_larger_than_the_stack_is_named_with_advice(void **state)
{
    (void)state;

    static const struct {
        size_t stack;
        int (*fn)(void *);
        const char *size;
    } cases[] = {{0, use_100000, "65536 bytes"}, {256UL * 1024, use_400000, "262144 bytes"}};

    for (int i = 0; i < 2; i++) {
        char said[8192];
        int status;
        in_child.stack_size = cases[i].stack;
        (void)run_in_child(cases[i].fn, NULL, &status, said, sizeof(said));
        in_child.stack_size = 0;
        assert_non_null(strstr(said, "stack overflow in task wide"));
        assert_non_null(strstr(said, cases[i].size));
        assert_non_null(strstr(said, "LADE_EXECUTOR_THREAD"));
        assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Fills its stack with a pattern and parks; a handler looks at the pattern after another task's overflow. */
#define NEIGHBOURS 32
#define CANARY     512
static volatile unsigned char *canary[NEIGHBOURS];

static void on_last_fault(int sig)
{
    static const char sound[] = "all neighbours are sound\n";
    (void)sig;
    for (int i = 0; i < NEIGHBOURS; i++) {
        for (int j = 0; canary[i] && j < CANARY; j++) {
            if (canary[i][j] != (unsigned char)(i * 7 + j))
                _exit(9);
        }
    }
    ssize_t put = write(STDERR_FILENO, sound, sizeof(sound) - 1);
    _exit(put == sizeof(sound) - 1 ? 8 : 9);
}

struct neighbour {
    int number;
    lade_gate gate;
    uint64_t started;
};

static int be_a_neighbour(void *arg)
{
    struct neighbour *n = arg;
    volatile unsigned char pattern[CANARY];
    int me = (int)rig_add(&n->started, 1) - 1;
    for (int j = 0; j < CANARY; j++)
        pattern[j] = (unsigned char)(me * 7 + j);
    canary[me] = pattern;
    return lade_gate_wait(&n->gate);
}

static int overflow_among_neighbours(void *arg)
{
    static struct neighbour n;
    lade_taskgroup g = {0};
    for (int i = 0; i < NEIGHBOURS; i++) {
        EXPECT(lade_taskgroup_start(&g, NULL, be_a_neighbour, &n) == 0);
        lade_task_yield(); /* our own stack lies among theirs */
    }
    EXPECT(rig_reaches(&n.started, NEIGHBOURS));
    return overflow(arg);
}

static void r25_the_neighbours_of_a_stack_that_overflows_are_unharmed(void **state)
{
    (void)state;
    char said[8192];
    int status;
    int depth = 1000000;
    handle_fault = on_last_fault;
    (void)run_in_child(overflow_among_neighbours, &depth, &status, said, sizeof(said));
    handle_fault = SIG_DFL;
    assert_non_null(strstr(said, "stack overflow in task too deep"));
    assert_non_null(strstr(said, "all neighbours are sound"));
    assert_true(WIFEXITED(status) &&
                WEXITSTATUS(status) == 8); /* the program's own handler had its turn */
}

/* ---- R23: last words, and where parked tasks are ---- */

static int abort_in_task(void *arg)
{
    (void)arg;
    lade_task_name("the one that aborts");
    abort();
}

static void r23_an_abort_names_the_task_and_shows_where(void **state)
{
    (void)state;
    char said[8192];
    int status;
    (void)run_in_child(abort_in_task, NULL, &status, said, sizeof(said));
    const char *words = strstr(said, "abort in task the one that aborts started at ");
    assert_non_null(words);
    int lines = 0;
    for (const char *c = words; *c; c++)
        lines += *c == '\n';
    assert_true(lines >= 3); /* a backtrace follows */
    assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) || WIFEXITED(status));
}

static int dump_a_parked_task(void *arg)
{
    struct neighbour n = {0};
    lade_taskgroup g = {0};
    EXPECT(lade_taskgroup_start(&g, NULL, be_a_neighbour, &n) == 0);
    EXPECT(rig_reaches(&n.started, 1));
    while (__atomic_load_n(&n.gate.waiters.n, __ATOMIC_SEQ_CST) == 0)
        lade_task_yield();
    lade_task_yield();
    FILE *f = fmemopen(arg, 8192, "w");
    lade_rt_dump(f);
    (void)fclose(f);
    EXPECT(lade_gate_open(&n.gate) == 0);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

static void r23_a_dump_shows_where_each_parked_task_is(void **state)
{
    (void)state;
    static char text[8192];
    assert_int_equal(rig_run(1, dump_a_parked_task, text), 0);
    const char *line = strstr(text, "waits for gate");
    assert_non_null(line);
    line = strchr(line, '\n');
    assert_non_null(line);
    for (int i = 0; i < 2; i++) { /* at least the call and its caller */
        assert_memory_equal(line, "\n    0x", 7);
        line = strchr(line + 1, '\n');
        assert_non_null(line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r24_a_deadlock_is_reported_with_what_each_task_waits_for),
        cmocka_unit_test(r24_a_deadlock_report_names_who_has_the_locks),
        cmocka_unit_test(r24_what_the_callback_of_a_deadlock_wakes_runs),
        cmocka_unit_test(r24_timers_descriptors_and_bridges_are_no_deadlock),
        cmocka_unit_test(r25_a_stack_overflow_is_named_and_ends_the_process),
        cmocka_unit_test(r25_an_array_larger_than_the_stack_is_named_with_advice),
        cmocka_unit_test(r25_the_neighbours_of_a_stack_that_overflows_are_unharmed),
        cmocka_unit_test(r23_an_abort_names_the_task_and_shows_where),
        cmocka_unit_test(r23_a_dump_shows_where_each_parked_task_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
