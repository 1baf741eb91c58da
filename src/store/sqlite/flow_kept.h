/*
 * flow_kept.h - flows in memory: as they are in the file, and kept from one transaction to the next
 *
 * A flow's row, its parts and their marks (flow_pack.h) are read when they are needed and changed in memory; write brings what
 * changed back, once for all that happened to a flow in a step. Like queues (tx.h) they stay known as long as nobody else
 * commits, so that a step that ends finds its flow, and the job that is next, without a look into the file. Those that were not used
 * for longest go, so that all together are at most LS_SQLITE_FLOWS_BYTES after a commit.
 *
 * Thread safety: as tx.h.
 */
#ifndef LADE_SQLITE_FLOW_KEPT_H
#define LADE_SQLITE_FLOW_KEPT_H

#include "store/sqlite/flow_pack.h"
#include "store/sqlite/tx.h"

#define LS_SQLITE_FLOWS_BYTES (16 << 20)

/* Columns LS_SQLITE_FLOW but for the texts. */
struct ls_sqlite_flow_row {
    int64_t num;
    int64_t state, steps, nodes, open, failed, created_ms, finished_ms;
    int64_t parts;
    bool siblings;
    bool results; /* some node has, or had, a result */
};

struct ls_sqlite_part {
    int64_t first; /* the number of its first node */
    uint32_t n;
    bool dirty; /* the marks */
    struct lb_slice data;
    uint8_t *marks;
};

struct ls_sqlite_flow {
    struct ls_sqlite_flow_row row;
    bool dirty;  /* the row */
    bool listed; /* in a list to be written */
    struct ls_sqlite_flow *link;
    struct ls_sqlite_part **part; /* those read, by their numbers; the first always */
    size_t n_parts, cap_parts;
    size_t bytes;
    struct lb_list node; /* of the shelf */
    char id[LADE_FLOW_ID_MAX + 1];
};

void ls_sqlite_shelf_init(struct ls_sqlite_shelf *shelf);
void ls_sqlite_shelf_fini(struct ls_sqlite_shelf *shelf);
/* Between transactions: frees those that are gone, and those used longest ago until the others have at most so many bytes. */
void ls_sqlite_shelf_sweep(struct ls_sqlite_shelf *shelf, size_t bytes);

/* One that has just been put, with its first part and the marks of that. When there is no memory for it, it is not kept. */
void ls_sqlite_flow_keep(struct ls_sqlite_tx *tx, struct lb_slice id,
                         const struct ls_sqlite_flow_row *row, struct lb_slice data,
                         const uint8_t *marks);
/* 0, LADE_NOT_FOUND or a failure. */
LADE_CHECKED int ls_sqlite_flow_find(struct ls_sqlite_tx *tx, struct lb_slice id,
                                     struct ls_sqlite_flow **out);
/* The part that has the node. */
LADE_CHECKED int ls_sqlite_flow_part(struct ls_sqlite_tx *tx, struct ls_sqlite_flow *f,
                                     int64_t node, struct ls_sqlite_part **out);
/* Brings back what changed of the flows of a list, by `link`. */
LADE_CHECKED int ls_sqlite_flow_write(struct ls_sqlite_tx *tx, struct ls_sqlite_flow *list);
/* It is deleted: nothing is known of it any more. The memory stays until the transaction ends. */
void ls_sqlite_flow_drop(struct ls_sqlite_tx *tx, struct lb_slice id);

/* Reads columns LS_SQLITE_FLOW. */
void ls_sqlite_flow_read(sqlite3_stmt *st, struct ls_sqlite_flow_row *row);
int ls_sqlite_flow_damaged(struct ls_sqlite_tx *tx, const char *id);

#endif
