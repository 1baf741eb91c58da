/* dump.c - what every task is doing: for people, and for the deadlock report */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rt/ctx.h"
#include "rt/stack.h"
#include "rt/task.h"

static const char *const waits_for[] = {
    [LR_WAITS_NOT] = "ready or running",
    [LR_WAITS_SEND] = "send to channel",
    [LR_WAITS_RECV] = "receive from channel",
    [LR_WAITS_SELECT] = "select, first channel",
    [LR_WAITS_MUTEX] = "mutex",
    [LR_WAITS_RWLOCK] = "rwlock",
    [LR_WAITS_COND] = "condition",
    [LR_WAITS_SEM] = "semaphore",
    [LR_WAITS_GROUP] = "group",
    [LR_WAITS_GATE] = "gate",
    [LR_WAITS_SLEEP] = "sleep",
    [LR_WAITS_FD] = "descriptor",
    [LR_WAITS_BLOCKING] = "blocking call",
    [LR_WAITS_CALL] = "call",
};

static bool is_running(struct lr_rt *rt, const struct lr_fiber *f)
{
    for (unsigned i = 0; i < lr_live(rt); i++) {
        if (__atomic_load_n(&rt->worker[i].cur, __ATOMIC_RELAXED) == &f->task)
            return true;
    }
    return false;
}

#define FRAMES 16

/* The address is that of the next instruction, which may be the first of another function. */
static bool look_up(const void *pc, Dl_info *at)
{
    *at = (Dl_info){0};
    return dladdr((const char *)pc - 1, at) && at->dli_fname;
}

/* Of a shared library of ours, which has names for its public functions only, and those are in the line of the task already. */
static bool is_own_frame(void *pc)
{
    Dl_info at;
    Dl_info ours;
    Dl_info program;
    if (!look_up(pc, &at))
        return false;
    if (at.dli_sname && strncmp(at.dli_sname, "lr_", 3) == 0)
        return true;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    void *entry = (void *)getauxval(AT_ENTRY);
    bool shared = look_up(&waits_for[1], &ours) &&
                  (!look_up(entry, &program) || program.dli_fbase != ours.dli_fbase);
    return shared && at.dli_fbase == ours.dli_fbase;
}

static void print_frame(FILE *out, void *pc)
{
    Dl_info at;
    if (!look_up(pc, &at))
        (void)fprintf(out, "    %p\n", pc);
    else if (at.dli_sname)
        (void)fprintf(out, "    %p %s+%#zx\n", pc, at.dli_sname,
                      (size_t)((char *)pc - (char *)at.dli_saddr));
    else
        (void)fprintf(out, "    %p %s+%#zx\n", pc, at.dli_fname,
                      (size_t)((char *)pc - (char *)at.dli_fbase));
}

/*
 * Where a parked task is, by its chain of frame pointers: code that is built without them is left out. The task may run on
 * meanwhile; what is read then is old, but always in its own stack, which stays mapped.
 */
__attribute__((noinline, no_sanitize("address", "thread"))) static void
print_frames(const struct lr_fiber *f, FILE *out)
{
    const struct lr_stack *s = __atomic_load_n(&f->stack, __ATOMIC_ACQUIRE);
    char *ctx = __atomic_load_n((char *const *)&f->task.go, __ATOMIC_ACQUIRE);
    if (!s || !ctx)
        return;
    const char *low = s->low;
    const char *high = (const char *)s;
    void *pc;
    void *sp;
    void *fp;
    if (ctx < low || ctx > high - 256 || !lr_ctx_frame(ctx, &pc, &sp, &fp))
        return;
    bool own = true; /* so far: the first frames say how the runtime waits */
    for (int i = 0; i < FRAMES && pc; i++) {
        own = own && is_own_frame(pc);
        if (!own)
            print_frame(out, pc);
        char *frame = fp;
        if (!frame || frame < low || frame > high - 16 || ((uintptr_t)frame & 7) != 0)
            return;
        void **saved = fp; /* the caller's frame pointer and where it goes on */
        fp = saved[0];
        pc = saved[1];
        if ((char *)fp <= frame)
            fp = NULL;
    }
}

/*
 * Who has the lock that f waits for, as " held by ...". The lock lies in the program's memory, which may be gone when f runs on
 * meanwhile: the kernel reads it, and says so instead of a fault. `still`: nothing runs, so it is there.
 */
static void print_owner(const struct lr_fiber *f, uint8_t waits, bool still, FILE *out)
{
    const char *lock = f->waits_on;
    uintptr_t owner = 0;
    if (waits == LR_WAITS_MUTEX)
        lock += offsetof(lade_mutex, owner);
    else if (waits == LR_WAITS_RWLOCK)
        lock += offsetof(lade_rwlock, writer);
    else
        return;
    struct iovec to = {.iov_base = &owner, .iov_len = sizeof(owner)};
    struct iovec from = {.iov_base = (void *)lock, .iov_len = sizeof(owner)};
    if (still)
        memcpy(&owner, lock, sizeof(owner));
    else if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != sizeof(owner))
        return;
    if (!owner)
        return;
    if (!lr_fiber_is((const void *)owner)) { /* NOLINT(performance-no-int-to-ptr) */
        (void)fputs(" held by a thread", out);
        return;
    }
    const struct lr_fiber *o = (const void *)owner; /* NOLINT(performance-no-int-to-ptr) */
    const char *name = o->name;
    if (__atomic_load_n(&o->alive, __ATOMIC_RELAXED))
        (void)fprintf(out, " held by task %p %s", (const void *)o, name ? name : "-");
    else
        (void)fprintf(out, " held by task %p, which has ended", (const void *)o);
}

/* The tasks run on meanwhile, so a line may be out of date; descriptors are never freed, so it is never wild. */
__attribute__((noinline, no_sanitize("thread"))) static uint64_t print_fibers(struct lr_rt *rt,
                                                                              FILE *out, bool still)
{
    uint64_t n = 0;
    for (const struct lr_fiber *f = lr_fiber_all(); f; f = f->all_next) {
        if (!__atomic_load_n(&f->alive, __ATOMIC_RELAXED))
            continue;
        n++;
        uint8_t waits = __atomic_load_n(&f->waits, __ATOMIC_RELAXED);
        uint64_t life = __atomic_load_n(&f->life, __ATOMIC_RELAXED);
        const char *name = f->name;
        const char *where = f->where;
        if (waits == LR_WAITS_NOT || waits >= LB_ARRAY_LEN(waits_for)) {
            (void)fprintf(out, "task %p %s started at %s: %s%s\n", (const void *)f,
                          name ? name : "-", where ? where : "?",
                          is_running(rt, f) ? "running" : "ready", life & 1 ? ", cancelled" : "");
        } else {
            (void)fprintf(out, "task %p %s started at %s: waits for %s %p", (const void *)f,
                          name ? name : "-", where ? where : "?", waits_for[waits], f->waits_on);
            print_owner(f, waits, still, out);
            (void)fprintf(out, "%s\n", life & 1 ? ", cancelled" : "");
        }
        if (waits != LR_WAITS_NOT)
            print_frames(f, out);
    }
    return n;
}

static void dump(struct lr_rt *rt, FILE *out, bool still)
{
    uint64_t n = print_fibers(rt, out, still);
    (void)fprintf(out, "%" PRIu64 " tasks, %" PRIu64 " steps, %u workers\n", n,
                  __atomic_load_n(&rt->n_steps, __ATOMIC_RELAXED), lr_live(rt));
}

void lade_rt_dump(FILE *out)
{
    struct lr_rt *rt = lr_rt_get();
    if (out && rt)
        dump(rt, out, false);
}

void lade_rt_stats_get(lade_rt_stats *out)
{
    if (!out)
        return;
    *out = (lade_rt_stats){0};
    struct lr_rt *rt = lr_rt_get();
    if (!rt)
        return;
    out->workers = lr_live(rt);
    out->tasks = __atomic_load_n(&rt->n_fibers, __ATOMIC_RELAXED) +
                 __atomic_load_n(&rt->n_steps, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < out->workers; i++) {
        const struct lr_worker *w = &rt->worker[i];
        out->started += __atomic_load_n(&w->n_started, __ATOMIC_RELAXED);
        out->switches += __atomic_load_n(&w->n_switches, __ATOMIC_RELAXED);
        out->stolen += __atomic_load_n(&w->n_stolen, __ATOMIC_RELAXED);
        out->wakeups += __atomic_load_n(&w->n_wakeups, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < rt->n_workers; i++)
        out->timers += __atomic_load_n(&rt->shard[i].n, __ATOMIC_RELAXED);
    out->stacks = __atomic_load_n(&rt->n_stacks, __ATOMIC_RELAXED);
    out->hogs = __atomic_load_n(&rt->n_hogs, __ATOMIC_RELAXED);
    out->fds = __atomic_load_n(&rt->poller.n_fds, __ATOMIC_RELAXED);
}

void lr_deadlock(struct lr_rt *rt)
{
    if (rt->on_deadlock) {
        rt->on_deadlock(rt->deadlock_ctx);
        return;
    }
    (void)fputs("lade: all tasks are asleep and nothing can wake them:\n", stderr);
    dump(rt, stderr, true);
    _Exit(2);
}
