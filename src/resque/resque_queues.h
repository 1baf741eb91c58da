/*
 * resque_queues.h - which queues a worker's list names: patterns and exclusions, as Ruby's File.fnmatch has them
 *
 *   high      the queue itself        file_*    ? and [ab] [a-c] [!a] too; a leading dot only by a dot
 *   *         all                     !low      not these; alone they name no queue
 *
 * {a,b} has no meaning: as in Ruby, where fnmatch is called without FNM_EXTGLOB, it stands for itself.
 *
 * Thread safety: all functions; no state.
 */
#ifndef LADE_RESQUE_RESQUE_QUEUES_H
#define LADE_RESQUE_RESQUE_QUEUES_H

#include <lade/base.h>

#include "base/slice.h"

/* An exclusion, or one with any of * ? { } [ ]: the list is looked up in the set of queues then. */
bool rq_queue_is_pattern(const char *name);
/* A list with one of them is all looked up: names in it count only while their queues are there. */
bool rq_queues_are_dynamic(const char *const *list, size_t n);

/* Which of the list names the queue first: its index, or SIZE_MAX when none does or one excludes it. */
size_t rq_queues_find(const char *const *list, size_t n, const char *queue);

/* File.fnmatch(pattern, name) with no flags. Time is at most the product of their lengths. */
bool rq_fnmatch(const char *pattern, const char *name);

#endif
