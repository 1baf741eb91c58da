/* schedule_rows.h - schedules as rows. Thread safety: none. */
#ifndef LADE_CLI_SCHEDULE_ROWS_H
#define LADE_CLI_SCHEDULE_ROWS_H

#include "cli/out.h"

/* All that is known of a schedule but its history. `leader` may be NULL. */
void cli_schedule_row(struct cli_row *r, const lade_schedule_view *v, int64_t now,
                      const lade_schedule_leader *leader);
void cli_fire_row(struct cli_row *r, const lade_fire *f);
void cli_schedule_time_row(struct cli_row *r, const lade_schedule_time *t);
/* "2026-03-29 03:00:00 CEST" of an instant of the zone. */
void cli_schedule_local(char out[64], const lade_schedule_time *t);

#endif
