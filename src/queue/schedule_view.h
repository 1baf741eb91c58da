/* schedule_view.h - a record as users see it. Thread safety: a function of its argument. */
#ifndef LADE_QUEUE_SCHEDULE_VIEW_H
#define LADE_QUEUE_SCHEDULE_VIEW_H

#include "queue/schedule.h"

/* NULL when out of memory; lade_schedule_view_free. */
lade_schedule_view *lq_schedule_view_make(const struct lq_schedule_row *row);

#endif
