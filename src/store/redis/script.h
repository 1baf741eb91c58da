/*
 * script.h - the Lua of a store at the server: a function library, or a script for each op
 *
 * A library is loaded once and stays with the server's data; its functions are made when it is loaded, so that a call costs what
 * it does. Its name carries a digest of its text, so that different lades on one server do not disturb each other, and nothing is
 * sent when a connection begins: a server that does not know a function gets the library inside ls_redis_conn_call, once per
 * call, and the call is repeated.
 *
 * A server that allows no library (an ACL, a proxy, a replica, no memory or disk) is asked by EVALSHA instead until the connection
 * ends. One that refuses its text, since it does not compile or does not run, fails the call: that is a fault of lade's. The scripts are loaded by one round trip of pipelined SCRIPT LOAD, and again when the server has forgotten them (NOSCRIPT
 * after a restart or SCRIPT FLUSH).
 *
 * Libraries of other lades stay until there are more than LS_REDIS_LIBRARIES_MAX of them when one is loaded: then all others
 * go. Who still needs one of them loads it again.
 *
 * Thread safety: as conn.h.
 */
#ifndef LADE_STORE_REDIS_SCRIPT_H
#define LADE_STORE_REDIS_SCRIPT_H

#include <stddef.h>

struct ls_redis_conn;
struct ls_redis_cmd;

#define LS_REDIS_SCRIPTS_MAX   64
#define LS_REDIS_SHA_LEN       40
#define LS_REDIS_LIBRARY_NAME  32
#define LS_REDIS_LIBRARIES_MAX 8

enum ls_redis_script_flags {
    LS_REDIS_SCRIPT_READS = 1 /* called by FCALL_RO and EVALSHA_RO: it writes nothing */
};

struct ls_redis_script {
    const char *name;   /* "put", for messages; in a library the function is NAME_put */
    const char *source; /* the whole script, "#!lua flags=..." line included where wanted */
    size_t source_len;
    unsigned flags;
};

/* Constant once ls_redis_library_name has been called. */
struct ls_redis_script_table {
    const struct ls_redis_script *script; /* called by its index here */
    size_t n;                             /* at most LS_REDIS_SCRIPTS_MAX */
    const char *
        functions; /* the same as functions of a library; reads its name from LIBRARY; NULL = scripts only */
    size_t functions_len;
    char library_name[LS_REDIS_LIBRARY_NAME]; /* "lade_" and 16 hexadecimal digits */
};

/* Names the library by its text. */
void ls_redis_library_name(struct ls_redis_script_table *t);

/*
 * Starts a call of script i of the connection's table, as ls_redis_conn_begin; add n_keys keys, then
 * the arguments, then ls_redis_cmd_end. args_hint: how many keys and arguments will come.
 */
struct ls_redis_cmd *ls_redis_script_begin(struct ls_redis_conn *c, size_t i, size_t n_keys,
                                           size_t args_hint);

#endif
