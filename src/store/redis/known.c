/* known.c - see known.h */
#include "store/redis/known.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/mem.h"

void ls_redis_registry_init(struct ls_redis_registry *r, size_t size,
                            void (*make)(struct ls_redis_known *),
                            void (*unmake)(struct ls_redis_known *))
{
    *r = (struct ls_redis_registry){.size = size, .make = make, .unmake = unmake};
    lr_mutex_init(&r->lock);
    lb_list_init(&r->list);
}

static void destroy(struct ls_redis_registry *r, struct ls_redis_known *k)
{
    r->unmake(k);
    lr_event_fini(&k->wake);
    lb_free(k);
}

static struct ls_redis_known *create(struct ls_redis_registry *r, const char *id)
{
    struct ls_redis_known *k = lb_calloc(1, r->size);
    if (!k)
        return NULL;
    if (lr_event_init(&k->wake) < 0) {
        lb_free(k);
        return NULL;
    }
    (void)snprintf(k->id, sizeof(k->id), "%s", id);
    k->refs = 1;
    r->make(k);
    return k;
}

/* Under the lock. */
static struct ls_redis_known *find(struct ls_redis_registry *r, struct lb_slice id)
{
    lb_list_each (it, &r->list) {
        struct ls_redis_known *k = LB_CONTAINER_OF(it, struct ls_redis_known, node);
        if (lb_slice_eq(lb_slice_str(k->id), id))
            return k;
    }
    return NULL;
}

void ls_redis_registry_fini(struct ls_redis_registry *r)
{
    for (struct lb_list *it; (it = lb_list_pop(&r->list));)
        destroy(r, LB_CONTAINER_OF(it, struct ls_redis_known, node));
    lr_mutex_fini(&r->lock);
}

struct ls_redis_known *ls_redis_registry_hold(struct ls_redis_registry *r, const char *id)
{
    lr_mutex_lock(&r->lock);
    struct ls_redis_known *k = find(r, lb_slice_str(id));
    if (!k) {
        k = create(r, id);
        if (k)
            lb_list_push_back(&r->list, &k->node);
    }
    if (k)
        k->refs++;
    lr_mutex_unlock(&r->lock);
    return k;
}

struct ls_redis_known *ls_redis_registry_find(struct ls_redis_registry *r, struct lb_slice id)
{
    lr_mutex_lock(&r->lock);
    struct ls_redis_known *k = find(r, id);
    if (k)
        k->refs++;
    lr_mutex_unlock(&r->lock);
    return k;
}

void ls_redis_registry_let_go(struct ls_redis_registry *r, struct ls_redis_known *k)
{
    lr_mutex_lock(&r->lock);
    bool last = --k->refs == 0;
    lr_mutex_unlock(&r->lock);
    if (last)
        destroy(r, k);
}

void ls_redis_registry_forget(struct ls_redis_registry *r, const char *id)
{
    lr_mutex_lock(&r->lock);
    struct ls_redis_known *k = find(r, lb_slice_str(id));
    if (k) {
        lb_list_del(&k->node);
        k->gone = true;
        lr_event_raise(&k->wake);
    }
    lr_mutex_unlock(&r->lock);
    if (k)
        ls_redis_registry_let_go(r, k);
}

void ls_redis_registry_wake(struct ls_redis_registry *r, const char *id)
{
    struct ls_redis_known *k = ls_redis_registry_hold(r, id);
    if (!k)
        return;
    lr_event_raise(&k->wake);
    ls_redis_registry_let_go(r, k);
}
