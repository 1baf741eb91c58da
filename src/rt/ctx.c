/* ctx.c - how a context begins, and the slow fallback; ctx.h explains */
#include "rt/ctx.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if LR_CTX_UCONTEXT
#    include <ucontext.h>

/* swapcontext saves and leaves in one call, so the context can be published only by the one that arrives. */
static __thread void **pending_from;
static __thread void *pending_ctx;

__attribute__((noinline)) void lr_ctx_arrive(void)
{
    if (pending_from)
        __atomic_store_n(pending_from, pending_ctx, __ATOMIC_RELEASE);
    pending_from = NULL;
}

static __attribute__((noinline)) void announce(void **from, void *ctx)
{
    pending_from = from;
    pending_ctx = ctx;
}

void lr_ctx_switch(void **from, void *to)
{
    ucontext_t here;
    announce(from, &here);
    (void)swapcontext(&here, to);
    lr_ctx_arrive();
}

static void enter(unsigned high, unsigned low)
{
    void (*entry)(void) = (void (*)(void))(((uintptr_t)high << 32) | low);
    lr_ctx_arrive();
    entry();
}

void *lr_ctx_make(void *low, void *top, void (*entry)(void))
{
    ucontext_t *u = (void *)(((uintptr_t)top - sizeof(*u)) & ~(uintptr_t)63);
    (void)getcontext(u);
    u->uc_stack.ss_sp = low;
    u->uc_stack.ss_size = (size_t)((char *)u - (char *)low);
    u->uc_link = NULL;
    uint64_t e = (uint64_t)(uintptr_t)entry;
    makecontext(u, (void (*)(void))enter, 2, (unsigned)(e >> 32), (unsigned)e);
    return u;
}
#else

void *lr_ctx_make(void *low, void *top, void (*entry)(void))
{
    (void)low;
    void **p = top;
#    if defined(__x86_64__)
    *--p = NULL;                        /* the return address of entry: none */
    memcpy(--p, &entry, sizeof(entry)); /* ISO C has no cast from function to object */
    return p;
#    else
    extern void lr_ctx_entry(void);
    p -= 22; /* the frame that ctx_aarch64.S restores */
    for (int i = 0; i < 22; i++)
        p[i] = NULL;
    memcpy(&p[0], &entry, sizeof(entry)); /* x19: lr_ctx_entry calls it */
    void (*go)(void) = lr_ctx_entry;
    memcpy(&p[11], &go, sizeof(go)); /* x30 */
    return p;
#    endif
}
#endif

/* The task may be resumed meanwhile: then the words are old ones, which the caller expects. */
__attribute__((no_sanitize("address", "thread"))) bool lr_ctx_frame(const void *ctx, void **pc,
                                                                    void **sp, void **fp)
{
#if LR_CTX_UCONTEXT
    (void)ctx, (void)pc, (void)sp, (void)fp;
    return false;
#elif defined(__x86_64__)
    void *const *p = ctx; /* lr_ctx_switch: the address, rbp, 128 bytes; lr_ctx_make: entry, NULL */
    *pc = p[0];
    *fp = p[1];
    *sp = (char *)ctx + 16 + 128;
    return true;
#else
    void *const *p = ctx; /* ctx_aarch64.S: x19..x28, x29, x30, d8..d15 */
    *pc = p[11];
    *fp = p[10];
    *sp = (char *)ctx + 22 * sizeof(void *);
    return true;
#endif
}

#if LR_HAS_THUNK
/* Where the compiler lets LR_JUMPS_BACK functions end. rcx is nobody's at a return. */
__asm__(".text\n\t"
        ".globl __x86_return_thunk\n\t"
        ".hidden __x86_return_thunk\n\t"
        ".type __x86_return_thunk, @function\n"
        "__x86_return_thunk:\n\t"
        "pop %rcx\n\t"
        "jmp *%rcx\n\t"
        ".size __x86_return_thunk, .-__x86_return_thunk\n");
#endif

bool lr_ctx_check(void)
{
#if defined(__x86_64__) && !LR_CTX_UCONTEXT && defined(SYS_arch_prctl)
    uint64_t features = 0;
    const int arch_shstk_status = 0x5005;
    if (syscall(SYS_arch_prctl, arch_shstk_status, &features) == 0 && (features & 1) != 0)
        return false;
#endif
    return true;
}
