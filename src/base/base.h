/* base.h - what every file of lade may use without asking: small macros, no functions that can fail */
#ifndef LADE_BASE_BASE_H
#define LADE_BASE_BASE_H

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define LB_ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define LB_MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define LB_MAX(a, b)                       ((a) > (b) ? (a) : (b))
#define LB_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define LB_LIKELY(x)                       __builtin_expect(!!(x), 1)
#define LB_UNLIKELY(x)                     __builtin_expect(!!(x), 0)
#define LB_UNUSED                          __attribute__((unused))

/* Always on: memory is not what it must be, going on would spread the damage. */
#define LB_CHECK(cond)                                                                      \
    do {                                                                                    \
        if (LB_UNLIKELY(!(cond))) {                                                         \
            (void)fprintf(stderr, "lade: broken: %s (%s:%d)\n", #cond, __FILE__, __LINE__); \
            abort();                                                                        \
        }                                                                                   \
    } while (0)

#endif
