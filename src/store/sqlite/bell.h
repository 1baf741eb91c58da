/*
 * bell.h - one page of memory that all processes on a file share, to wake each other without polling
 *
 * PATH-bell is mapped by every process. Each owns a place in it (held by a lock on one byte of the file, which the kernel
 * drops when the process dies) with one futex word and some seats. An idle worker sits in a seat: its queues, as 64-bit
 * hashes, and the due time it knows of. A ringer walks the places that have somebody idle and turns as many seats from
 * IDLE to RUNG as there are jobs, so no more workers wake than there is work for. Nobody idle: a ring is one load for
 * each place in use.
 *
 * A seat is taken before the last look at the store, and rung after the commit: whoever comes second sees the other.
 *
 * Bounds: 64 places and 16 seats each. A process without a place, a worker without a seat, or a bell that cannot be made
 * (full disk) is not rung from elsewhere and has to look by itself now and then: ls_sqlite_bell.shared is false, or the
 * seat is -1. Workers of more than 8 queues are rung for any queue.
 *
 * Thread safety: ring from any thread; a seat is used by one owner at a time; open and close alone.
 */
#ifndef LADE_SQLITE_BELL_H
#define LADE_SQLITE_BELL_H

#include <lade/base.h>

#define LS_SQLITE_BELL_PLACES 64
#define LS_SQLITE_BELL_SEATS  16
#define LS_SQLITE_BELL_LANES  8

struct ls_sqlite_bell_page;
struct ls_sqlite_bell_place;

struct ls_sqlite_bell {
    int fd;                            /* -1: private memory, nobody else hears */
    bool shared;                       /* others can ring us */
    struct ls_sqlite_bell_page *page;  /* mapped */
    struct ls_sqlite_bell_place *mine; /* in page, or private */
    struct ls_sqlite_bell_place *own;  /* private place when none in the page is free */
    bool seated[LS_SQLITE_BELL_SEATS]; /* guarded by the owner of the bell */
};

/* A full or forbidding file system is no failure (see bounds); lack of memory is. */
LADE_CHECKED int ls_sqlite_bell_open(struct ls_sqlite_bell *b, const char *path, lade_err *err);
void ls_sqlite_bell_close(struct ls_sqlite_bell *b);

/* A hash that is never 0. */
uint64_t ls_sqlite_bell_hash(const char *queue);

/* A free seat, or -1. */
int ls_sqlite_bell_sit(struct ls_sqlite_bell *b);
void ls_sqlite_bell_rise(struct ls_sqlite_bell *b, int seat);

/* From now on the seat can be rung, for n queues. */
void ls_sqlite_bell_idle(struct ls_sqlite_bell *b, int seat, const uint64_t *lane, size_t n);
/* The worker in it will look by itself at due_ms, 0 = never. */
void ls_sqlite_bell_set_due(struct ls_sqlite_bell *b, int seat, int64_t due_ms);
bool ls_sqlite_bell_is_rung(const struct ls_sqlite_bell *b, int seat);
/* The seat can no longer be rung. True when it had been. */
bool ls_sqlite_bell_quiet(struct ls_sqlite_bell *b, int seat);

/*
 * Rings up to n idle seats that serve the queue (0 = any) and wakes the listeners of other processes. Returns how many of
 * our own seats were rung: the caller wakes those.
 */
size_t ls_sqlite_bell_ring(struct ls_sqlite_bell *b, uint64_t lane, size_t n);
/* Rings all idle seats that serve the queue and know of no due time as early as due_ms. */
size_t ls_sqlite_bell_ring_due(struct ls_sqlite_bell *b, uint64_t lane, int64_t due_ms);

/* The listener: reads the word, looks at its seats, sleeps until the word is another. May return early. */
uint32_t ls_sqlite_bell_word(const struct ls_sqlite_bell *b);
void ls_sqlite_bell_sleep(struct ls_sqlite_bell *b, uint32_t word);
/* Makes our own listener return. */
void ls_sqlite_bell_kick(struct ls_sqlite_bell *b);

#endif
