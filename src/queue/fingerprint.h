/*
 * fingerprint.h - what a job died of, so that deaths of one cause are one class
 *
 * An error text is brought to the form that all errors of its kind share: what differs from one to the next is masked. Masking before
 * grouping is the first step of log parsers (P. He et al., Drain, https://doi.org/10.1109/ICWS.2017.33) and of the query
 * fingerprints of SQL tools. The class is a hash of kind and masked text; docs/dead.md has the rules and examples.
 *
 *     'quoted' "quoted" `quoted`            <s>
 *     0x7ffd12, hex of 8 digits or more,
 *     a UUID, a mix of letters and digits
 *     of 10 characters or more              <id>
 *     10.0.0.1:5432, [fe80::1]:80, ::1      <addr>
 *     someone@example.org                   <mail>
 *     17, 3.5, 2026-12-01T05:00:00Z         <n>, <n>-<n>-<n>T<n>:<n>:<n>Z
 *     blanks, tabs, ends of lines           one blank
 *     other control characters              ?
 *
 * Thread safety: functions of their arguments.
 */
#ifndef LADE_QUEUE_FINGERPRINT_H
#define LADE_QUEUE_FINGERPRINT_H

#include "base/buf.h"
#include "base/slice.h"

#define LQ_FINGERPRINT_LOOK 1024 /* bytes of the error that are looked at */
#define LQ_FINGERPRINT_NAME 12   /* characters of a class: 48 bits in hex */

/* Appends the masked text, at most 2 * LQ_FINGERPRINT_LOOK bytes. */
void lq_fingerprint_mask(struct lb_buf *out, struct lb_slice error);
/* The name of the class, with a NUL. */
void lq_fingerprint_name(char name[LQ_FINGERPRINT_NAME + 1], struct lb_slice kind,
                         struct lb_slice masked);

#endif
