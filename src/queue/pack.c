#include "queue/pack.h"

void lq_pack_nil(struct lb_buf *b)
{
    lb_buf_add_byte(b, 0xc0);
}

/* A tag byte and v as n big-endian bytes. */
static void add_tagged(struct lb_buf *b, uint8_t tag, uint64_t v, size_t n)
{
    uint8_t bytes[9] = {tag};
    for (size_t i = 0; i < n; i++)
        bytes[1 + i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    lb_buf_add(b, bytes, 1 + n);
}

void lq_pack_uint(struct lb_buf *b, uint64_t v)
{
    if (v < 0x80)
        lb_buf_add_byte(b, (uint8_t)v);
    else if (v <= UINT8_MAX)
        add_tagged(b, 0xcc, v, 1);
    else if (v <= UINT16_MAX)
        add_tagged(b, 0xcd, v, 2);
    else if (v <= UINT32_MAX)
        add_tagged(b, 0xce, v, 4);
    else
        add_tagged(b, 0xcf, v, 8);
}

void lq_pack_str(struct lb_buf *b, struct lb_slice s)
{
    if (s.n < 32)
        lb_buf_add_byte(b, (uint8_t)(0xa0 | s.n));
    else if (s.n <= UINT8_MAX)
        add_tagged(b, 0xd9, s.n, 1);
    else if (s.n <= UINT16_MAX)
        add_tagged(b, 0xda, s.n, 2);
    else
        add_tagged(b, 0xdb, s.n, 4);
    lb_buf_add(b, s.p, s.n);
}

void lq_pack_bin(struct lb_buf *b, struct lb_slice s)
{
    if (s.n <= UINT8_MAX)
        add_tagged(b, 0xc4, s.n, 1);
    else if (s.n <= UINT16_MAX)
        add_tagged(b, 0xc5, s.n, 2);
    else
        add_tagged(b, 0xc6, s.n, 4);
    lb_buf_add(b, s.p, s.n);
}

void lq_pack_array(struct lb_buf *b, uint32_t n)
{
    if (n < 16)
        lb_buf_add_byte(b, (uint8_t)(0x90 | n));
    else if (n <= UINT16_MAX)
        add_tagged(b, 0xdc, n, 2);
    else
        add_tagged(b, 0xdd, n, 4);
}

static uint64_t read_big_endian(struct lq_unpack *u, size_t n)
{
    if (u->bad || (size_t)(u->end - u->p) < n) {
        u->bad = true;
        return 0;
    }
    uint64_t v = u->p[0];
    for (size_t i = 1; i < n; i++)
        v = (v << 8) | u->p[i];
    u->p += n;
    return v;
}

static uint8_t read_tag(struct lq_unpack *u)
{
    return (uint8_t)read_big_endian(u, 1);
}

uint64_t lq_unpack_uint(struct lq_unpack *u)
{
    uint8_t tag = read_tag(u);
    if (tag < 0x80)
        return tag;
    if (tag < 0xcc || tag > 0xcf) {
        u->bad = true;
        return 0;
    }
    return read_big_endian(u, (size_t)1 << (tag - 0xcc));
}

static struct lb_mut read_bytes(struct lq_unpack *u, size_t n)
{
    if (u->bad || (size_t)(u->end - u->p) < n) {
        u->bad = true;
        return (struct lb_mut){0};
    }
    struct lb_mut m = {u->p, n};
    u->p += n;
    return m;
}

/* A length of 1 << (tag - first) bytes follows tags first..first + 2. */
static struct lb_mut read_sized(struct lq_unpack *u, uint8_t tag, uint8_t first)
{
    if (tag < first || tag > first + 2) {
        u->bad = true;
        return (struct lb_mut){0};
    }
    size_t n = (size_t)read_big_endian(u, (size_t)1 << (tag - first));
    return read_bytes(u, n);
}

struct lb_mut lq_unpack_str(struct lq_unpack *u)
{
    uint8_t tag = read_tag(u);
    if ((tag & 0xe0) == 0xa0)
        return read_bytes(u, tag & 0x1f);
    return read_sized(u, tag, 0xd9);
}

struct lb_mut lq_unpack_bin(struct lq_unpack *u)
{
    return read_sized(u, read_tag(u), 0xc4);
}

uint32_t lq_unpack_array(struct lq_unpack *u)
{
    uint8_t tag = read_tag(u);
    if ((tag & 0xf0) == 0x90)
        return tag & 0x0f;
    if (tag == 0xdc)
        return (uint32_t)read_big_endian(u, 2);
    if (tag == 0xdd)
        return (uint32_t)read_big_endian(u, 4);
    u->bad = true;
    return 0;
}

bool lq_unpack_nil(struct lq_unpack *u)
{
    if (u->bad || u->p == u->end || *u->p != 0xc0)
        return false;
    u->p++;
    return true;
}

void lq_unpack_skip(struct lq_unpack *u)
{
    uint32_t left[8]; /* values still to skip at each depth */
    size_t depth = 0;
    left[0] = 1;
    for (;;) {
        while (left[depth] == 0) {
            if (depth == 0)
                return;
            depth--;
        }
        left[depth]--;
        uint8_t tag = u->bad || u->p == u->end ? 0xc1 : *u->p; /* 0xc1 is no type */
        if (tag < 0x80 || (tag >= 0xcc && tag <= 0xcf)) {
            (void)lq_unpack_uint(u);
        } else if ((tag & 0xe0) == 0xa0 || (tag >= 0xd9 && tag <= 0xdb)) {
            (void)lq_unpack_str(u);
        } else if (tag >= 0xc4 && tag <= 0xc6) {
            (void)lq_unpack_bin(u);
        } else if (((tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd) &&
                   depth + 1 < sizeof(left) / sizeof(left[0])) {
            left[++depth] = lq_unpack_array(u);
        } else if (!lq_unpack_nil(u)) {
            u->bad = true;
        }
        if (u->bad)
            return;
    }
}
