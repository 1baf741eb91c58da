/* signals.c - see signals.h; what a handler does is a store and a write to an event */
#include "queue/signals.h"

#include <signal.h>

#include "base/err.h"

#define LISTENING_MAX 64 /* workers of one process */

/* Signals that are taken together while somebody listens to them. */
struct table {
    int signal[5];
    size_t n;
    int n_listening; /* guarded by: lock, as `before` */
    struct sigaction before[5];
};

static _Atomic(struct lade_worker *) listening[LISTENING_MAX];
static struct lr_mutex lock = LR_MUTEX_INIT;
static struct table common = {.signal = {SIGTERM, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN}, .n = 5};
static struct table resque = {.signal = {SIGUSR1, SIGUSR2, SIGCONT}, .n = 3};

static void order(struct lade_worker *w, _Atomic int *what)
{
    (void)atomic_fetch_add(what, 1);
    lr_event_raise(&w->control);
}

void lade_worker_stop(lade_worker *w)
{
    if (w)
        order(w, &w->stops);
}

void lade_worker_quiet(lade_worker *w)
{
    if (w)
        order(w, &w->quiets);
}

static void set_flag(struct lade_worker *w, _Atomic bool *flag, bool value)
{
    atomic_store(flag, value);
    lr_event_raise(&w->control);
}

void lade_worker_pause(lade_worker *w)
{
    if (w)
        set_flag(w, &w->paused, true);
}

void lade_worker_resume(lade_worker *w)
{
    if (w)
        set_flag(w, &w->paused, false);
}

static void tell(struct lade_worker *w, int signo)
{
    bool ruby = w->resque_signals;
    if (signo == SIGTSTP) {
        lade_worker_quiet(w);
    } else if (signo == SIGTTIN) {
        order(w, &w->dumps);
    } else if (signo == SIGQUIT && ruby) {
        set_flag(w, &w->finish, true);
    } else if (signo == SIGUSR1 && ruby) {
        order(w, &w->kills);
    } else if ((signo == SIGUSR2 || signo == SIGCONT) && ruby) {
        set_flag(w, &w->paused, signo == SIGUSR2);
    } else if (signo == SIGTERM || signo == SIGINT || signo == SIGQUIT) {
        lade_worker_stop(w);
        if (signo == SIGQUIT)
            lade_worker_stop(w);
    }
}

static void on_signal(int signo)
{
    for (size_t i = 0; i < LISTENING_MAX; i++) {
        struct lade_worker *w = atomic_load(&listening[i]);
        if (w)
            tell(w, signo);
    }
}

/* Under the lock. */
static void take(struct table *t)
{
    if (t->n_listening++ > 0)
        return;
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    (void)sigfillset(&sa.sa_mask);
    for (size_t i = 0; i < t->n; i++)
        (void)sigaction(t->signal[i], &sa, &t->before[i]);
}

static void give_back(struct table *t)
{
    if (--t->n_listening > 0)
        return;
    for (size_t i = 0; i < t->n; i++)
        (void)sigaction(t->signal[i], &t->before[i], NULL);
}

int lq_signals_listen(struct lade_worker *w, lade_err *err)
{
    int rc = -1;
    lr_mutex_lock(&lock);
    for (size_t i = 0; i < LISTENING_MAX && rc < 0; i++) {
        struct lade_worker *none = NULL;
        if (atomic_compare_exchange_strong(&listening[i], &none, w))
            rc = 0;
    }
    if (rc == 0)
        take(&common);
    if (rc == 0 && w->resque_signals)
        take(&resque);
    lr_mutex_unlock(&lock);
    if (rc < 0)
        return lb_fail(err, LADE_EINVAL, "worker",
                       "more than %d workers of one process handle signals; set no_signals",
                       LISTENING_MAX);
    return 0;
}

void lq_signals_forget(struct lade_worker *w)
{
    lr_mutex_lock(&lock);
    for (size_t i = 0; i < LISTENING_MAX; i++) {
        struct lade_worker *self = w;
        (void)atomic_compare_exchange_strong(&listening[i], &self, NULL);
    }
    give_back(&common);
    if (w->resque_signals)
        give_back(&resque);
    lr_mutex_unlock(&lock);
}
