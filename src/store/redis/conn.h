/*
 * conn.h - one connection to a Redis server that redials by itself
 *
 * Two ways to use it:
 *
 * call    one round trip of any number of pipelined commands, with everything that may go wrong handled: dials when
 *         there is no connection, waits out LOADING and BUSY, redials after READONLY, reloads scripts, and repeats,
 *         all within the deadline. What the store uses.
 * send and await   the raw halves, for a blocking command whose reply may come much later (BLPOP): nothing is
 *         repeated, an outstanding reply stays outstanding when the wait ends early.
 *
 * Each connect rebuilds the whole state: TLS, HELLO 3 with user and password (RESP2 and AUTH for a server that
 * refuses HELLO), client name, db, server version, scripts. A connect that is cut at any point is tried again with
 * jittered exponential pauses of 50 ms to 2 s until the deadline; wrong passwords, wrong certificates and servers that
 * are too old fail at once.
 *
 * Deadlines are absolute lb_clock_mono nanoseconds. Blocks only in lr_wait_fds and lr_sleep_until (and in getaddrinfo,
 * which has no deadline of its own: numeric addresses and Unix sockets never enter it).
 *
 * Thread safety: none; one thread at a time (a pool or a lock is the caller's). ls_redis_conn_may_have_run and the
 * replies belong to the last call of that thread.
 */
#ifndef LADE_STORE_REDIS_CONN_H
#define LADE_STORE_REDIS_CONN_H

#include <lade/base.h>

#include "rt/seam.h"
#include "store/redis/refusal.h"
#include "store/redis/resp.h"
#include "store/redis/url.h"

struct ls_redis_conn;
struct ls_redis_script_table;

#define LS_REDIS_PIPELINE_MAX 4096      /* commands of one call */
#define LS_REDIS_REPLY_MAX    268435456 /* 256 MiB */
#define LS_REDIS_KEEP_BUF     1048576 /* a buffer that grew beyond this is given back after the call */

struct ls_redis_conn_config {
    const struct ls_redis_url *url; /* borrowed for the connection's life */
    const char *name;               /* client name, "lade"; [!-~]*, NULL = none */
    int64_t connect_timeout;        /* ns, of one attempt: name, connect, TLS and handshake; > 0 */
    size_t reply_max;               /* bytes of one reply; 0 = LS_REDIS_REPLY_MAX */
    const struct ls_redis_script_table
        *scripts; /* loaded after each connect; NULL = none; borrowed */
    bool no_spin; /* never spin for replies: blocking connections */
    /*
     * Atomic, the owner's, set by the first connect of any of its connections that succeeds. Until then a server that is not
     * there (refused, no socket file) fails a connect at once: it is more likely the wrong address than an outage. NULL = it is
     * an outage always.
     */
    bool *reached;
    /* Atomic, the owner's, set by each connect: whether the server is of a cluster, where a call is about one slot. NULL allowed. */
    bool *slots;
    /* Atomic, the owner's: calls end by then whatever their deadline; NULL or 0 = no such time (store.h). */
    const int64_t *hurry;
};

/* Makes the object; does not dial. 0, -LADE_ENOMEM, or -LADE_EUNSUPPORTED (rediss:// without TLS in this build). */
LADE_CHECKED int ls_redis_conn_open(struct ls_redis_conn **out,
                                    const struct ls_redis_conn_config *config, lade_err *err);
/* NULL is allowed. */
void ls_redis_conn_close(struct ls_redis_conn *c);

/* Dials unless connected, repeating until the deadline. -LADE_EUNAVAILABLE, _EAUTH, _EUNSUPPORTED, _EACCESS, _EPROTO,
 * _ETOOBIG, _EINVAL (db), _ENOMEM. */
LADE_CHECKED int ls_redis_conn_connect(struct ls_redis_conn *c, int64_t deadline, lade_err *err);
/*
 * How many pushes have come since it was opened: a connection on which CLIENT TRACKING is on counts what has changed so. They are read, and
 * passed over, by whatever reads: await with deadline 0 looks for more.
 */
uint64_t ls_redis_conn_pushes(const struct ls_redis_conn *c);
/* Drops the connection and all outstanding replies; the next use dials. */
void ls_redis_conn_drop(struct ls_redis_conn *c);
bool ls_redis_conn_is_up(const struct ls_redis_conn *c);
/* Its descriptor, for a loop that watches many connections and then awaits with deadline 0; -1 = not connected. */
int ls_redis_conn_fd(const struct ls_redis_conn *c);

/* Of the last successful connect, "redis 7.0.15"; "" before. */
const char *ls_redis_conn_server(const struct ls_redis_conn *c);
/* How often a connect succeeded: changes when what the server remembers of this connection is gone. */
uint64_t ls_redis_conn_generation(const struct ls_redis_conn *c);

/* commands ------------------------------------------------------------------------------------------------------- */

/*
 * Starts a command in the connection's write buffer; add arguments (the first is the command's name), then
 * ls_redis_cmd_end. Only inside `encode` of a call, or before ls_redis_conn_send. The result is valid until the end.
 */
struct ls_redis_cmd *ls_redis_conn_begin(struct ls_redis_conn *c, size_t args_hint);

/*
 * What was begun so far comes before what the call is about: replies are counted behind it. ls_redis_conn_prelude_failed, after the
 * call: one of those was refused, and is reply 0 now.
 */
void ls_redis_conn_prelude(struct ls_redis_conn *c);
bool ls_redis_conn_prelude_failed(struct ls_redis_conn *c);

/*
 * A call as the connection sees it: `encode` writes its commands, at least one, whenever they are to be sent, so
 * perhaps several times. repeat: an earlier try of this same call may have been executed.
 */
struct ls_redis_call {
    void (*encode)(struct ls_redis_conn *c, void *ctx, bool repeat);
    void *ctx;
    const char *where; /* for err: "put"; a static string */
    bool once;         /* fail rather than send it again when it may have been executed */
    bool raw; /* error replies without a remedy are replies to be read, not a failure of the call */
};

/*
 * Sends the commands in one write and reads all replies. 0: every reply is there and (unless raw) none is an error; read them with
 * ls_redis_conn_reply. < 0: failed for good or at the deadline; ls_redis_conn_may_have_run tells whether any try may
 * have been executed. At the deadline with replies outstanding the connection is dropped, as it is after every
 * failure that leaves it unusable. Error replies become failures by ls_redis_refusal_fail.
 */
LADE_CHECKED int ls_redis_conn_call(struct ls_redis_conn *c, const struct ls_redis_call *call,
                                    int64_t deadline, lade_err *err);
/* After a failed call: true when the server may have executed (part of) it. */
bool ls_redis_conn_may_have_run(const struct ls_redis_conn *c);

/* Reply i of the last call or await, in the order of the commands; valid until the next use of the connection. */
struct ls_redis_cursor ls_redis_conn_reply(const struct ls_redis_conn *c, size_t i);
/* For a reply that is not what the script promises: -LADE_EPROTO naming server and `where`. */
int ls_redis_conn_fail_reply(const struct ls_redis_conn *c, const char *where, lade_err *err);

/* blocking commands ---------------------------------------------------------------------------------------------- */

/* Sends what was begun since. Must be connected. The replies are outstanding then. < 0: dropped. */
LADE_CHECKED int ls_redis_conn_send(struct ls_redis_conn *c, int64_t deadline, lade_err *err);
/* Commands sent whose replies have not been handed over by await. */
size_t ls_redis_conn_outstanding(const struct ls_redis_conn *c);

enum ls_redis_awaited {
    LS_REDIS_REPLIED =
        0, /* all outstanding replies are there (error replies too), and none is outstanding any more */
    LS_REDIS_WOKEN = 1, /* `wake` was raised; it is not cleared. Replies stay outstanding */
    LS_REDIS_LATE = 2   /* the deadline passed; replies stay outstanding */
};

/*
 * Waits for the outstanding replies, for `wake` (NULL allowed), or for the deadline. With nothing outstanding it waits
 * for the others, and notices a closed connection. < 0: the connection is lost and dropped.
 * A reply that is there wins over wake.
 */
LADE_CHECKED int ls_redis_conn_await(struct ls_redis_conn *c, struct lr_event *wake,
                                     int64_t deadline, lade_err *err);

#endif
