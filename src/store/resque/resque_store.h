/* resque_store.h - jobs in the keys and bytes of Ruby Resque; docs/resque.md */
#ifndef LADE_STORE_RESQUE_RESQUE_STORE_H
#define LADE_STORE_RESQUE_RESQUE_STORE_H

#include "queue/store.h"

extern const struct lq_store_ops ls_resque_ops;

#endif
