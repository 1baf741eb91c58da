/*
 * redis_store.h - the store on a Redis (7.0 or later) or Valkey (7.2 or later) server
 *
 * Every op is one Lua function, so it happens wholly or not at all; the time is the server's. The layout is in keys.h, each
 * file in lua/ says what it does at its top.
 *
 * Connections of one open store, each opened when first needed:
 *     1 for put and for operators (get, list, act, ...); all that a producer has
 *     1 for settle, take, reclaim, promote, trim of all its workers
 *     1 for renew and leave, so that a long take never keeps a lease from being renewed
 *     1 for each worker incarnation that has ever waited: it blocks in BLPOP on the worker's bells
 * So a producer has 1, a process with one worker 4 (3 when it enqueues nothing and no one looks).
 *
 * Lost replies. A call that may have been executed is repeated on a new connection with a mark, and the script answers
 * it from what it remembered of the first time (lua/put.lua, take.lua, settle.lua, reclaim.lua). When the deadline ends
 * such a call, the doubt is kept: the next take of that worker gets what the lost one had taken, and the next settles
 * are not told STALE for what the lost one had settled.
 *
 * Thread safety: all ops; the calls of one connection go one after the other.
 */
#ifndef LADE_STORE_REDIS_REDIS_STORE_H
#define LADE_STORE_REDIS_REDIS_STORE_H

#include "queue/store.h"

extern const struct lq_store_ops ls_redis_ops;

#endif
