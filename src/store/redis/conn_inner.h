/*
 * conn_inner.h - what conn.c (bytes and replies), connect.c (dial and handshake) and call.c (calls with remedies) share
 *
 * Replies lie in `in`, one behind the other, and are kept as offsets, since the buffer moves when it grows:
 *
 *   in  [ reply 0 ][ push ][ reply 1 ][ reply 2, half ..... ]
 *        span[0]            span[1]    in_at, scan          in.n
 *
 * `sent` commands are on their way, `got` replies of them are complete; outstanding = sent - got until they are handed
 * over. The buffer is emptied when the next command is begun and nothing is outstanding.
 */
#ifndef LADE_STORE_REDIS_CONN_INNER_H
#define LADE_STORE_REDIS_CONN_INNER_H

#include "base/spin.h"
#include "queue/store.h"
#include "store/redis/conn.h"
#include "store/redis/script.h"
#include "store/redis/socket.h"

#define LS_REDIS_SPIN_CLASSES 8

struct span {
    size_t at, n;
};

/* Pauses of jittered exponential growth. */
struct ls_redis_pace {
    unsigned step;
    int64_t not_before; /* the next try */
};

struct ls_redis_conn {
    struct ls_redis_conn_config config;
    struct ls_redis_tls_ctx *tls_ctx;
    struct ls_redis_socket sock;

    struct lb_buf out;
    struct ls_redis_cmd cmd; /* being written */
    size_t queued;           /* commands in out */
    size_t first_end;        /* where the first of them ends */
    size_t prelude;          /* of those of the call at hand */
    bool slots;              /* the server is of a cluster */

    struct lb_buf in;
    size_t in_at;              /* start of the reply being scanned */
    struct ls_redis_scan scan; /* of it */
    struct span *span;
    size_t span_cap;
    size_t sent, got;
    bool taken; /* the replies were handed over: the next command may empty `in` */

    bool may_have_run;
    bool handshaking;   /* connect.c is at work: a lost connection is reported as a failed dial */
    int64_t idle_since; /* last traffic */
    struct lb_spin spin[LS_REDIS_SPIN_CLASSES]; /* by the length of the request */
    lade_err last;                              /* why the last attempt to connect failed */
    struct ls_redis_pace pace;                  /* of dialing; back to 0 by a call that succeeds */
    uint64_t generation;
    uint64_t pushes; /* that came */
    char server[64];
    bool by_digest;                    /* scripts are called by EVALSHA: no library, or refused */
    char (*sha)[LS_REDIS_SHA_LEN + 1]; /* then one each script of the table */
};

static inline int64_t ls_redis_conn_hurried(const struct ls_redis_conn *c, int64_t deadline)
{
    return lq_hurried(c->config.hurry, deadline);
}

/* conn.c */
/* Forgets replies that were handed over and commands that were not sent. */
void ls_redis_conn_reset(struct ls_redis_conn *c);
/* send and await all; the replies are then handed over. < 0: dropped, and may_have_run is set if it was so. */
LADE_CHECKED int ls_redis_conn_exchange(struct ls_redis_conn *c, const char *where,
                                        int64_t deadline, lade_err *err);
struct lb_slice ls_redis_conn_span(const struct ls_redis_conn *c, size_t i);

/* script.c */
/* After a connect: loads what cannot be called before it is loaded. *again: another try may go better. */
LADE_CHECKED int ls_redis_scripts_greet(struct ls_redis_conn *c, int64_t deadline, bool *again,
                                        lade_err *err);
/* The server knows the scripts no more, or did never: loads them. functions_refused: this user may not call functions. */
LADE_CHECKED int ls_redis_scripts_load(struct ls_redis_conn *c, bool functions_refused,
                                       int64_t deadline, bool *again, lade_err *err);

/* pace: call.c */
/* Plans the next try 50 ms to 2 s from now, longer each time. */
void ls_redis_pace_slower(struct ls_redis_pace *p);
/* Sleeps until the next try is due. False, after sleeping until the deadline, when that comes first. */
bool ls_redis_pace_wait(const struct ls_redis_pace *p, int64_t deadline);

#endif
