#include "store/sqlite/flow_kept.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/sqlite/feed.h"

void ls_sqlite_flow_read(sqlite3_stmt *st, struct ls_sqlite_flow_row *row)
{
    *row = (struct ls_sqlite_flow_row){
        .num = sqlite3_column_int64(st, 0),
        .state = sqlite3_column_int64(st, 3),
        .steps = sqlite3_column_int64(st, 4),
        .nodes = sqlite3_column_int64(st, 5),
        .open = sqlite3_column_int64(st, 6),
        .failed = sqlite3_column_int64(st, 7),
        .siblings = sqlite3_column_int64(st, 8) != 0,
        .created_ms = sqlite3_column_int64(st, 9),
        .finished_ms = sqlite3_column_int64(st, 10),
        .parts = sqlite3_column_int64(st, 11),
        .results = sqlite3_column_int64(st, 12) != 0,
    };
}

int ls_sqlite_flow_damaged(struct ls_sqlite_tx *tx, const char *id)
{
    return lb_fail(tx->err, LADE_EFORMAT, tx->op, "%s is damaged: steps of flow %s are missing",
                   tx->db->path, id);
}

/* memory ----------------------------------------------------------------------------------------------------------- */

static void free_flow(struct ls_sqlite_flow *f)
{
    for (size_t i = 0; i < f->n_parts; i++)
        lb_free(f->part[i]);
    lb_free(f->part);
    lb_free(f);
}

static struct ls_sqlite_flow *flow_of(struct lb_list *node)
{
    return LB_CONTAINER_OF(node, struct ls_sqlite_flow, node);
}

static void take_off(struct ls_sqlite_shelf *shelf, struct ls_sqlite_flow *f)
{
    (void)lb_map_del(&shelf->by_id, lb_slice_str(f->id));
    lb_list_del(&f->node);
    shelf->bytes -= f->bytes;
}

void ls_sqlite_shelf_init(struct ls_sqlite_shelf *shelf)
{
    lb_map_init(&shelf->by_id);
    lb_list_init(&shelf->used);
    lb_list_init(&shelf->gone);
    shelf->bytes = 0;
}

void ls_sqlite_shelf_sweep(struct ls_sqlite_shelf *shelf, size_t bytes)
{
    while (!lb_list_is_empty(&shelf->gone))
        free_flow(flow_of(lb_list_pop(&shelf->gone)));
    while (shelf->bytes > bytes || (bytes == 0 && !lb_list_is_empty(&shelf->used))) {
        struct ls_sqlite_flow *f = flow_of(shelf->used.next);
        take_off(shelf, f);
        free_flow(f);
    }
}

void ls_sqlite_shelf_fini(struct ls_sqlite_shelf *shelf)
{
    ls_sqlite_shelf_sweep(shelf, 0);
    lb_map_fini(&shelf->by_id);
}

void ls_sqlite_flow_drop(struct ls_sqlite_tx *tx, struct lb_slice id)
{
    struct ls_sqlite_flow *f = lb_map_get(&tx->shelf.by_id, id);
    if (!f)
        return;
    take_off(&tx->shelf, f);
    lb_list_push_back(&tx->shelf.gone, &f->node);
}

/* NULL when out of memory. */
static struct ls_sqlite_part *make_part(int64_t first, struct lb_slice data)
{
    uint32_t n = ls_sqlite_part_count(data);
    size_t room = LS_SQLITE_MARK_BYTES * (size_t)n;
    struct ls_sqlite_part *p = lb_malloc(sizeof(*p) + room + data.n);
    if (!p)
        return NULL;
    uint8_t *bytes = (uint8_t *)(p + 1);
    *p = (struct ls_sqlite_part){
        .first = first, .n = n, .marks = bytes, .data = lb_slice(bytes + room, data.n)};
    memset(bytes, 0, room);
    if (data.n > 0)
        memcpy(bytes + room, data.p, data.n);
    return p;
}

/* The place of the first loaded part whose nodes begin above this one. */
static size_t place_of(const struct ls_sqlite_flow *f, int64_t node)
{
    size_t low = 0, high = f->n_parts;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (f->part[mid]->first <= node)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* False when out of memory. */
static bool add_part(struct ls_sqlite_flow *f, struct ls_sqlite_part *p)
{
    if (f->n_parts == f->cap_parts) {
        size_t cap = f->cap_parts > 0 ? 2 * f->cap_parts : 1;
        struct ls_sqlite_part **part = lb_realloc(f->part, cap * sizeof(struct ls_sqlite_part *));
        if (!part)
            return false;
        f->part = part;
        f->cap_parts = cap;
    }
    size_t at = place_of(f, p->first);
    memmove(&f->part[at + 1], &f->part[at], (f->n_parts - at) * sizeof(struct ls_sqlite_part *));
    f->part[at] = p;
    f->n_parts++;
    f->bytes += sizeof(*p) + LS_SQLITE_MARK_BYTES * (size_t)p->n + p->data.n;
    return true;
}

/* A flow on the shelf, with its first part, which becomes its own or is freed. NULL when out of memory. */
static struct ls_sqlite_flow *make_flow(struct ls_sqlite_tx *tx, struct lb_slice id,
                                        const struct ls_sqlite_flow_row *row,
                                        struct ls_sqlite_part *first)
{
    struct ls_sqlite_flow *f = lb_calloc(1, sizeof(*f));
    if (!f || !first || !add_part(f, first)) {
        lb_free(first);
        lb_free(f);
        return NULL;
    }
    f->row = *row;
    f->bytes += sizeof(*f);
    memcpy(f->id, id.p, LB_MIN(id.n, (size_t)LADE_FLOW_ID_MAX));
    if (lb_map_put(&tx->shelf.by_id, lb_slice_str(f->id), f) < 0) {
        free_flow(f);
        return NULL;
    }
    lb_list_push_back(&tx->shelf.used, &f->node);
    tx->shelf.bytes += f->bytes;
    return f;
}

void ls_sqlite_flow_keep(struct ls_sqlite_tx *tx, struct lb_slice id,
                         const struct ls_sqlite_flow_row *row, struct lb_slice data,
                         const uint8_t *marks)
{
    if (data.n > LS_SQLITE_FLOWS_BYTES)
        return;
    struct ls_sqlite_part *first = make_part(0, data);
    if (first)
        memcpy(first->marks, marks, LS_SQLITE_MARK_BYTES * (size_t)first->n);
    (void)make_flow(tx, id, row, first); /* what is not kept is read when it is needed */
}

/* the file --------------------------------------------------------------------------------------------------------- */

/* The part that has the node, from the file; its marks are zero. */
static int read_part(struct ls_sqlite_tx *tx, const struct ls_sqlite_flow_row *row, const char *id,
                     int64_t node, struct ls_sqlite_part **out)
{
    int64_t from = row->num * LS_SQLITE_FLOW_SPAN;
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_PART_AT);
    if (st)
        ls_sqlite_bind(st, 1, from + node);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc < 0)
        return rc;
    bool good = rc == 1;
    if (good) {
        struct lb_slice data = ls_sqlite_column(st, 1);
        int64_t first = sqlite3_column_int64(st, 0) - from;
        good = first >= 0 && node < first + (int64_t)ls_sqlite_part_count(data);
        *out = good ? make_part(first, data) : NULL;
        (void)sqlite3_reset(st);
    }
    if (!good)
        return ls_sqlite_flow_damaged(tx, id);
    return *out ? 0 : lb_fail_nomem(tx->err, tx->op);
}

static int read_marks(struct ls_sqlite_tx *tx, const struct ls_sqlite_flow_row *row, const char *id,
                      struct ls_sqlite_part *p)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_MARK_GET);
    if (st)
        ls_sqlite_bind(st, 1, row->num * LS_SQLITE_FLOW_SPAN + p->first);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc < 0)
        return rc;
    struct lb_slice marks = rc == 1 ? ls_sqlite_column(st, 0) : (struct lb_slice){0};
    bool good = marks.n == LS_SQLITE_MARK_BYTES * (size_t)p->n;
    if (good && marks.n > 0)
        memcpy(p->marks, marks.p, marks.n);
    if (rc == 1)
        (void)sqlite3_reset(st);
    return good ? 0 : ls_sqlite_flow_damaged(tx, id);
}

static int load(struct ls_sqlite_tx *tx, struct lb_slice id, struct ls_sqlite_flow **out)
{
    struct ls_sqlite_flow_row row;
    struct ls_sqlite_part *first = NULL;
    char text[LADE_FLOW_ID_MAX + 1] = "";
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_GET);
    if (st)
        ls_sqlite_bind_text(st, 1, id);
    int rc = ls_sqlite_tx_step(tx, st);
    if (rc <= 0)
        return rc < 0 ? rc : LADE_NOT_FOUND;
    ls_sqlite_flow_read(st, &row);
    memcpy(text, id.p, LB_MIN(id.n, (size_t)LADE_FLOW_ID_MAX));
    rc = read_part(tx, &row, text, 0, &first);
    (void)sqlite3_reset(st);
    if (rc == 0 && first)
        rc = read_marks(tx, &row, text, first);
    if (rc < 0) {
        lb_free(first);
        return rc;
    }
    *out = make_flow(tx, id, &row, first);
    return *out ? 0 : lb_fail_nomem(tx->err, tx->op);
}

int ls_sqlite_flow_find(struct ls_sqlite_tx *tx, struct lb_slice id, struct ls_sqlite_flow **out)
{
    struct ls_sqlite_flow *f = lb_map_get(&tx->shelf.by_id, id);
    if (!f)
        return load(tx, id, out);
    lb_list_del(&f->node);
    lb_list_push_back(&tx->shelf.used, &f->node);
    *out = f;
    return 0;
}

int ls_sqlite_flow_part(struct ls_sqlite_tx *tx, struct ls_sqlite_flow *f, int64_t node,
                        struct ls_sqlite_part **out)
{
    size_t at = place_of(f, node);
    struct ls_sqlite_part *p = at > 0 ? f->part[at - 1] : NULL;
    *out = p;
    if (p && node < p->first + (int64_t)p->n)
        return 0;
    int rc = read_part(tx, &f->row, f->id, node, &p);
    if (rc < 0 || !p)
        return rc;
    size_t before = f->bytes;
    rc = read_marks(tx, &f->row, f->id, p);
    if (rc == 0 && !add_part(f, p))
        rc = lb_fail_nomem(tx->err, tx->op);
    if (rc < 0) {
        lb_free(p);
        return rc;
    }
    tx->shelf.bytes += f->bytes - before;
    *out = p;
    return 0;
}

static int write_row(struct ls_sqlite_tx *tx, struct ls_sqlite_flow *f)
{
    sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_FLOW_SET);
    if (!st)
        return ls_sqlite_tx_fail(tx);
    ls_sqlite_bind(st, 1, f->row.num);
    ls_sqlite_bind(st, 2, f->row.state);
    ls_sqlite_bind(st, 3, f->row.open);
    ls_sqlite_bind(st, 4, f->row.failed);
    ls_sqlite_bind(st, 5, f->row.finished_ms);
    ls_sqlite_bind(st, 6, f->row.results);
    f->dirty = false;
    return ls_sqlite_tx_do(tx, st);
}

/* Marks to be written together. */
struct marks {
    struct ls_sqlite_pair pair[64];
    size_t n;
};

static int flush_marks(struct ls_sqlite_tx *tx, struct marks *m)
{
    struct ls_sqlite_feed feed = {.pair = m->pair, .n = m->n};
    bool together = m->n > 1 && !tx->db->schema; /* the feed is known to our connections */
    int rc = 0;
    if (together) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_MARK_FEED);
        if (st)
            ls_sqlite_feed_bind(st, 1, &feed);
        rc = ls_sqlite_tx_do(tx, st);
    }
    for (size_t i = 0; i < m->n && rc == 0 && !together; i++) {
        sqlite3_stmt *st = ls_sqlite_tx_stmt(tx, LS_SQLITE_MARK_SET);
        if (st) {
            ls_sqlite_bind(st, 1, m->pair[i].num);
            ls_sqlite_bind_blob(st, 2, m->pair[i].data);
        }
        rc = ls_sqlite_tx_do(tx, st);
    }
    m->n = 0;
    return rc;
}

static int write_marks(struct ls_sqlite_tx *tx, struct ls_sqlite_flow *f, struct marks *m)
{
    int rc = 0;
    for (size_t i = 0; i < f->n_parts && rc == 0; i++) {
        struct ls_sqlite_part *p = f->part[i];
        if (!p->dirty)
            continue;
        p->dirty = false;
        m->pair[m->n++] = (struct ls_sqlite_pair){
            .num = f->row.num * LS_SQLITE_FLOW_SPAN + p->first,
            .data = lb_slice(p->marks, LS_SQLITE_MARK_BYTES * (size_t)p->n)};
        if (m->n == LB_ARRAY_LEN(m->pair))
            rc = flush_marks(tx, m);
    }
    return rc;
}

int ls_sqlite_flow_write(struct ls_sqlite_tx *tx, struct ls_sqlite_flow *list)
{
    struct marks m = {.n = 0};
    int rc = 0;
    for (struct ls_sqlite_flow *f = list; f && rc == 0; f = f->link) {
        if (f->dirty)
            rc = write_row(tx, f);
        if (rc == 0)
            rc = write_marks(tx, f, &m);
    }
    return rc == 0 && m.n > 0 ? flush_marks(tx, &m) : rc;
}
