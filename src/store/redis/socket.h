/*
 * socket.h - a connected byte stream to a server: TCP or Unix, plain or TLS, never blocking
 *
 * Thread safety: none; one owner at a time.
 */
#ifndef LADE_STORE_REDIS_SOCKET_H
#define LADE_STORE_REDIS_SOCKET_H

#include "store/redis/tls.h"
#include "store/redis/url.h"

struct ls_redis_socket {
    int fd;                   /* -1 = closed */
    struct ls_redis_tls *tls; /* NULL = plain */
    int errnum; /* of the last LS_REDIS_IO_ERROR of a plain socket, or of a failed dial */
};

/*
 * Resolves, connects and, with tls_ctx, shakes hands, all until the deadline. Each address of a name gets its share of
 * the time. 0, or the failure; *again tells whether a later try may go better.
 */
LADE_CHECKED int ls_redis_socket_open(struct ls_redis_socket *s, const struct ls_redis_url *url,
                                      struct ls_redis_tls_ctx *tls_ctx, int64_t deadline,
                                      bool *again, lade_err *err);
/* Nothing on a closed one. */
void ls_redis_socket_close(struct ls_redis_socket *s);

/* At most n bytes; *done is set on LS_REDIS_IO_DONE, and > 0. Never raises SIGPIPE. */
enum ls_redis_io ls_redis_socket_read(struct ls_redis_socket *s, uint8_t *p, size_t n,
                                      size_t *done);
enum ls_redis_io ls_redis_socket_write(struct ls_redis_socket *s, const uint8_t *p, size_t n,
                                       size_t *done);
/* Text of the last LS_REDIS_IO_ERROR or _END. */
void ls_redis_socket_describe(const struct ls_redis_socket *s, enum ls_redis_io io, char *text,
                              size_t n);

#endif
