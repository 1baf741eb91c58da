/*
 * bridge.c - between the runtime and foreign threads
 *
 * Towards the runtime a post is a new task, injected. Back, calls are kept in a list and an eventfd is raised, for a host
 * whose own loop polls descriptors.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "rt/task.h"

struct back {
    struct back *next;
    void (*fn)(void *);
    void *arg;
};

struct lade_bridge {
    uint32_t lock; /* taken by hosts: always a real one */
    bool closed;
    int event;
    struct back *head, *tail;
};

int lade_bridge_open(lade_rt *rt, lade_bridge **out)
{
    struct lr_rt *r = lr_rt_get();
    if (!out || (rt && (struct lr_rt *)rt != r))
        return -LADE_EINVAL;
    if (!r)
        return -LADE_EPERM;
    lade_bridge *b = lb_calloc(1, sizeof(*b));
    if (!b)
        return -LADE_ENOMEM;
    b->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (b->event < 0) {
        lb_free(b);
        return -LADE_EIO;
    }
    (void)__atomic_fetch_add(&r->n_foreign, 1, __ATOMIC_SEQ_CST);
    *out = b;
    return 0;
}

int lade_bridge_post(lade_bridge *b, void (*fn)(void *), void *arg)
{
    if (!b || !fn)
        return -LADE_EINVAL;
    if (!lr_rt_get())
        return -LADE_ECLOSED;
    struct lr_spawn s = {.plain = fn, .arg = arg, .where = "bridge"};
    return lr_spawn(&s, NULL);
}

struct waited {
    int (*fn)(void *);
    void *arg;
    int rc;
    lade_gate done;
    uint32_t holders; /* atomic: the caller and the task */
};

static void drop(struct waited *w)
{
    if (__atomic_fetch_sub(&w->holders, 1, __ATOMIC_ACQ_REL) == 1)
        lb_free(w);
}

static void serve(void *p)
{
    struct waited *w = p;
    w->rc = w->fn(w->arg);
    (void)lade_gate_open(&w->done);
    drop(w);
}

int lade_bridge_call(lade_bridge *b, int (*fn)(void *), void *arg, int64_t until)
{
    if (!b || !fn)
        return -LADE_EINVAL;
    struct waited *w = lb_calloc(1, sizeof(*w));
    if (!w)
        return -LADE_ENOMEM;
    w->fn = fn;
    w->arg = arg;
    w->holders = 2;
    int rc = lade_bridge_post(b, serve, w);
    if (rc < 0) {
        lb_free(w);
        return rc;
    }
    rc = lade_gate_wait_until(&w->done, until);
    if (rc == 0)
        rc = w->rc;
    drop(w);
    return rc;
}

int lade_bridge_back(lade_bridge *b, void (*fn)(void *), void *arg)
{
    if (!b || !fn)
        return -LADE_EINVAL;
    struct back *it = lb_malloc(sizeof(*it));
    if (!it)
        return -LADE_ENOMEM;
    *it = (struct back){.fn = fn, .arg = arg};
    lr_hard_lock(&b->lock);
    if (b->head)
        b->tail->next = it;
    else
        b->head = it;
    b->tail = it;
    lr_spin_unlock(&b->lock);
    uint64_t one = 1;
    while (write(b->event, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
    return 0;
}

int lade_bridge_fd(lade_bridge *b)
{
    return b ? b->event : -LADE_EINVAL;
}

static struct back *take_all(lade_bridge *b)
{
    lr_hard_lock(&b->lock);
    struct back *all = b->head;
    b->head = b->tail = NULL;
    lr_spin_unlock(&b->lock);
    return all;
}

int lade_bridge_drain(lade_bridge *b)
{
    if (!b)
        return -LADE_EINVAL;
    uint64_t count;
    while (read(b->event, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    int n = 0;
    for (struct back *it = take_all(b), *next; it; it = next) {
        next = it->next;
        it->fn(it->arg);
        lb_free(it);
        n++;
    }
    return n;
}

void lade_bridge_close(lade_bridge *b)
{
    if (!b)
        return;
    for (struct back *it = take_all(b), *next; it; it = next) {
        next = it->next;
        lb_free(it);
    }
    (void)close(b->event);
    lb_free(b);
    struct lr_rt *r = lr_rt_get();
    if (!r)
        return;
    (void)__atomic_fetch_sub(&r->n_foreign, 1, __ATOMIC_SEQ_CST);
    lr_kick(r);
}
