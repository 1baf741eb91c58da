#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void lb_buf_init(struct lb_buf *b)
{
    *b = (struct lb_buf){0};
}

void lb_buf_fini(struct lb_buf *b)
{
    lb_free(b->p);
    *b = (struct lb_buf){0};
}

void lb_buf_clear(struct lb_buf *b)
{
    b->n = 0;
    b->failed = false;
}

uint8_t *lb_buf_reserve(struct lb_buf *b, size_t n)
{
    if (b->failed)
        return NULL;
    if (b->cap - b->n >= n && b->p)
        return b->p + b->n;
    if (n > SIZE_MAX / 2 - b->n) {
        b->failed = true;
        return NULL;
    }
    size_t cap = b->cap ? b->cap : 64;
    while (cap < b->n + n)
        cap *= 2;
    uint8_t *p = lb_realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        return NULL;
    }
    b->p = p;
    b->cap = cap;
    return p + b->n;
}

void lb_buf_add(struct lb_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    uint8_t *to = lb_buf_reserve(b, n);
    if (!to)
        return;
    memcpy(to, p, n);
    b->n += n;
}

void lb_buf_add_str(struct lb_buf *b, const char *s)
{
    lb_buf_add(b, s, strlen(s));
}

void lb_buf_add_byte(struct lb_buf *b, uint8_t c)
{
    uint8_t *to = lb_buf_reserve(b, 1);
    if (!to)
        return;
    *to = c;
    b->n++;
}

void lb_buf_add_fmt(struct lb_buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    uint8_t *to = n < 0 ? NULL : lb_buf_reserve(b, (size_t)n + 1);
    if (to) {
        (void)vsnprintf((char *)to, (size_t)n + 1, format, again);
        b->n += (size_t)n;
    }
    va_end(again);
}
