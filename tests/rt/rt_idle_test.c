/* Being idle: R16, R17. In long mode a million steps and a hundred thousand tasks. */
#include "rt_rig.h"

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(LADE_UNDER_VALGRIND)
#    define MEASURES_MEMORY false
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#        define MEASURES_MEMORY false
#    endif
#endif
#ifndef MEASURES_MEMORY
#    define MEASURES_MEMORY true
#endif

/* ThreadSanitizer maps memory of its own for each stack. */
#if defined(__SANITIZE_THREAD__)
#    define COUNTS_MAPPINGS false
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define COUNTS_MAPPINGS false
#    endif
#endif
#ifndef COUNTS_MAPPINGS
#    define COUNTS_MAPPINGS true
#endif

/* ---- R16 ---- */

struct idle {
    lade_step step;
    lade_gate *gate;
    uint64_t *done;
};

static lade_step_next idle_step(lade_step *s)
{
    struct idle *i = (struct idle *)(void *)s;
    LADE_STEP_BEGIN(s);
    LADE_STEP_AWAIT(s, lade_gate_wait_step(i->gate, s));
    rig_add(i->done, 1);
    LADE_STEP_END(s);
}

static int park_steps(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct idle *all = calloc(n, sizeof(*all));
    lade_gate gate = {0};
    uint64_t done = 0;
    lade_taskgroup g = {0};
    EXPECT(sizeof(lade_step) == 40 || sizeof(void *) != 8); /* rt.h and docs/runtime.md say so */
    EXPECT(sizeof(struct idle) <= 64);
    for (unsigned i = 0; i < n; i++) {
        all[i].gate = &gate;
        all[i].done = &done;
        EXPECT(lade_step_start(&all[i].step, idle_step, &g) == 0);
    }
    EXPECT(lade_taskgroup_wait_until(&g, rig_in_ms(20)) == -LADE_ETIMEDOUT);
    EXPECT(rig_get(&done) == 0);
    EXPECT(lade_gate_open(&gate) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(done == n);
    free(all);
    return 0;
}

static int wait_at_gate(void *arg)
{
    return lade_gate_wait(arg);
}

static long resident_kb(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    long kb = 0;
    char line[256];
    while (f && fgets(line, sizeof(line), f)) {
        /* NOLINTNEXTLINE(cert-err34-c): the format is the kernel's own */
        if (sscanf(line, "Rss: %ld", &kb) == 1)
            break;
    }
    if (f)
        (void)fclose(f);
    return kb;
}

/* True when the kernel has guards that need no mapping of their own (Linux 6.13). */
static bool guards_are_free(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool free = page != MAP_FAILED && madvise(page, 4096, 102) == 0;
    if (page != MAP_FAILED)
        (void)munmap(page, 4096);
    return free;
}

static long count_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    long n = 0;
    for (int c; f && (c = getc(f)) != EOF;)
        n += c == '\n';
    if (f)
        (void)fclose(f);
    return n;
}

static int park_fibers(void *arg)
{
    long n = *(unsigned *)arg > 0 ? (long)*(unsigned *)arg : 1;
    lade_gate gate = {0};
    lade_taskgroup g = {0};
    long before = resident_kb();
    long mappings = count_mappings();
    for (long i = 0; i < n; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, wait_at_gate, &gate) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, rig_in_ms(20)) == -LADE_ETIMEDOUT);
    if (MEASURES_MEMORY)
        EXPECT((resident_kb() - before) * 1024 / n < 4608);
    if (COUNTS_MAPPINGS && guards_are_free())
        EXPECT(count_mappings() - mappings < n / 64 + 64); /* a slab each, no mapping for a guard */
    EXPECT(lade_gate_open(&gate) == 0);
    return lade_taskgroup_wait_until(&g, LADE_FOREVER);
}

static void r16_idle_steps_and_tasks_are_small_and_come_by_the_hundred_thousand(void **state)
{
    (void)state;
    bool is_long = rig_rounds(1) > 1;
    unsigned steps = is_long ? 1000000 : 100000;
    assert_int_equal(rig_run(2, park_steps, &steps), 0);
    unsigned fibers = is_long ? 100000 : MEASURES_MEMORY ? 10000 : 1000;
    assert_int_equal(rig_run(1, park_fibers, &fibers), 0);
}

static int end_at_once(void *arg)
{
    rig_add(arg, 1);
    return 0;
}

static int spawn_and_join(void *arg)
{
    unsigned n = *(unsigned *)arg;
    uint64_t done = 0;
    lade_taskgroup g = {0};
    for (unsigned i = 0; i < n; i++)
        EXPECT(lade_taskgroup_start(&g, NULL, end_at_once, &done) == 0);
    EXPECT(lade_taskgroup_wait_until(&g, LADE_FOREVER) == 0);
    EXPECT(done == n);
    return 0;
}

static void r16_a_million_tasks_are_started_and_joined(void **state)
{
    (void)state;
    unsigned n = 1000000;
    assert_int_equal(rig_run(2, spawn_and_join, &n), 0);
}

/* ---- R17 ---- */

/* What the kernel has counted for the runtime's threads: how often they left the CPU, on their own or not. */
static uint64_t count_thread_switches(const char *prefix)
{
    uint64_t n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300];
        char line[128];
        bool ours = false;
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (f && fgets(line, sizeof(line), f)) {
            const char *colon = strstr(line, "ctxt_switches:");
            if (strncmp(line, "Name:\t", 6) == 0)
                ours = strncmp(line + 6, prefix, strlen(prefix)) == 0;
            else if (ours && colon)
                n += strtoul(colon + strlen("ctxt_switches:"), NULL, 10);
        }
        if (f)
            (void)fclose(f);
    }
    if (d)
        (void)closedir(d);
    return n;
}

static void count(void *arg)
{
    rig_add(arg, 1);
}

/* A second in which no thread of the runtime ran at all; ten in long mode. On a busy machine the first may be too early. */
static bool stays_asleep(void)
{
    lade_rt_stats before;
    lade_rt_stats after;
    lade_rt_stats_get(&before);
    uint64_t switches = count_thread_switches("idle-rt");
    (void)lade_task_sleep_until(rig_in_ms(rig_rounds(1) > 1 ? 10000 : 1000));
    lade_rt_stats_get(&after);
    return switches == count_thread_switches("idle-rt") && after.wakeups == before.wakeups &&
           after.switches == before.switches;
}

static void r17_an_idle_runtime_does_not_wake_up(void **state)
{
    (void)state;
    lade_rt *rt;
    lade_rt_opts o = {.workers = 4, .name = "idle"};
    assert_int_equal(lade_rt_start(&o, &rt), 0);
    lade_bridge *b;
    assert_int_equal(lade_bridge_open(rt, &b), 0);
    uint64_t done = 0;
    assert_int_equal(lade_bridge_post(b, count, &done), 0);
    assert_true(rig_reaches(&done, 1));
    bool asleep = false;
    for (int i = 0; i < 60 && !asleep; i++)
        asleep = stays_asleep();
    assert_true(asleep);
    lade_bridge_close(b);
    assert_int_equal(lade_rt_stop(rt, LADE_FOREVER), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(r16_idle_steps_and_tasks_are_small_and_come_by_the_hundred_thousand),
        cmocka_unit_test(r16_a_million_tasks_are_started_and_joined),
        cmocka_unit_test(r17_an_idle_runtime_does_not_wake_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
