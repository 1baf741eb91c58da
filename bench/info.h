/*
 * info.h - a server's own account: INFO over a connection of its own
 *
 * For the runner around a run, and for drivers around their window. Understands redis://HOST:PORT and unix://PATH of servers
 * without a password. Thread safety: one user at a time.
 */
#ifndef LADE_BENCH_INFO_H
#define LADE_BENCH_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_info {
    int fd; /* -1 = not open */
    char *text;
    size_t size;
};

struct bn_usage {
    double cpu_s;      /* used_cpu_user + used_cpu_sys */
    uint64_t commands; /* calls of all commands but INFO, those of scripts too */
    uint64_t memory;   /* used_memory */
    uint64_t
        reads; /* total_reads_processed: what clients sent, however many commands a script makes of it */
};

/* A socket to the server of this URL; -1 when there is none. */
int bn_info_connect(const char *url);
bool bn_info_open(struct bn_info *i, const char *url);
void bn_info_close(struct bn_info *i);
/* Sends one line of words; the reply's text, NUL-terminated, until the next call. NULL on any failure. */
const char *bn_info_ask(struct bn_info *i, const char *line);
#define BN_INFO_READS 4 /* of one bn_info_usage, counted in `reads` of the next */
bool bn_info_usage(struct bn_info *i, struct bn_usage *out);
/* The number of `field` in the text of an INFO section; -1 when it is not there. */
double bn_info_field(const char *text, const char *field);

#endif
