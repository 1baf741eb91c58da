/*
 * poller.c - one epoll for all descriptors, edge-triggered, and the table behind it
 *
 * Each descriptor is registered once, for both directions. An event counts in `edges` and wakes all waiters of that direction. A
 * task looks at the count before it tries, and parks only when the count is still the same under the lock: between EAGAIN
 * and parking no event is lost, also one that has woken others already.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rt/net.h"

#define EVENTS     64
#define CHUNK      256
#define CHUNKS_MAX 4096 /* 1,048,576 descriptors */
#define KICK       UINT64_MAX

static struct {
    uint32_t lock;
    lade_fd *chunk[CHUNKS_MAX]; /* atomic: set once */
    uint32_t n_chunks;
    lade_fd *free;
} table;

int lr_poller_init(struct lr_poller *p)
{
    *p = (struct lr_poller){.epoll = epoll_create1(EPOLL_CLOEXEC),
                            .event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = KICK};
    if (p->epoll < 0 || p->event < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->event, &e) < 0) {
        lr_poller_fini(p);
        return -LADE_EIO;
    }
    return 0;
}

void lr_poller_fini(struct lr_poller *p)
{
    if (p->epoll >= 0)
        (void)close(p->epoll);
    if (p->event >= 0)
        (void)close(p->event);
    p->epoll = p->event = -1;
}

void lr_poller_kick(struct lr_poller *p)
{
    uint64_t one = 1;
    while (write(p->event, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static bool grow_table(void)
{
    if (table.n_chunks == CHUNKS_MAX)
        return false;
    lade_fd *chunk = lb_calloc(CHUNK, sizeof(*chunk));
    if (!chunk)
        return false;
    for (uint32_t i = CHUNK; i-- > 0;) {
        chunk[i].index = table.n_chunks * CHUNK + i;
        chunk[i].closed = true;
        chunk[i].next_free = table.free;
        table.free = &chunk[i];
    }
    __atomic_store_n(&table.chunk[table.n_chunks], chunk, __ATOMIC_RELEASE);
    table.n_chunks++;
    return true;
}

static lade_fd *take_slot(void)
{
    lr_hard_lock(&table.lock);
    lade_fd *fd = NULL;
    if (table.free || grow_table()) {
        fd = table.free;
        table.free = fd->next_free;
    }
    lr_spin_unlock(&table.lock);
    return fd;
}

static void give_slot(lade_fd *fd)
{
    lr_hard_lock(&table.lock);
    fd->next_free = table.free;
    table.free = fd;
    lr_spin_unlock(&table.lock);
}

static lade_fd *slot_of(uint32_t index)
{
    return &__atomic_load_n(&table.chunk[index / CHUNK], __ATOMIC_ACQUIRE)[index % CHUNK];
}

int lr_fd_new(int fd, lade_fd **out)
{
    struct lr_rt *rt = lr_rt_get();
    if (!rt)
        return -LADE_EPERM;
    lade_fd *f = take_slot();
    if (!f)
        return -LADE_ENOMEM;
    lr_spin_lock(&f->side[0].lock);
    f->fd = fd;
    f->generation++;
    f->closed = false;
    f->users = 1;
    f->file = NULL;
    uint64_t key = (uint64_t)f->generation << 32 | f->index;
    lr_spin_unlock(&f->side[0].lock);
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u64 = key};
    if (epoll_ctl(rt->poller.epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        f->closed = true;
        give_slot(f);
        return -LADE_EIO;
    }
    (void)__atomic_fetch_add(&rt->poller.n_fds, 1, __ATOMIC_RELAXED);
    *out = f;
    return 0;
}

int lr_fd_enter(lade_fd *fd)
{
    lr_spin_lock(&fd->side[0].lock);
    bool open = !fd->closed;
    if (open)
        fd->users++;
    lr_spin_unlock(&fd->side[0].lock);
    return open ? 0 : -LADE_EINVAL;
}

/* The last one out closes the descriptor: its number is not free for others while a call may still use it. */
void lr_fd_leave(lade_fd *fd)
{
    lr_spin_lock(&fd->side[0].lock);
    bool last = --fd->users == 0;
    lr_spin_unlock(&fd->side[0].lock);
    if (!last)
        return;
    struct lr_rt *rt = lr_rt_get();
    if (rt) {
        (void)epoll_ctl(rt->poller.epoll, EPOLL_CTL_DEL, fd->fd, NULL);
        (void)__atomic_fetch_sub(&rt->poller.n_fds, 1, __ATOMIC_RELAXED);
    }
    (void)close(fd->fd);
    give_slot(fd);
}

int lade_fd_close(lade_fd *fd)
{
    if (!fd)
        return -LADE_EINVAL;
    lr_spin_lock(&fd->side[0].lock);
    bool open = !fd->closed;
    fd->closed = true;
    struct lr_task *readers = NULL;
    struct lr_task *writers = NULL;
    if (open) {
        fd->generation++; /* events that are on their way are not for us any more */
        readers = lr_waitlist_claim_all(&fd->side[LR_SIDE_READ], LR_WOKE_CANCELED);
        writers = lr_waitlist_claim_all(&fd->side[LR_SIDE_WRITE], LR_WOKE_CANCELED);
    }
    lr_spin_unlock(&fd->side[0].lock);
    if (!open)
        return -LADE_EINVAL;
    lr_ready_all(readers);
    lr_ready_all(writers);
    lr_socket_file_drop(fd->file); /* ours alone since we closed it, until we leave */
    fd->file = NULL;
    lr_fd_leave(fd);
    return 0;
}

int lr_fd_wait(lade_fd *fd, enum lr_side side, uint32_t seen, int64_t until)
{
    struct lr_task *t = lr_self_task();
    struct lr_rt *rt = lr_rt_get();
    if (!t || !rt)
        return -LADE_EPERM;
    lr_spin_lock(&fd->side[0].lock);
    if (fd->closed || fd->edges[side] != seen) {
        int rc = fd->closed ? -LADE_ECANCELED : 0;
        lr_spin_unlock(&fd->side[0].lock);
        return rc;
    }
    struct lr_wait node;
    lr_wait_begin(&node, t, NULL);
    lr_waitlist_push(&fd->side[side], &node);
    (void)__atomic_fetch_add(&rt->poller.n_waiting, 1, __ATOMIC_SEQ_CST);
    lr_spin_unlock(&fd->side[0].lock);
    LR_CHAOS();
    enum lr_woke woke = lr_park(t, node.ticket, until, LR_WAITS_FD, fd);
    (void)__atomic_fetch_sub(&rt->poller.n_waiting, 1, __ATOMIC_SEQ_CST);
    lr_spin_lock(&fd->side[0].lock);
    lr_waitlist_remove(&fd->side[side], &node);
    lr_spin_unlock(&fd->side[0].lock);
    return lr_woke_result(woke);
}

static void append(struct lr_task **list, struct lr_task *chain)
{
    if (!chain)
        return;
    struct lr_task *last = chain;
    while (last->next)
        last = last->next;
    last->next = *list;
    *list = chain;
}

/* With the lock held. */
static void wake_side(lade_fd *fd, enum lr_side side, struct lr_task **ready)
{
    (void)__atomic_add_fetch(&fd->edges[side], 1, __ATOMIC_RELEASE);
    append(ready, lr_waitlist_claim_all(&fd->side[side], LR_WOKE));
}

static void deliver(uint64_t key, uint32_t events, struct lr_task **ready)
{
    lade_fd *fd = slot_of((uint32_t)key);
    lr_spin_lock(&fd->side[0].lock);
    if (!fd->closed && fd->generation == (uint32_t)(key >> 32)) {
        if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            wake_side(fd, LR_SIDE_READ, ready);
        if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
            wake_side(fd, LR_SIDE_WRITE, ready);
    }
    lr_spin_unlock(&fd->side[0].lock);
}

static int wait_events(struct lr_poller *p, struct epoll_event *e, int64_t until)
{
    if (until == 0)
        return epoll_wait(p->epoll, e, EVENTS, 0);
    if (until == LADE_FOREVER)
        return epoll_wait(p->epoll, e, EVENTS, -1);
    int64_t left = until - lb_clock_mono();
    left = left > 0 ? left : 0;
#ifdef SYS_epoll_pwait2
    struct timespec ts = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    int n = (int)syscall(SYS_epoll_pwait2, p->epoll, e, EVENTS, &ts, NULL, 0);
    if (n >= 0 || errno != ENOSYS)
        return n;
#endif
    int64_t ms = lb_ms_up(left);
    return epoll_wait(p->epoll, e, EVENTS, ms > 1000000 ? 1000000 : (int)ms);
}

void lr_poller_poll(struct lr_poller *p, int64_t until, struct lr_task **ready)
{
    struct epoll_event e[EVENTS];
    int n = wait_events(p, e, until);
    for (int i = 0; i < n; i++) {
        if (e[i].data.u64 == KICK) {
            uint64_t count;
            while (read(p->event, &count, sizeof(count)) < 0 && errno == EINTR)
                ;
            continue;
        }
        deliver(e[i].data.u64, e[i].events, ready);
    }
}
