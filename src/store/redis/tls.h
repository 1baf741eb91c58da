/*
 * tls.h - TLS over a non-blocking socket by OpenSSL 3; tls_none.c stands in when the build is without it
 *
 * TLS 1.2 and newer. The server's certificate must be signed by a known CA and be made out to the URL's host (or its
 * sni), unless the URL says verify=no. Writes go through send with MSG_NOSIGNAL, so no SIGPIPE is ever raised.
 *
 * Thread safety: a context is shared read-only; a connection has one owner at a time.
 */
#ifndef LADE_STORE_REDIS_TLS_H
#define LADE_STORE_REDIS_TLS_H

#include <lade/base.h>

#include "store/redis/url.h"

struct ls_redis_tls_ctx;
struct ls_redis_tls;

/* What one non-blocking step came to. */
enum ls_redis_io {
    LS_REDIS_IO_DONE = 0,
    LS_REDIS_IO_READ,  /* goes on when the descriptor can be read */
    LS_REDIS_IO_WRITE, /* goes on when it can be written */
    LS_REDIS_IO_END,   /* the other side closed */
    LS_REDIS_IO_ERROR
};

/* CAs and client certificate, read once. *out stays NULL for a URL without TLS. -LADE_EUNSUPPORTED when the build has
 * no TLS, -LADE_EINVAL naming the file that cannot be used, -LADE_ENOMEM. */
LADE_CHECKED int ls_redis_tls_ctx_open(struct ls_redis_tls_ctx **out,
                                       const struct ls_redis_url *url, lade_err *err);
void ls_redis_tls_ctx_close(struct ls_redis_tls_ctx *ctx);

/* Over fd, which stays the caller's. */
LADE_CHECKED int ls_redis_tls_open(struct ls_redis_tls **out, struct ls_redis_tls_ctx *ctx, int fd,
                                   lade_err *err);
void ls_redis_tls_close(struct ls_redis_tls *t);

enum ls_redis_io ls_redis_tls_handshake(struct ls_redis_tls *t);
/* After an error: 0 when another try may go better, LADE_EAUTH when a certificate is the reason, LADE_EPROTO when the
 * two sides do not agree on TLS at all. */
int ls_redis_tls_final(const struct ls_redis_tls *t);

enum ls_redis_io ls_redis_tls_read(struct ls_redis_tls *t, uint8_t *p, size_t n, size_t *done);
enum ls_redis_io ls_redis_tls_write(struct ls_redis_tls *t, const uint8_t *p, size_t n,
                                    size_t *done);
/* Text of the last error. */
const char *ls_redis_tls_error(const struct ls_redis_tls *t);

#endif
