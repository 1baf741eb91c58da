/* resque_refuse.c - ops for which Resque's keys have no place: each is an error that names the feature and the store */
#include "base/err.h"
#include "queue/event.h"
#include "store/resque/resque_inner.h"

static int refuse(lade_err *err, const char *where, const char *what)
{
    return lb_fail(err, LADE_EUNSUPPORTED, where,
                   "%s: the resque store has none, since Resque keeps nothing of the kind; "
                   "use a sqlite: or redis:// store for it",
                   what);
}

/* `args` are unused in all of them. */
#define REFUSES(name, what, ...)         \
    int ls_resque_no_##name(__VA_ARGS__) \
    {                                    \
        return refuse(err, #name, what); \
    }

#define U LB_UNUSED

REFUSES(note, "histories of jobs", struct lq_store *s U, struct lq_note *it U, size_t n U,
        lade_err *err)
REFUSES(results, "results", struct lq_store *s U, const char *queue U, const struct lb_slice *id U,
        size_t n U, struct lb_arena *arena U, struct lq_result *out U, lade_err *err)
REFUSES(watch, "waiting for jobs", struct lq_store *s U, const char *waiter U,
        struct lq_watch *it U, size_t n U, lade_err *err)
REFUSES(say, "progress and logs of jobs", struct lq_store *s U, struct lq_say *it U, size_t n U,
        lade_err *err)
REFUSES(events_set, "events", struct lq_store *s U, const char *queue U, uint32_t cap U,
        lade_err *err)
REFUSES(events_get, "events", struct lq_store *s U, const char *queue U, lade_events_info *out U,
        lade_err *err)
REFUSES(event_read, "events", struct lq_store *s U, const char *queue U, uint64_t after U,
        size_t max U, struct lq_event_vec *out U, lade_err *err)
REFUSES(pause, "pausing one queue (the key pause-all-workers pauses all workers)",
        struct lq_store *s U, const char *queue U, bool paused U, lade_err *err)
REFUSES(forget, "removing a queue (resque-web does)", struct lq_store *s U, const char *queue U,
        lade_err *err)

void ls_resque_no_unwatch(struct lq_store *s LB_UNUSED, const char *waiter LB_UNUSED,
                          struct lq_lanes lanes LB_UNUSED)
{
}

/* None of its jobs ever said anything. */
int ls_resque_no_words(struct lq_store *s LB_UNUSED, const char *queue LB_UNUSED,
                       struct lb_slice id LB_UNUSED, struct lq_words *out, lade_err *err)
{
    out->percent = -1;
    out->text = lb_arena_copy(out->arena, "", 0);
    return out->text.p ? 0 : lb_fail_nomem(err, "words");
}
