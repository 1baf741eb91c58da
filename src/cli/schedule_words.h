/*
 * schedule_words.h - the words of schedules as people type them, and a schedule from one line of JSON
 *
 *     {"id":"nightly","cron":"30 2 * * *" | "every":"90s","anchor":"epoch|start|TIME","tz":"Europe/Berlin","gap":"shift|skip",
 *      "fold":"first|both|second","missed":"one|skip|all|all:N","missed_window":"2h","overlap":"allow|skip|queue-one",
 *      "limit":10,"start":"TIME","end":"TIME","jitter":"30s","paused":true, and the members of a job but id, in and at}
 *
 * Rules of schedules themselves are left to the library. Pure: bytes in, values out. Thread safety: all.
 */
#ifndef LADE_CLI_SCHEDULE_WORDS_H
#define LADE_CLI_SCHEDULE_WORDS_H

#include <lade/lade.h>

#include "cli/ndjson.h"

/* What is as it is typed, for all fields but text. `now` is what +10m counts from. `what` names the option in errors. */
LADE_CHECKED int cli_schedule_anchor(const char *what, const char *text, int64_t now,
                                     lade_schedule_spec *spec, lade_err *err);
LADE_CHECKED int cli_schedule_gap(const char *what, const char *text, lade_schedule_spec *spec,
                                  lade_err *err);
LADE_CHECKED int cli_schedule_fold(const char *what, const char *text, lade_schedule_spec *spec,
                                   lade_err *err);
LADE_CHECKED int cli_schedule_missed(const char *what, const char *text, lade_schedule_spec *spec,
                                     lade_err *err);
LADE_CHECKED int cli_schedule_overlap(const char *what, const char *text, lade_schedule_spec *spec,
                                      lade_err *err);
LADE_CHECKED int cli_schedule_time(const char *what, const char *text, int64_t now, int64_t *out,
                                   lade_err *err);

/* The words again; "?" for what is unknown. */
const char *cli_schedule_anchor_name(enum lade_schedule_anchor anchor);
const char *cli_schedule_gap_name(enum lade_schedule_gap gap);
const char *cli_schedule_fold_name(enum lade_schedule_fold fold);
const char *cli_schedule_missed_name(enum lade_schedule_missed missed);
const char *cli_schedule_overlap_name(enum lade_schedule_overlap overlap);

struct cli_schedule_line {
    lade_schedule_spec spec; /* points into the members below; valid until fini */
    struct cli_ndjson job;
    json_t *root;
};

/* 0; -LADE_EINVAL with err saying what; -LADE_ENOMEM. On 0 the caller owes cli_schedule_line_fini. */
LADE_CHECKED int cli_schedule_parse(struct cli_schedule_line *out, const char *line, size_t n,
                                    const lade_job_spec *defaults, int64_t now, lade_err *err);
void cli_schedule_line_fini(struct cli_schedule_line *l);

#endif
