/*
 * tls.c - see tls.h
 *
 * OpenSSL's own socket BIO writes with write(2), which raises SIGPIPE; the BIO here does recv and send instead. Session
 * tickets arrive after the handshake and are read with the first data, so nothing waits for them.
 */
#include "store/redis/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"

struct ls_redis_tls_ctx {
    SSL_CTX *ssl;
    BIO_METHOD *method;
    const struct ls_redis_url *url;
};

struct ls_redis_tls {
    SSL *ssl;
    int fd;
    bool ended; /* the other side closed the socket */
    int final;
    char error[160];
};

/* BIO over a socket ------------------------------------------------------------------------------------------------ */

static int bio_read(BIO *bio, char *p, size_t n, size_t *done)
{
    struct ls_redis_tls *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t got;
    do
        got = recv(t->fd, p, n, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        BIO_set_retry_read(bio);
    t->ended = got == 0;
    *done = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static int bio_write(BIO *bio, const char *p, size_t n, size_t *done)
{
    struct ls_redis_tls *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t sent;
    do
        sent = send(t->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN)
        BIO_set_retry_write(bio);
    *done = sent > 0 ? (size_t)sent : 0;
    return sent > 0;
}

static long bio_ctrl(BIO *bio, int cmd, long number, void *p)
{
    (void)number;
    (void)p;
    if (cmd == BIO_CTRL_EOF)
        return ((struct ls_redis_tls *)BIO_get_data(bio))->ended;
    return cmd == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *make_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "lade socket");
    if (!m)
        return NULL;
    if (!BIO_meth_set_read_ex(m, bio_read) || !BIO_meth_set_write_ex(m, bio_write) ||
        !BIO_meth_set_ctrl(m, bio_ctrl) || !BIO_meth_set_create(m, bio_create)) {
        BIO_meth_free(m);
        return NULL;
    }
    return m;
}

/* context ---------------------------------------------------------------------------------------------------------- */

static const char *last_reason(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    return reason ? reason : "no reason given";
}

static int fail_file(lade_err *err, const char *option, const char *file)
{
    return lb_fail(err, LADE_EINVAL, "open", "Redis URL: option %s: file %.100s cannot be used: %s",
                   option, file, last_reason());
}

static int load_files(SSL_CTX *ssl, const struct ls_redis_url *url, lade_err *err)
{
    if (url->ca && !SSL_CTX_load_verify_file(ssl, url->ca))
        return fail_file(err, "ca", url->ca);
    if (!url->ca && url->verify && !SSL_CTX_set_default_verify_paths(ssl))
        return lb_fail(err, LADE_EINVAL, "open", "the system's CA certificates cannot be read: %s",
                       last_reason());
    if (!url->cert)
        return 0;
    if (!SSL_CTX_use_certificate_chain_file(ssl, url->cert))
        return fail_file(err, "cert", url->cert);
    if (!SSL_CTX_use_PrivateKey_file(ssl, url->key, SSL_FILETYPE_PEM))
        return fail_file(err, "key", url->key);
    return 0;
}

int ls_redis_tls_ctx_open(struct ls_redis_tls_ctx **out, const struct ls_redis_url *url,
                          lade_err *err)
{
    *out = NULL;
    if (!url->tls)
        return 0;
    struct ls_redis_tls_ctx *ctx = lb_calloc(1, sizeof(*ctx));
    if (!ctx)
        return lb_fail_nomem(err, "open");
    ERR_clear_error();
    ctx->url = url;
    ctx->method = make_method();
    ctx->ssl = SSL_CTX_new(TLS_client_method());
    int rc = ctx->method && ctx->ssl ? 0 : lb_fail_nomem(err, "open");
    if (rc == 0) {
        (void)SSL_CTX_set_min_proto_version(ctx->ssl, TLS1_2_VERSION);
        (void)SSL_CTX_set_mode(ctx->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                             SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                             SSL_MODE_AUTO_RETRY);
        SSL_CTX_set_verify(ctx->ssl, url->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
        rc = load_files(ctx->ssl, url, err);
    }
    if (rc < 0) {
        ls_redis_tls_ctx_close(ctx);
        return rc;
    }
    *out = ctx;
    return 0;
}

void ls_redis_tls_ctx_close(struct ls_redis_tls_ctx *ctx)
{
    if (!ctx)
        return;
    SSL_CTX_free(ctx->ssl);
    BIO_meth_free(ctx->method);
    lb_free(ctx);
}

/* connection ------------------------------------------------------------------------------------------------------- */

static bool is_address(const char *host)
{
    uint8_t a[16];
    return inet_pton(AF_INET, host, a) == 1 || inet_pton(AF_INET6, host, a) == 1;
}

/* Whom the certificate must be made out to; names also go into the hello. */
static bool set_peer(SSL *ssl, const struct ls_redis_url *url)
{
    const char *name = url->sni ? url->sni : url->host;
    if (is_address(name))
        return !url->verify || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    if (SSL_set_tlsext_host_name(ssl, name) != 1)
        return false;
    return !url->verify || SSL_set1_host(ssl, name) == 1;
}

int ls_redis_tls_open(struct ls_redis_tls **out, struct ls_redis_tls_ctx *ctx, int fd,
                      lade_err *err)
{
    *out = NULL;
    struct ls_redis_tls *t = lb_calloc(1, sizeof(*t));
    if (!t)
        return lb_fail_nomem(err, "open");
    t->fd = fd;
    t->ssl = SSL_new(ctx->ssl);
    BIO *bio = t->ssl ? BIO_new(ctx->method) : NULL;
    if (!bio || !set_peer(t->ssl, ctx->url)) {
        BIO_free(bio);
        ls_redis_tls_close(t);
        return lb_fail_nomem(err, "open");
    }
    BIO_set_data(bio, t);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_connect_state(t->ssl);
    *out = t;
    return 0;
}

void ls_redis_tls_close(struct ls_redis_tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    lb_free(t);
}

static void keep_error(struct ls_redis_tls *t)
{
    long verified = SSL_get_verify_result(t->ssl);
    if (verified != X509_V_OK && SSL_get_verify_mode(t->ssl) != SSL_VERIFY_NONE) {
        t->final = LADE_EAUTH;
        (void)snprintf(t->error, sizeof(t->error), "the server's certificate is not trusted: %s",
                       X509_verify_cert_error_string(verified));
        return;
    }
    /* Reasons of 1000 and more are alerts of the other side; those about certificates are on ours. */
    int reason = ERR_GET_REASON(ERR_peek_last_error());
    bool certificate = reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED ||
                       reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
                       reason == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN ||
                       reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED ||
                       reason == SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED ||
                       reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE ||
                       reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA;
    t->final = certificate ? LADE_EAUTH : LADE_EPROTO;
    (void)snprintf(t->error, sizeof(t->error), "TLS: %s", last_reason());
}

static enum ls_redis_io judge(struct ls_redis_tls *t, int rc, int saved_errno)
{
    switch (SSL_get_error(t->ssl, rc)) {
    case SSL_ERROR_NONE:
        return LS_REDIS_IO_DONE;
    case SSL_ERROR_WANT_READ:
        return LS_REDIS_IO_READ;
    case SSL_ERROR_WANT_WRITE:
        return LS_REDIS_IO_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return LS_REDIS_IO_END;
    case SSL_ERROR_SYSCALL:
        if (saved_errno == 0)
            return LS_REDIS_IO_END;
        char text[96];
        (void)snprintf(t->error, sizeof(t->error), "TLS: %s",
                       strerror_r(saved_errno, text, sizeof(text)));
        return LS_REDIS_IO_ERROR;
    default:
        /* A peer that closes without saying so ends the stream all the same: the protocol above knows its lengths. */
        if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
            return LS_REDIS_IO_END;
        keep_error(t);
        return LS_REDIS_IO_ERROR;
    }
}

enum ls_redis_io ls_redis_tls_handshake(struct ls_redis_tls *t)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_do_handshake(t->ssl);
    return judge(t, rc, errno);
}

int ls_redis_tls_final(const struct ls_redis_tls *t)
{
    return t->final;
}

enum ls_redis_io ls_redis_tls_read(struct ls_redis_tls *t, uint8_t *p, size_t n, size_t *done)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_read_ex(t->ssl, p, n, done);
    return judge(t, rc, errno);
}

enum ls_redis_io ls_redis_tls_write(struct ls_redis_tls *t, const uint8_t *p, size_t n,
                                    size_t *done)
{
    ERR_clear_error();
    errno = 0;
    int rc = SSL_write_ex(t->ssl, p, n, done);
    return judge(t, rc, errno);
}

const char *ls_redis_tls_error(const struct ls_redis_tls *t)
{
    return t->error;
}
