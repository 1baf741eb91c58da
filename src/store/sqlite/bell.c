#include "store/sqlite/bell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"

#define MAGIC    UINT64_C(0x316c6c65626c6164) /* "ladbell1": raise the digit when the layout changes */
#define ANY_LANE UINT32_MAX

enum seat_state { QUIET = 0, IDLE = 1, RUNG = 2 };

struct seat {
    alignas(64) _Atomic uint32_t state;
    _Atomic uint32_t n_lanes; /* ANY_LANE: rung for any queue */
    _Atomic int64_t due_ms;
    _Atomic uint64_t lane[LS_SQLITE_BELL_LANES];
};

struct ls_sqlite_bell_place {
    alignas(64) _Atomic uint32_t word; /* grows with every ring of a seat by another process */
    _Atomic uint32_t idle;             /* seats in IDLE, or about to be */
    struct seat seat[LS_SQLITE_BELL_SEATS];
};

struct ls_sqlite_bell_page {
    alignas(64) _Atomic uint64_t magic;
    _Atomic uint32_t used; /* places ever used: the others need no look */
    struct ls_sqlite_bell_place place[LS_SQLITE_BELL_PLACES];
};

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "atomics in memory that processes share must be lock-free");

static void call_futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    /* EAGAIN and EINTR mean "look again", which callers do anyway. */
    (void)syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* The byte of the place is locked while its process lives. */
static bool claim(int fd, int place)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static struct ls_sqlite_bell_place *find_place(struct ls_sqlite_bell *b)
{
    for (int i = 0; i < LS_SQLITE_BELL_PLACES; i++) {
        if (!claim(b->fd, i))
            continue;
        struct ls_sqlite_bell_place *p = &b->page->place[i];
        for (size_t s = 0; s < LS_SQLITE_BELL_SEATS; s++)
            atomic_store(&p->seat[s].state, QUIET); /* of one that died */
        atomic_store(&p->idle, 0);
        uint32_t used = atomic_load(&b->page->used);
        while (used < (uint32_t)i + 1 &&
               !atomic_compare_exchange_weak(&b->page->used, &used, (uint32_t)i + 1))
            ;
        return p;
    }
    return NULL;
}

/*
 * Blocks are reserved, because a store to a mapped page that the disk has no room for kills the process. Not by
 * posix_fallocate, which writes zeros where the file system cannot reserve: over what others have there by now.
 */
static bool map_file(struct ls_sqlite_bell *b, const char *path)
{
    struct stat st;
    b->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (b->fd < 0 || fstat(b->fd, &st) < 0)
        return false;
    if (st.st_size < (off_t)sizeof(*b->page) && fallocate(b->fd, 0, 0, sizeof(*b->page)) < 0)
        return false;
    void *p = mmap(NULL, sizeof(*b->page), PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
    if (p == MAP_FAILED)
        return false;
    b->page = p;
    uint64_t none = 0;
    return atomic_compare_exchange_strong(&b->page->magic, &none, MAGIC) || none == MAGIC;
}

static void unmap(struct ls_sqlite_bell *b)
{
    if (b->page)
        (void)munmap(b->page, sizeof(*b->page));
    if (b->fd >= 0)
        (void)close(b->fd);
    b->page = NULL;
    b->fd = -1;
}

int ls_sqlite_bell_open(struct ls_sqlite_bell *b, const char *path, lade_err *err)
{
    char name[PATH_MAX];
    *b = (struct ls_sqlite_bell){.fd = -1};
    int n = snprintf(name, sizeof(name), "%s-bell", path);
    if (n < 0 || (size_t)n >= sizeof(name))
        return lb_fail(err, LADE_EINVAL, "open", "the path is longer than %d bytes", PATH_MAX - 6);
    if (!map_file(b, name))
        unmap(b);
    b->mine = b->page ? find_place(b) : NULL;
    b->shared = b->mine != NULL;
    if (b->shared)
        return 0;
    /* Aligned by hand, since the memory functions know no alignment beyond that of any type. */
    void *raw = lb_calloc(1, sizeof(*b->own) + 64);
    if (!raw) {
        unmap(b);
        return lb_fail_nomem(err, "open");
    }
    b->own = raw;
    b->mine = (void *)((char *)raw + (-(uintptr_t)raw & 63));
    return 0;
}

void ls_sqlite_bell_close(struct ls_sqlite_bell *b)
{
    unmap(b);
    lb_free(b->own);
    *b = (struct ls_sqlite_bell){.fd = -1};
}

/* FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). */
uint64_t ls_sqlite_bell_hash(const char *queue)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (const char *c = queue; *c; c++)
        h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return h ? h : 1;
}

int ls_sqlite_bell_sit(struct ls_sqlite_bell *b)
{
    for (int i = 0; i < LS_SQLITE_BELL_SEATS; i++) {
        if (!b->seated[i]) {
            b->seated[i] = true;
            return i;
        }
    }
    return -1;
}

void ls_sqlite_bell_rise(struct ls_sqlite_bell *b, int seat)
{
    if (seat < 0)
        return;
    (void)ls_sqlite_bell_quiet(b, seat);
    b->seated[seat] = false;
}

void ls_sqlite_bell_idle(struct ls_sqlite_bell *b, int seat, const uint64_t *lane, size_t n)
{
    struct seat *s = &b->mine->seat[seat];
    (void)ls_sqlite_bell_quiet(b, seat);
    bool any = n > LS_SQLITE_BELL_LANES;
    for (size_t i = 0; i < n && !any; i++)
        atomic_store_explicit(&s->lane[i], lane[i], memory_order_relaxed);
    atomic_store_explicit(&s->n_lanes, any ? ANY_LANE : (uint32_t)n, memory_order_relaxed);
    atomic_store_explicit(&s->due_ms, INT64_MAX, memory_order_relaxed);
    (void)atomic_fetch_add(&b->mine->idle, 1);
    /* seq_cst: the look at the store that follows must come after, as the ringer's walk comes after its commit. */
    atomic_store(&s->state, IDLE);
    atomic_thread_fence(memory_order_seq_cst);
}

void ls_sqlite_bell_set_due(struct ls_sqlite_bell *b, int seat, int64_t due_ms)
{
    atomic_store(&b->mine->seat[seat].due_ms, due_ms > 0 ? due_ms : INT64_MAX);
}

bool ls_sqlite_bell_is_rung(const struct ls_sqlite_bell *b, int seat)
{
    return atomic_load(&b->mine->seat[seat].state) == RUNG;
}

bool ls_sqlite_bell_quiet(struct ls_sqlite_bell *b, int seat)
{
    struct seat *s = &b->mine->seat[seat];
    uint32_t was = atomic_exchange(&s->state, QUIET);
    if (was == IDLE)
        (void)atomic_fetch_sub(&b->mine->idle, 1);
    return was == RUNG;
}

struct ring {
    uint64_t lane; /* 0 = any */
    size_t n;
    int64_t due_ms; /* > 0: only seats that know of nothing so early */
    size_t mine;
};

static bool is_for(const struct seat *s, const struct ring *r)
{
    if (atomic_load(&s->state) != IDLE || (r->due_ms > 0 && atomic_load(&s->due_ms) <= r->due_ms))
        return false;
    uint32_t n = atomic_load_explicit(&s->n_lanes, memory_order_relaxed);
    if (n == ANY_LANE || r->lane == 0)
        return true;
    for (uint32_t i = 0; i < LB_MIN(n, (uint32_t)LS_SQLITE_BELL_LANES); i++) {
        if (atomic_load_explicit(&s->lane[i], memory_order_relaxed) == r->lane)
            return true;
    }
    return false;
}

static void ring_place(struct ls_sqlite_bell *b, struct ls_sqlite_bell_place *p, struct ring *r)
{
    size_t rung = 0;
    if (atomic_load(&p->idle) == 0)
        return;
    for (size_t i = 0; i < LS_SQLITE_BELL_SEATS && r->n > 0; i++) {
        struct seat *s = &p->seat[i];
        uint32_t idle = IDLE;
        if (!is_for(s, r) || !atomic_compare_exchange_strong(&s->state, &idle, RUNG))
            continue;
        (void)atomic_fetch_sub(&p->idle, 1);
        rung++;
        /* One that serves many queues may look at another first, so it does not count as the one for this job. */
        if (atomic_load_explicit(&s->n_lanes, memory_order_relaxed) != ANY_LANE)
            r->n--;
    }
    if (rung == 0)
        return;
    if (p == b->mine) {
        r->mine += rung;
        return;
    }
    (void)atomic_fetch_add(&p->word, 1);
    call_futex(&p->word, FUTEX_WAKE, INT_MAX);
}

static size_t ring(struct ls_sqlite_bell *b, struct ring *r)
{
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in idle */
    ring_place(b, b->mine, r);
    uint32_t used = b->page ? atomic_load(&b->page->used) : 0;
    for (uint32_t i = 0; i < LB_MIN(used, (uint32_t)LS_SQLITE_BELL_PLACES) && r->n > 0; i++) {
        if (&b->page->place[i] != b->mine)
            ring_place(b, &b->page->place[i], r);
    }
    return r->mine;
}

size_t ls_sqlite_bell_ring(struct ls_sqlite_bell *b, uint64_t lane, size_t n)
{
    return ring(b, &(struct ring){.lane = lane, .n = n});
}

size_t ls_sqlite_bell_ring_due(struct ls_sqlite_bell *b, uint64_t lane, int64_t due_ms)
{
    return ring(b, &(struct ring){.lane = lane, .n = SIZE_MAX, .due_ms = due_ms});
}

uint32_t ls_sqlite_bell_word(const struct ls_sqlite_bell *b)
{
    return atomic_load(&b->mine->word);
}

void ls_sqlite_bell_sleep(struct ls_sqlite_bell *b, uint32_t word)
{
    call_futex(&b->mine->word, FUTEX_WAIT, word);
}

void ls_sqlite_bell_kick(struct ls_sqlite_bell *b)
{
    (void)atomic_fetch_add(&b->mine->word, 1);
    call_futex(&b->mine->word, FUTEX_WAKE, INT_MAX);
}
