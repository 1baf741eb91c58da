/*
 * resque_move.h - jobs that are taken out of a list by their bytes, and go to a queue, to the failed list or nowhere: lua/move.lua
 *
 * Each is one step that finds its bytes still there, so that of many who move it one does.
 *
 * Thread safety: the caller has locked the store's admin link.
 */
#ifndef LADE_STORE_RESQUE_RESQUE_MOVE_H
#define LADE_STORE_RESQUE_RESQUE_MOVE_H

#include "store/resque/resque_inner.h"

struct ls_resque_move {
    struct lb_slice list, value;  /* "delayed:7", and the bytes in it */
    struct lb_slice queue, entry; /* no queue: to the failed list; and no entry: nowhere */
};

struct ls_resque_moves {
    struct ls_resque_store *s;
    const char *lock, *value; /* a lock to give back, NULL = none */
    const struct ls_resque_move *move;
    size_t n; /* at most LQ_TAKE_MAX */
};

/* outcome (NULL allowed): 0 or LADE_NOT_FOUND of each; *n_moved: how many were there. */
LADE_CHECKED int ls_resque_move(const struct ls_resque_moves *moves, int *outcome, size_t *n_moved,
                                lade_err *err);

/* A copy in the arena. False when out of memory. */
bool ls_resque_keep(struct lb_arena *arena, struct lb_slice bytes, struct lb_slice *out);

#endif
