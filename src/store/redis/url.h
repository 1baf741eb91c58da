/*
 * url.h - where a Redis server is and how to enter it
 *
 *   redis://[user[:password]@]host[:port][/db][?option=value&...]
 *   rediss://...                            the same over TLS; options ca=FILE cert=FILE key=FILE verify=yes|no sni=NAME
 *   unix://[user[:password]@]/path[?db=N&user=NAME&password=TEXT]
 *
 * All of them take replicas=N: an enqueue ends when so many replicas have it (replicas.c).
 * Every part is percent-decoded; an IPv6 host stands in brackets; "redis://:secret@host" is a password without a
 * user. Port 6379 and db 0 when absent. Unknown and repeated options are errors, so that a typing mistake never
 * weakens a connection. A decoded NUL is an error.
 *
 * Thread safety: a parsed URL is read-only.
 */
#ifndef LADE_STORE_REDIS_URL_H
#define LADE_STORE_REDIS_URL_H

#include <lade/base.h>

#define LS_REDIS_PORT         6379
#define LS_REDIS_DB_MAX       1000000
#define LS_REDIS_REPLICAS_MAX 16

struct ls_redis_url {
    const char *host;     /* without brackets; NULL for a Unix socket */
    const char *path;     /* of the Unix socket, else NULL */
    const char *user;     /* NULL = the server's default user */
    const char *password; /* NULL = none */
    const char *ca, *cert, *key,
        *sni; /* files and name for TLS; NULL = the system's CAs, no certificate, host */
    const char
        *text; /* for messages: scheme, host and port or path; never user, password or options */
    uint16_t port;
    int db;
    int replicas; /* 0 to LS_REDIS_REPLICAS_MAX; 0 = an enqueue waits for none */
    bool tls;
    bool verify; /* TLS: check the certificate and that it is of this host; true unless verify=no */
    char *mem;   /* one block that holds all strings */
};

/*
 * 0 and *out is the caller's (ls_redis_url_fini), or -LADE_EINVAL naming the part and the rule (never the password),
 * or -LADE_ENOMEM; then *out is empty.
 */
LADE_CHECKED int ls_redis_url_parse(struct ls_redis_url *out, const char *url, lade_err *err);
/* Overwrites the password before it frees. */
void ls_redis_url_fini(struct ls_redis_url *u);

#endif
