/*
 * control.h - workers from afar: look into one, quiet, resume or stop it, and have its stacks
 *
 * An order lies in the worker's record in the store; the worker reads it with its next renewal, so within half of its lease at most
 * (7.5 s by default) while the store answers. Orders are wishes for a state, not messages: asked twice is asked once, and one that
 * is lost with its worker needs no undoing. Whoever may write to the store may give orders.
 *
 * Thread safety: as lade.h says of `lade`.
 */
#ifndef LADE_CONTROL_H
#define LADE_CONTROL_H

#include <lade/lade.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_STACKS_MAX (64U << 10) /* bytes kept of the stacks of one worker; the rest is cut */

enum lade_worker_order {
    LADE_WORKER_RESUME =
        1, /* takes work again, after QUIET; not after lade_worker_quiet or TSTP in its process */
    LADE_WORKER_QUIET = 2, /* takes no more, what runs goes on: as lade_worker_pause */
    LADE_WORKER_STOP = 3,  /* as lade_worker_stop, and TERM; cannot be taken back */
    LADE_WORKER_STACKS = 4 /* writes down what its handlers and tasks do: lade_worker_view.stacks */
};

enum lade_worker_state {
    LADE_WORKER_UNKNOWN = 0, /* of a program that does not tell */
    LADE_WORKER_RUNNING = 1,
    LADE_WORKER_IS_QUIET = 2,
    LADE_WORKER_STOPPING = 3
};

/* "running", "quiet", "stopping", "unknown"; NULL for a value out of range. */
LADE_API const char *lade_worker_state_name(enum lade_worker_state state);

/*
 * Orders a live worker, by the id of its incarnation (lade_worker_info.id). Returns 0; LADE_NOT_FOUND: there is no such worker, or it is
 * gone; LADE_WRONG_STATE: it has been told to stop. Failures: EUNSUPPORTED on a store that has no place for orders (resque).
 */
LADE_API LADE_CHECKED int lade_worker_order(lade *q, const char *id, enum lade_worker_order order,
                                            lade_err *err);

typedef struct lade_worker_view {
    lade_worker_info info;
    enum lade_worker_state state; /* as it told last */
    const char *host;             /* "" when it does not tell, as below */
    int64_t pid;                  /* 0 the same */
    const char *version;          /* of liblade in it */
    enum lade_worker_order wish; /* the order that holds: RESUME, QUIET, STOP; 0 = none was given */
    uint64_t stacks_asked;       /* so often has it been asked for its stacks */
    uint64_t stacks_made;        /* up to which of these it has answered */
    int64_t stacks_at;           /* when; 0 = never, or more than an hour ago */
    lade_bytes stacks;
} lade_worker_view;

/* One live worker. Returns 0 or LADE_NOT_FOUND. *out is one block with all it points to, the caller's: lade_free. */
LADE_API LADE_CHECKED int lade_worker_get(lade *q, const char *id, lade_worker_view **out,
                                          lade_err *err);

#ifdef __cplusplus
}
#endif

#endif
