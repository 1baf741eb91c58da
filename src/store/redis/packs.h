/*
 * packs.h - jobs that the server keeps as one: fresh plain jobs of one put whose ids follow each other in a block (ident.h)
 *
 * lua/pack.lua tells how a pack is kept. Its bodies are one string, all numbers little endian:
 *
 *     u16 place of the first, u16 n, u32 alike, n times u32 end, bodies
 *
 * alike: 1 when all jobs are known to be of one kind, so that telling of them needs no look at each; else 0.
 *
 * Each body has one zero byte behind it, so that a taker may use the bytes where they lie. end: where a body and its zero
 * end, counted from the first body.
 *
 * Thread safety: functions of their arguments.
 */
#ifndef LADE_STORE_REDIS_PACKS_H
#define LADE_STORE_REDIS_PACKS_H

#include "base/buf.h"
#include "queue/store.h"
#include "store/redis/resp.h"

#define LS_REDIS_PACK_JOBS  LQ_PACK_JOBS
#define LS_REDIS_PACK_BYTES LQ_PACK_BYTES
#define LS_REDIS_PLACES     1024 /* in a block: what the last two characters of an id tell */

/* Name: what the ids share, and '+'; of the steps of a flow (lua/fold.lua) what they share, the '~' at its end. */
#define LS_REDIS_PACK_NAME     25
#define LS_REDIS_PACK_ID       26
#define LS_REDIS_PACK_NAME_MAX LADE_ID_MAX

/* The place that a time-ordered id has in its block, or a step in its flow; -1 for other ids. */
int ls_redis_place_of(struct lb_slice id);
/* Writes the id at a place of the pack of this name (or id), and a NUL; its length. */
size_t ls_redis_id_at(char out[LADE_ID_MAX + 1], struct lb_slice name, size_t place);
/* True when b is the next id of a's block, or the next step of a's flow. */
bool ls_redis_id_follows(struct lb_slice a, struct lb_slice b);

void ls_redis_pack_name(char out[LS_REDIS_PACK_NAME_MAX + 1], struct lb_slice id);
/* Bytes of the bodies of a pack: n jobs put[order[0..n-1]] whose ids follow each other. */
size_t ls_redis_pack_size(const struct lq_put *put, const uint32_t *order, size_t n);
/* Adds them as one argument. looks: at their kinds, for a queue that may have events. */
void ls_redis_pack_add(struct ls_redis_cmd *cmd, const struct lq_put *put, const uint32_t *order,
                       size_t n, bool looks);

/* The same of envelopes, place 0 the first; adds them to b. */
void ls_redis_pack_write(struct lb_buf *b, const struct lb_slice *body, size_t n);

/* Bodies as they were received. */
struct ls_redis_pack {
    size_t first, n;
    struct lb_slice ends, bodies;
};

/* False when the bytes are no pack. */
bool ls_redis_pack_read(struct ls_redis_pack *p, struct lb_slice bytes);
/* Where body i < p->n begins and ends in p->bodies, its zero not counted. */
struct lb_slice ls_redis_pack_body(const struct ls_redis_pack *p, size_t i);

#endif
