#include "rt/fence.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

bool lr_fence_symmetric = true;

void lr_fence_setup(bool forced)
{
    if (forced) {
        lr_fence_symmetric = true;
        return;
    }
    long can = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    bool has = can > 0 && (can & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
               syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    lr_fence_symmetric = !has;
}

/* A read-modify-write instead of a fence: ThreadSanitizer understands it. */
void lr_fence_full(void)
{
    static uint64_t word;
    (void)__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
}

void lr_fence_heavy(void)
{
    lr_fence_full();
    if (lr_fence_symmetric || LR_TSAN)
        return;
    /* Registered at setup, so it cannot fail; if it did, waiting for a wake-up that never comes would be the result. */
    LB_CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

#ifdef LADE_CHAOS
void lr_chaos(void)
{
    static __thread uint64_t x;
    if (x == 0)
        x = (uint64_t)(uintptr_t)&x | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    if ((x & 511) == 0)
        (void)sched_yield();
    else if ((x & 7) == 0)
        for (uint64_t i = 0; i < (x >> 8 & 255); i++)
            lr_cpu_relax();
}
#endif
