/*
 * memory_store.h - jobs in this process, lost at close: the reference model of the store contract, for tests
 *
 *     memory:        a store of its own for each open
 *     memory:NAME    one store for all opens of NAME in the process, until the last is closed
 *
 * One mutex around plain structures: made to be read, and to be compared with the real stores. Thread safety: all ops.
 */
#ifndef LADE_STORE_MEMORY_STORE_H
#define LADE_STORE_MEMORY_STORE_H

#include "queue/store.h"

extern const struct lq_store_ops ls_memory_ops;

#endif
