/*
 * server.h - the private servers and files that runs work on
 *
 * One Redis at a time, without persistence unless the table's arguments ask for it; started again when a row wants other
 * arguments; emptied and idle before each run. A SQLite contender gets a new folder for each run. All of it goes at stop.
 * Thread safety: the main thread.
 */
#ifndef LADE_BENCH_SERVER_H
#define LADE_BENCH_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/info.h"
#include "support/redis_server.h"
#include "support/tmpdir.h"

#define BN_SERVERS_MAX     16
#define BN_SERVER_ARGS_MAX 16

/* A server program of this machine. */
struct bn_program {
    char path[512];
    char name[16];    /* "Redis", "Valkey" */
    char version[32]; /* "7.0.15" */
};

/* $LADE_BENCH_REDIS, redis-server of the PATH, then those below PEERS/servers, into `out`; how many. */
size_t bn_server_programs(const char *peers_dir, struct bn_program out[BN_SERVERS_MAX]);
/* < 0, 0, > 0 as the versions "8.6" and "7.0.15" compare. */
int bn_version_compare(const char *a, const char *b);

struct bn_server {
    const struct bn_program *program; /* NULL = none can be had */
    bool tcp;                         /* url by port, else by Unix socket */
    struct ts_redis redis;
    struct bn_info info;
    bool is_up;
    char url[200];
    const char *args[BN_SERVER_ARGS_MAX + 1]; /* borrowed, NULL-ended */
    struct ts_tmpdir files;                   /* of the SQLite run */
};

/* Up with these arguments (NULL-ended, borrowed until the next ensure or stop), empty and idle. False: reason in why. */
bool bn_server_ensure(struct bn_server *s, const char *const *args, char *why, size_t size);
/* A new empty folder; url is sqlite:FOLDER/bench.db. */
bool bn_server_fresh_file(struct bn_server *s, char *url, size_t size);
void bn_server_drop_file(struct bn_server *s);
void bn_server_stop(struct bn_server *s);

#endif
