/*
 * redis_server.h - a private redis-server for one test program
 *
 *     struct ts_redis r;
 *     if (!ts_redis_start(&r, NULL))       answers PING when it returns
 *         fail();
 *     open(r.url);                         unix:///tmp/lade-XXXXXX/redis.sock
 *     ts_redis_stop(&r);
 *
 * No persistence, a temporary directory of its own, a Unix socket and, when asked for, TCP and TLS ports on 127.0.0.1
 * that the system chose. The server dies with the process that started it (PR_SET_PDEATHSIG), so a test that crashes
 * leaves no server behind; start it from the main thread, since the signal comes when the starting thread ends.
 *
 * Thread safety: one owner at a time.
 */
#ifndef LADE_TESTS_SUPPORT_REDIS_SERVER_H
#define LADE_TESTS_SUPPORT_REDIS_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/tmpdir.h"

#define TS_REDIS_ARGS_MAX 48

/* Zero is the default in every field. */
struct ts_redis_opts {
    const char *
        program; /* default LADE_TEST_REDIS, else "redis-server", looked up in PATH; "valkey-server" does too */
    const char *password;    /* of the user "default"; none by default */
    bool tcp;                /* listen on 127.0.0.1 too: see port */
    bool tls;                /* and with TLS: see tls_port. Give cert, key and ca in args */
    bool cluster;            /* of a cluster of one node, which owns all slots; on TCP, too */
    const char *const *args; /* more arguments, NULL-ended: "--maxmemory", "2mb", NULL */
};

struct ts_redis {
    struct ts_tmpdir dir; /* log in DIR/log */
    char socket[108];
    char url[160];      /* of the socket, with the password when there is one */
    int port, tls_port; /* 0 = none */
    int bus_port;       /* of a cluster */
    pid_t pid;          /* 0 = not running */
    struct ts_redis_opts opts;
};

/* Starts and waits until it answers. `opts` (borrowed until stop) may be NULL. False, with reason and log on stderr. */
bool ts_redis_start(struct ts_redis *r, const struct ts_redis_opts *opts);

/* SIGKILL, and the directory goes. Nothing when it was never started (pid 0 and no directory). */
void ts_redis_stop(struct ts_redis *r);

/* SIGKILL only: the data is lost, directory, socket path and ports stay for ts_redis_again. */
void ts_redis_kill(struct ts_redis *r);
/* Starts again after ts_redis_kill, empty, on the same socket and ports. */
bool ts_redis_again(struct ts_redis *r);

/* SIGSTOP and SIGCONT: a server that is there and does not answer. */
void ts_redis_freeze(struct ts_redis *r);
void ts_redis_thaw(struct ts_redis *r);

/*
 * Sends one line ("CONFIG SET maxmemory 1mb", words without blanks) on a connection of its own, logged in, and writes
 * the first bytes of the raw reply to `reply`. False when the server did not answer within 5 s.
 */
bool ts_redis_ask(const struct ts_redis *r, const char *line, char *reply, size_t size);

#endif
