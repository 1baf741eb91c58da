/* eta.h - how far a table is: one live line on a terminal, plain lines elsewhere. Thread safety: the main thread. */
#ifndef LADE_BENCH_ETA_H
#define LADE_BENCH_ETA_H

#include <stdbool.h>

struct bn_eta {
    bool live, quiet;
    int repeat_said;
};

/* Standard error; quiet prints nothing at all. */
void bn_eta_init(struct bn_eta *e, bool quiet);
/* A run begins: repeat (-1 = warm-up) of repeats; left_s < 0 = unknown. */
void bn_eta_step(struct bn_eta *e, const char *table, int repeat, int repeats, const char *what,
                 double left_s);
/* Takes the live line away. */
void bn_eta_clear(struct bn_eta *e);
/* A line that stays. */
void bn_eta_say(struct bn_eta *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
