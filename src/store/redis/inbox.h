/*
 * inbox.h - what puts by the inbox of a queue (lua/inbox.lua) have in common: of single jobs (op_put.c) and of flows (op_flow_put.c)
 *
 * Thread safety: none; under the admin link.
 */
#ifndef LADE_STORE_REDIS_INBOX_H
#define LADE_STORE_REDIS_INBOX_H

#include "store/redis/store_inner.h"

/* RPUSHX of a put, whose number is s->put_seq, with n_args elements that are to be added, and to be ended, by the caller. */
struct ls_redis_cmd *ls_redis_inbox_begin(struct ls_redis_conn *c, const struct ls_redis_store *s,
                                          const char *queue, size_t n_args);
/* Behind it: wakes workers for n jobs where the last such put met some that wait, else asks whether any do. */
void ls_redis_inbox_look(struct ls_redis_conn *c, const struct ls_redis_store *s, const char *queue,
                         size_t n);
/*
 * Reads the replies to both, the first of which is `at`; wakes workers for n jobs when that is left to do, and has an inbox emptied that has
 * become long. NOT_FOUND: nothing was put, the queue is not there or knows of no inbox.
 */
LADE_CHECKED int ls_redis_inbox_finish(struct ls_redis_store *s, struct ls_redis_conn *c, size_t at,
                                       const char *queue, size_t n, const char *where,
                                       lade_err *err);

#endif
