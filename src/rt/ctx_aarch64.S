/*
 * ctx_aarch64.S - void lr_ctx_switch(void **from [x0], void *to [x1]); ctx.h explains
 *
 * Frame, 22 words: x19..x28, x29, x30, d8..d15, two words of padding. The stack pointer is published by a store-release after the
 * frame is written.
 */
#if defined(__aarch64__) && !defined(LADE_CTX_UCONTEXT)
    .text
    .global lr_ctx_switch
    .hidden lr_ctx_switch
    .type lr_ctx_switch, %function
    .align 4
lr_ctx_switch:
    sub sp, sp, #176
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    stlr x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #176
    br x30
    .size lr_ctx_switch, . - lr_ctx_switch

    .global lr_ctx_entry
    .hidden lr_ctx_entry
    .type lr_ctx_entry, %function
    .align 4
lr_ctx_entry:
    mov x29, xzr
    mov x30, xzr
    br x19
    .size lr_ctx_entry, . - lr_ctx_entry
#endif
#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack, "", %progbits
#endif
