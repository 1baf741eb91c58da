/*
 * effect.h - what a job has done already, so that its next attempt does not do it again
 *
 * A handler runs at least once: after a crash, a lost lease or LADE_RETRY it runs again. What it did in between, a charge, a
 * mail, a row elsewhere, is an effect. Under a key of its own each can be recorded with the job:
 *
 *     if (!lade_effect_done(job, "charge", NULL)) {
 *         charge(card, lade_job_fence(job));
 *         if (lade_effect(job, "charge", LADE_STR(""), &err) == LADE_STALE)
 *             return LADE_RETRY;  // somebody else has the job now
 *     }
 *
 * The record is in the store when lade_effect returns, under the job's fence: a worker whose lease was lost is refused. Between
 * the effect and its record lies a moment in which a crash leaves the effect without the record, and the next attempt does it
 * again. What the effect's own system can do against that: refuse a fence (lade_job_fence) that is lower than one it has seen,
 * or the same key twice. Where it is a row in the queue's own SQLite file, lade_sqlite_effect of <lade/sqlite.h> writes effect and
 * record in one transaction, and there is no such moment.
 *
 * Records belong to the job: they stay through retries, crashes, the dead and redrive, are shown with it, and go with it. A job
 * that uses none of this pays nothing.
 */
#ifndef LADE_EFFECT_H
#define LADE_EFFECT_H

#include <lade/lade.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_EFFECTS_MAX      32   /* of one job */
#define LADE_EFFECT_KEY_MAX   128  /* bytes; at least one, none of them NUL */
#define LADE_EFFECT_VALUE_MAX 1024 /* bytes, any */

/* An effect as a lade_job_view shows it; what it points to is the view's. */
typedef struct lade_effect_record {
    const char *key;
    lade_bytes value;
    int64_t at; /* ns, the recorder's clock */
} lade_effect_record;

/*
 * True when this attempt or an earlier one has recorded the effect. *value (may be NULL) is then what was recorded with it, and
 * lives until the handler returns or records the next effect. Asks no store: what earlier attempts recorded came with the job.
 * The handler's own call only.
 */
LADE_API bool lade_effect_done(const lade_job *job, const char *key, lade_bytes *value);

/*
 * Records the effect with the job, at once and under its fence: one step in the store. key and value are borrowed.
 * Returns 0; LADE_DUPLICATE when the job has it (nothing changes); LADE_FULL when it has LADE_EFFECTS_MAX; LADE_STALE when the
 * lease was lost or the job was ended from elsewhere: nothing is recorded, and what the handler returns will be refused.
 * Failures: EINVAL, ETOOBIG (key or value over its limit), EUNAVAILABLE, EBUSY, ENOSPACE, ENOMEM: whether it is recorded is
 * then unknown; the same call again tells. Waits for the store up to its timeout. The handler's own call only.
 */
LADE_API LADE_CHECKED int lade_effect(lade_job *job, const char *key, lade_bytes value,
                                      lade_err *err);

/* Does the effect; < 0 says that it did not happen. */
typedef int (*lade_effect_fn)(lade_job *job, void *ctx);

/*
 * The two together: unless the effect is done, calls fn and records the effect with an empty value. Returns 0 when it was done
 * now, LADE_DUPLICATE when it had been (fn is not called), LADE_STALE when the job should stop (fn is not called) or its lease
 * was lost meanwhile (fn was called), LADE_FULL before fn, what fn returned when that is < 0, or a failure of lade_effect.
 */
LADE_API LADE_CHECKED int lade_effect_run(lade_job *job, const char *key, lade_effect_fn fn,
                                          void *ctx, lade_err *err);

#ifdef __cplusplus
}
#endif

#endif
