/* resque_url.c - see resque_url.h */
#include "store/resque/resque_url.h"

#include <string.h>

#include "base/err.h"

static const struct {
    const char *resque, *redis;
} schemes[] = {
    {"resque://", "redis://"}, {"resque+tls://", "rediss://"}, {"resque+unix://", "unix://"}};

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* False when it is too long or not encoded right. */
static bool decode(char *out, size_t size, const char *p, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c == '%') {
            int high = i + 2 < n ? hex_of(p[i + 1]) : -1;
            int low = i + 2 < n ? hex_of(p[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (at + 1 >= size)
            return false;
        out[at++] = c;
    }
    out[at] = 0;
    return true;
}

static int read_option(struct ls_resque_url *u, const char *p, size_t n, bool *ours, lade_err *err)
{
    static const char ns[] = "namespace=", mode[] = "mode=";
    *ours = true;
    if (n >= strlen(ns) && memcmp(p, ns, strlen(ns)) == 0) {
        if (u->has_ns)
            return lb_fail(err, LADE_EINVAL, "open", "Resque URL: namespace is given twice");
        u->has_ns = true;
        if (!decode(u->ns, sizeof(u->ns), p + strlen(ns), n - strlen(ns)))
            return lb_fail(err, LADE_EINVAL, "open",
                           "Resque URL: namespace must be percent-encoded, at most %d bytes",
                           RQ_NAMESPACE_MAX);
        return 0;
    }
    if (n >= strlen(mode) && memcmp(p, mode, strlen(mode)) == 0) {
        u->strict = n == strlen("mode=strict") && memcmp(p, "mode=strict", n) == 0;
        if (!u->strict && !(n == strlen("mode=reliable") && memcmp(p, "mode=reliable", n) == 0))
            return lb_fail(err, LADE_EINVAL, "open",
                           "Resque URL: mode must be reliable (the default) or strict");
        return 0;
    }
    *ours = false;
    return 0;
}

static int read_options(struct ls_resque_url *u, const char *query, lade_err *err)
{
    char sign = '?';
    while (query && *query) {
        size_t n = strcspn(query, "&");
        bool ours = false;
        int rc = read_option(u, query, n, &ours, err);
        if (rc < 0)
            return rc;
        if (!ours) {
            lb_buf_add_byte(&u->redis, (uint8_t)sign);
            lb_buf_add(&u->redis, query, n);
            sign = '&';
        }
        query += n + (query[n] == '&');
    }
    return 0;
}

int ls_resque_url_read(struct ls_resque_url *out, const char *url, lade_err *err)
{
    *out = (struct ls_resque_url){0};
    lb_buf_init(&out->redis);
    const char *rest = NULL;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]) && !rest; i++) {
        if (strncmp(url, schemes[i].resque, strlen(schemes[i].resque)) == 0) {
            rest = url + strlen(schemes[i].resque);
            lb_buf_add_str(&out->redis, schemes[i].redis);
        }
    }
    if (!rest)
        return lb_fail(err, LADE_EINVAL, "open",
                       "Resque URL: write resque://HOST:PORT/DB, resque+tls://HOST or "
                       "resque+unix:///PATH");
    size_t n = strcspn(rest, "?");
    lb_buf_add(&out->redis, rest, n);
    int rc = read_options(out, rest[n] ? rest + n + 1 : NULL, err);
    lb_buf_add_byte(&out->redis, 0);
    if (rc == 0 && out->redis.failed)
        rc = lb_fail_nomem(err, "open");
    if (rc < 0)
        lb_buf_fini(&out->redis);
    return rc;
}
