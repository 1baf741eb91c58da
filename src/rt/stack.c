#include "rt/stack.h"

#include <sys/mman.h>

#include "base/mem.h"

#if LR_TSAN
#    include <sanitizer/tsan_interface.h>
#endif
#if LR_ASAN
#    include <sanitizer/asan_interface.h>
#endif
#if defined(__has_include)
#    if __has_include(<valgrind/valgrind.h>)
#        include <valgrind/valgrind.h>
#        define TELL_VALGRIND(low, high) ((void)VALGRIND_STACK_REGISTER(low, high))
#    endif
#endif
#ifndef TELL_VALGRIND
#    define TELL_VALGRIND(low, high) ((void)0)
#endif

#define SLAB_SLOTS    64
#define PAGE          4096
#define COLOURS       16
#define COLOUR_STEP   192
#define RUNTIME_KEEPS 1024  /* free stacks with their pages */
#define GUARD_INSTALL 102   /* MADV_GUARD_INSTALL of newer headers */
#define GUARD_MAPS    20000 /* by mprotect: two mappings each, of the 65,530 a process may have */

struct lr_slab {
    struct lr_slab *next;  /* every slab */
    struct lr_slab *fresh; /* those with slots that were never used */
    char *base;
    size_t slot_size; /* guard and stack */
    size_t used;      /* slots given out at least once */
};

/* Under the pool lock. */
static void guard(struct lr_rt *rt, char *at)
{
    if (madvise(at, rt->guard_size, GUARD_INSTALL) == 0)
        return;
    /* Beyond the bound there is none: the mappings that are left are for stacks, and the program's own. */
    if (rt->n_guard_maps < GUARD_MAPS && mprotect(at, rt->guard_size, PROT_NONE) == 0)
        rt->n_guard_maps++;
}

/* Address space for 64 more, no memory. Under the pool lock. */
static bool map_slab(struct lr_rt *rt)
{
    struct lr_slab *slab = lb_malloc(sizeof(*slab));
    if (!slab)
        return false;
    size_t slot = rt->guard_size + rt->stack_size;
    size_t size = slot * SLAB_SLOTS;
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        lb_free(slab);
        return false;
    }
    (void)madvise(base, size, MADV_NOHUGEPAGE);
    *slab =
        (struct lr_slab){.next = rt->slabs, .fresh = rt->fresh, .base = base, .slot_size = slot};
    rt->slabs = rt->fresh = slab;
    lr_count(&rt->n_stacks, SLAB_SLOTS);
    return true;
}

int lr_stack_reserve_slow(struct lr_rt *rt)
{
    bool done = true;
    lr_hard_lock(&rt->pool_lock);
    while (done && lr_stack_is_short(rt))
        done = map_slab(rt);
    lr_spin_unlock(&rt->pool_lock);
    return done ? 0 : -LADE_ENOMEM;
}

int lr_stack_reserve_workers(struct lr_rt *rt, unsigned n)
{
    bool done = true;
    lr_hard_lock(&rt->pool_lock);
    while (done && __atomic_load_n(&rt->n_fibers, __ATOMIC_RELAXED) + n * LR_STACKS_SLACK >=
                       __atomic_load_n(&rt->n_stacks, __ATOMIC_RELAXED))
        done = map_slab(rt);
    lr_spin_unlock(&rt->pool_lock);
    return done ? 0 : -LADE_ENOMEM;
}

static struct lr_stack *slot_of(const struct lr_slab *slab, size_t i)
{
    char *end = slab->base + (i + 1) * slab->slot_size;
    return (void *)(end - 64 - i % COLOURS * COLOUR_STEP);
}

/* A slot that was never used. Under the pool lock. */
static struct lr_stack *take_fresh(struct lr_rt *rt)
{
    struct lr_slab *slab = rt->fresh;
    LB_CHECK(slab); /* lr_stack_reserve has seen to it */
    size_t i = slab->used++;
    if (slab->used == SLAB_SLOTS)
        rt->fresh = slab->fresh;
    char *slot = slab->base + i * slab->slot_size;
    char *low = slot + rt->guard_size;
    guard(rt, slot);
    TELL_VALGRIND(low, slot + slab->slot_size);
    struct lr_stack *s = slot_of(slab, i);
    *s = (struct lr_stack){.low = low};
    return s;
}

static struct lr_stack *get_shared(struct lr_rt *rt)
{
    lr_hard_lock(&rt->pool_lock);
    struct lr_stack *s = rt->stacks;
    if (s) {
        rt->stacks = s->next;
        lr_count(&rt->n_free_stacks, (uint64_t)-1);
    } else {
        s = take_fresh(rt);
    }
    lr_spin_unlock(&rt->pool_lock);
    return s;
}

struct lr_stack *lr_stack_get(struct lr_rt *rt, struct lr_worker *w)
{
    struct lr_stack *s = w->stacks;
    if (LB_LIKELY(s != NULL)) {
        w->stacks = s->next;
        w->n_stacks--;
    } else {
        s = get_shared(rt);
    }
#if LR_TSAN
    if (!s->tsan)
        s->tsan = __tsan_create_fiber(0);
#endif
#if LR_ASAN
    /* Frames that a task never returned from. */
    __asan_unpoison_memory_region(s->low, (size_t)((char *)s - s->low));
#endif
    return s;
}

void lr_stack_trim(struct lr_rt *rt, struct lr_worker *w)
{
    while (w->n_stacks > LR_STACKS_KEPT) {
        struct lr_stack *s = w->stacks;
        w->stacks = s->next;
        w->n_stacks--;
        if (__atomic_load_n(&rt->n_free_stacks, __ATOMIC_RELAXED) >= RUNTIME_KEEPS) {
            uintptr_t top = (uintptr_t)s & ~(uintptr_t)(PAGE - 1); /* the page of *s stays */
            if (top > (uintptr_t)s->low)
                (void)madvise(s->low, top - (uintptr_t)s->low, MADV_DONTNEED);
        }
        lr_hard_lock(&rt->pool_lock);
        s->next = rt->stacks;
        rt->stacks = s;
        lr_count(&rt->n_free_stacks, 1);
        lr_spin_unlock(&rt->pool_lock);
    }
}

void lr_stack_free_all(struct lr_rt *rt)
{
    for (struct lr_slab *slab = rt->slabs, *next; slab; slab = next) {
        next = slab->next;
#if LR_TSAN
        for (size_t i = 0; i < SLAB_SLOTS; i++) {
            struct lr_stack *s =
                (void *)(slab->base + (i + 1) * slab->slot_size - 64 - i % COLOURS * COLOUR_STEP);
            if (s->tsan)
                __tsan_destroy_fiber(s->tsan);
        }
#endif
#if LR_ASAN
        /* Or the marks of frames that were never returned from meet whatever is mapped there next. */
        __asan_unpoison_memory_region(slab->base, slab->slot_size * SLAB_SLOTS);
#endif
        (void)munmap(slab->base, slab->slot_size * SLAB_SLOTS);
        lb_free(slab);
    }
    rt->slabs = rt->fresh = NULL;
    rt->stacks = NULL;
}
