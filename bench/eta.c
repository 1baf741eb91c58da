#include "bench/eta.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bn_eta_init(struct bn_eta *e, bool quiet)
{
    const char *term = getenv("TERM");
    *e = (struct bn_eta){.quiet = quiet, .repeat_said = -2};
    e->live = !quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static void write_left(double left_s, char *out, size_t size)
{
    if (left_s < 0)
        (void)snprintf(out, size, "time left unknown yet");
    else if (left_s < 90)
        (void)snprintf(out, size, "about %.0f s left", left_s);
    else
        (void)snprintf(out, size, "about %.0f min left", left_s / 60);
}

void bn_eta_step(struct bn_eta *e, const char *table, int repeat, int repeats, const char *what,
                 double left_s)
{
    char left[64];
    char which[48];
    if (e->quiet)
        return;
    write_left(left_s, left, sizeof(left));
    if (repeat < 0)
        (void)snprintf(which, sizeof(which), "warm-up");
    else
        (void)snprintf(which, sizeof(which), "repeat %d of %d", repeat + 1, repeats);
    if (e->live)
        (void)fprintf(stderr, "\r\033[K%s: %s, %s, %s", table, which, left, what);
    else if (repeat != e->repeat_said)
        (void)fprintf(stderr, "%s: %s, %s\n", table, which, left);
    (void)fflush(stderr);
    e->repeat_said = repeat;
}

void bn_eta_clear(struct bn_eta *e)
{
    if (e->live)
        (void)fputs("\r\033[K", stderr);
}

void bn_eta_say(struct bn_eta *e, const char *format, ...)
{
    va_list args;
    if (e->quiet)
        return;
    bn_eta_clear(e);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}
