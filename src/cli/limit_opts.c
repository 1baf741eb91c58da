#include "cli/limit_opts.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/arg.h"

bool cli_limit_is_said(const struct cli_limit_opts *o)
{
    return o->concurrency || o->rate || o->burst || o->weight || o->order;
}

struct name {
    char text[40];
};

static struct name name_of(const char *prefix, const char *option)
{
    struct name n;
    (void)snprintf(n.text, sizeof(n.text), "--%s%s", prefix, option);
    return n;
}

/* "none" and "default" as numbers. False when it is neither. */
static bool read_word(const char *text, bool of_key, int64_t *out)
{
    if (strcmp(text, "none") == 0)
        *out = of_key ? LADE_LIMIT_NONE : 0;
    else if (of_key && strcmp(text, "default") == 0)
        *out = 0;
    else
        return false;
    return true;
}

static int read_rate(const char *name, const char *text, bool of_key, lade_rate *out, lade_err *err)
{
    char count[24];
    lade_rate r = {0};
    if (read_word(text, of_key, &r.count)) {
        *out = r;
        return 0;
    }
    const char *slash = strchr(text, '/');
    if (!slash || (size_t)(slash - text) >= sizeof(count))
        return lb_fail(err, LADE_EINVAL, "usage",
                       "%s: '%.40s' is no rate; give COUNT/PERIOD, as 100/1s", name, text);
    memcpy(count, text, (size_t)(slash - text));
    count[slash - text] = 0;
    int rc = cli_arg_int(name, count, (struct cli_range){1, INT64_MAX}, &r.count, err);
    if (rc == 0)
        rc = cli_arg_duration(name, slash + 1,
                              (struct cli_range){LADE_MILLISECOND, CLI_DURATION_MAX}, &r.period,
                              err);
    if (rc == 0)
        *out = r;
    return rc;
}

int cli_rate_a_second(const char *name, const char *text, int64_t max, int64_t *out, lade_err *err)
{
    lade_rate r = {.period = LADE_SECOND};
    bool is_plain = !strchr(text, '/');
    struct cli_range range = {1, is_plain ? max : INT64_MAX / LADE_SECOND};
    int rc = is_plain ? cli_arg_int(name, text, range, &r.count, err)
                      : read_rate(name, text, false, &r, err);
    if (rc < 0)
        return rc;
    bool is_in_range = r.count <= range.max && r.period > 0;
    int64_t a_second = is_in_range ? r.count * LADE_SECOND / r.period : 0;
    if (a_second < 1 || a_second > max || r.count * LADE_SECOND % r.period != 0)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "%s: '%.40s' is not a whole number a second from 1 to %lld; give N, or "
                       "COUNT/PERIOD as 100/1s or 600/1m",
                       name, text, (long long)max);
    *out = a_second;
    return 0;
}

static int read_order(const char *name, const char *text, enum lade_key_order *out, lade_err *err)
{
    static const char *const names[] = {"default", "any", "fifo"};

    for (size_t i = 0; i < LB_ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum lade_key_order)i;
            return 0;
        }
    }
    return lb_fail(err, LADE_EINVAL, "usage", "%s: '%.40s' is unknown; give any, fifo or default",
                   name, text);
}

/* As "none": a key has a weight of its own or 1. */
static bool is_default_weight(const char *text, int64_t *out)
{
    if (strcmp(text, "default") != 0)
        return false;
    *out = 0;
    return true;
}

int cli_limit_read(const struct cli_limit_opts *o, const char *prefix, bool of_key,
                   lade_limit *limit, lade_err *err)
{
    lade_limit l = *limit;
    int rc = 0;
    if (o->concurrency && !read_word(o->concurrency, of_key, &l.concurrency))
        rc = cli_arg_int(name_of(prefix, "concurrency").text, o->concurrency,
                         (struct cli_range){1, LADE_LIMIT_CONCURRENCY_MAX}, &l.concurrency, err);
    if (rc == 0 && o->rate)
        rc = read_rate(name_of(prefix, "rate").text, o->rate, of_key, &l.rate, err);
    if (rc == 0 && o->burst && l.rate.count <= 0)
        rc = lb_fail(err, LADE_EINVAL, "usage", "--%sburst: needs a rate; give --%srate too",
                     prefix, prefix);
    if (rc == 0 && o->burst)
        rc = cli_arg_int(name_of(prefix, "burst").text, o->burst, (struct cli_range){1, INT64_MAX},
                         &l.rate.burst, err);
    if (rc == 0 && o->weight && !read_word(o->weight, false, &l.weight) &&
        !is_default_weight(o->weight, &l.weight))
        rc = cli_arg_int(name_of(prefix, "weight").text, o->weight,
                         (struct cli_range){1, LADE_LIMIT_WEIGHT_MAX}, &l.weight, err);
    if (rc == 0 && o->order)
        rc = read_order(name_of(prefix, "order").text, o->order, &l.order, err);
    if (rc == 0)
        *limit = l;
    return rc;
}

struct cli_limit_text cli_limit_number_text(int64_t n)
{
    struct cli_limit_text t = {"-"};
    if (n > 0)
        (void)snprintf(t.text, sizeof(t.text), "%lld", (long long)n);
    else if (n < 0)
        (void)snprintf(t.text, sizeof(t.text), "none");
    return t;
}

struct cli_limit_text cli_limit_rate_text(const lade_rate *r)
{
    struct cli_limit_text t = cli_limit_number_text(r->count);
    if (r->count <= 0)
        return t;
    int64_t ms = r->period / LADE_MILLISECOND;
    bool whole = ms % 1000 == 0;
    (void)snprintf(t.text, sizeof(t.text), "%lld/%lld%s burst %lld", (long long)r->count,
                   (long long)(whole ? ms / 1000 : ms), whole ? "s" : "ms", (long long)r->burst);
    return t;
}

const char *cli_limit_order_text(enum lade_key_order order)
{
    return order == LADE_KEY_ORDER_FIFO ? "fifo" : order == LADE_KEY_ORDER_ANY ? "any" : "-";
}

static void add_number(struct cli_row *r, const char *name, int64_t n)
{
    if (n <= 0)
        cli_row_text(r, name, NULL);
    else
        cli_row_int(r, name, n);
}

void cli_limit_row(struct cli_row *r, const char *prefix, const lade_limit *limit, bool of_keys)
{
    char name[40];
#define NAME(what) ((void)snprintf(name, sizeof(name), "%s%s", prefix, (what)), name)
    add_number(r, NAME("concurrency"), limit->concurrency);
    bool has_rate = limit->rate.count > 0;
    add_number(r, NAME("rate_count"), limit->rate.count);
    add_number(r, NAME("rate_period_ms"), has_rate ? limit->rate.period / LADE_MILLISECOND : 0);
    add_number(r, NAME("rate_burst"), has_rate ? limit->rate.burst : 0);
    if (!of_keys)
        return;
    add_number(r, NAME("weight"), limit->weight);
    cli_row_text(r, NAME("order"),
                 limit->order == LADE_KEY_ORDER_DEFAULT ? NULL
                                                        : cli_limit_order_text(limit->order));
#undef NAME
}

/* bounds ----------------------------------------------------------------------------------------------------------- */

static const char *const on_full_words[] = {"reject", "block"};

int cli_bound_read(const struct cli_bound_opts *o, lade_bound *bound, lade_err *err)
{
    lade_bound b = *bound;
    int rc = 0;
    if (o->max_jobs && !read_word(o->max_jobs, false, &b.max_jobs))
        rc = cli_arg_int("--max-jobs", o->max_jobs, (struct cli_range){1, LADE_BOUND_JOBS_MAX},
                         &b.max_jobs, err);
    if (rc == 0 && o->max_bytes && !read_word(o->max_bytes, false, &b.max_bytes))
        rc = cli_arg_size("--max-bytes", o->max_bytes, (struct cli_range){1, LADE_BOUND_BYTES_MAX},
                          &b.max_bytes, err);
    if (rc == 0 && o->on_full) {
        size_t i = 0;
        while (i < LB_ARRAY_LEN(on_full_words) && strcmp(o->on_full, on_full_words[i]) != 0)
            i++;
        if (i == LB_ARRAY_LEN(on_full_words))
            rc = lb_fail(err, LADE_EINVAL, "usage",
                         "--on-full: '%.40s' is unknown; give reject or block", o->on_full);
        b.on_full = (enum lade_on_full)i;
    }
    if (rc == 0 && o->on_full && b.max_jobs == 0 && b.max_bytes == 0)
        rc = lb_fail(err, LADE_EINVAL, "usage",
                     "--on-full: needs a bound; give --max-jobs or --max-bytes too");
    if (rc == 0)
        *bound = b;
    return rc;
}

int cli_bound_row(struct cli *c, const char *queue, struct cli_row *r, lade_err *err)
{
    lade_bound b = {0};
    int rc = lade_bound_get(c->q, queue, &b, err);
    if (rc == -LADE_EUNSUPPORTED) { /* a store without bounds has none set */
        lb_err_clear(err);
        rc = 0;
    }
    if (rc != 0)
        return rc;
    bool bounded = b.max_jobs > 0 || b.max_bytes > 0;
    add_number(r, "max_jobs", b.max_jobs);
    add_number(r, "max_bytes", b.max_bytes);
    if (b.max_bytes > 0)
        cli_row_int(r, "bytes", b.bytes);
    else
        cli_row_text(r, "bytes", NULL);
    cli_row_text(r, "on_full", bounded ? on_full_words[b.on_full] : NULL);
    return 0;
}
