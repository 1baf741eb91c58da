/*
 * text.h - bytes as text: UTF-8, base 64, names that are nearly right, times and durations for people
 *
 * Pure functions of their arguments. Thread safety: all.
 */
#ifndef LADE_CLI_TEXT_H
#define LADE_CLI_TEXT_H

#include <lade/base.h>

#include "base/buf.h"

/* How many bytes at the start of p are whole, valid UTF-8 characters other than NUL. */
size_t cli_utf8_span(const void *p, size_t n);

/* Appends base 64 (RFC 4648, with padding). */
void cli_base64_encode(struct lb_buf *out, const void *p, size_t n);
/* Appends the decoded bytes. False, with nothing appended, when the text is not canonical base 64. */
bool cli_base64_decode(struct lb_buf *out, const char *text, size_t n);

/* Appends at most `max` bytes of p fit for one line of a terminal: what is not printable becomes \xNN, \n, \t. */
void cli_add_printable(struct lb_buf *out, const void *p, size_t n, size_t max);

/* The name among n that is nearest to `typed`, or NULL when none is near. */
const char *cli_nearest(const char *typed, const char *const *names, size_t n);

#define CLI_TIME_LEN 48
/* "2026-01-31T12:00:00.000Z" of nanoseconds since 1970; "-" for 0. */
void cli_time_text(char out[CLI_TIME_LEN], int64_t ns);
/* "1.5s", "3m20s", "2h", "7d4h" of a duration in nanoseconds. */
void cli_duration_text(char out[CLI_TIME_LEN], int64_t ns);

#endif
