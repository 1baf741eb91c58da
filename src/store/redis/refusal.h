/*
 * refusal.h - what an error reply of the server means and what to do about it
 *
 * A refusal is recognised by its first word, and also inside the texts that servers wrap around errors raised by a
 * command of a script ("ERR Error running script (call to f_...): @user_script:1: READONLY You can't write ...",
 * "READONLY ... script: <sha>, on @user_script:1.") and in wordings older than the code words.
 *
 * Thread safety: all functions are pure.
 */
#ifndef LADE_STORE_REDIS_REFUSAL_H
#define LADE_STORE_REDIS_REFUSAL_H

#include <lade/base.h>

#include "base/slice.h"

enum ls_redis_refusal {
    LS_REDIS_REFUSED_NOT = 0, /* no error */
    LS_REDIS_REFUSED_OTHER,
    LS_REDIS_REFUSED_READONLY,   /* a replica: a failover took place */
    LS_REDIS_REFUSED_LOADING,    /* reads its data set after a start */
    LS_REDIS_REFUSED_BUSY,       /* someone's script runs for too long */
    LS_REDIS_REFUSED_MASTERDOWN, /* a replica without its master */
    LS_REDIS_REFUSED_OOM,        /* maxmemory */
    LS_REDIS_REFUSED_MISCONF,    /* snapshots fail, writes are off */
    LS_REDIS_REFUSED_NOAUTH,     /* NOAUTH or WRONGPASS */
    LS_REDIS_REFUSED_NOPERM,     /* an ACL forbids the command or the key */
    LS_REDIS_REFUSED_NOSCRIPT,   /* no such script or function */
    LS_REDIS_REFUSED_FUNCTIONS,  /* an ACL or a proxy forbids functions: scripts may be allowed */
    LS_REDIS_REFUSED_WRONGTYPE,
    LS_REDIS_REFUSED_MOVED, /* a cluster: another node has the key */
    LS_REDIS_REFUSED_ASK,
    LS_REDIS_REFUSED_CROSSSLOT,
    LS_REDIS_REFUSED_CLUSTERDOWN,
    LS_REDIS_REFUSED_TRYAGAIN,
    LS_REDIS_REFUSED_UNBLOCKED, /* a blocking read was ended from outside, or its server changed role */
    LS_REDIS_REFUSED_NOREPLICAS,
    LS_REDIS_REFUSED_MAXCLIENTS, /* no connection left */
    LS_REDIS_REFUSED_DENIED,     /* protected mode: no password and not from loopback */
    LS_REDIS_REFUSED_DB,         /* SELECT of a db that is not there */
    LS_REDIS_REFUSED_PROTOCOL,   /* HELLO 3 is not known or not allowed: speak version 2 */
    LS_REDIS_REFUSED_UNKNOWN_COMMAND,
    LS_REDIS_REFUSED_LUA /* lade's own Lua does not load: a fault of lade's, to be reported, never to be worked around */
};

/* How a call goes on after a refusal. */
enum ls_redis_remedy {
    LS_REDIS_REMEDY_NONE = 0,  /* report it */
    LS_REDIS_REMEDY_WAIT,      /* same connection, after a pause */
    LS_REDIS_REMEDY_RECONNECT, /* close, resolve the name again, dial, after a pause */
    LS_REDIS_REMEDY_RELOAD     /* load the scripts, or do without functions, at once, one time */
};

/* text: of an error reply, without the leading '-'. *wrapped (NULL allowed): raised inside a script, part of which may
 * have run; otherwise the command surely did not run. */
enum ls_redis_refusal ls_redis_refusal_of(struct lb_slice text, bool *wrapped);
enum ls_redis_remedy ls_redis_refusal_remedy(enum ls_redis_refusal r);
/* The failure for callers: code by class, text with server, meaning, what to do, and the server's own words. */
int ls_redis_refusal_fail(lade_err *err, const char *where, const char *server,
                          struct lb_slice text);

#endif
