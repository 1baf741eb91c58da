/*
 * op_look.c - queues, count, get, list
 *
 * A cursor is the key of the last row in the order of its state. Jobs do not change their key while they stay in a
 * state, so pages go on where they ended whatever moves meanwhile.
 */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int ls_memory_queues(struct lq_store *s, struct lb_arena *arena, const char ***name, size_t *n,
                     lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const char **all = lb_arena_alloc(arena, (h->queues.n + 1) * sizeof(*all));
    size_t found = 0, at = 0;
    bool ok = all;
    for (const struct ls_memory_queue *q; ok && (q = lb_map_next(&h->queues, &at));) {
        if (!q->made)
            continue;
        all[found] = lb_arena_strdup(arena, q->name);
        ok = all[found++];
    }
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "queues");
    qsort(all, found, sizeof(*all), compare_names);
    *name = all;
    *n = found;
    return LADE_DONE;
}

/* The first of each level is its oldest, but for a job handed back; and the first of the key whose turn is next. */
static int64_t measure_latency(const struct ls_memory_queue *q, int64_t now_ms)
{
    int64_t oldest = now_ms;
    for (int level = 0; level < LQ_N_LEVELS; level++) {
        struct ls_memory_key before = {level, INT64_MIN, {NULL, 0}};
        const struct ls_memory_job *j =
            ls_memory_job_of(ls_memory_order_after(&q->order[LADE_STATE_READY], before));
        if (j && j->node.key.major == level && j->ready_ms < oldest)
            oldest = j->ready_ms;
    }
    struct ls_memory_node *turn = ls_memory_order_first(&q->ring);
    if (turn) {
        const struct ls_memory_tenant *t = LB_CONTAINER_OF(turn, struct ls_memory_tenant, node);
        oldest = LB_MIN(oldest, ls_memory_first_ready(q, t)->ready_ms);
    }
    size_t at = 0; /* all are held: nobody's turn is next */
    for (struct ls_memory_tenant *t; !turn && q->held > 0 && (t = lb_map_next(&q->tenants, &at));) {
        const struct ls_memory_job *j = ls_memory_first_ready(q, t);
        oldest = j ? LB_MIN(oldest, j->ready_ms) : oldest;
    }
    return (now_ms - oldest) * LADE_MILLISECOND;
}

int ls_memory_count(struct lq_store *s, const char *queue, lade_queue_info *out, lade_err *err)
{
    (void)err;
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    if (q) {
        *out = (lade_queue_info){
            .paused = q->paused,
            .latency = measure_latency(q, now),
            .total_enqueued = q->total_enqueued,
            .total_completed = q->total_completed,
            .total_failed = q->total_failed,
            .total_dead = q->total_dead,
            .held = (uint64_t)q->held,
        };
        memcpy(out->name, q->name, sizeof(out->name));
        for (size_t i = 0; i < LADE_N_STATES; i++)
            out->count[i] = q->order[i].n;
        lb_list_each (it, &h->workers_list) {
            const struct ls_memory_worker *w =
                LB_CONTAINER_OF(it, struct ls_memory_worker, in_home);
            out->n_workers +=
                ls_memory_worker_is_live(w, now) && ls_memory_worker_serves(w, q->name);
        }
    }
    lr_mutex_unlock(&h->lock);
    return q ? LADE_DONE : LADE_NOT_FOUND;
}

static const char *name_owner(const struct ls_memory_job *j)
{
    if (!j->owner)
        return "";
    return j->owner->name[0] ? j->owner->name : j->owner->id;
}

/* False when out of memory. */
bool ls_memory_row_copy(struct lb_arena *a, const struct ls_memory_job *j, int64_t now_ms,
                        struct lq_row *row)
{
    struct lb_slice result = ls_memory_result_of(j, now_ms);
    *row = (struct lq_row){
        .queue = lb_arena_strdup(a, j->queue->name),
        .id = lb_arena_copy(a, j->id, strlen(j->id)),
        .body = lb_arena_copy(a, j->body.p, j->body.n),
        .history = lb_arena_copy(a, j->history.p, j->history.n),
        .result = lb_arena_copy(a, result.p, result.n),
        .unique = lb_arena_copy(a, j->unique.p, j->unique.n),
        .state = j->state,
        .reason = j->reason,
        .run_at_ms = j->run_at_ms,
        .finished_ms = j->finished_ms,
        .worker = lb_arena_strdup(a, name_owner(j)),
        .taken_ms = j->taken_ms,
        .lease_until_ms = j->owner ? j->owner->lease_until_ms : 0,
        .fence = j->fence,
    };
    return row->queue && row->id.p && row->body.p && row->history.p && row->result.p &&
           row->unique.p && row->worker;
}

/* Room for max rows after those that are there; NULL when out of memory. */
struct lq_row *ls_memory_rows_reserve(struct lq_row_vec *out, size_t max)
{
    struct lq_row *rows = lb_arena_alloc(&out->arena, (out->n + max) * sizeof(*rows));
    if (rows && out->n > 0)
        memcpy(rows, out->row, out->n * sizeof(*rows));
    return rows;
}

int ls_memory_get(struct lq_store *s, const char *queue, struct lb_slice id, struct lq_row_vec *out,
                  lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    const struct ls_memory_job *j = q ? ls_memory_job_find(q, id) : NULL;
    struct lq_row *rows = j ? ls_memory_rows_reserve(out, 1) : NULL;
    bool ok = rows && ls_memory_row_copy(&out->arena, j, now, &rows[out->n]);
    lr_mutex_unlock(&h->lock);
    if (!j)
        return LADE_NOT_FOUND;
    if (!ok)
        return lb_fail_nomem(err, "get");
    out->row = rows;
    out->n++;
    return LADE_DONE;
}

/* False when the cursor is not one of ours. */
bool ls_memory_cursor_read(const lade_cursor *cursor, struct ls_memory_key *key)
{
    char *colon, *end;
    *key = (struct ls_memory_key){INT64_MIN, INT64_MIN, {NULL, 0}};
    if (cursor->at[0] == 0)
        return true;
    key->major = strtoll(cursor->at, &colon, 10);
    if (colon == cursor->at || *colon != ':')
        return false;
    key->minor = strtoll(colon + 1, &end, 10);
    return end != colon + 1 && *end == 0;
}

void ls_memory_cursor_write(lade_cursor *cursor, struct ls_memory_key key)
{
    (void)snprintf(cursor->at, sizeof(cursor->at), "%" PRId64 ":%" PRId64, key.major, key.minor);
}

/* Appends up to limit rows above *key, which moves on. LADE_DONE or -LADE_ENOMEM. */
static int copy_rows(const struct ls_memory_order *o, struct ls_memory_key *key, size_t limit,
                     int64_t now_ms, struct lq_row_vec *out)
{
    limit = LB_MIN(limit, o->n);
    struct lq_row *rows = ls_memory_rows_reserve(out, limit + 1);
    struct ls_memory_node *node;
    size_t n = 0;
    if (!rows)
        return -LADE_ENOMEM;
    for (; n < limit && (node = ls_memory_order_after(o, *key)); n++) {
        if (!ls_memory_row_copy(&out->arena, ls_memory_job_of(node), now_ms, &rows[out->n + n]))
            return -LADE_ENOMEM;
        *key = node->key;
    }
    out->row = rows;
    out->n += n;
    return LADE_DONE;
}

int ls_memory_list(struct lq_store *s, const char *queue, enum lade_state state,
                   lade_cursor *cursor, size_t limit, struct lq_row_vec *out, lade_err *err)
{
    struct ls_memory_key key;
    if (!ls_memory_cursor_read(cursor, &key))
        return lb_fail(err, LADE_EINVAL, "list", "the cursor is not one of this store's listings");
    int64_t now;
    size_t before = out->n;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    const struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    int rc = q ? copy_rows(&q->order[state], &key, limit, now, out) : LADE_DONE;
    bool done = !q || !ls_memory_order_after(&q->order[state], key);
    lr_mutex_unlock(&h->lock);
    if (rc < 0)
        return lb_fail_nomem(err, "list");
    ls_memory_cursor_write(cursor, key);
    cursor->done = done;
    return out->n == before ? LADE_EMPTY : LADE_DONE;
}
