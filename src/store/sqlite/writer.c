#include "store/sqlite/writer.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/sqlite/room.h"
#include "store/sqlite/sqlite_impl.h"

#define LOOK_EVERY (100 * LADE_MILLISECOND)
#define BEAT_PATIENCE \
    (20 * LADE_MILLISECOND) /* a beat that waits for another process stops no writer */

enum request_state {
    AWAKE,  /* waits, but not in the pulse */
    ASLEEP, /* must be woken */
    LEADS,
    DONE /* rc is valid, and the frame may be gone */
};

struct request {
    const struct ls_sqlite_op *op;
    lade_err *err;
    int64_t deadline;
    int rc;
    atomic_uint state; /* enum request_state */
    struct lb_list node;
};

void ls_sqlite_writer_init(struct ls_sqlite_writer *w, struct ls_sqlite *s)
{
    lr_mutex_init(&w->lock);
    lr_cond_init(&w->beat_over);
    lb_list_init(&w->queue);
    ls_sqlite_fold_init(&w->fold);
    ls_sqlite_tx_init(&w->tx, s, &w->db);
}

void ls_sqlite_writer_fini(struct ls_sqlite_writer *w)
{
    assert(lb_list_is_empty(&w->queue) && !w->led);
    ls_sqlite_tx_fini(&w->tx);
    lr_cond_fini(&w->beat_over);
    lr_mutex_fini(&w->lock);
}

int ls_sqlite_writer_pin(struct ls_sqlite_writer *w, lade_err *err)
{
    struct stat st;
    if (stat(w->db.path, &st) < 0)
        return lb_fail_errno(err, errno, "open", w->db.path);
    w->dev = st.st_dev;
    w->ino = st.st_ino;
    return 0;
}

/* Writing to a file that is no longer at its path would succeed and be lost. */
static int look_at_file(struct ls_sqlite_writer *w, const char *where, lade_err *err)
{
    int64_t now = lb_clock_mono();
    if (now - w->looked_at < LOOK_EVERY)
        return 0;
    struct stat st;
    int rc = stat(w->db.path, &st);
    if (rc < 0 && errno != ENOENT)
        return lb_fail_errno(err, errno, where, w->db.path);
    if (rc < 0 || st.st_dev != w->dev || st.st_ino != w->ino)
        return lb_fail(err, LADE_EIO, where,
                       "%s was removed or replaced while it was open; restart this program",
                       w->db.path);
    w->looked_at = now;
    ls_sqlite_room_keep(w->db.path); /* taken back when there is space again */
    return 0;
}

static int begin(struct ls_sqlite_writer *w, struct request *r)
{
    w->tx.op = r->op->name;
    w->tx.err = r->err;
    w->db.busy_deadline = r->deadline;
    int rc = look_at_file(w, r->op->name, r->err);
    return rc < 0 ? rc : ls_sqlite_tx_begin(&w->tx);
}

static int run(struct ls_sqlite_writer *w, struct request *r)
{
    w->tx.op = r->op->name;
    w->tx.err = r->err;
    return r->op->run(&w->tx, r->op->arg);
}

/* One op in a transaction that is open already. */
static int try_alone(struct ls_sqlite_writer *w, struct request *r)
{
    int rc = run(w, r);
    if (rc < 0) {
        ls_sqlite_tx_rollback(&w->tx);
        return rc;
    }
    int committed = ls_sqlite_tx_commit(&w->tx, r->op->point);
    if (committed < 0)
        return committed;
    ls_sqlite_tx_ring(&w->tx);
    return rc;
}

static int try_again(struct ls_sqlite_writer *w, struct request *r)
{
    lb_err_clear(r->err);
    int rc = begin(w, r);
    w->tx.mute = true; /* events are the first that a full disk does without */
    if (rc == 0)
        rc = try_alone(w, r);
    w->tx.mute = false;
    return rc;
}

/* The op alone did not find room: twice more, with what can be made free. It is rolled back. */
static void make_room(struct ls_sqlite_writer *w, struct request *r)
{
    /* Folded back, the log is written again from its start. Room for that was reserved in the file. */
    ls_sqlite_fold_restart(w->tx.s);
    r->rc = try_again(w, r);
    if (r->rc != -LADE_ENOSPACE || !r->op->frees)
        return;
    (void)ls_sqlite_room_give(w->db.path);
    w->looked_at = lb_clock_mono(); /* not at once taken back */
    r->rc = try_again(w, r);
}

/* The ops of one transaction. */
struct group {
    struct request *r[LS_SQLITE_GROUP_MAX];
    size_t n, jobs;
};

/* Those that wait join the group, oldest first. */
static void gather(struct ls_sqlite_writer *w, struct group *g)
{
    lr_mutex_lock(&w->lock);
    while (g->n < LS_SQLITE_GROUP_MAX && g->jobs < LS_SQLITE_GROUP_JOBS &&
           !lb_list_is_empty(&w->queue)) {
        struct request *next = LB_CONTAINER_OF(w->queue.next, struct request, node);
        if (!next->op)
            break; /* who holds the writer, see ls_sqlite_writer_hold, comes alone */
        lb_list_del(&next->node);
        g->r[g->n++] = next;
        g->jobs += next->op->jobs;
    }
    lr_mutex_unlock(&w->lock);
}

/* All ops in the open transaction, and those that come meanwhile. False when one failed: then nothing has happened. */
static bool finish_together(struct ls_sqlite_writer *w, struct group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        g->r[i]->rc = run(w, g->r[i]);
        if (g->r[i]->rc < 0) {
            ls_sqlite_tx_rollback(&w->tx);
            return false;
        }
        if (i + 1 == g->n)
            gather(w, g);
    }
    int rc = ls_sqlite_tx_commit(&w->tx, g->r[0]->op->point);
    if (rc == 0)
        ls_sqlite_tx_ring(&w->tx);
    else
        g->r[0]->rc = rc;
    return rc == 0;
}

static void finish(struct ls_sqlite_writer *w, struct group *g)
{
    if (finish_together(w, g))
        return;
    for (size_t i = 0; i < g->n; i++) {
        struct request *r = g->r[i];
        if (g->n > 1) { /* each for itself */
            lb_err_clear(r->err);
            r->rc = begin(w, r);
            if (r->rc == 0)
                r->rc = try_alone(w, r);
        }
        if (r->rc == -LADE_ENOSPACE)
            make_room(w, r);
    }
}

static void let_beat_pass(struct ls_sqlite_writer *w)
{
    int64_t until = lb_clock_mono() + BEAT_PATIENCE;
    while (w->beats > 0 && lr_cond_wait(&w->beat_over, &w->lock, until))
        ;
}

/* Tells who waits what has come of it; the frame may be gone then. True when it sleeps. */
static bool tell(struct request *r, enum request_state state)
{
    return atomic_exchange_explicit(&r->state, state, memory_order_acq_rel) == ASLEEP;
}

/* With the lock held: the oldest that waits leads next. True when it sleeps. */
static bool pass_on(struct ls_sqlite_writer *w)
{
    w->led = !lb_list_is_empty(&w->queue);
    return w->led && tell(LB_CONTAINER_OF(lb_list_pop(&w->queue), struct request, node), LEADS);
}

/* Ends a round, with the lock held at entry and not at exit. `asleep` of `others` that took part must be woken. */
static void end_round(struct ls_sqlite_writer *w, int64_t began, size_t others, size_t asleep)
{
    others += !lb_list_is_empty(&w->queue);
    asleep += pass_on(w);
    lr_patience_judge(&w->patience, began, lb_clock_mono(), others, asleep);
    lr_mutex_unlock(&w->lock);
    if (asleep > 0)
        lr_pulse_raise(&w->told);
}

/* One round, with the lock held at entry and not at exit. `self` is no longer in the queue. */
static void lead(struct ls_sqlite_writer *w, struct request *self)
{
    struct group g = {.r = {self}, .n = 1, .jobs = self->op->jobs};
    int64_t began = lb_clock_mono();
    if (w->beats > 0)
        let_beat_pass(w);
    lr_mutex_unlock(&w->lock);
    self->rc = begin(w, self);
    if (self->rc == 0) {
        finish(w, &g);
        ls_sqlite_fold_tend(&w->fold, w->tx.s);
    }
    lr_mutex_lock(&w->lock);
    size_t asleep = 0;
    for (size_t i = 1; i < g.n; i++)
        asleep += tell(g.r[i], DONE);
    end_round(w, began, g.n - 1, asleep);
}

/* With the lock held: true when r leads; else it is in the queue. */
static bool come(struct ls_sqlite_writer *w, struct request *r)
{
    if (!w->led) {
        w->led = true;
        return true;
    }
    lb_list_push_back(&w->queue, &r->node);
    return false;
}

/* Until r leads, then true, or a leader has done it. A leader ends in bounded time. */
static bool wait_turn(struct ls_sqlite_writer *w, struct request *r)
{
    lr_patience_wait(&w->patience, &r->state, AWAKE);
    uint32_t seen = lr_pulse_count(&w->told);
    unsigned now = AWAKE;
    if (atomic_compare_exchange_strong_explicit(&r->state, &now, ASLEEP, memory_order_acq_rel,
                                                memory_order_acquire)) {
        while ((now = atomic_load_explicit(&r->state, memory_order_acquire)) == ASLEEP) {
            lr_pulse_wait(&w->told, seen);
            seen = lr_pulse_count(&w->told);
        }
    }
    return now == LEADS;
}

/* Without the lock at entry, with it at exit. False: a leader has done it, and the lock is not taken. */
static bool come_to_lead(struct ls_sqlite_writer *w, struct request *r)
{
    lr_mutex_lock(&w->lock);
    if (come(w, r))
        return true;
    lr_mutex_unlock(&w->lock);
    if (!wait_turn(w, r))
        return false;
    lr_mutex_lock(&w->lock);
    return true;
}

int ls_sqlite_write(struct ls_sqlite *s, const struct ls_sqlite_op *op, lade_err *err)
{
    struct ls_sqlite_writer *w = &s->writer;
    struct request r = {
        .op = op, .err = err, .deadline = lb_deadline_in(s->busy_ms * LADE_MILLISECOND)};
    if (come_to_lead(w, &r))
        lead(w, &r);
    return r.rc;
}

void ls_sqlite_writer_hold(struct ls_sqlite_writer *w)
{
    struct request r = {0};
    LB_CHECK(come_to_lead(w, &r));
    lr_mutex_unlock(&w->lock);
}

void ls_sqlite_writer_release(struct ls_sqlite_writer *w)
{
    lr_mutex_lock(&w->lock);
    bool wake = pass_on(w);
    lr_mutex_unlock(&w->lock);
    if (wake)
        lr_pulse_raise(&w->told);
}

void ls_sqlite_writer_beat_begin(struct ls_sqlite_writer *w)
{
    lr_mutex_lock(&w->lock);
    w->beats++;
    lr_mutex_unlock(&w->lock);
}

void ls_sqlite_writer_beat_end(struct ls_sqlite_writer *w)
{
    lr_mutex_lock(&w->lock);
    if (--w->beats == 0)
        lr_cond_wake_all(&w->beat_over);
    lr_mutex_unlock(&w->lock);
}
