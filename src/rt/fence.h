/*
 * fence.h - asymmetric fences: the frequent side pays nothing, the rare side pays a system call
 *
 * For "I store A and look at B, you store B and look at A", where one side runs a hundred million times a second. The
 * frequent side calls lr_fence_light (a compiler barrier), the rare one lr_fence_heavy, which makes every CPU that runs a
 * thread of this process execute a full barrier (membarrier). Without membarrier, and under ThreadSanitizer, both are full
 * barriers. Thread safety: all.
 */
#ifndef LADE_RT_FENCE_H
#define LADE_RT_FENCE_H

#include <stdbool.h>

#include "base/base.h"

#if defined(__SANITIZE_THREAD__)
#    define LR_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define LR_TSAN 1
#    endif
#endif
#ifndef LR_TSAN
#    define LR_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#    define LR_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define LR_ASAN 1
#    endif
#endif
#ifndef LR_ASAN
#    define LR_ASAN 0
#endif

extern bool lr_fence_symmetric; /* written by lr_fence_setup before other threads exist */

/* Looks for membarrier; once per process is enough, more do no harm. `forced`: act as if there were none (tests). */
void lr_fence_setup(bool forced);
void lr_fence_heavy(void);
/* A full barrier on this CPU. */
void lr_fence_full(void);

static inline void lr_fence_light(void)
{
    if (LB_UNLIKELY(LR_TSAN || lr_fence_symmetric))
        lr_fence_full();
    else
        __asm__ volatile("" ::: "memory");
}

static inline void lr_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Chaos builds leave the CPU at the steps of the protocols, so that rare interleavings become frequent. */
#ifdef LADE_CHAOS
void lr_chaos(void);
#    define LR_CHAOS() lr_chaos()
#else
#    define LR_CHAOS() ((void)0)
#endif

#endif
