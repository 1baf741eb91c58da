/* target.c - where the server is: the URL and what flags put on top of it; see server.h */
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque_bench/rb_server.h"
#include "resque_bench/words.h"

/* Behind "scheme://", up to the options. */
static struct lb_slice body_of(const char *url)
{
    const char *p = strstr(url, "://");
    p = p ? p + 3 : url;
    return lb_slice(p, strcspn(p, "?#"));
}

static bool is_unix(const char *url)
{
    return strncasecmp(url, "unix://", 7) == 0 || strncasecmp(url, "redis+unix://", 13) == 0;
}

/* Whether the URL names a database: "/7" behind the server, or "db=7" behind a socket's path. */
static bool names_db(const char *url)
{
    const char *options = strchr(url, '?');
    if (is_unix(url))
        return options && (strncmp(options + 1, "db=", 3) == 0 || strstr(options, "&db="));
    struct lb_slice body = body_of(url);
    const uint8_t *slash = body.n ? memrchr(body.p, '/', body.n) : NULL;
    return slash && slash + 1 < body.p + body.n;
}

/* "#insecure" is how redis-rs says verify=no; "redis+unix" is its unix. The result is the caller's; NULL = no memory. */
static char *normal_url(const char *url, bool *insecure)
{
    if (strncasecmp(url, "redis+unix://", 13) == 0)
        url += 6;
    char *copy = lb_strdup(url);
    char *hash = copy ? strrchr(copy, '#') : NULL;
    if (hash && strcmp(hash, "#insecure") == 0) {
        *hash = 0;
        *insecure = true;
    }
    return copy;
}

static int apply_tls(struct ls_redis_url *u, const struct rb_options *o, bool insecure,
                     lade_err *err)
{
    if (o->tls && u->path)
        return lb_fail(err, LADE_EINVAL, "options", "--tls makes no sense on a Unix socket");
    u->tls |= o->tls;
    if (!u->tls && (insecure || o->tls_ca || o->tls_cert || o->tls_key || o->tls_sni))
        return lb_fail(err, LADE_EINVAL, "options",
                       "--tls-... needs TLS: give --tls, or a rediss:// URL");
    u->ca = o->tls_ca ? o->tls_ca : u->ca;
    u->cert = o->tls_cert ? o->tls_cert : u->cert;
    u->key = o->tls_key ? o->tls_key : u->key;
    u->sni = o->tls_sni ? o->tls_sni : u->sni;
    if (!u->cert != !u->key)
        return lb_fail(err, LADE_EINVAL, "options",
                       "--tls-cert and --tls-key must be given together");
    if (insecure) {
        u->verify = false;
        (void)fprintf(stderr,
                      "Warning: the server's certificate is not checked (--tls-insecure)\n");
    }
    return 0;
}

void rb_server_describe(struct rb_server *s)
{
    static char text[320];
    const struct ls_redis_url *u = &s->url;
    if (u->path)
        (void)snprintf(text, sizeof(text), "unix://%s", u->path);
    else
        (void)snprintf(text, sizeof(text), strchr(u->host, ':') ? "%s://[%s]:%u" : "%s://%s:%u",
                       u->tls ? "rediss" : "redis", u->host, u->port);
    s->url.text = text;
}

static int apply(struct rb_server *s, bool insecure, lade_err *err)
{
    const struct rb_options *o = s->o;
    struct ls_redis_url *u = &s->url;
    if ((o->host || o->port >= 0) && u->path)
        return lb_fail(err, LADE_EINVAL, "options",
                       "--host and --port make no sense on a Unix socket");
    if (o->host && (!*o->host || strpbrk(o->host, "/@? \t")))
        return lb_fail(err, LADE_EINVAL, "options",
                       "invalid --host: a name or an address; a whole URL is given by --url");
    u->host = o->host ? o->host : u->host;
    if (o->port >= 0)
        u->port = (uint16_t)o->port;
    u->user = o->user ? o->user : u->user;
    u->password = o->password ? o->password : u->password;
    s->db_given = o->db >= 0 || names_db(o->url);
    if (o->db >= 0)
        u->db = (int)o->db;
    else if (!s->db_given)
        u->db = 13;
    int rc = apply_tls(u, o, insecure, err);
    if (rc < 0)
        return rc;
    /* What messages show must be what is dialed. */
    rb_server_describe(s);
    if (u->user && !u->password)
        return lb_fail(err, LADE_EINVAL, "options",
                       "--user needs a password: --password-file, REDIS_PASSWORD");
    return 0;
}

int rb_server_init(struct rb_server *s, const struct rb_options *o, lade_err *err)
{
    *s = (struct rb_server){.o = o, .n_queues = (size_t)o->n_queues, .patience = RB_PATIENCE};
    bool insecure = o->insecure;
    char *url = normal_url(o->url, &insecure);
    int rc = url ? ls_redis_url_parse(&s->url, url, err) : lb_fail_nomem(err, "options");
    lb_free(url);
    if (rc == 0)
        rc = apply(s, insecure, err);
    if (rc == 0)
        rc = rq_keys_init(&s->keys, o->namespace_, err);
    if (rc < 0)
        return rc;
    rq_host_init(&s->host, NULL);
    s->queue = lb_calloc(s->n_queues, sizeof(*s->queue));
    s->added = lb_calloc(s->n_queues, sizeof(*s->added));
    if (!s->queue || !s->added)
        return lb_fail_nomem(err, "options");
    for (size_t i = 0; i < s->n_queues; i++)
        rb_queue_name(s->queue[i], sizeof(*s->queue), o, i);
    return 0;
}

void rb_server_fini(struct rb_server *s)
{
    ls_redis_conn_close(s->conn);
    for (size_t i = 0; i < s->n_held; i++)
        lb_free(s->held[i]);
    lb_free(s->held);
    lb_free(s->queue);
    lb_free(s->added);
    lb_free(s->node);
    s->url.password = NULL; /* perhaps not in the URL's own memory, which alone it wipes */
    ls_redis_url_fini(&s->url);
    *s = (struct rb_server){0};
}

void rb_server_url_text(const struct rb_server *s, char *out, size_t size)
{
    const struct ls_redis_url *u = &s->url;
    const char *secret = u->password ? ":****@" : "";
    if (u->path)
        (void)snprintf(out, size, "unix://%s%s%s?db=%d", u->password && u->user ? u->user : "",
                       secret, u->path, u->db);
    else
        (void)snprintf(out, size,
                       strchr(u->host, ':') ? "%s://%s%s[%s]:%u/%d" : "%s://%s%s%s:%u/%d",
                       u->tls ? "rediss" : "redis", u->password && u->user ? u->user : "", secret,
                       u->host, u->port, u->db);
}

/* Percent-encodes what has a meaning in a URL. */
static void add_encoded(struct lb_buf *out, const char *text, bool path)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                     strchr(path ? "-._~/" : "-._~", c);
        if (plain)
            lb_buf_add_byte(out, c);
        else
            lb_buf_add_fmt(out, "%%%02X", c);
    }
}

static void add_option(struct lb_buf *out, char *sep, const char *name, const char *text)
{
    if (!text)
        return;
    lb_buf_add_fmt(out, "%c%s=", *sep, name);
    add_encoded(out, text, false);
    *sep = '&';
}

int rb_server_lade_url(const struct rb_server *s, char *out, size_t size, lade_err *err)
{
    const struct ls_redis_url *u = &s->url;
    struct lb_buf b = {0};
    char sep = '?';
    char db[16];
    (void)snprintf(db, sizeof(db), "%d", u->db);
    if (u->path) {
        lb_buf_add_str(&b, "unix://");
        add_encoded(&b, u->path, true);
        add_option(&b, &sep, "db", db);
        add_option(&b, &sep, "user", u->user);
        add_option(&b, &sep, "password", u->password);
    } else {
        lb_buf_add_str(&b, u->tls ? "rediss://" : "redis://");
        if (u->password) {
            add_encoded(&b, u->user ? u->user : "", false);
            lb_buf_add_byte(&b, ':');
            add_encoded(&b, u->password, false);
            lb_buf_add_byte(&b, '@');
        }
        lb_buf_add_fmt(&b, strchr(u->host, ':') ? "[%s]:%u/%s" : "%s:%u/%s", u->host, u->port, db);
        add_option(&b, &sep, "ca", u->ca);
        add_option(&b, &sep, "cert", u->cert);
        add_option(&b, &sep, "key", u->key);
        add_option(&b, &sep, "sni", u->sni);
        if (u->tls && !u->verify)
            add_option(&b, &sep, "verify", "no");
    }
    int rc = b.failed ? lb_fail_nomem(err, "native") : 0;
    if (rc == 0 && b.n >= size)
        rc = lb_fail(err, LADE_ETOOBIG, "native",
                     "the URL with its options is longer than %zu bytes", size);
    if (rc == 0) {
        memcpy(out, b.p, b.n);
        out[b.n] = 0;
    }
    if (b.p)
        explicit_bzero(b.p, b.n);
    lb_buf_fini(&b);
    return rc;
}

void rb_server_native_ns(const struct rb_server *s, char *out, size_t size)
{
    const char *suffix = strrchr(s->host.name, '-');
    (void)snprintf(out, size, "resque-bench-%s", suffix ? suffix + 1 : "x");
}
