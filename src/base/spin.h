/*
 * spin.h - whether to ask again and again for a moment before sleeping
 *
 * Waking a CPU that has gone to sleep costs more than a whole round trip to a local server, and waking a thread costs more than
 * letting it look, so while an answer is due it can pay to keep asking for some microseconds. It pays only when the answer comes that
 * soon, and only while nobody else wants the CPU. So between two looks the asker gives its CPU away: whoever can use it is not kept from
 * working, also not whom it waits for. Whether it pays is seen by trying:
 *
 *     hit      the answer came while asking
 *     missed   it did not come within the time: the time was wasted
 *     robbed   the CPU came back so late that somebody must have had a whole time slice: one who sleeps is served before such a one
 *
 * Hits earn credit, misses spend it. Without credit the asker sleeps at once and rests for REST_MIN calls, and twice as many
 * after each failed trial up to REST_MAX; then a trial begins. Its first calls are not judged and may take longer, since CPUs that
 * slept have to get out of their deep sleep first: this is what makes the difference visible at all. So a spin that never
 * pays costs a few tenths of a millisecond in a thousand calls. A robbery takes all credit and is answered by a rest of some times
 * what was lost, more each time: so a spin on a busy machine costs a few hundredths of its time.
 *
 * What is asked matters as well: keep one of these for each kind of question.
 *
 * Bounds: with one CPU nobody spins. The time of a spin is its owner's.
 *
 * Thread safety: a struct lb_spin is its owner's; lb_spin_yield and lb_spin_set_cpus all.
 */
#ifndef LADE_BASE_SPIN_H
#define LADE_BASE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define LB_SPIN_NS 80000

struct lb_spin {
    int8_t credit;      /* > 0: spins */
    uint8_t warm;       /* calls of the trial that are not judged yet */
    uint16_t rest;      /* calls to sleep before the next trial */
    uint16_t pause;     /* what rest becomes when the trial fails; 0 = never tried */
    uint16_t penalty;   /* how many times its length a robbery was answered with last */
    int32_t time;       /* ns of a spin; 0 = LB_SPIN_NS */
    int64_t not_before; /* the next trial */
    int64_t end;        /* of the spin under way */
    int64_t last;       /* when it last looked at the clock */
    int64_t gap;        /* the longest time between two looks */
};

/* Whether this question is one to spin for; then it has begun at `now` (lb_clock_mono). */
bool lb_spin_begin(struct lb_spin *s, int64_t now);
/* After each fruitless look; gives the CPU away. False: the time is over, sleep. */
bool lb_spin_goes_on(struct lb_spin *s, int64_t now);
/* Ends what began: `hit` when the answer is there. */
void lb_spin_end(struct lb_spin *s, int64_t now, bool hit);

/*
 * The judgement alone, where others than its owner do the looking, for lb_spin_time ns: whether they shall, and then, once for each
 * true, how that went. `gap`: the longest time between two looks.
 */
bool lb_spin_wanted(struct lb_spin *s, int64_t now);
void lb_spin_judge(struct lb_spin *s, int64_t now, bool hit, int64_t gap);
int64_t lb_spin_time(const struct lb_spin *s);
/* Between two looks. */
void lb_spin_yield(void);

/* How many CPUs there are, whatever the machine; 0: count them again. For tests. */
void lb_spin_set_cpus(int n);

#endif
