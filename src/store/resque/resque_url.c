/* resque_url.c - see resque_url.h */
#include "store/resque/resque_url.h"

#include <string.h>

#include "base/base.h"
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

/* An option of two values, the default first. */
struct choice {
    const char *name, *value[2];
    size_t at;
};

static const struct choice choices[] = {
    {"mode", {"reliable", "strict"}, offsetof(struct ls_resque_url, strict)},
    {"jobs", {"resque", "active_job"}, offsetof(struct ls_resque_url, active)},
    {"failures", {"redis", "redis_multi_queue"}, offsetof(struct ls_resque_url, multi)}};

static int choose(struct ls_resque_url *u, const struct choice *c, const char *p, size_t n,
                  lade_err *err)
{
    for (int i = 0; i < 2; i++) {
        if (n == strlen(c->value[i]) && memcmp(p, c->value[i], n) == 0) {
            *(bool *)((char *)u + c->at) = i == 1;
            return 0;
        }
    }
    return lb_fail(err, LADE_EINVAL, "open", "Resque URL: %s must be %s (the default) or %s",
                   c->name, c->value[0], c->value[1]);
}

static int read_option(struct ls_resque_url *u, const char *p, size_t n, bool *ours, lade_err *err)
{
    static const char ns[] = "namespace=";
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
    for (size_t i = 0; i < LB_ARRAY_LEN(choices); i++) {
        size_t len = strlen(choices[i].name);
        if (n > len && memcmp(p, choices[i].name, len) == 0 && p[len] == '=')
            return choose(u, &choices[i], p + len + 1, n - len - 1, err);
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
