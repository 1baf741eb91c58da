/*
 * memory_dead.c - the dead by class, and changes of jobs by who has seen them
 *
 * A class is made with its first job and freed with its last; `other` is part of the queue, so that a death never fails.
 */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "queue/dead_store.h"
#include "store/memory/memory_home.h"
#include "store/memory/memory_ops.h"

static uint8_t *keep(uint8_t **at, struct lb_slice s)
{
    uint8_t *to = *at;
    if (s.n > 0)
        memcpy(to, s.p, s.n);
    *at += s.n;
    return to;
}

/* NULL when there is no room for one more. */
static struct ls_memory_class *make_class(struct ls_memory_queue *q, const struct lq_death *d)
{
    if (q->classes.n >= LQ_CLASSES_MAX)
        return NULL;
    struct ls_memory_class *c = lb_calloc(1, sizeof(*c) + d->name.n + d->kind.n + d->text.n);
    if (!c)
        return NULL;
    uint8_t *at = (uint8_t *)(c + 1);
    c->name = (struct lb_mut){keep(&at, d->name), d->name.n};
    c->kind = (struct lb_mut){keep(&at, d->kind), d->kind.n};
    c->text = (struct lb_mut){keep(&at, d->text), d->text.n};
    if (lb_map_put(&q->classes, lb_slice_of(c->name), c) < 0) {
        lb_free(c);
        return NULL;
    }
    return c;
}

/* The class by name, `other` too; NULL when no job is in it. */
static struct ls_memory_class *find_class(struct ls_memory_queue *q, struct lb_slice name)
{
    if (!lb_slice_eq(name, lb_slice_str(LQ_CLASS_OTHER)))
        return lb_map_get(&q->classes, name);
    return q->other.order.n > 0 ? &q->other : NULL;
}

void ls_memory_job_die(struct ls_memory_home *h, struct ls_memory_job *j, enum lq_reason reason,
                       const struct lq_death *death, int64_t now_ms)
{
    struct ls_memory_queue *q = j->queue;
    struct lq_death killed = {.name = lb_slice_str(lq_reason_word(reason))};
    const struct lq_death *d = death ? death : &killed;
    ls_memory_job_move(h, j, LADE_STATE_DEAD, 0, now_ms);
    j->reason = reason;
    struct ls_memory_class *c = find_class(q, d->name);
    if (!c)
        c = make_class(q, d);
    if (!c)
        c = &q->other;
    if (c->order.n == 0)
        c->first_ms = now_ms;
    c->last_ms = now_ms;
    j->class_ = c;
    ls_memory_order_add(&c->order, &j->in_class, j->node.key);
}

void ls_memory_job_leave_class(struct ls_memory_job *j)
{
    struct ls_memory_class *c = j->class_;
    if (!c)
        return;
    j->class_ = NULL;
    ls_memory_order_del(&c->order, &j->in_class);
    if (c->order.n > 0 || c == &j->queue->other)
        return;
    (void)lb_map_del(&j->queue->classes, lb_slice_of(c->name));
    lb_free(c);
}

/* look ------------------------------------------------------------------------------------------------------------- */

static struct ls_memory_job *job_in_class(struct ls_memory_node *n)
{
    return n ? LB_CONTAINER_OF(n, struct ls_memory_job, in_class) : NULL;
}

static struct lb_slice copy_slice(struct lb_arena *a, struct lb_slice s, bool *ok)
{
    struct lb_mut m = lb_arena_copy(a, s.p, s.n);
    *ok = *ok && m.p;
    return lb_slice_of(m);
}

/* The last of an order: the largest key. */
static struct ls_memory_node *find_last(const struct ls_memory_order *o)
{
    struct ls_memory_node *n = o->root;
    while (n && n->right)
        n = n->right;
    return n;
}

static bool copy_class(struct lb_arena *a, const struct ls_memory_class *c, struct lq_class *out)
{
    bool ok = true;
    const struct ls_memory_job *last = job_in_class(find_last(&c->order));
    struct lb_slice name = c->name.n > 0 ? lb_slice_of(c->name) : lb_slice_str(LQ_CLASS_OTHER);
    *out = (struct lq_class){.name = copy_slice(a, name, &ok),
                             .kind = copy_slice(a, lb_slice_of(c->kind), &ok),
                             .text = copy_slice(a, lb_slice_of(c->text), &ok),
                             .sample = copy_slice(a, lb_slice_str(last->id), &ok),
                             .count = c->order.n,
                             .first_ms = c->first_ms,
                             .last_ms = c->last_ms};
    return ok;
}

int ls_memory_classes(struct lq_store *s, const char *queue, struct lq_class_vec *out,
                      lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    size_t n = 0, at = 0;
    struct lq_class *all = lb_arena_alloc(&out->arena, ((q ? q->classes.n : 0) + 1) * sizeof(*all));
    bool ok = all;
    for (const struct ls_memory_class *c; ok && q && (c = lb_map_next(&q->classes, &at));)
        ok = copy_class(&out->arena, c, &all[n++]);
    if (ok && q && q->other.order.n > 0)
        ok = copy_class(&out->arena, &q->other, &all[n++]);
    lr_mutex_unlock(&h->lock);
    if (!ok)
        return lb_fail_nomem(err, "classes");
    out->class_ = all;
    out->n = n;
    return n == 0 ? LADE_EMPTY : LADE_DONE;
}

/* As copy_rows of op_look.c, in the order of a class. */
static int copy_rows(const struct ls_memory_order *o, struct ls_memory_key *key, size_t limit,
                     int64_t now_ms, struct lq_row_vec *out)
{
    struct lq_row *rows = ls_memory_rows_reserve(out, LB_MIN(limit, o->n) + 1);
    struct ls_memory_node *node;
    size_t n = 0;
    if (!rows)
        return -LADE_ENOMEM;
    for (; n < limit && (node = ls_memory_order_after(o, *key)); n++) {
        if (!ls_memory_row_copy(&out->arena, job_in_class(node), now_ms, &rows[out->n + n]))
            return -LADE_ENOMEM;
        *key = node->key;
    }
    out->row = rows;
    out->n += n;
    return LADE_DONE;
}

int ls_memory_list_class(struct lq_store *s, const char *queue, struct lb_slice name,
                         int64_t from_ms, lade_cursor *cursor, size_t limit, struct lq_row_vec *out,
                         lade_err *err)
{
    struct ls_memory_key key;
    if (!ls_memory_cursor_read(cursor, &key))
        return lb_fail(err, LADE_EINVAL, "list", "the cursor is not one of this store's listings");
    if (key.major < from_ms)
        key = (struct ls_memory_key){from_ms, INT64_MIN, {NULL, 0}};
    int64_t now;
    size_t before = out->n;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    const struct ls_memory_class *c = q ? find_class(q, name) : NULL;
    int rc = c ? copy_rows(&c->order, &key, limit, now, out) : LADE_DONE;
    bool done = !c || !ls_memory_order_after(&c->order, key);
    lr_mutex_unlock(&h->lock);
    if (rc < 0)
        return lb_fail_nomem(err, "list");
    ls_memory_cursor_write(cursor, key);
    cursor->done = done;
    return out->n == before ? LADE_EMPTY : LADE_DONE;
}

/* change ----------------------------------------------------------------------------------------------------------- */

static bool is_editable(enum lade_state state)
{
    return state != LADE_STATE_ACTIVE && state != LADE_STATE_COMPLETED;
}

static int change_one(struct lq_store *s, struct ls_memory_queue *q, enum lq_change_verb verb,
                      const struct lq_change *it, int64_t now_ms)
{
    struct ls_memory_job *j = q ? ls_memory_job_find(q, it->id) : NULL;
    if (!j)
        return LADE_NOT_FOUND;
    if (it->died_ms && (j->state != LADE_STATE_DEAD || j->finished_ms != it->died_ms))
        return LADE_WRONG_STATE;
    if (verb == LQ_CHANGE_REMOVE) {
        int rc = ls_memory_act_on(s, j, LADE_JOB_REMOVE, now_ms);
        if (rc == LADE_DONE)
            ls_memory_kept_drop(q, it->id);
        return rc;
    }
    if (verb == LQ_CHANGE_EDIT && !is_editable(j->state))
        return LADE_WRONG_STATE;
    if (verb == LQ_CHANGE_RETRY && (j->state == LADE_STATE_READY || j->state == LADE_STATE_ACTIVE))
        return LADE_WRONG_STATE;
    if (it->body.n > 0) {
        uint8_t *body = lb_malloc(it->body.n);
        if (!body)
            return -LADE_ENOMEM;
        memcpy(body, it->body.p, it->body.n);
        struct lb_mut fresh = {body, it->body.n};
        ls_memory_job_swap_body(j, &fresh);
        lb_free(fresh.p);
    }
    return verb == LQ_CHANGE_RETRY ? ls_memory_act_on(s, j, LADE_JOB_RETRY, now_ms) : LADE_DONE;
}

int ls_memory_change(struct lq_store *s, const char *queue, enum lq_change_verb verb,
                     struct lq_change *it, size_t n, lade_err *err)
{
    int64_t now;
    struct ls_memory_home *h = ls_memory_enter(s, &now);
    struct ls_memory_queue *q = ls_memory_queue_find(h, queue);
    int first = LADE_DONE;
    for (size_t i = 0; i < n && first >= 0; i++) {
        it[i].outcome = change_one(s, q, verb, &it[i], now);
        if (first == LADE_DONE || it[i].outcome < 0)
            first = it[i].outcome;
    }
    ls_memory_leave_op(h, now);
    return first < 0 ? lb_fail_nomem(err, "change") : first;
}
