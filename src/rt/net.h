/* net.h - descriptors that tasks wait for: poller.c and net.c */
#ifndef LADE_RT_NET_H
#define LADE_RT_NET_H

#include <sys/types.h>
#include <sys/un.h>

#include "rt/task.h"

/* The file of a listener at unix:path. */
struct lr_socket_file {
    dev_t dev;
    ino_t ino;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* Takes the file away, unless somebody has put another in its place, and frees. NULL is nothing. */
void lr_socket_file_drop(struct lr_socket_file *f);

enum lr_side { LR_SIDE_READ = 0, LR_SIDE_WRITE = 1 };

/*
 * Objects are never freed, only used again, and carry a generation that epoll hands back with each event: an event of a descriptor
 * that was closed meanwhile finds another generation and is dropped.
 */
struct lade_fd {
    lade_waitlist side[2]; /* side[0].lock guards all of it */
    uint32_t edges[2];     /* atomic: events so far, each side; written under the lock */
    bool closed;
    int fd;
    uint32_t generation;
    uint32_t index;
    uint32_t users;              /* calls under way, and the owner */
    struct lr_socket_file *file; /* listeners at unix:path; else NULL */
    lade_fd *next_free;          /* guarded by: table lock */
};

/*
 * Trying and waiting: look at the edges, try, and when that would block wait for an edge after those seen. An event that comes
 * between the attempt and the wait is so never missed, however many others wait for the same side.
 */
static inline uint32_t lr_fd_edges(const lade_fd *fd, enum lr_side side)
{
    return __atomic_load_n(&fd->edges[side], __ATOMIC_ACQUIRE);
}

/* Waits for an edge beyond `seen`; the caller then tries again. 0, -LADE_ETIMEDOUT, -LADE_ECANCELED. */
int lr_fd_wait(lade_fd *fd, enum lr_side side, uint32_t seen, int64_t until);
/* Begins and ends a call on it. -LADE_EINVAL when it is closed. */
int lr_fd_enter(lade_fd *fd);
void lr_fd_leave(lade_fd *fd);
/* Takes fd over on success. */
int lr_fd_new(int fd, lade_fd **out);

#endif
