/*
 * ctx.h - changing stacks
 *
 *     lr_ctx_switch(&from, to)   saves here, stores the saved context into *from, goes on at `to`
 *     lr_ctx_make(top, entry)    a context that begins entry() on an empty stack
 *
 * *from is stored with release order after all that belongs to the context, so that another thread may resume it as soon as
 * it sees the value: no lock has to be held across the switch.
 *
 * x86-64: inline, so that the compiler saves what it has live and nothing else; rsp, rbp and the address are kept by hand.
 * `jmp`, not `ret`: the return predictor would be wrong at each switch (measured 9.7 ns against 0.7). A shadow stack would not
 * match; lr_ctx_check says so. aarch64: ctx_aarch64.S. Others, and LADE_CTX_UCONTEXT: ctx_ucontext.c, slow.
 *
 * gcc 12 was seen to keep file-local statics in registers across such asm in spite of the memory clobber: functions that
 * contain a switch are LR_SWITCHES.
 */
#ifndef LADE_RT_CTX_H
#define LADE_RT_CTX_H

#include <stddef.h>

#include "rt/fence.h"

#if defined(__clang__)
#    define LR_SWITCHES __attribute__((noinline))
#else
#    define LR_SWITCHES __attribute__((noipa))
#endif

/*
 * After a switch the processor's stack of return addresses belongs to another task, so that a `ret` is mispredicted each time (some 20
 * cycles). A function that mostly returns after a switch is LR_JUMPS_BACK: it pops its return address and jumps to it, which
 * is predicted like any indirect jump. gcc only; elsewhere it is a plain return.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#    define LR_JUMPS_BACK __attribute__((function_return("thunk-extern")))
#    define LR_HAS_THUNK  1
#else
#    define LR_JUMPS_BACK
#    define LR_HAS_THUNK 0
#endif

#if defined(LADE_CTX_UCONTEXT) || !(defined(__x86_64__) || defined(__aarch64__))
#    define LR_CTX_UCONTEXT 1
void lr_ctx_switch(void **from, void *to);
/* First thing on the other side: publishes the context that was left. */
void lr_ctx_arrive(void);
#else
#    define LR_CTX_UCONTEXT 0

static inline void lr_ctx_arrive(void)
{
}
#    if defined(__x86_64__)
static inline __attribute__((always_inline)) void lr_ctx_switch(void **from, void *to)
{
    register void **f __asm__("rdi") = from;
    register void *t __asm__("rsi") = to;
    /* 128 bytes down first: the caller's red zone. */
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "push %%rbp\n\t"
                     "lea 1f(%%rip), %%rax\n\t"
                     "push %%rax\n\t"
                     "mov %%rsp, (%%rdi)\n\t"
                     "mov %%rsi, %%rsp\n\t"
                     "pop %%rax\n\t"
                     "jmp *%%rax\n"
                     "1:\n\t"
                     "pop %%rbp\n\t"
                     "lea 128(%%rsp), %%rsp\n\t"
                     : "+r"(f), "+r"(t)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                       "r15", "memory", "cc");
}
#    else
void lr_ctx_switch(void **from, void *to);
#    endif
#endif

/* `top` is the end of the stack, aligned to 16; `low` its beginning. entry must not return. */
void *lr_ctx_make(void *low, void *top, void (*entry)(void));
/* Of a saved context: where it goes on, its stack pointer and its frame pointer. False when this kind of context does not say. */
bool lr_ctx_frame(const void *ctx, void **pc, void **sp, void **fp);
/* False when this process cannot switch stacks this way (shadow stacks are on). */
bool lr_ctx_check(void);

#endif
