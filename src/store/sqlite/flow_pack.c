#include "store/sqlite/flow_pack.h"

#include <string.h>

#include "base/base.h"

#define HEAD 22 /* bytes of a node before its numbers */

/* Offsets within it. */
enum head { LEVEL, POLICY, WHEN, WHEN_MS = 4, DEPS = 12, NEXT = 16, QUEUE = 20, KIND = 21 };

static void put_number(uint8_t *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_number(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static size_t size_of(const struct lq_flow_node *node)
{
    return HEAD + 4 * ((size_t)node->n_deps + node->n_next) + strlen(node->queue) + 1 +
           node->kind.n + node->body.n;
}

uint32_t ls_sqlite_part_measure(const struct lq_flow_node *node, uint32_t n)
{
    uint32_t k = 0;
    size_t bytes = 4;
    while (k < n && k < LS_SQLITE_PART_NODES) {
        bytes += 4 + size_of(&node[k]);
        if (k > 0 && bytes > LS_SQLITE_PART_BYTES)
            break;
        k++;
    }
    return k;
}

static uint8_t *add_bytes(uint8_t *p, const void *from, size_t n)
{
    if (n > 0)
        memcpy(p, from, n);
    return p + n;
}

static uint8_t *add_numbers(uint8_t *p, const uint32_t *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, p += 4)
        put_number(p, v[i], 4);
    return p;
}

static uint8_t *add_node(uint8_t *p, const struct lq_flow_node *node)
{
    size_t queue = strlen(node->queue);
    assert(queue <= UINT8_MAX && node->kind.n <= UINT8_MAX);
    p[LEVEL] = (uint8_t)node->level;
    p[POLICY] = (uint8_t)node->policy;
    p[WHEN] = (uint8_t)node->when;
    p[WHEN + 1] = 0;
    put_number(p + WHEN_MS, (uint64_t)node->when_ms, 8);
    put_number(p + DEPS, node->n_deps, 4);
    put_number(p + NEXT, node->n_next, 4);
    p[QUEUE] = (uint8_t)queue;
    p[KIND] = (uint8_t)node->kind.n;
    p = add_numbers(p + HEAD, node->dep, node->n_deps);
    p = add_numbers(p, node->next, node->n_next);
    p = add_bytes(p, node->queue, queue + 1);
    p = add_bytes(p, node->kind.p, node->kind.n);
    return add_bytes(p, node->body.p, node->body.n);
}

void ls_sqlite_part_pack(struct lb_buf *out, const struct lq_flow_node *node, uint32_t n)
{
    size_t bytes = 4 + 4 * (size_t)n;
    for (uint32_t i = 0; i < n; i++)
        bytes += size_of(&node[i]);
    uint8_t *part = lb_buf_reserve(out, bytes);
    if (!part)
        return;
    uint8_t *p = part + 4 + 4 * (size_t)n;
    put_number(part, n, 4);
    for (uint32_t i = 0; i < n; i++) {
        p = add_node(p, &node[i]);
        put_number(part + 4 + 4 * (size_t)i, (uint64_t)(p - part), 4);
    }
    out->n += bytes;
}

uint32_t ls_sqlite_part_count(struct lb_slice part)
{
    uint32_t n = part.n >= 4 ? (uint32_t)get_number(part.p, 4) : 0;
    return n <= LS_SQLITE_PART_NODES && part.n >= 4 + 4 * (size_t)n ? n : 0;
}

bool ls_sqlite_part_get(struct lb_slice part, uint32_t i, struct ls_sqlite_step *out)
{
    uint32_t n = ls_sqlite_part_count(part);
    if (i >= n)
        return false;
    size_t from = i > 0 ? (size_t)get_number(part.p + 4 * (size_t)i, 4) : 4 + 4 * (size_t)n;
    size_t to = (size_t)get_number(part.p + 4 + 4 * (size_t)i, 4);
    if (to > part.n || from > to || to - from < HEAD)
        return false;
    const uint8_t *p = part.p + from;
    size_t deps = 4 * (size_t)get_number(p + DEPS, 4), next = 4 * (size_t)get_number(p + NEXT, 4);
    size_t queue = p[QUEUE], kind = p[KIND];
    if (deps + next + queue + 1 + kind > to - from - HEAD)
        return false;
    *out = (struct ls_sqlite_step){
        .level = p[LEVEL],
        .policy = (enum lade_flow_policy)p[POLICY],
        .when = (enum lq_when)p[WHEN],
        .when_ms = (int64_t)get_number(p + WHEN_MS, 8),
        .deps = lb_slice(p + HEAD, deps),
        .next = lb_slice(p + HEAD + deps, next),
        .queue = (const char *)p + HEAD + deps + next,
        .kind = lb_slice(p + HEAD + deps + next + queue + 1, kind),
    };
    size_t at = HEAD + deps + next + queue + 1 + kind;
    out->body = lb_slice(p + at, to - from - at);
    return out->queue[queue] == 0;
}

void ls_sqlite_marks_make(uint8_t *out, const struct lq_flow_node *node, uint32_t n, uint32_t steps)
{
    for (uint32_t i = 0; i < n; i++) {
        bool first = i < steps && node[i].n_deps == 0;
        ls_sqlite_mark_set(out, i, first ? LADE_STEP_ENQUEUED : LADE_STEP_WAITING, node[i].n_deps);
    }
}
