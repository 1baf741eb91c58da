/* slice.h - a run of bytes that someone else owns */
#ifndef LADE_BASE_SLICE_H
#define LADE_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct lb_slice {
    const uint8_t *p;
    size_t n;
};

/* The same, for bytes the holder may change. */
struct lb_mut {
    uint8_t *p;
    size_t n;
};

static inline struct lb_slice lb_slice(const void *p, size_t n)
{
    return (struct lb_slice){p, n};
}

static inline struct lb_slice lb_slice_str(const char *s)
{
    return (struct lb_slice){(const uint8_t *)s, s ? strlen(s) : 0};
}

static inline struct lb_slice lb_slice_of(struct lb_mut m)
{
    return (struct lb_slice){m.p, m.n};
}

static inline bool lb_slice_eq(struct lb_slice a, struct lb_slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

#endif
