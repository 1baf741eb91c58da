/* names.h - the words of vocabulary and the rules for names. Thread safety: functions of their arguments. */
#ifndef LADE_QUEUE_NAMES_H
#define LADE_QUEUE_NAMES_H

#include <stdbool.h>

#include "queue/store.h"

/* "exhausted" and so on; "" for none. */
const char *lq_reason_name(enum lq_reason reason);

/* True when s is 1 to LADE_NAME_MAX characters of A-Z a-z 0-9 . _ : / - (queues and kinds). */
bool lq_name_is_valid(const char *s);
/* True when s is 1 to LADE_ID_MAX characters of A-Z a-z 0-9 . _ : - */
bool lq_id_is_valid(const char *s);

/* The same as a check of an argument, NULL included: 0, or -LADE_EINVAL with the rule. Ids of workflow jobs pass, too. */
LADE_CHECKED int lq_queue_check(const char *queue, const char *where, lade_err *err);
LADE_CHECKED int lq_id_check(const char *id, const char *where, lade_err *err);

#endif
