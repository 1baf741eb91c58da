/*
 * keys.h - the keys of the Redis store
 *
 * All keys of a queue begin with P = "<ns>:{<queue>}:", so that in a cluster they lie in one slot (names of queues and
 * namespaces contain no braces).
 *
 *   P meta          HASH  v format version, levels in use ("04"), paused since ms, fence last given, big longest body over
 *                         64 KiB, gr and gc ghosts among ready and completed, xr, xa, xc jobs in packs beyond
 *                         entries and leases (lua/pack.lua), scan and scanp cursors of reclaim, and what only
 *                         grows: enqueued, completed, failed, dead
 *   P jobs          HASH  id -> body, for every job the queue knows that is in no pack
 *   P in            LIST  "", then jobs that were just put: see lua/inbox.lua
 *   P pack          HASH  name of a pack -> states of its jobs (lua/pack.lua); and "" (lua/lib.lua)
 *   P b:<pack>      STRING its bodies (packs.h); ends by itself, as answers do, until lua/packs_put.lua takes it
 *   P r:<pack>      STRING results of its jobs (lua/pack.lua)
 *   P ev            STREAM events (lua/event.lua); meta: ev how many it keeps, evn number of the last
 *   P waits, P said, P log:<id>  who waits, what handlers said (lua/heed.lua); meta: wt
 *   P since         HASH  ready id -> ms, for those whose id does not tell since when they are ready
 *   P hist          HASH  id -> history, for jobs that have one
 *   P ready:<level> LIST  ids, and "id+n" for n jobs of a pack from that id on, served from the head
 *   P ghost         HASH  level id, or "c" id -> entries of that list that are no longer true (lua/job.lua)
 *   P scheduled, P retrying  ZSET id -> due ms + level / 16
 *   P lease         HASH  id -> "fence level worker" (no blank behind level), and "!" once begun; and ""
 *                         (lua/lib.lua). Not of jobs in packs
 *   P held          HASH  worker -> leases it holds
 *   P fin           HASH  id -> state letter (c d x), level, reason, " ended_ms ", result, or the class of a death
 *   P completed     LIST  as ready, oldest first
 *   P dead, P cancelled  ZSET id -> ended ms
 *   P uk            HASH  id -> until (0 done, 1 start, 2 ttl), unique key
 *   P u:<key>       STRING id of the holder; with a ttl when held until that
 *   P uf            HASH  unique key -> "first_ms trails holder" (lua/conflict.lua)
 *   P dn, P dl, P di, P dz:<class>  HASH class of deaths -> how many, last ms, "first_ms kind NUL text"; ZSET of its jobs
 *                         (lua/deaths.lua)
 *   P ttl           ZSET  unique keys held until their ttl -> ms, for forget
 *   P mark          HASH  active id -> k or c: ends killed or cancelled
 *   P key, keys, knames, kz:<key>, kring, ktime, kpark, kaway  keys of jobs and their turns: lua/keys.lua
 *   P ready:A to I, P co  jobs of keys in company: lua/company.lua; meta: xk, ks, ka
 *   P workers       ZSET  incarnation -> alive until ms; -1 once condemned
 *   P idle          SET   workers that wait for a bell
 *   P bell:<worker> LIST  rings
 *   P stop:<worker> LIST  "fence m id" of marked jobs, "fence r id" of removed ones
 *   P put:<client>, P set:<client>:<tag>, P got:<worker>, P won:<worker>  STRING the last answer of put, settle, take,
 *                         reclaim, for a repeat after a lost reply; these end by themselves after LS_REDIS_MEMORY_MS
 *
 *   <ns>:queues     SET   names
 *   <ns>:flow:<id> HASH, <ns>:flow:<id>:s STRING, <ns>:flows and <ns>:flows:1..3 ZSET, <ns>:flowput:<client> STRING: see
 *                         lua/flow.lua; <ns>:flow:<id>:p STRING, a folded one: lua/fold.lua; <ns>:flowin SET of the queues whose
 *                         inbox may hold flows
 *   <ns>:{~schedules}:...  schedules: see lua/schedule.lua
 *   <ns>:workers    HASH  incarnation -> "until_ms seen_ms started_ms concurrency length name queue,queue,..."
 *
 * The fence is the server's clock in microseconds, or one more than the last: it grows even when the data of a queue is
 * lost. All jobs that a take gets from a queue have the same, which keeps scripts short: their lease is one value.
 *
 * Thread safety: all functions are pure.
 */
#ifndef LADE_STORE_REDIS_KEYS_H
#define LADE_STORE_REDIS_KEYS_H

#include "base/buf.h"
#include "store/redis/resp.h"

#define LS_REDIS_FORMAT    4
#define LS_REDIS_NS_MAX    128
#define LS_REDIS_MEMORY_MS INT64_C(180000)

/* Room for the longest key of a queue that has a suffix of bounded length. */
#define LS_REDIS_KEY_MAX 512

/* Adds "<ns>:{<queue>}:<name>" or "<ns>:<name>" to a command. */
void ls_redis_key(struct ls_redis_cmd *cmd, const char *ns, const char *queue, const char *name);
void ls_redis_key_ns(struct ls_redis_cmd *cmd, const char *ns, const char *name);

/*
 * Takes a decimal number off the front of *text and the one byte behind it. 0 when there is none: what is not there was
 * written by no lade.
 */
int64_t ls_redis_take_number(struct lb_slice *text);

/* The time in a time-ordered id (ident.h), ms since 1970; 0 for any other id. */
int64_t ls_redis_id_time(struct lb_slice id);

#endif
