/*
 * settings.h - the command line and environment of resque-bench
 *
 * Thread safety: the main thread.
 */
#ifndef LADE_RESQUE_BENCH_SETTINGS_H
#define LADE_RESQUE_BENCH_SETTINGS_H

#include "resque_bench/rb.h"

enum rb_settled {
    RB_GO = 0,
    RB_EXIT_OK = 1, /* --help or --version has been printed */
    RB_EXIT_USAGE = 2,
    RB_EXIT_INVALID = 3 /* understood, but not allowed; a message is on stderr */
};

/*
 * Reads environment and argv into *o and checks all that needs no server. Secrets in argv are overwritten there, so that ps does
 * not show them. Strings of *o live in argv, in the environment, or until rb_settings_fini.
 */
enum rb_settled rb_settings_read(struct rb_options *o, int argc, char **argv);
void rb_settings_fini(void);

/* Prints --help to f. */
void rb_settings_help(FILE *f);

#endif
