/*
 * lade.c - the composition file: the one place that knows every store, and where a URL comes from when none is given
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <lade/lade.h>

#include "base/base.h"
#include "base/err.h"
#include "queue/client.h"
#include "store/memory/memory_store.h"
#include "store/redis/redis_store.h"
#include "store/resque/resque_store.h"
#include "store/sqlite/sqlite_store.h"

static const struct lq_store_ops *const stores[] = {&ls_sqlite_ops, &ls_redis_ops, &ls_memory_ops,
                                                    &ls_resque_ops};

/* mkdir -p below the first `base` bytes, with mode 0700: job payloads are the user's own business. */
static int make_dirs(char *path, size_t base, lade_err *err)
{
    for (char *slash = strchr(path + base + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int failed = mkdir(path, 0700) < 0 ? errno : 0;
        if (failed != 0 && failed != EEXIST)
            return lb_fail_errno(err, failed, "open", path);
        *slash = '/';
    }
    return 0;
}

/* sqlite: in the XDG data directory (https://specifications.freedesktop.org/basedir-spec/), made when missing. */
static int default_url(char *url, size_t size, bool make, lade_err *err)
{
    const char *data =
        getenv("XDG_DATA_HOME"); /* NOLINT(concurrency-mt-unsafe): nothing in lade calls setenv */
    const char *home = getenv("HOME"); /* NOLINT(concurrency-mt-unsafe) */
    size_t base = 0;                   /* of the path: what has to be there */
    int n = -1;
    struct stat st;
    if (data && data[0] == '/') {
        n = snprintf(url, size, "sqlite:%s/lade/jobs.db", data);
    } else if (home && home[0] == '/') {
        base = strlen(home);
        n = snprintf(url, size, "sqlite:%s/.local/share/lade/jobs.db", home[1] ? home : "");
    }
    if (n < 0 || (size_t)n >= size)
        return lb_fail(
            err, LADE_EINVAL, "open",
            "no url given, and neither LADE_URL, XDG_DATA_HOME nor HOME names a place for the default file");
    if (base > 0 && (stat(home, &st) < 0 || !S_ISDIR(st.st_mode)))
        return lb_fail(
            err, LADE_EINVAL, "open",
            "no url given, and HOME is '%.80s', which is no directory; set LADE_URL, XDG_DATA_HOME or HOME",
            home);
    return make ? make_dirs(url + strlen("sqlite:"), base, err) : 0;
}

int lade_open(lade **out, const char *url, const lade_options *opts, lade_err *err)
{
    char made[4096];
    lb_err_clear(err);
    if (!out)
        return lb_fail(err, LADE_EINVAL, "open", "out is NULL");
    if (!url || !*url)
        url = getenv("LADE_URL"); /* NOLINT(concurrency-mt-unsafe) */
    if (!url || !*url) {
        int rc = default_url(made, sizeof(made), !opts || !opts->must_exist, err);
        if (rc < 0)
            return rc;
        url = made;
    }
    return lq_client_open(out, stores, LB_ARRAY_LEN(stores), url, opts, err);
}

const char *lade_version(void)
{
    return LADE_VERSION;
}
