/*
 * arg.h - what people type, read strictly: numbers, durations, times, backoffs
 *
 * Nothing is guessed: trailing characters, overflow and blanks are refused, and err names the option and the rule.
 * Every function returns 0 or -LADE_EINVAL and writes nothing on failure. Thread safety: all.
 */
#ifndef LADE_CLI_ARG_H
#define LADE_CLI_ARG_H

#include <lade/lade.h>

/* The longest the library takes. */
#define CLI_DURATION_MAX (36525 * LADE_DAY)

struct cli_range {
    int64_t min, max;
};

/* A whole number in decimal digits, with a sign if need be. */
LADE_CHECKED int cli_arg_int(const char *what, const char *text, struct cli_range range,
                             int64_t *out, lade_err *err);
/* A number of bytes, plain or in KiB, MiB or GiB: 1000, 64KiB, 2MiB, 1GiB. */
LADE_CHECKED int cli_arg_size(const char *what, const char *text, struct cli_range range,
                              int64_t *out, lade_err *err);
/* 500ms 30s 5m 2h 7d, or several of falling size (1h30m); 0 needs no unit. In nanoseconds. */
LADE_CHECKED int cli_arg_duration(const char *what, const char *text, struct cli_range range,
                                  int64_t *out, lade_err *err);
/* RFC 3339 (2026-01-31T12:00:00Z, with fraction and offset) into *at, or +10m into *in; the other becomes 0. */
LADE_CHECKED int cli_arg_time(const char *what, const char *text, int64_t *at, int64_t *in,
                              lade_err *err);
/* The same for when a job runs: a time before the year 2000 is refused, since no store takes one. */
LADE_CHECKED int cli_arg_run_at(const char *what, const char *text, int64_t *at, int64_t *in,
                                lade_err *err);
/* fixed:5s, exponential:1s, polynomial, polynomial:1s */
LADE_CHECKED int cli_arg_backoff(const char *what, const char *text, lade_backoff *out,
                                 lade_err *err);
/* The key of a unique job; NULL = none was given, and then nothing that needs one may be set. Borrows the text. */
LADE_CHECKED int cli_arg_unique(const char *text, lade_unique *out, lade_err *err);
LADE_CHECKED int cli_arg_conflict(const char *what, const char *text, enum lade_on_conflict *out,
                                  lade_err *err);
/* done, start, ttl */
LADE_CHECKED int cli_arg_until(const char *what, const char *text, enum lade_unique_until *out,
                               lade_err *err);

#endif
