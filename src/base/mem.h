/*
 * mem.h - all allocation of lade goes through here, so that a test can fail the Nth one
 *
 * Thread safety: all functions. lb_mem_fail_after is for tests of one thread.
 */
#ifndef LADE_BASE_MEM_H
#define LADE_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *lb_malloc(size_t size) __attribute__((malloc, warn_unused_result));
void *lb_calloc(size_t n, size_t size) __attribute__((malloc, warn_unused_result));
void *lb_realloc(void *p, size_t size) __attribute__((warn_unused_result));
char *lb_strdup(const char *s) __attribute__((malloc, warn_unused_result));
void lb_free(void *p);

/* From now on the n-th allocation (1 = the next) and all later ones fail, until called with 0. */
void lb_mem_fail_after(uint64_t n);
/* Allocations seen since the last lb_mem_fail_after. */
uint64_t lb_mem_count(void);

#endif
