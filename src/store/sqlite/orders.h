/* orders.h - orders to workers and what they tell (queue/control_store.h), in the table of that name. Thread safety: as tx.h. */
#ifndef LADE_SQLITE_ORDERS_H
#define LADE_SQLITE_ORDERS_H

#include "queue/control_store.h"
#include "store/sqlite/tx.h"

extern const struct lq_control_ops ls_sqlite_control_ops;

/* A renewal of the worker: what it tells is written, its orders are read. Either may be NULL. */
LADE_CHECKED int ls_sqlite_control_beat(struct ls_sqlite_tx *tx, int64_t worker,
                                        const struct lq_report *report, struct lq_orders *orders);

#endif
