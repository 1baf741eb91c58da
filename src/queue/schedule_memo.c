#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "queue/pack.h"
#include "queue/schedule.h"

#define N_FIELDS 17

static void pack_time(struct lb_buf *b, int64_t ms)
{
    lq_pack_uint(b, ms > 0 ? (uint64_t)ms : 0);
}

void lq_memo_encode(struct lb_buf *out, const struct lq_memo *m)
{
    lb_buf_add_byte(out, LQ_SCHEDULE_VERSION);
    lq_pack_array(out, N_FIELDS);
    pack_time(out, m->created_ms);
    pack_time(out, m->changed_ms);
    pack_time(out, m->anchor_ms);
    pack_time(out, m->next_ms);
    pack_time(out, m->computed_ms);
    pack_time(out, m->last_ms);
    pack_time(out, m->epoch);
    lq_pack_uint(out, m->fired);
    lq_pack_uint(out, m->missed);
    lq_pack_uint(out, m->overlaps);
    lq_pack_uint(out, m->duplicates);
    pack_time(out, m->pending_ms);
    lq_pack_str(out, lb_slice_str(m->last_queue));
    lq_pack_str(out, lb_slice_str(m->last_job));
    lq_pack_str(out, lb_slice_str(m->tzdata));
    lq_pack_str(out, lb_slice_str(m->error));
    lq_pack_array(out, (uint32_t)(4 * m->n_history));
    for (size_t i = 0; i < m->n_history; i++) {
        pack_time(out, m->history[i].at_ms);
        pack_time(out, m->history[i].seen_ms);
        lq_pack_uint(out, (uint64_t)m->history[i].outcome);
        lq_pack_uint(out, m->history[i].count);
    }
}

static int64_t unpack_time(struct lq_unpack *u)
{
    uint64_t v = lq_unpack_uint(u);
    if (v > INT64_MAX / LADE_MILLISECOND)
        u->bad = true;
    return u->bad ? 0 : (int64_t)v;
}

static void unpack_text(struct lq_unpack *u, char *to, size_t size)
{
    struct lb_mut s = lq_unpack_str(u);
    if (s.n >= size || (s.n > 0 && memchr(s.p, 0, s.n)))
        u->bad = true;
    if (u->bad)
        return;
    if (s.n > 0)
        memcpy(to, s.p, s.n);
    to[s.n] = 0;
}

static void unpack_history(struct lq_unpack *u, struct lq_memo *m)
{
    uint32_t n = lq_unpack_array(u);
    if (n % 4 != 0 || n / 4 > LADE_SCHEDULE_HISTORY)
        u->bad = true;
    for (uint32_t i = 0; i < n / 4 && !u->bad; i++) {
        struct lq_memo_fire *f = &m->history[i];
        f->at_ms = unpack_time(u);
        f->seen_ms = unpack_time(u);
        uint64_t outcome = lq_unpack_uint(u);
        if (outcome >= LADE_N_FIRE_OUTCOMES)
            u->bad = true;
        f->outcome = (enum lade_fire_outcome)(u->bad ? 0 : outcome);
        f->count = lq_unpack_uint(u);
    }
    m->n_history = u->bad ? 0 : n / 4;
}

int lq_memo_decode(struct lb_mut bytes, struct lq_memo *m, lade_err *err)
{
    *m = (struct lq_memo){0};
    if (bytes.n < 2 || bytes.p[0] != LQ_SCHEDULE_VERSION)
        return lb_fail(err, LADE_EFORMAT, "schedule",
                       "its memo has version %d, not %d; is a newer lade writing?",
                       bytes.n ? bytes.p[0] : 0, LQ_SCHEDULE_VERSION);
    struct lq_unpack u = {bytes.p + 1, bytes.p + bytes.n, false};
    if (lq_unpack_array(&u) < N_FIELDS)
        u.bad = true;
    m->created_ms = unpack_time(&u);
    m->changed_ms = unpack_time(&u);
    m->anchor_ms = unpack_time(&u);
    m->next_ms = unpack_time(&u);
    m->computed_ms = unpack_time(&u);
    m->last_ms = unpack_time(&u);
    m->epoch = unpack_time(&u);
    m->fired = lq_unpack_uint(&u);
    m->missed = lq_unpack_uint(&u);
    m->overlaps = lq_unpack_uint(&u);
    m->duplicates = lq_unpack_uint(&u);
    m->pending_ms = unpack_time(&u);
    unpack_text(&u, m->last_queue, sizeof(m->last_queue));
    unpack_text(&u, m->last_job, sizeof(m->last_job));
    unpack_text(&u, m->tzdata, sizeof(m->tzdata));
    unpack_text(&u, m->error, sizeof(m->error));
    unpack_history(&u, m);
    if (u.bad)
        return lb_fail(err, LADE_EFORMAT, "schedule",
                       "its memo of %zu bytes is damaged near byte %td", bytes.n, u.p - bytes.p);
    return 0;
}

void lq_memo_note(struct lq_memo *m, int64_t at_ms, int64_t seen_ms, enum lade_fire_outcome outcome,
                  uint64_t count)
{
    if (m->n_history == LADE_SCHEDULE_HISTORY) {
        memmove(m->history, m->history + 1, sizeof(m->history) - sizeof(m->history[0]));
        m->n_history--;
    }
    m->history[m->n_history++] = (struct lq_memo_fire){at_ms, seen_ms, outcome, count};
}

void lq_memo_job_id(char out[LADE_ID_MAX + 1], const char *schedule, int64_t at_ms, int64_t epoch)
{
    if (epoch > 0)
        (void)snprintf(out, LADE_ID_MAX + 1, "%.*s:%lld.%lld", LADE_SCHEDULE_ID_MAX, schedule,
                       (long long)at_ms, (long long)(epoch % 10000));
    else
        (void)snprintf(out, LADE_ID_MAX + 1, "%.*s:%lld", LADE_SCHEDULE_ID_MAX, schedule,
                       (long long)at_ms);
}
