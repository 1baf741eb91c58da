/*
 * event.h - events, notes, results and what can be watched, as stores keep and give them
 *
 * Events. A queue has a stream while an operator wants one; off, it has no trace of it. The store makes an event in the same atomic
 * step that does what it tells of, and numbers the events of a queue without holes. A batch of events is kept as one thing (a row, an
 * entry of a stream) under the number of its last one: records one after the other, of these two forms.
 *
 *     one        type, n id, n kind, attempt, value, n reason      numbers are varints: 7 bits a byte, low ones first
 *     stretch    type | 0x80, 24 bytes, place lo hi, n, n kind, attempt, n values
 *
 * A stretch is n jobs whose ids are the 24 bytes and two characters, from `place` on: a pack of the Redis store. `value` is microseconds
 * for COMPLETED and FAILED, milliseconds for RETRYING, percent for PROGRESS, else 0.
 *
 * That an event cannot be written fails nothing: the stream then lacks it and the number is not used.
 */
#ifndef LADE_QUEUE_EVENT_H
#define LADE_QUEUE_EVENT_H

#include "queue/store.h"

#define LQ_EVENT_REASON_MAX 200
#define LQ_EVENT_STRETCH    0x80
#define LQ_EVENT_PREFIX     24

struct lq_ev {
    uint64_t id;
    int64_t at_ms;
    enum lade_event_type type;
    uint32_t attempt;
    int64_t value;
    struct lb_slice job, kind, reason; /* kind and reason at most 255 bytes; longer are cut */
};

struct lq_event_vec {
    struct lb_arena arena; /* as in lq_leased_vec */
    struct lq_ev *event;
    size_t n;
    uint64_t after; /* where the reading began: `after` of the call, resolved */
};

/* The most bytes that a record of it takes, and the record: returns where it ends. */
size_t lq_event_size(const struct lq_ev *e);
uint8_t *lq_event_write(uint8_t *p, const struct lq_ev *e);

/* A stretch of n jobs from this one on: as many bytes at most, whether as a stretch or one by one; its head, which n values follow. */
size_t lq_event_stretch_size(const struct lq_settle *first, size_t n);
uint8_t *lq_event_stretch_begin(uint8_t *p, enum lade_event_type type,
                                const struct lq_settle *first, unsigned place, size_t n);
uint8_t *lq_event_write_number(uint8_t *p, uint64_t v);

/*
 * Appends the events of a batch to out, but those up to and including `after`; `last` is the number of its last one, n how many it has. The bytes stay
 * where they are. False when out of memory. A batch that cannot be read ends where that shows: what follows is passed over.
 */
bool lq_events_expand(struct lq_event_vec *out, struct lb_slice batch, uint64_t last, uint64_t n,
                      int64_t at_ms, uint64_t after);

/* The kind in an envelope; empty when it cannot be read. */
struct lb_slice lq_body_kind(struct lb_slice body);
/* The number of the next attempt. */
uint32_t lq_history_next_attempt(struct lb_slice history);
/* At most max bytes of text, cut between two characters of UTF-8. */
struct lb_slice lq_cut_utf8(struct lb_slice text, size_t max);
/* The word of a reason of the dead. */
const char *lq_event_reason(enum lq_reason reason);

/* watch: what is looked at */
enum lq_watched {
    LQ_WATCH_END = 0,    /* 0: the job has ended; NOT_FOUND: it is not there; EMPTY: registered */
    LQ_WATCH_LOG = 1,    /* 0: it has more than `after` lines, or has ended */
    LQ_WATCH_EVENTS = 2, /* of the queue: 0: event_read would not be EMPTY */
    LQ_WATCH_ROOM =
        3 /* of the queue: 0: `after` more jobs of `bytes` fit into its bound, or it has none */
};

struct lq_watch {
    const char *queue;
    struct lb_slice id;
    enum lq_watched what;
    uint64_t after;
    uint64_t bytes; /* ROOM */
    int outcome;
};

/* note: what a handler says while it runs */
struct lq_say {
    const char *queue;
    struct lb_slice id;
    uint64_t fence;
    int percent; /* -1: as it was */
    struct lb_slice text, kind;
    const struct lb_slice *line;
    const int64_t *line_ms; /* when each was said; the worker's clock */
    size_t n_lines;         /* of more than LADE_LOG_LINES_MAX the oldest fall off */
    int outcome;
};

struct lq_words {
    struct lb_arena *arena; /* in */
    int64_t start;          /* in: as lade_job_get_notes */
    size_t limit;           /* in */
    int percent;            /* -1 = never said */
    int64_t progress_ms;
    struct lb_mut text;
    uint64_t total; /* lines ever written */

    struct lq_log_line {
        uint64_t number;
        int64_t at_ms;
        struct lb_mut text;
    } * line; /* oldest first */

    size_t n;
};

struct lq_result {
    int outcome; /* as lade_result_view */
    enum lade_state state;
    struct lb_mut bytes;
};

/* Which of `kept` lines a page has: skips *skip of them and gives at most the result. */
size_t lq_words_page(const struct lq_words *ask, size_t kept, size_t *skip);

#endif
