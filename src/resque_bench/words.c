/* words.c - see words.h */
#include "resque_bench/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

const char *const rb_cmd_name[RB_N_CMDS] = {"lpop", "blpop", "blmove", "lrem",     "get",
                                            "set",  "del",   "incrby", "smembers", "rpush"};
const char *const rb_mode_name[RB_N_MODES] = {"poll", "blpop", "blmove", "native"};

char *rb_us(char out[RB_WORD], double us)
{
    if (us < 1e3)
        (void)snprintf(out, RB_WORD, "%.0f µs", us);
    else if (us < 1e6)
        (void)snprintf(out, RB_WORD, "%.1f ms", us / 1e3);
    else
        (void)snprintf(out, RB_WORD, "%.2f s", us / 1e6);
    return out;
}

char *rb_count(char out[RB_WORD], uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    size_t at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

static bool is_rate(double v)
{
    return isfinite(v) && v >= 0;
}

char *rb_rate(char out[RB_WORD], double rate)
{
    if (!is_rate(rate) || rate > 1e18)
        (void)snprintf(out, RB_WORD, "n/a");
    else
        (void)rb_count(out, (uint64_t)rate);
    return out;
}

char *rb_qps(char out[RB_WORD], double qps)
{
    if (is_rate(qps))
        (void)snprintf(out, RB_WORD, "%.1f", qps);
    else
        (void)snprintf(out, RB_WORD, "n/a");
    return out;
}

int rb_percentile_parse(struct rb_percentile *out, const char *text, lade_err *err)
{
    static const char flag[] = "--latency-percentiles";
    size_t n = strlen(text);
    bool max = strcmp(text, "max") == 0;
    if (n < sizeof(out->name))
        memcpy(out->name, text, n + 1);
    if (max || strcmp(text, "mean") == 0) {
        out->at = max ? 1 : -1;
        return 0;
    }
    if (text[0] != 'p' || n == 1 || strspn(text + 1, "0123456789") != n - 1)
        return lb_fail(err, LADE_EINVAL, "options",
                       "invalid percentile spec: '%.32s' in %s; use p50, p99, p999, max or mean",
                       text, flag);
    if (n - 1 > 15)
        return lb_fail(
            err, LADE_EINVAL, "options",
            "too many digits in percentile '%.32s' in %s (max 15); use p99, p999, p99999", text,
            flag);
    double value = 0;
    double scale = 1;
    for (size_t i = 1; i < n; i++) {
        value = value * 10 + (text[i] - '0');
        scale *= 10;
    }
    /* One digit is so many per cent; the original reads p5 as 50 % and p100 as 10 %. */
    double at = n == 2 ? value / 100 : strcmp(text, "p100") == 0 ? 1 : value / scale;
    if (at <= 0 || at > 1)
        return lb_fail(err, LADE_EINVAL, "options", "percentile out of range (0, 1]: '%.32s' in %s",
                       text, flag);
    out->at = at;
    return 0;
}

int64_t rb_percentile_of(const struct lb_hdr *h, const struct rb_percentile *p)
{
    if (p->at < 0)
        return (int64_t)(lb_hdr_mean(h) / 1e3);
    return (p->at >= 1 ? lb_hdr_max(h) : lb_hdr_at(h, p->at)) / 1000;
}

void rb_tag_clean(char *out, size_t size, const char *tag)
{
    size_t n = 0;
    for (; *tag && n + 1 < size; tag++) {
        unsigned char c = (unsigned char)*tag;
        bool keep = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                    (c && strchr("._-", c));
        out[n] = *tag;
        if (!keep)
            out[n] = '-';
        n++;
    }
    out[n] = 0;
    if (n == 0)
        (void)snprintf(out, size, "unknown");
}

int rb_output_check(const char *path, lade_err *err)
{
    if (!*path)
        return lb_fail(err, LADE_EINVAL, "options",
                       "--output is empty; name a file, or - for stdout");
    if (strlen(path) >= RB_OUTPUT_MAX)
        return lb_fail(err, LADE_EINVAL, "options", "--output is longer than %d bytes",
                       RB_OUTPUT_MAX - 1);
    for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == 0))
            return lb_fail(err, LADE_EINVAL, "options",
                           "--output must not contain '..' segments: %.150s", path);
    return 0;
}

static int cannot_write(lade_err *err, int errnum, const char *what)
{
    return lb_fail(err, LADE_EIO, "output", "--output cannot be written: %s: %s", what,
                   strerrordesc_np(errnum));
}

static int make_folders(const char *path, lade_err *err)
{
    char *copy = lb_strdup(path);
    if (!copy)
        return lb_fail_nomem(err, "output");
    int rc = 0;
    for (char *p = strchr(copy + 1, '/'); p && rc == 0; p = strchr(p + 1, '/')) {
        *p = 0;
        if (mkdir(copy, 0777) < 0 && errno != EEXIST)
            rc = cannot_write(err, errno, copy);
        *p = '/';
    }
    lb_free(copy);
    return rc;
}

bool rb_output_is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* Whether the file can be made in its folder, or written to where it is special. */
static int check_place(const char *path, lade_err *err)
{
    struct stat st;
    char folder[RB_OUTPUT_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0; /* the root keeps its own */
    const char *what = rb_output_is_special(path) ? path : slash ? folder : ".";
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return cannot_write(err, EISDIR, path);
    return access(what, W_OK) < 0 ? cannot_write(err, errno, what) : 0;
}

int rb_output_prepare(const char *path, lade_err *err)
{
    if (strcmp(path, "-") == 0)
        return 0;
    int rc = make_folders(path, err);
    return rc == 0 ? check_place(path, err) : rc;
}

void rb_queue_name(char *out, size_t size, const struct rb_options *o, size_t i)
{
    if (o->n_queues <= 1)
        (void)snprintf(out, size, "%s", o->queue);
    else
        (void)snprintf(out, size, "%s_%zu", o->queue, i);
}

void rb_idle_rate(uint64_t polls, double seconds, size_t workers, double *qps, double *per_worker)
{
    double rate = seconds > 0 && isfinite(seconds) ? (double)polls / seconds : 0;
    *qps = isfinite(rate) ? rate : 0;
    *per_worker = workers > 0 ? *qps / (double)workers : 0;
}
