/*
 * spin.h - whether to ask again and again for a moment before sleeping
 *
 * Waking a CPU that has gone to sleep costs more than a whole round trip to a local server, so while an answer is due
 * it can pay to keep asking for some microseconds. It pays only when the answer comes that soon, and only while nobody
 * else wants the CPU. Both are seen by trying:
 *
 *     hit      the answer came while asking: nothing can have been quicker
 *     missed   it did not come within the time: the time was wasted
 *     robbed   between two looks at the clock the CPU was somebody else's, perhaps of whom we wait for
 *
 * Hits earn credit, misses and robberies spend it, robberies faster. Without credit the asker sleeps at once and rests for
 * REST_MIN calls, and twice as many after each failed trial up to REST_MAX; then a trial begins. Its first calls are not
 * judged and may take longer, since CPUs that slept have to get out of their deep sleep first: this is what makes the
 * difference visible at all. So a spin that never pays costs a few tenths of a millisecond in a thousand calls.
 *
 * What is asked matters as well: keep one of these for each kind of question.
 *
 * Who is `polite` gives its CPU away between two looks, to whatever thread can use it: nobody is kept from working by it, also not
 * whom it waits for. It is robbed only where it gets the CPU back so late that somebody must have had a whole time slice.
 *
 * Bounds: no more threads of the process spin at once than there are CPUs but one, so that spinning never keeps the last
 * CPU from whom it waits for; the polite ones do not count. With one CPU there is none of either.
 *
 * Thread safety: lb_spin_enter and lb_spin_leave all; a struct lb_spin is its owner's.
 */
#ifndef LADE_BASE_SPIN_H
#define LADE_BASE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define LB_SPIN_NS 80000

struct lb_spin {
    int8_t credit;  /* > 0: spins */
    uint8_t warm;   /* calls of the trial that are not judged yet */
    uint16_t rest;  /* calls to sleep before the next trial */
    uint16_t pause; /* what rest becomes when the trial fails; 0 = never tried */
    int32_t time;   /* ns of a spin; 0 = LB_SPIN_NS */
    int64_t end;    /* of the spin under way */
    int64_t last;   /* when it last looked at the clock */
    bool robbed;
    bool polite; /* set once */
};

/* One of the places for spinning threads. Each true is followed by lb_spin_leave. */
bool lb_spin_enter(void);
void lb_spin_leave(void);
/* How many there are, whatever the machine; -1: count the CPUs again. */
void lb_spin_set_places(int n);

/* Whether this question is one to spin for; then it has begun at `now` (lb_clock_mono), with a place taken. */
bool lb_spin_begin(struct lb_spin *s, int64_t now);
/* After each fruitless look; gives the CPU away if polite. False: the time is over, sleep. */
bool lb_spin_goes_on(struct lb_spin *s, int64_t now);
/* Ends what began: `hit` when the answer is there. */
void lb_spin_end(struct lb_spin *s, int64_t now, bool hit);

/*
 * The judgement alone, where others than its owner do the looking: whether the next question is one to spin for, and then, once
 * for each true, how that went. The time for it is lb_spin_time.
 */
bool lb_spin_wanted(struct lb_spin *s);
void lb_spin_judge(struct lb_spin *s, bool hit, bool robbed);
/* ns */
int64_t lb_spin_time(const struct lb_spin *s);
/* Between two looks; true when the CPU came back so late, `now` after `last`, that others had it for a time slice. */
void lb_spin_yield(void);
bool lb_spin_is_robbed(int64_t last, int64_t now);

#endif
