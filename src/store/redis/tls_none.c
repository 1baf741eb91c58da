/* tls_none.c - stands in for tls.c in a build without OpenSSL: opening a context for rediss:// fails, nothing follows */
#include "store/redis/tls.h"

#include "base/err.h"

int ls_redis_tls_ctx_open(struct ls_redis_tls_ctx **out, const struct ls_redis_url *url,
                          lade_err *err)
{
    *out = NULL;
    if (!url->tls)
        return 0;
    return lb_fail(err, LADE_EUNSUPPORTED, "open",
                   "rediss:// needs TLS, and this lade was built without it (CMake: LADE_TLS=ON)");
}

void ls_redis_tls_ctx_close(struct ls_redis_tls_ctx *ctx)
{
    (void)ctx;
}

int ls_redis_tls_open(struct ls_redis_tls **out, struct ls_redis_tls_ctx *ctx, int fd,
                      lade_err *err)
{
    (void)ctx;
    (void)fd;
    *out = NULL;
    return lb_fail(err, LADE_EUNSUPPORTED, "open", "this lade was built without TLS");
}

void ls_redis_tls_close(struct ls_redis_tls *t)
{
    (void)t;
}

enum ls_redis_io ls_redis_tls_handshake(struct ls_redis_tls *t)
{
    (void)t;
    return LS_REDIS_IO_ERROR;
}

int ls_redis_tls_final(const struct ls_redis_tls *t)
{
    (void)t;
    return LADE_EPROTO;
}

enum ls_redis_io ls_redis_tls_read(struct ls_redis_tls *t, uint8_t *p, size_t n, size_t *done)
{
    (void)t;
    (void)p;
    (void)n;
    (void)done;
    return LS_REDIS_IO_ERROR;
}

enum ls_redis_io ls_redis_tls_write(struct ls_redis_tls *t, const uint8_t *p, size_t n,
                                    size_t *done)
{
    (void)t;
    (void)p;
    (void)n;
    (void)done;
    return LS_REDIS_IO_ERROR;
}

const char *ls_redis_tls_error(const struct ls_redis_tls *t)
{
    (void)t;
    return "built without TLS";
}
