#include "queue/client.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ident.h"
#include "base/mem.h"
#include "queue/bound.h"
#include "queue/job.h"
#include "queue/names.h"
#include "queue/unique.h"

#define DEFAULT_QUEUE "default"

static int64_t read_wall(void *ctx)
{
    (void)ctx;
    return lb_clock_wall();
}

static int resolve_keep(struct lq_keep *out, int64_t age, int64_t count,
                        const struct lq_keep *fallback, lade_err *err)
{
    if (age < 0 || (age > 0 && age < LADE_MILLISECOND) || count < -1)
        return lb_fail(
            err, LADE_EINVAL, "open",
            "keep: age is at least 1 ms (0 = default), count at least 1 (0 = default, -1 = none)");
    out->age_ms = age > 0 ? lb_ms_up(age) : fallback->age_ms;
    out->count = count > 0 ? count : (count < 0 ? 0 : fallback->count);
    return 0;
}

static bool is_below_one_ms(int64_t ns)
{
    return ns != 0 && ns < LADE_MILLISECOND;
}

static int resolve_config(struct lq_store_config *c, const lade_options *o, lade_err *err)
{
    static const struct lq_keep completed = {3600000, 1000};
    static const struct lq_keep dead = {INT64_C(90) * 86400000, 10000};
    if (o->payload_max > LADE_PAYLOAD_MAX_HARD)
        return lb_fail(err, LADE_EINVAL, "open",
                       "payload_max %u is over the hard limit of %u bytes", o->payload_max,
                       LADE_PAYLOAD_MAX_HARD);
    if (is_below_one_ms(o->timeout) || is_below_one_ms(o->connect_timeout))
        return lb_fail(err, LADE_EINVAL, "open",
                       "timeout and connect_timeout are at least 1 ms (0 = default)");
    int rc = resolve_keep(&c->keep_completed, o->keep_completed.age, o->keep_completed.count,
                          &completed, err);
    if (rc == 0)
        rc = resolve_keep(&c->keep_dead, o->keep_dead.age, o->keep_dead.count, &dead, err);
    if (rc < 0)
        return rc;
    c->timeout_ms = o->timeout > 0 ? lb_ms_up(o->timeout) : 10000;
    c->connect_timeout_ms = o->connect_timeout > 0 ? lb_ms_up(o->connect_timeout) : 5000;
    c->clock = o->clock ? o->clock : read_wall;
    c->clock_ctx = o->clock_ctx;
    c->must_exist = o->must_exist;
    return 0;
}

static bool is_namespace(const char *ns)
{
    return lq_name_is_valid(ns) && strlen(ns) <= 64;
}

int lq_client_open(lade **out, const struct lq_store_ops *const *stores, size_t n, const char *url,
                   const lade_options *opts, lade_err *err)
{
    static const lade_options defaults = {0};
    const lade_options *o = opts ? opts : &defaults;
    const char *ns = o->namespace_ && *o->namespace_ ? o->namespace_ : "lade";
    if (!is_namespace(ns))
        return lb_fail(err, LADE_EINVAL, "open",
                       "namespace '%.80s' must be 1 to 64 characters of A-Z a-z 0-9 . _ : / -", ns);
    struct lq_store_config config = {0};
    int rc = resolve_config(&config, o, err);
    if (rc < 0)
        return rc;
    lade *q = lb_calloc(1, sizeof(*q));
    if (!q)
        return lb_fail_nomem(err, "open");
    q->url = lb_strdup(url);
    q->ns = lb_strdup(ns);
    q->payload_max = o->payload_max ? o->payload_max : LADE_PAYLOAD_MAX;
    q->clock = config.clock;
    q->clock_ctx = config.clock_ctx;
    config.url = q->url;
    config.ns = q->ns;
    /* the envelope adds headers, names and a unique key to the payload */
    config.body_max = q->payload_max + LADE_HEADERS_BYTES + LADE_UNIQUE_KEY_MAX + 4096;
    rc = q->url && q->ns ? lq_store_open(&q->store, stores, n, &config, err)
                         : lb_fail_nomem(err, "open");
    if (rc < 0) {
        lb_free(q->url);
        lb_free(q->ns);
        lb_free(q);
        return rc;
    }
    lq_batch_init(&q->batch, q->store);
    lq_hub_init(&q->hub, q->store);
    lr_mutex_init(&q->schedulers_lock);
    lb_list_init(&q->schedulers);
    *out = q;
    return 0;
}

void lade_close(lade *q)
{
    if (!q)
        return;
    lq_hub_fini(&q->hub);
    lr_mutex_fini(&q->schedulers_lock);
    lq_batch_fini(&q->batch);
    lq_store_close(q->store);
    lb_free(q->url);
    lb_free(q->ns);
    lb_free(q);
}

int64_t lq_client_now_ms(const lade *q)
{
    return q->clock(q->clock_ctx) / LADE_MILLISECOND;
}

int lade_now(lade *q, int64_t *now, lade_err *err)
{
    LQ_REFUSE_NULL(q, "now");
    LQ_REFUSE_NULL(now, "now");
    int64_t ms = 0;
    int rc = q->store->ops->now(q->store, &ms, err);
    if (rc >= 0)
        *now = lb_ns_of_ms(ms);
    return rc;
}

/* What one enqueue call needs until it returns. */
struct draft {
    struct lq_put *put;
    lade_id *id;
    size_t *body_at; /* offsets first: the buffer moves while it grows */
    struct lb_buf bodies;
    size_t block; /* the job that is the first of the block of ids */
};

static void free_draft(struct draft *d, bool heap)
{
    if (heap) {
        lb_free(d->put);
        lb_free(d->id);
        lb_free(d->body_at);
    }
    lb_buf_fini(&d->bodies);
}

/* The id of job i, whose body is there. Ids that follow each other let a store keep jobs together: store.h. */
static void make_id(struct draft *d, size_t i, int64_t wall)
{
    bool full = i - d->block >= LQ_PACK_JOBS ||
                d->bodies.n - d->body_at[d->block] + i - d->block >= LQ_PACK_BYTES;
    if (full || i == 0) { /* ids of two calls never follow each other: they are no batch */
        lb_ulid_new_block();
        d->block = i;
    }
    lb_ulid(d->id[i].text, wall);
}

static void draft_job(lade *q, struct draft *d, size_t i, const lade_job_spec *s)
{
    int64_t wall = q->clock(q->clock_ctx);
    d->body_at[i] = d->bodies.n;
    lq_job_encode(&d->bodies, s, wall / LADE_MILLISECOND);
    if (s->id)
        memcpy(d->id[i].text, s->id, strlen(s->id) + 1);
    else
        make_id(d, i, wall);
    struct lq_put *p = &d->put[i];
    *p = (struct lq_put){.queue = s->queue ? s->queue : DEFAULT_QUEUE,
                         .id = lb_slice(d->id[i].text, strlen(d->id[i].text)),
                         .level = LADE_PRIORITY_MAX - s->priority,
                         .fresh = !s->id,
                         .key = lb_slice(s->key.data, s->key.size)};
    if (s->at > 0) {
        p->when = LQ_WHEN_AT;
        p->when_ms = lb_ms_up(s->at);
    } else if (s->in > 0) {
        p->when = LQ_WHEN_IN;
        p->when_ms = lb_ms_up(s->in);
    }
    if (s->unique.key.size > 0)
        lq_unique_ask(p, &s->unique);
}

/* Encodes all specs and puts them; the draft's arrays have room for n. */
static int put_draft(lade *q, struct draft *d, const lade_job_spec *specs, size_t n, lade_err *err)
{
    d->block = 0;
    for (size_t i = 0; i < n; i++)
        draft_job(q, d, i, &specs[i]);
    if (d->bodies.failed)
        return lb_fail_nomem(err, "enqueue");
    for (size_t i = 0; i < n; i++) {
        size_t end = i + 1 < n ? d->body_at[i + 1] : d->bodies.n;
        d->put[i].body = lb_slice(d->bodies.p + d->body_at[i], end - d->body_at[i]);
    }
    lade_id *own = n == 1 && !specs->id ? d->id : NULL;
    int rc = lq_batch_put(&q->batch, d->put, n, own, err);
    return rc == LADE_FULL ? lq_bound_wait(q, d->put, n, err) : rc;
}

/* Hands ids and outcomes out; the result of the call. */
static int report(const struct draft *d, const lade_job_spec *specs, size_t n, lade_id *ids,
                  int *outcomes)
{
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        struct lq_put *p = &d->put[i];
        const char *id = p->outcome == LADE_DONE ? d->id[i].text : p->holder;
        if (p->outcome == LADE_DUPLICATE && specs[i].unique.on_conflict == LADE_CONFLICT_REJECT &&
            strcmp(p->holder, d->id[i].text) != 0)
            p->outcome = LADE_CONFLICT;
        if (p->outcome == LADE_CONFLICT || (p->outcome == LADE_DUPLICATE && rc == 0))
            rc = p->outcome;
        if (ids)
            (void)snprintf(ids[i].text, sizeof(ids[i].text), "%s", id);
        if (outcomes)
            outcomes[i] = d->put[i].outcome;
    }
    return rc;
}

int lq_client_draft(lade *q, const lade_job_spec *spec, struct lq_put *put, lade_id *id,
                    struct lb_buf *body, lade_err *err)
{
    size_t body_at;
    struct draft d = {.put = put, .id = id, .body_at = &body_at};
    lb_buf_init(body);
    int rc = lq_job_check(spec, q->payload_max, SIZE_MAX, err);
    if (rc < 0)
        return rc;
    draft_job(q, &d, 0, spec);
    *body = d.bodies;
    put->body = lb_buf_slice(body);
    return body->failed ? lb_fail_nomem(err, "enqueue") : 0;
}

int lade_enqueue(lade *q, const lade_job_spec *spec, lade_id *id, lade_err *err)
{
    LQ_REFUSE_NULL(q, "enqueue");
    LQ_REFUSE_NULL(spec, "enqueue");
    int rc = lq_job_check(spec, q->payload_max, SIZE_MAX, err);
    if (rc == 0)
        rc = lq_unique_allow(q->store, &spec->unique, err);
    if (rc == 0 && spec->key.size > 0)
        rc = lq_keys_check(q, "enqueue", err);
    if (rc < 0)
        return rc;
    struct lq_put put;
    lade_id made;
    size_t body_at;
    struct draft d = {.put = &put, .id = &made, .body_at = &body_at};
    rc = put_draft(q, &d, spec, 1, err);
    if (rc >= 0)
        rc = LB_MAX(rc, report(&d, spec, 1, id, NULL));
    if (rc == 0 && put.outcome == LADE_REPLACED)
        rc = LADE_REPLACED;
    free_draft(&d, false);
    return rc;
}

int lade_enqueue_many(lade *q, const lade_job_spec *specs, size_t n, lade_id *ids, int *outcomes,
                      lade_err *err)
{
    LQ_REFUSE_NULL(q, "enqueue_many");
    if (n == 0)
        return 0;
    if (!specs)
        return lb_fail(err, LADE_EINVAL, "enqueue_many", "specs is NULL with n = %zu", n);
    if (n > LADE_BATCH_MAX)
        return lb_fail(err, LADE_ETOOBIG, "enqueue_many", "%zu jobs in one call; at most %d", n,
                       LADE_BATCH_MAX);
    for (size_t i = 0; i < n; i++) {
        int rc = lq_job_check(&specs[i], q->payload_max, i, err);
        if (rc == 0)
            rc = lq_unique_allow(q->store, &specs[i].unique, err);
        if (rc == 0 && specs[i].key.size > 0)
            rc = lq_keys_check(q, "enqueue_many", err);
        if (rc < 0)
            return rc;
    }
    struct draft d = {.put = lb_malloc(n * sizeof(*d.put)),
                      .id = lb_malloc(n * sizeof(*d.id)),
                      .body_at = lb_malloc(n * sizeof(*d.body_at))};
    int rc = -LADE_ENOMEM;
    if (!d.put || !d.id || !d.body_at) {
        (void)lb_fail_nomem(err, "enqueue_many");
    } else {
        rc = put_draft(q, &d, specs, n, err);
        if (rc >= 0)
            rc = LB_MAX(rc, report(&d, specs, n, ids, outcomes));
    }
    free_draft(&d, true);
    return rc;
}
