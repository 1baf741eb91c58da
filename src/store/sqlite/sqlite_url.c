#include "store/sqlite/sqlite_url.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"

#define BUSY_MAX_MS 3600000

static bool equals(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static int parse_busy(struct ls_sqlite_url *out, const char *v, size_t n, lade_err *err)
{
    int64_t ms = 0;
    for (size_t i = 0; i < n && ms <= BUSY_MAX_MS; i++) {
        if (v[i] < '0' || v[i] > '9')
            ms = BUSY_MAX_MS;
        ms = ms * 10 + (v[i] - '0');
    }
    if (n == 0 || ms < 1 || ms > BUSY_MAX_MS)
        return lb_fail(err, LADE_EINVAL, "open",
                       "busy_timeout is '%.*s' in the url; it is milliseconds, 1 to %d",
                       (int)LB_MIN(n, 40U), v, BUSY_MAX_MS);
    out->busy_ms = ms;
    return 0;
}

static int parse_option(struct ls_sqlite_url *out, const char *opt, size_t n, lade_err *err)
{
    const char *eq = memchr(opt, '=', n);
    size_t name = eq ? (size_t)(eq - opt) : n;
    const char *v = eq ? eq + 1 : opt + n;
    size_t len = n - (size_t)(v - opt);
    if (equals(opt, name, "busy_timeout"))
        return parse_busy(out, v, len, err);
    if (!equals(opt, name, "synchronous"))
        return lb_fail(err, LADE_EINVAL, "open",
                       "url option '%.*s' is unknown; known are synchronous and busy_timeout",
                       (int)LB_MIN(name, 40U), opt);
    out->full = equals(v, len, "full");
    if (!out->full && !equals(v, len, "normal"))
        return lb_fail(err, LADE_EINVAL, "open",
                       "synchronous is '%.*s' in the url; it is normal or full",
                       (int)LB_MIN(len, 40U), v);
    return 0;
}

int ls_sqlite_url_parse(struct ls_sqlite_url *out, const char *url, lade_err *err)
{
    const char *path = strchr(url, ':') + 1;
    /* sqlite:///abs is sqlite:/abs, as other tools write it. */
    if (strncmp(path, "//", 2) == 0) {
        if (path[2] != '/')
            return lb_fail(err, LADE_EINVAL, "open",
                           "url '%.80s' names a host; write sqlite:PATH or sqlite:///ABSOLUTE/PATH",
                           url);
        path += 2;
    }
    size_t n = strcspn(path, "?");
    *out = (struct ls_sqlite_url){0};
    if (n == 0)
        return lb_fail(err, LADE_EINVAL, "open", "url '%.80s' has no path; write sqlite:PATH", url);
    if (path[0] == ':')
        return lb_fail(err, LADE_EINVAL, "open",
                       "path '%.*s' is not a file; the url of a store in memory is memory:",
                       (int)LB_MIN(n, 80U), path);
    for (const char *opt = path + n; *opt;) {
        size_t len = strcspn(++opt, "&");
        int rc = len > 0 ? parse_option(out, opt, len, err) : 0;
        if (rc < 0)
            return rc;
        opt += len;
    }
    out->path = lb_malloc(n + 1);
    if (!out->path)
        return lb_fail_nomem(err, "open");
    memcpy(out->path, path, n);
    out->path[n] = 0;
    return 0;
}
