/*
 * schedule_act.c - setting, pausing and running schedules
 *
 * Each is a reading of the record, a decision, and a write that holds only when the record is still as it was read; if not, it is
 * done again. Somebody else has then got on, so the tries are bounded only against a store that is at odds with itself.
 */
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "queue/client.h"
#include "queue/names.h"
#include "queue/schedule.h"
#include "queue/scheduler.h"

#define TRIES 1000

/* A record and what its bytes mean. */
struct record {
    struct lq_schedule_vec vec;
    struct lq_schedule_row *row; /* NULL = there is none */
    struct lq_schedule_spec spec;
    struct lq_memo memo;
    bool reads; /* spec and memo could be read */
    int64_t now_ms;
};

static void free_record(struct record *r)
{
    lb_arena_fini(&r->vec.arena);
}

/* 0 whether it is there or not. */
static int find(lade *q, const char *id, struct record *r, lade_err *err)
{
    *r = (struct record){0};
    lb_arena_init(&r->vec.arena);
    int rc = q->store->ops->now(q->store, &r->now_ms, err);
    if (rc == 0)
        rc = q->store->ops->schedules->get(q->store, lb_slice_str(id), &r->vec, err);
    if (rc == 0)
        r->row = &r->vec.row[0];
    return LB_MIN(rc, 0);
}

/* Decodes in place: the row's bytes are worth nothing afterwards. */
static int read_record(struct record *r, lade_err *err)
{
    struct lb_mut spec = lb_arena_copy(&r->vec.arena, r->row->spec.p, r->row->spec.n);
    struct lb_mut memo = lb_arena_copy(&r->vec.arena, r->row->memo.p, r->row->memo.n);
    if (!spec.p || !memo.p)
        return lb_fail_nomem(err, "schedule");
    int rc = lq_memo_decode(memo, &r->memo, err);
    int spec_rc = lq_schedule_decode(spec, &r->spec, rc == 0 ? err : NULL);
    r->reads = rc == 0 && spec_rc == 0;
    return rc == 0 ? spec_rc : rc;
}

static int write_record(lade *q, const char *id, const struct record *r, struct lb_slice spec,
                        struct lq_schedule_end end, lade_err *err)
{
    struct lb_buf memo;
    lb_buf_init(&memo);
    lq_memo_encode(&memo, &r->memo);
    struct lq_schedule_put put = {.id = lb_slice_str(id),
                                  .spec = spec,
                                  .memo = lb_buf_slice(&memo),
                                  .state = end.state,
                                  .due_ms = end.state == LADE_SCHEDULE_ACTIVE ? end.due_ms : 0,
                                  .revision = r->row ? r->row->revision : 0};
    int rc = memo.failed ? lb_fail_nomem(err, "schedule") : lq_schedule_put(q->store, &put, err);
    lb_buf_fini(&memo);
    if (rc == LADE_FULL)
        rc = lb_fail(err, LADE_ENOSPACE, "schedule",
                     "there are %d schedules, the most that a store takes; remove some",
                     LQ_SCHEDULES_MAX);
    return rc;
}

static int fail_busy(lade_err *err)
{
    return lb_fail(err, LADE_EBUSY, "schedule", "others change it all the time; try again");
}

static int check_store(const lade *q, const char *id, lade_err *err)
{
    if (!id || !lq_schedule_id_is_valid(id))
        return lb_fail(err, LADE_EINVAL, "schedule",
                       "id '%.60s' must be 1 to %d characters of A-Z a-z 0-9 . _ : -", id ? id : "",
                       LADE_SCHEDULE_ID_MAX);
    return lq_schedules_check(q, err);
}

/* set -------------------------------------------------------------------------------------------------------------- */

struct set {
    lade *q;
    const lade_schedule_spec *user;
    char id[LADE_SCHEDULE_ID_MAX + 1];
    struct lb_buf bytes;          /* as they are stored */
    struct lb_mut copy;           /* the same, decoded */
    struct lq_schedule_spec spec; /* in copy */
    enum lade_schedule_change change;
};

static void set_anchor(const struct lq_schedule_spec *s, struct lq_memo *m, int64_t now_ms)
{
    m->anchor_ms =
        s->anchor == LADE_ANCHOR_START ? (s->start_ms ? s->start_ms : now_ms) : s->anchor_ms;
}

/* What is there, and unreadable, is as if it were new but for the name. */
static struct lq_schedule_end plan_set(struct set *st, struct record *r,
                                       const struct lq_calendar *calendar)
{
    bool is_new = !r->reads;
    bool begins = is_new || !lq_schedule_same_rule(&r->spec, &st->spec) ||
                  r->row->state != LADE_SCHEDULE_ACTIVE;
    struct lq_schedule_end end = {LADE_SCHEDULE_PAUSED, 0};
    r->memo.changed_ms = r->now_ms;
    r->memo.error[0] = 0;
    if (is_new)
        r->memo.created_ms = r->now_ms;
    if (st->spec.overlap != LADE_OVERLAP_QUEUE_ONE)
        r->memo.pending_ms = 0;
    lb_tz_release(r->memo.tzdata);
    if (begins)
        end = lq_plan_begin(st->id, &st->spec, calendar, &r->memo, r->now_ms);
    else
        end = lq_plan_end(st->id, &st->spec, calendar, &r->memo, r->now_ms);
    bool stays_paused = r->row && r->row->state == LADE_SCHEDULE_PAUSED;
    if (st->user->paused || stays_paused)
        return (struct lq_schedule_end){LADE_SCHEDULE_PAUSED, 0};
    return end;
}

static bool is_unchanged(const struct set *st, const struct record *r)
{
    return r->row && r->row->state != LADE_SCHEDULE_BROKEN &&
           lb_slice_eq(r->row->spec, lb_buf_slice(&st->bytes));
}

static int set_record(struct set *st, struct record *r, lade_err *err)
{
    struct lq_calendar calendar;
    st->change = r->row ? LADE_SCHEDULE_CHANGED : LADE_SCHEDULE_CREATED;
    if (r->row)
        (void)read_record(r, NULL); /* unreadable: set anew */
    if (!r->reads || !lq_schedule_same_rule(&r->spec, &st->spec))
        set_anchor(&st->spec, &r->memo, r->now_ms);
    int rc = lq_schedule_calendar(&st->spec, r->memo.anchor_ms, &calendar, err);
    if (rc < 0)
        return rc;
    struct lq_schedule_end end = plan_set(st, r, &calendar);
    lq_calendar_fini(&calendar);
    if (end.state == LADE_SCHEDULE_ENDED && r->memo.fired == 0)
        return lb_fail(err, LADE_EINVAL, "schedule", "no time is left: end has passed");
    return write_record(st->q, st->id, r, lb_buf_slice(&st->bytes), end, err);
}

static int try_set(struct set *st, lade_err *err)
{
    struct record r;
    int rc = find(st->q, st->id, &r, err);
    if (rc == 0 && is_unchanged(st, &r))
        st->change = LADE_SCHEDULE_UNCHANGED;
    else if (rc == 0)
        rc = set_record(st, &r, err);
    free_record(&r);
    return rc;
}

static int prepare_set(struct set *st, lade_err *err)
{
    lq_schedule_encode(&st->bytes, st->user);
    if (st->bytes.failed || !(st->copy.p = lb_malloc(st->bytes.n + 1)))
        return lb_fail_nomem(err, "schedule");
    st->copy.n = st->bytes.n;
    memcpy(st->copy.p, st->bytes.p, st->bytes.n);
    return lq_schedule_decode(st->copy, &st->spec, err);
}

int lade_schedule_check(lade *q, const lade_schedule_spec *spec, lade_schedule_id *id,
                        lade_err *err)
{
    LQ_REFUSE_NULL(q, "schedule");
    LQ_REFUSE_NULL(spec, "schedule");
    int rc = lq_schedule_check(spec, q->payload_max, err);
    if (rc < 0 || !id)
        return rc;
    if (spec->id)
        (void)snprintf(id->text, sizeof(id->text), "%s", spec->id);
    else
        lq_schedule_make_id(spec, id->text);
    return 0;
}

int lade_schedule_set(lade *q, const lade_schedule_spec *spec, lade_schedule_id *id,
                      enum lade_schedule_change *change, lade_err *err)
{
    lade_schedule_id made;
    int rc = lade_schedule_check(q, spec, &made, err);
    if (rc == 0)
        rc = lq_schedules_check(q, err);
    if (rc == 0 && spec->job.key.size > 0)
        rc = lq_keys_check(q, "schedule", err);
    if (rc < 0)
        return rc;
    struct set st = {.q = q, .user = spec};
    memcpy(st.id, made.text, sizeof(st.id));
    lb_buf_init(&st.bytes);
    rc = prepare_set(&st, err);
    if (rc == 0)
        rc = LADE_STALE;
    for (int i = 0; rc == LADE_STALE && i < TRIES; i++)
        rc = try_set(&st, err);
    if (rc == LADE_STALE)
        rc = fail_busy(err);
    lb_buf_fini(&st.bytes);
    lb_free(st.copy.p);
    if (rc < 0)
        return rc;
    if (id)
        *id = made;
    if (change)
        *change = st.change;
    if (st.change != LADE_SCHEDULE_UNCHANGED)
        lq_schedulers_rouse(q);
    return rc;
}

/* remove, pause, resume -------------------------------------------------------------------------------------------- */

int lade_schedule_remove(lade *q, const char *id, lade_err *err)
{
    LQ_REFUSE_NULL(q, "schedule");
    int rc = check_store(q, id, err);
    return rc < 0 ? rc : q->store->ops->schedules->remove(q->store, lb_slice_str(id), err);
}

static int pause_record(lade *q, const char *id, struct record *r, lade_err *err)
{
    if (r->row->state != LADE_SCHEDULE_ACTIVE)
        return LADE_WRONG_STATE;
    int rc = read_record(r, err);
    if (rc < 0)
        return rc;
    r->memo.next_ms = r->memo.pending_ms = 0;
    return write_record(q, id, r, r->row->spec, (struct lq_schedule_end){LADE_SCHEDULE_PAUSED, 0},
                        err);
}

static int resume_record(lade *q, const char *id, struct record *r, lade_err *err)
{
    struct lq_calendar calendar;
    if (r->row->state != LADE_SCHEDULE_PAUSED && r->row->state != LADE_SCHEDULE_BROKEN)
        return LADE_WRONG_STATE;
    int rc = read_record(r, err);
    if (rc == 0)
        rc = lq_schedule_calendar(&r->spec, r->memo.anchor_ms, &calendar, err);
    if (rc < 0)
        return rc;
    r->memo.error[0] = 0;
    lb_tz_release(r->memo.tzdata);
    struct lq_schedule_end end = lq_plan_begin(id, &r->spec, &calendar, &r->memo, r->now_ms);
    lq_calendar_fini(&calendar);
    return write_record(q, id, r, r->row->spec, end, err);
}

static int change(lade *q, const char *id,
                  int (*fn)(lade *, const char *, struct record *, lade_err *), lade_err *err)
{
    LQ_REFUSE_NULL(q, "schedule");
    int rc = check_store(q, id, err);
    if (rc == 0)
        rc = LADE_STALE;
    for (int i = 0; rc == LADE_STALE && i < TRIES; i++) {
        struct record r;
        rc = find(q, id, &r, err);
        if (rc == 0)
            rc = r.row ? fn(q, id, &r, err) : LADE_NOT_FOUND;
        free_record(&r);
    }
    return rc == LADE_STALE ? fail_busy(err) : rc;
}

int lade_schedule_pause(lade *q, const char *id, lade_err *err)
{
    return change(q, id, pause_record, err);
}

int lade_schedule_resume(lade *q, const char *id, lade_err *err)
{
    int rc = change(q, id, resume_record, err);
    if (rc == 0)
        lq_schedulers_rouse(q);
    return rc;
}

/* run -------------------------------------------------------------------------------------------------------------- */

int lq_schedule_mend_memo(lade *q, struct lb_slice id, uint64_t fence, struct lb_slice was,
                          const struct lq_memo *memo)
{
    const struct lq_schedule_ops *ops = q->store->ops->schedules;
    struct lq_schedule_vec vec = {0};
    struct lb_buf bytes;
    lb_buf_init(&bytes);
    lb_arena_init(&vec.arena);
    lq_memo_encode(&bytes, memo);
    int rc = bytes.failed ? -LADE_ENOMEM : ops->get(q->store, id, &vec, NULL);
    if (rc == 0 && lb_slice_eq(vec.row[0].memo, was)) {
        struct lq_schedule_half half = {lb_buf_slice(&bytes), vec.row[0].state, vec.row[0].due_ms};
        struct lq_fire note = {
            .id = id, .revision = vec.row[0].revision, .fence = fence, .fired = half, .held = half};
        rc = lq_schedule_fire(q->store, &note, NULL);
    }
    lb_arena_fini(&vec.arena);
    lb_buf_fini(&bytes);
    return LB_MIN(rc, 0);
}

/* The store did not put the job, so it was not run by hand either. */
static void note_not_run(lade *q, const char *id, struct record *r, struct lb_slice was, bool held)
{
    r->memo.n_history--;
    r->memo.duplicates += held;
    if (held)
        lq_memo_note(&r->memo, r->now_ms, r->now_ms, LADE_FIRE_DUPLICATE, 1);
    (void)lq_schedule_mend_memo(q, lb_slice_str(id), 0, was, &r->memo); /* a note for people */
}

/* Its id has the time of the call, or a later one when two come in one ms. */
static int fire_by_hand(lade *q, const char *id, struct record *r, int64_t salt_ms, lade_id *job,
                        lade_err *err)
{
    struct lb_buf body, memo;
    lb_buf_init(&body);
    lb_buf_init(&memo);
    int64_t at_ms = r->now_ms + salt_ms;
    (void)snprintf(job->text, sizeof(job->text), "%s:r%lld", id, (long long)at_ms);
    lq_memo_note(&r->memo, r->now_ms, r->now_ms, LADE_FIRE_BY_HAND, 1);
    lq_memo_encode(&memo, &r->memo);
    struct lq_put put = {0};
    struct lb_mut scratch = lb_arena_copy(&r->vec.arena, r->spec.body.p, r->spec.body.n);
    bool reads = scratch.p && lq_schedule_put_of(&put, &r->spec, scratch) &&
                 lq_schedule_body(&body, r->spec.body, r->now_ms);
    put.id = lb_slice_str(job->text);
    put.body = lb_buf_slice(&body);
    struct lq_fire fire = {.id = lb_slice_str(id),
                           .revision = r->row->revision,
                           .put = &put,
                           .n = 1,
                           .fired = {lb_buf_slice(&memo), r->row->state, r->row->due_ms}};
    fire.held = fire.fired;
    int rc = LADE_WRONG_STATE;
    if (body.failed || memo.failed || !scratch.p)
        rc = lb_fail_nomem(err, "schedule");
    else if (reads)
        rc = lq_schedule_fire(q->store, &fire, err);
    if (rc == 0)
        rc = put.outcome;
    if (rc == LADE_DUPLICATE) {
        bool held = strcmp(put.holder, job->text) != 0;
        note_not_run(q, id, r, fire.fired.memo, held);
        if (held)
            (void)snprintf(job->text, sizeof(job->text), "%s", put.holder);
        else
            rc = LADE_STALE; /* of the same ms: once more, with the next */
    }
    lb_buf_fini(&body);
    lb_buf_fini(&memo);
    return rc;
}

int lade_schedule_run(lade *q, const char *id, lade_id *job, lade_err *err)
{
    LQ_REFUSE_NULL(q, "schedule");
    lade_id made;
    int rc = check_store(q, id, err);
    if (rc == 0)
        rc = LADE_STALE;
    for (int i = 0; rc == LADE_STALE && i < TRIES; i++) {
        struct record r;
        rc = find(q, id, &r, err);
        if (rc == 0)
            rc = !r.row ? LADE_NOT_FOUND : read_record(&r, NULL) < 0 ? LADE_WRONG_STATE : 0;
        if (rc == 0)
            rc = fire_by_hand(q, id, &r, i, &made, err);
        free_record(&r);
    }
    if (rc == LADE_STALE)
        return fail_busy(err);
    if ((rc == 0 || rc == LADE_DUPLICATE) && job)
        *job = made;
    return rc;
}
