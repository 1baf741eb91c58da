/*
 * buf.h - a growable run of bytes
 *
 * Appending never fails at the call: a buffer that could not grow remembers it in `failed` and ignores what follows,
 * so a writer checks once at the end. Thread safety: none.
 */
#ifndef LADE_BASE_BUF_H
#define LADE_BASE_BUF_H

#include <lade/base.h>

#include "base/slice.h"

struct lb_buf {
    uint8_t *p;
    size_t n;
    size_t cap;
    bool failed; /* out of memory once; content is cut */
};

void lb_buf_init(struct lb_buf *b);
void lb_buf_fini(struct lb_buf *b);
/* Empties it and clears `failed`; keeps the memory. */
void lb_buf_clear(struct lb_buf *b);
/* Room for n more bytes at p + n; NULL (and failed) when out of memory. Add what was written to b->n. */
uint8_t *lb_buf_reserve(struct lb_buf *b, size_t n);
void lb_buf_add(struct lb_buf *b, const void *p, size_t n);
void lb_buf_add_str(struct lb_buf *b, const char *s);
void lb_buf_add_byte(struct lb_buf *b, uint8_t c);
void lb_buf_add_fmt(struct lb_buf *b, const char *format, ...) LADE_PRINTF(2, 3);

static inline struct lb_slice lb_buf_slice(const struct lb_buf *b)
{
    return (struct lb_slice){b->p, b->n};
}

#endif
