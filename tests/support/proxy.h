/*
 * proxy.h - a network that fails when told to, between a client and a private redis-server
 *
 *     struct ts_proxy *p = ts_proxy_start(redis.socket);
 *     open(ts_proxy_url(p));                                   redis://127.0.0.1:PORT
 *     int r = ts_proxy_rule(p, &(struct ts_proxy_rule){
 *         .match = "settle", .act = TS_PROXY_DROP_REPLY, .times = 1});
 *     ...  assert(ts_proxy_hits(p, r) == 1);
 *     ts_proxy_stop(p);
 *
 * A thread of the test process forwards whole RESP messages: it knows which reply belongs to which request, so rules
 * can pick one request of a pipeline. A rule matches when its text occurs in the first arguments of a request, joined by
 * blanks: "HELLO 3", "SCRIPT LOAD", or, for a function "FCALL -- take.lua FCALL lade_..._take", or, for EVALSHA,
 * "EVALSHA <sha> <title>" once the script was seen in a SCRIPT LOAD. The first rule that matches decides.
 *
 * Thread safety: all, from any thread; start and stop by the owner.
 */
#ifndef LADE_TESTS_SUPPORT_PROXY_H
#define LADE_TESTS_SUPPORT_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ts_proxy;

enum ts_proxy_act {
    TS_PROXY_COUNT = 0, /* pass, and count */
    TS_PROXY_ERROR, /* not forwarded: the client is answered `error` ("OOM command not allowed") */
    TS_PROXY_DROP_REQUEST, /* the connection is reset instead of forwarding */
    TS_PROXY_DROP_REPLY,   /* forwarded, and the connection is reset when the reply has come */
    TS_PROXY_CUT_REPLY,    /* the first `cut` bytes of the reply, then a reset */
    TS_PROXY_DELAY         /* forwarded delay_ms later */
};

#define TS_PROXY_RULES_MAX 32
#define TS_PROXY_CONNS_MAX 256 /* at once; one more is closed at once */

struct ts_proxy_rule {
    const char *match; /* NULL or "" = every request; copied, at most 63 bytes */
    enum ts_proxy_act act;
    const char *error; /* copied, at most 127 bytes */
    size_t cut;
    int delay_ms;
    int skip;  /* the first matches pass */
    int times; /* after that many it is spent; 0 = until cleared */
};

struct ts_proxy_stats {
    uint64_t accepted, requests, replies, resets;
    int open;
};

/* Listens on 127.0.0.1 at a port of the system's choice and connects on to the Unix socket. NULL with the reason on
 * stderr. */
struct ts_proxy *ts_proxy_start(const char *upstream_socket);
/* Closes everything. NULL is allowed. */
void ts_proxy_stop(struct ts_proxy *p);
const char *ts_proxy_url(const struct ts_proxy *p);

/* Adds a rule; its number. Aborts when there are too many. */
int ts_proxy_rule(struct ts_proxy *p, const struct ts_proxy_rule *rule);
void ts_proxy_clear(
    struct ts_proxy *p); /* all rules; their hits stay readable until the next rule */
uint64_t ts_proxy_hits(struct ts_proxy *p, int rule);

void ts_proxy_drop_all(struct ts_proxy *p);        /* resets every connection now */
void ts_proxy_refuse(struct ts_proxy *p, bool on); /* new connections are refused */
void ts_proxy_hold(struct ts_proxy *p, bool on);   /* nothing is forwarded, nothing is closed */
void ts_proxy_hold_current(struct ts_proxy *p);    /* the same for today's connections, for good */
void ts_proxy_delay(struct ts_proxy *p, int ms);   /* every request, from now on */
/* At most n bytes a write, both directions; 0 = as they come; -1 = 1 to 64 at random. Inside messages of more than
 * 512 bytes pieces are up to 8 KiB. */
void ts_proxy_chunk(struct ts_proxy *p, int n);
/* Later connections go to another server: a name that was repointed. */
void ts_proxy_upstream(struct ts_proxy *p, const char *socket);
void ts_proxy_get_stats(struct ts_proxy *p, struct ts_proxy_stats *out);

#endif
