/*
 * flow_pack.h - the bytes in which nodes of a flow lie in the file: parts and marks
 *
 * A part holds what never changes of nodes that follow each other: as many as fit into LS_SQLITE_PART_BYTES, one at least and
 * LS_SQLITE_PART_NODES at most. Numbers are little endian.
 *
 *     part   u32 n | u32 where each of the n nodes ends, from the start of the part on | the nodes
 *     node   u8 level | u8 policy | u8 when | u8 0 | i64 when ms | u32 deps | u32 next | u8 length of the queue | u8 of the kind
 *            | the numbers of the deps, in the order of inputs, u32 each | those of the next | queue, NUL | kind | body
 *
 * Marks hold what changes: of each node of a part three bytes, u8 state and u16 how many of its deps have not passed.
 *
 * Thread safety: functions of their arguments.
 */
#ifndef LADE_SQLITE_FLOW_PACK_H
#define LADE_SQLITE_FLOW_PACK_H

#include "base/buf.h"
#include "queue/flow_store.h"

#define LS_SQLITE_FLOW_SPAN  16384 /* numbers of nodes that each flow has for itself */
#define LS_SQLITE_PART_NODES 64
#define LS_SQLITE_PART_BYTES (16 << 10)
#define LS_SQLITE_MARK_BYTES 3

/* A node of a part; all points into it. */
struct ls_sqlite_step {
    const char *queue;
    struct lb_slice kind, body;
    struct lb_slice deps, next; /* ls_sqlite_number_at */
    int level;
    enum lade_flow_policy policy;
    enum lq_when when;
    int64_t when_ms;
};

/* How many of n nodes, from the first on, make a part. */
uint32_t ls_sqlite_part_measure(const struct lq_flow_node *node, uint32_t n);
/* The part of n nodes behind what is in the buffer (which fails when out of memory). */
void ls_sqlite_part_pack(struct lb_buf *out, const struct lq_flow_node *node, uint32_t n);
/* How many nodes it has; 0 when it is none. */
uint32_t ls_sqlite_part_count(struct lb_slice part);
/* Node i of a part; false when there is none or the part is damaged. */
bool ls_sqlite_part_get(struct lb_slice part, uint32_t i, struct ls_sqlite_step *out);

/* The marks of n nodes of a flow as it is put; n * LS_SQLITE_MARK_BYTES. `steps`: how many of them are no on_failure. */
void ls_sqlite_marks_make(uint8_t *out, const struct lq_flow_node *node, uint32_t n,
                          uint32_t steps);

static inline enum lade_flow_step_state ls_sqlite_mark_state(const uint8_t *marks, uint32_t i)
{
    return (enum lade_flow_step_state)marks[LS_SQLITE_MARK_BYTES * (size_t)i];
}

static inline uint32_t ls_sqlite_mark_missing(const uint8_t *marks, uint32_t i)
{
    const uint8_t *p = marks + LS_SQLITE_MARK_BYTES * (size_t)i;
    return (uint32_t)p[1] | (uint32_t)p[2] << 8;
}

static inline void ls_sqlite_mark_set(uint8_t *marks, uint32_t i, enum lade_flow_step_state state,
                                      uint32_t missing)
{
    uint8_t *p = marks + LS_SQLITE_MARK_BYTES * (size_t)i;
    p[0] = (uint8_t)state;
    p[1] = (uint8_t)missing;
    p[2] = (uint8_t)(missing >> 8);
}

/* Numbers of nodes in a slice. */
static inline size_t ls_sqlite_number_count(struct lb_slice b)
{
    return b.n / 4;
}

static inline uint32_t ls_sqlite_number_at(struct lb_slice b, size_t i)
{
    const uint8_t *p = b.p + 4 * i;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
