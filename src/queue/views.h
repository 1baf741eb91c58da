/* views.h - rows of a store made into views of lade.h; and the filter of the dead */
#ifndef LADE_QUEUE_VIEWS_H
#define LADE_QUEUE_VIEWS_H

#include "queue/store.h"

/* inspect.c: rows.n views into `out`, *n of them, each the caller's; none on failure. */
LADE_CHECKED int lq_views_make(const struct lq_row_vec *rows, lade_job_view **out, size_t *n,
                               const char *where, lade_err *err);
/* dead.c: 0, or -LADE_EINVAL with the field and the rule. */
LADE_CHECKED int lq_dead_filter_check(const lade_dead_filter *f, const char *where, lade_err *err);

#endif
