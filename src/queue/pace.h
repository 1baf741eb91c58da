/*
 * pace.h - how soon a worker goes to the store again
 *
 * A trip costs the same for one job as for a few, so while jobs come one by one and fast it pays to let some gather: trips four
 * times the length of one, at most 0.4 ms, apart; and the further, up to LQ_PACE_MAX, the more they carry, since then the store has the
 * more to do. It pays only then. Who waits for each outcome before it enqueues the next job
 * would wait longer and get nothing for it, and jobs that are there in numbers need no time to gather. So this is found out by trying:
 *
 *     close    a trip that began less than two of the least gaps after the one before, and found less than it wanted
 *     trial    after some close trips in a row the next ones keep the gap
 *     credit   what a trial has, which trips that carry some outcomes earn and those that carry one or none spend
 *     rest     how many close trips it takes until the next trial: more after each that failed
 *
 * Thread safety: one owner.
 */
#ifndef LADE_QUEUE_PACE_H
#define LADE_QUEUE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LQ_PACE_MAX INT64_C(1000000) /* ns */

struct lq_pace {
    int64_t began; /* the last trip; lb_clock_mono */
    int64_t trip;  /* ns, moving average of their lengths */
    uint32_t close, rest;
    int64_t worth; /* ns of gap, by a moving average of outcomes */
    int credit;    /* > 0: keeps the gap */
    bool dry;      /* the last trip found less than it wanted */
};

/* When the next trip should begin; in the past: at once. */
int64_t lq_pace_next(const struct lq_pace *p);
/* A trip begins, with so many outcomes. */
void lq_pace_begin(struct lq_pace *p, int64_t now, size_t outcomes);
/* It has ended well. dry: it found less than it wanted. */
void lq_pace_end(struct lq_pace *p, int64_t now, bool dry);

#endif
