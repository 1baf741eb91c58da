/* rt_tasks.c - spawn, cpu, mutex, idle */
#include <stdio.h>
#include <stdlib.h>

#include "bench/drivers/lade-rt/rt_driver.h"

/* ---- spawn ---- */

static int yield_value(void *arg)
{
    uint64_t *slot = arg;
    *slot += 1; /* it holds i - 1 before */
    return 0;
}

static int spawn_all(uint64_t *slot, uint64_t n, uint64_t *sum)
{
    for (uint64_t i = 0; i < n; i++)
        slot[i] = i - 1;
    lade_taskgroup g = {0};
    int rc = 0;
    for (uint64_t i = 0; i < n; i++)
        rc |= lade_taskgroup_start(&g, NULL, yield_value, &slot[i]);
    rc |= lade_taskgroup_wait_until(&g, LADE_FOREVER);
    *sum = 0;
    for (uint64_t i = 0; i < n; i++)
        *sum += slot[i];
    return rc;
}

void run_spawn(const struct params *p, struct result *r)
{
    uint64_t *slot = calloc(p->size, sizeof(*slot));
    if (!slot) {
        r->failed = true;
        return;
    }
    int rc = spawn_all(slot, p->size, &r->checksum); /* not timed, as in every implementation */
    int64_t t0 = lade_clock_now();
    rc |= spawn_all(slot, p->size, &r->checksum);
    r->wall_ns = (uint64_t)(lade_clock_now() - t0);
    r->ops = p->size;
    r->failed = rc != 0;
    free(slot);
}

/* ---- cpu ---- */

struct chunk {
    uint64_t from, to, sum;
    unsigned rounds;
};

static inline uint64_t mix(uint64_t z)
{
    z += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The kernel that all implementations share: one item after the other. LLVM unrolls the rounds by itself; gcc does not, and is
 * 4 % slower without. */
static int hash_scalar(void *arg)
{
    struct chunk *c = arg;
    uint64_t sum = 0;
    for (uint64_t i = c->from; i < c->to; i++) {
        uint64_t x = i;
        unsigned r = 0;
        for (; r + 4 <= c->rounds; r += 4)
            x = mix(mix(mix(mix(x))));
        for (; r < c->rounds; r++)
            x = mix(x);
        sum += x;
    }
    c->sum = sum;
    return 0;
}

/* Ours: six items in flight hide the latency of the multiplications. */
static int hash_six(void *arg)
{
    struct chunk *c = arg;
    uint64_t sum = 0;
    uint64_t i = c->from;
    for (; i + 6 <= c->to; i += 6) {
        uint64_t x[6] = {i, i + 1, i + 2, i + 3, i + 4, i + 5};
        for (unsigned r = 0; r < c->rounds; r++) {
            x[0] = mix(x[0]);
            x[1] = mix(x[1]);
            x[2] = mix(x[2]);
            x[3] = mix(x[3]);
            x[4] = mix(x[4]);
            x[5] = mix(x[5]);
        }
        sum += x[0] + x[1] + x[2] + x[3] + x[4] + x[5];
    }
    struct chunk rest = {.from = i, .to = c->to, .rounds = c->rounds};
    (void)hash_scalar(&rest);
    c->sum = sum + rest.sum;
    return 0;
}

void run_cpu(const struct params *p, struct result *r)
{
    struct chunk *c = calloc(p->tasks, sizeof(*c));
    if (!c) {
        r->failed = true;
        return;
    }
    uint64_t each = (p->size + p->tasks - 1) / p->tasks;
    lade_taskgroup g = {0};
    int rc = 0;
    int64_t t0 = lade_clock_now();
    for (uint64_t i = 0; i < p->tasks; i++) {
        uint64_t from = i * each < p->size ? i * each : p->size;
        uint64_t to = from + each < p->size ? from + each : p->size;
        c[i] = (struct chunk){.from = from, .to = to, .rounds = p->rounds};
        rc |= lade_taskgroup_start(&g, NULL, p->own_kernel ? hash_six : hash_scalar, &c[i]);
    }
    rc |= lade_taskgroup_wait_until(&g, LADE_FOREVER);
    r->wall_ns = (uint64_t)(lade_clock_now() - t0);
    for (unsigned i = 0; i < p->tasks; i++)
        r->checksum += c[i].sum;
    r->ops = p->size;
    r->failed = rc != 0;
    free(c);
}

/* ---- mutex ---- */

static struct {
    lade_mutex lock;
    uint64_t counter;
} guarded;

static int count(void *arg)
{
    const uint64_t *n = arg;
    for (uint64_t i = 0; i < *n; i++) {
        if (lade_mutex_lock(&guarded.lock) != 0)
            return -LADE_EPERM;
        guarded.counter++;
        (void)lade_mutex_unlock(&guarded.lock);
    }
    return 0;
}

void run_mutex(const struct params *p, struct result *r)
{
    uint64_t each = p->size / p->workers;
    lade_taskgroup g = {0};
    int rc = 0;
    int64_t t0 = lade_clock_now();
    for (unsigned i = 0; i < p->workers; i++)
        rc |= lade_taskgroup_start(&g, NULL, count, &each);
    rc |= lade_taskgroup_wait_until(&g, LADE_FOREVER);
    r->wall_ns = (uint64_t)(lade_clock_now() - t0);
    r->ops = each * p->workers;
    r->checksum = guarded.counter;
    r->failed = rc != 0;
}

/* ---- idle ---- */

struct idle {
    lade_step step;
    struct idle_all *all;
};

struct idle_all {
    lade_gate gate;
    uint64_t parked, finished; /* atomic */
};

static lade_step_next idle_step(lade_step *s)
{
    struct idle *i = (struct idle *)(void *)s;
    LADE_STEP_BEGIN(s);
    (void)__atomic_fetch_add(&i->all->parked, 1, __ATOMIC_RELAXED);
    LADE_STEP_AWAIT(s, lade_gate_wait_step(&i->all->gate, s));
    (void)__atomic_fetch_add(&i->all->finished, 1, __ATOMIC_RELAXED);
    LADE_STEP_END(s);
}

static int idle_fiber(void *arg)
{
    struct idle_all *all = arg;
    (void)__atomic_fetch_add(&all->parked, 1, __ATOMIC_RELAXED);
    int rc = lade_gate_wait(&all->gate);
    (void)__atomic_fetch_add(&all->finished, 1, __ATOMIC_RELAXED);
    return rc;
}

static int64_t resident_kb(void)
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

void run_idle(const struct params *p, struct result *r)
{
    static struct idle_all all;
    lade_taskgroup g = {0};
    struct idle *step = NULL;
    int rc = 0;
    int64_t before = resident_kb();
    int64_t t0 = lade_clock_now();
    if (!p->fibers)
        step = calloc(p->size, sizeof(*step));
    r->failed = !p->fibers && !step;
    for (uint64_t i = 0; i < p->size && !r->failed; i++) {
        if (p->fibers) {
            rc |= lade_taskgroup_start(&g, NULL, idle_fiber, &all);
            continue;
        }
        step[i].all = &all;
        rc |= lade_step_start(&step[i].step, idle_step, &g);
        if (i % 256 == 255)
            lade_task_yield();
    }
    while (__atomic_load_n(&all.parked, __ATOMIC_RELAXED) < p->size && !r->failed)
        (void)lade_task_sleep_until(lade_clock_now() + LADE_MILLISECOND);
    r->wall_ns = (uint64_t)(lade_clock_now() - t0);
    (void)lade_task_sleep_until(lade_clock_now() + p->settle_ms * LADE_MILLISECOND);
    r->rss_delta_kb = resident_kb() - before;
    r->bytes_per_task = (double)r->rss_delta_kb * 1024 / (double)p->size;
    rc |= lade_gate_open(&all.gate);
    rc |= lade_taskgroup_wait_until(&g, LADE_FOREVER);
    r->ops = p->size;
    r->checksum = all.finished;
    r->failed |= rc != 0;
    free(step);
}
