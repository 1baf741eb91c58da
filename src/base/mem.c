#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Both are only touched while a test has injection on, so the hot path reads one shared, never-written line. */
static _Atomic uint64_t fail_at;
static _Atomic uint64_t seen;

static bool must_fail(void)
{
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    if (at == 0)
        return false;
    return atomic_fetch_add_explicit(&seen, 1, memory_order_relaxed) + 1 >= at;
}

void *lb_malloc(size_t size)
{
    return must_fail() ? NULL : malloc(size ? size : 1);
}

void *lb_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : calloc(n ? n : 1, size ? size : 1);
}

void *lb_realloc(void *p, size_t size)
{
    return must_fail() ? NULL : realloc(p, size ? size : 1);
}

char *lb_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = lb_malloc(n);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

void lb_free(void *p)
{
    free(p);
}

void lb_mem_fail_after(uint64_t n)
{
    atomic_store_explicit(&seen, 0, memory_order_relaxed);
    atomic_store_explicit(&fail_at, n, memory_order_relaxed);
}

uint64_t lb_mem_count(void)
{
    return atomic_load_explicit(&seen, memory_order_relaxed);
}
