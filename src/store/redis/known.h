/*
 * known.h - what a process knows of its worker incarnations: a list of things with an id, which live as long as somebody holds them
 *
 * The stores that talk to Redis keep in them connections and numbers of a worker. A thing begins with a struct ls_redis_known. It is made by
 * the first who asks for its id, and freed when it is forgotten and its last holder has let go.
 *
 * Thread safety: all functions but init and fini. The lock is held by nothing else, and nothing is called under it but `make`.
 */
#ifndef LADE_STORE_REDIS_KNOWN_H
#define LADE_STORE_REDIS_KNOWN_H

#include <lade/lade.h>

#include "base/list.h"
#include "base/slice.h"
#include "rt/seam.h"

struct ls_redis_known {
    struct lb_list node; /* guarded by: the registry's lock, as the next three */
    int refs;            /* the list's own and those of holders */
    bool gone;           /* not in the list any more */
    char id[LADE_ID_MAX + 1];
    struct lr_event wake; /* raised when it is forgotten, and by whoever wants its waiter to look */
};

struct ls_redis_registry {
    struct lr_mutex lock;
    struct lb_list list;
    size_t size; /* of a thing */
    void (*make)(struct ls_redis_known *k);
    void (*unmake)(struct ls_redis_known *k); /* what make and holders have put into it */
};

void ls_redis_registry_init(struct ls_redis_registry *r, size_t size,
                            void (*make)(struct ls_redis_known *),
                            void (*unmake)(struct ls_redis_known *));
/* Frees all; nobody holds one. */
void ls_redis_registry_fini(struct ls_redis_registry *r);

/* Finds or makes, zeroed; NULL when out of memory or descriptors. Give it back with let_go. */
struct ls_redis_known *ls_redis_registry_hold(struct ls_redis_registry *r, const char *id);
/* Finds only. */
struct ls_redis_known *ls_redis_registry_find(struct ls_redis_registry *r, struct lb_slice id);
void ls_redis_registry_let_go(struct ls_redis_registry *r, struct ls_redis_known *k);
/* It is no more: the next who asks for the id makes another. */
void ls_redis_registry_forget(struct ls_redis_registry *r, const char *id);
/* Its waiter, or who waits for it next, returns at once. */
void ls_redis_registry_wake(struct ls_redis_registry *r, const char *id);

#endif
