/*
 * pack.h - the part of MessagePack that envelopes use: nil, unsigned integers, strings, binary, arrays
 *
 * Writes to a lb_buf, reads in place with a cursor. Format: https://github.com/msgpack/msgpack/blob/master/spec.md
 * Writers choose the shortest form, so that equal values are equal bytes. Readers accept every form of a type and
 * never read outside [p, end): the first thing that does not fit sets `bad`, after which every read gives zero.
 *
 * Thread safety: none.
 */
#ifndef LADE_QUEUE_PACK_H
#define LADE_QUEUE_PACK_H

#include "base/buf.h"

void lq_pack_nil(struct lb_buf *b);
void lq_pack_uint(struct lb_buf *b, uint64_t v);
void lq_pack_str(struct lb_buf *b, struct lb_slice s);
void lq_pack_bin(struct lb_buf *b, struct lb_slice s);
void lq_pack_array(struct lb_buf *b, uint32_t n);

struct lq_unpack {
    uint8_t *p;
    uint8_t *end;
    bool bad;
};

uint64_t lq_unpack_uint(struct lq_unpack *u);
struct lb_mut lq_unpack_str(struct lq_unpack *u);
struct lb_mut lq_unpack_bin(struct lq_unpack *u);
uint32_t lq_unpack_array(struct lq_unpack *u);
/* Past one value of any of these types, arrays up to 8 deep; other types are bad. */
void lq_unpack_skip(struct lq_unpack *u);
/* True, and past it, when a nil comes next. */
bool lq_unpack_nil(struct lq_unpack *u);

#endif
