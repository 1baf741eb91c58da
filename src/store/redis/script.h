/*
 * script.h - the Lua scripts of a store, known to the server by digest
 *
 * A table is constant data. Each connection loads it by pipelined SCRIPT LOAD right after it connects and keeps the
 * digests that the server answers. A server that has forgotten them (NOSCRIPT after a restart or SCRIPT FLUSH) gets them again
 * inside ls_redis_conn_call, once per call, and the call is repeated.
 *
 * Thread safety: as conn.h.
 */
#ifndef LADE_STORE_REDIS_SCRIPT_H
#define LADE_STORE_REDIS_SCRIPT_H

#include <stddef.h>

struct ls_redis_conn;
struct ls_redis_cmd;

#define LS_REDIS_SCRIPTS_MAX 64
#define LS_REDIS_SHA_LEN     40

enum ls_redis_script_flags {
    LS_REDIS_SCRIPT_READS = 1 /* called by EVALSHA_RO: the script writes nothing */
};

struct ls_redis_script {
    const char *name;   /* "put", for messages */
    const char *source; /* the whole script, "#!lua flags=..." line included where wanted */
    size_t source_len;
    unsigned flags;
};

struct ls_redis_script_table {
    const struct ls_redis_script *script; /* called by its index here */
    size_t n;                             /* at most LS_REDIS_SCRIPTS_MAX */
};

/*
 * Starts "EVALSHA digest n_keys" of script i of the connection's table, as ls_redis_conn_begin; add n_keys keys, then
 * the arguments, then ls_redis_cmd_end. args_hint: how many keys and arguments will come.
 */
struct ls_redis_cmd *ls_redis_script_begin(struct ls_redis_conn *c, size_t i, size_t n_keys,
                                           size_t args_hint);

#endif
