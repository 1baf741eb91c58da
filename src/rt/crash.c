/*
 * crash.c - the last words of a task: who it was, where it was started, where it is
 *
 * For a stack overflow (a fault in the guard below it, or anywhere with the stack pointer below it) and for abort, which is also what assert ends in. Everything here runs in a
 * signal handler on a stack of its own: no allocation, no lock, write(2) only. Afterwards the program's own handler, or the default,
 * has its turn; nothing is survived.
 */
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/mem.h"
#include "rt/stack.h"

#if defined(__GLIBC__)
#    include <execinfo.h>
#endif

#define SIGSTACK_SIZE (64 * 1024)
#define FRAMES        32
#define FRAME_MAX     ((size_t)64 * 1024 * 1024) /* farther from a stack it is no frame of it */

static void say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

static void say_number(size_t n)
{
    char text[24];
    char *at = text + sizeof(text) - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    say(at);
}

static void say_frames(void)
{
#if defined(__GLIBC__)
    void *frame[FRAMES];
    backtrace_symbols_fd(frame, backtrace(frame, FRAMES), STDERR_FILENO);
#endif
}

/* The running task; NULL in the scheduler, in steps and on other threads. */
static const struct lr_fiber *running_fiber(void)
{
    struct lr_task *t = lr_rt_get() ? lr_cur() : NULL;
    return t && LR_KIND(t) == LR_FIBER ? (const struct lr_fiber *)(const void *)t : NULL;
}

static void say_last_words(const char *what, const struct lr_fiber *f)
{
    say("lade: ");
    say(what);
    say(" in task ");
    say(f->name ? f->name : "(no name)");
    say(" started at ");
    say(f->where ? f->where : "?");
    say("\n");
}

static const char *stack_pointer(const void *context)
{
    const ucontext_t *u = context;
#if defined(__x86_64__)
    return (const char *)u->uc_mcontext.gregs[REG_RSP]; /* NOLINT(performance-no-int-to-ptr) */
#elif defined(__aarch64__)
    return (const char *)u->uc_mcontext.sp; /* NOLINT(performance-no-int-to-ptr) */
#else
    (void)u;
    return NULL;
#endif
}

/* `at` lies below the stack, by no more than `reach`. */
static bool is_below(const struct lr_fiber *f, const char *at, size_t reach)
{
    uintptr_t low = (uintptr_t)f->stack->low;
    return (uintptr_t)at < low && low - (uintptr_t)at <= reach;
}

static void say_overflow(const struct lr_rt *rt, const struct lr_fiber *f)
{
    say_last_words("stack overflow", f);
    say("lade: its stack has ");
    say_number(rt->stack_size);
    say(" bytes: large arrays belong on the heap, or give it more (lade_rt_opts.stack_size; for handlers of a queue executor = "
        "LADE_EXECUTOR_THREAD)\n");
    say_frames();
}

/* What was there before us; else the default, as soon as the handler returns and it happens again. */
static void pass_on(const struct sigaction *old, int sig, siginfo_t *info, void *context)
{
    if ((old->sa_flags & SA_SIGINFO) && old->sa_sigaction)
        old->sa_sigaction(sig, info, context);
    else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN &&
             !(old->sa_flags & SA_SIGINFO))
        old->sa_handler(sig);
    else
        (void)signal(sig, SIG_DFL);
}

static void on_segv(int sig, siginfo_t *info, void *context)
{
    const struct lr_fiber *f = running_fiber();
    struct lr_rt *rt = lr_rt_get();
    if (f && f->stack &&
        (is_below(f, info->si_addr, rt->guard_size) ||
         is_below(f, stack_pointer(context), FRAME_MAX)))
        say_overflow(rt, f);
    if (rt)
        pass_on(&rt->old_segv, sig, info, context);
    else
        (void)signal(sig, SIG_DFL);
}

static void on_abort(int sig, siginfo_t *info, void *context)
{
    const struct lr_fiber *f = running_fiber();
    if (f) {
        say_last_words("abort", f);
        say_frames();
    }
    struct lr_rt *rt = lr_rt_get();
    if (rt)
        pass_on(&rt->old_abort, sig, info, context);
}

void lr_crash_start(struct lr_rt *rt)
{
#if defined(__GLIBC__)
    void *warm[1]; /* its first call loads a library, which a handler must not */
    (void)backtrace(warm, 1);
#endif
    struct sigaction sa = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    (void)sigaction(SIGSEGV, &sa, &rt->old_segv);
    sa.sa_sigaction = on_abort;
    (void)sigaction(SIGABRT, &sa, &rt->old_abort);
}

/* Only what is still ours: the program may have put its own there since. */
static void restore(int sig, void (*ours)(int, siginfo_t *, void *), const struct sigaction *old)
{
    struct sigaction now;
    if (sigaction(sig, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == ours)
        (void)sigaction(sig, old, NULL);
}

void lr_crash_stop(struct lr_rt *rt)
{
    restore(SIGSEGV, on_segv, &rt->old_segv);
    restore(SIGABRT, on_abort, &rt->old_abort);
}

void lr_crash_enter(struct lr_worker *w)
{
    w->sigstack = lb_malloc(SIGSTACK_SIZE);
    if (!w->sigstack)
        return; /* an overflow then ends without a name */
    stack_t ss = {.ss_sp = w->sigstack, .ss_size = SIGSTACK_SIZE};
    stack_t before;
    if (sigaltstack(NULL, &before) == 0 && !(before.ss_flags & SS_DISABLE)) {
        lb_free(w->sigstack); /* the program, or a sanitizer, has one */
        w->sigstack = NULL;
        return;
    }
    (void)sigaltstack(&ss, NULL);
}

void lr_crash_leave(struct lr_worker *w)
{
    if (!w->sigstack)
        return;
    stack_t off = {.ss_flags = SS_DISABLE};
    (void)sigaltstack(&off, NULL);
    lb_free(w->sigstack);
    w->sigstack = NULL;
}
