#include "bench/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define RATE_TOLERANCE 0.01

struct judge {
    const struct bn_row *row;
    const json_t *set, *line;
    char *why;
    size_t size;
};

static bool refuse(struct judge *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(struct judge *j, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(j->why, j->size, format, args);
    va_end(args);
    return false;
}

/* A JSON integer, or decimal digits in a string. */
static bool read_u64(const json_t *v, uint64_t *out)
{
    const char *text = json_string_value(v);
    char *end = NULL;
    if (json_is_integer(v)) {
        *out = (uint64_t)json_integer_value(v);
        return true;
    }
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && !*end;
}

static bool check_fields(struct judge *j)
{
    static const char *const field[] = {
        "driver",    "version",      "scenario",        "params", "n",        "seconds",
        "rate",      "printed_rate", "latency",         "errors", "verified", "client_cpu_s",
        "rss_bytes", "server_cpu_s", "server_commands", "extra"};
    for (size_t i = 0; i < LB_ARRAY_LEN(field); i++) {
        if (!json_object_get(j->line, field[i]))
            return refuse(j, "the result has no %s", field[i]);
    }
    const char *scenario = json_string_value(json_object_get(j->line, "scenario"));
    if (!scenario || strcmp(scenario, j->row->scenario) != 0)
        return refuse(j, "ran scenario %s", scenario ? scenario : "(none)");
    return true;
}

static bool check_echo(struct judge *j, const json_t *params)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)params, key, v)
    {
        char want[128];
        char got[128];
        const json_t *echo = json_object_get(json_object_get(j->line, "params"), key);
        if (echo && strcmp(bn_param_text(v, want, sizeof(want)),
                           bn_param_text(echo, got, sizeof(got))) != 0)
            return refuse(j, "ran with %s=%s instead of %s", key, got, want);
    }
    return true;
}

/* `formula` of the row, when there is one, is what the line has at `value`. */
static bool check_formula(struct judge *j, const char *formula, const json_t *value,
                          const char *what)
{
    uint64_t want = 0;
    uint64_t got = 0;
    char problem[160];
    if (!bn_row_formula(j->row, j->set, formula, &want, problem, sizeof(problem)))
        return problem[0] ? refuse(j, "table: %s", problem) : true;
    if (!read_u64(value, &got))
        return refuse(j, "%s is not a number", what);
    if (got != want)
        return refuse(j, "%s is %" PRIu64 ", must be %" PRIu64, what, got, want);
    return true;
}

static bool check_work(struct judge *j)
{
    const json_t *verified = json_object_get(j->line, "verified");
    const json_t *errors = json_object_get(j->line, "errors");
    if (!json_is_integer(errors) || json_integer_value(errors) != 0)
        return refuse(j, "%" JSON_INTEGER_FORMAT " operations failed", json_integer_value(errors));
    return check_formula(j, "count", json_object_get(verified, "count"), "the count of work") &&
           check_formula(j, "checksum", json_object_get(verified, "checksum"), "the checksum") &&
           check_formula(j, "work", json_object_get(j->line, "n"), "n") &&
           check_formula(j, "failed", json_object_get(json_object_get(j->line, "extra"), "failed"),
                         "extra.failed");
}

static bool check_rate(struct judge *j)
{
    double n = json_number_value(json_object_get(j->line, "n"));
    double seconds = json_number_value(json_object_get(j->line, "seconds"));
    const json_t *v = json_object_get(j->line, "rate");
    if (json_is_null(v))
        return true;
    double rate = json_number_value(v);
    if (!(n > 0 && seconds > 0 && rate > 0) || fabs(rate - n / seconds) > rate * RATE_TOLERANCE)
        return refuse(j, "rate %.1f is not n / seconds = %.0f / %.6f", rate, n, seconds);
    return true;
}

json_t *bn_verify(const struct bn_row *row, const json_t *set, const char *text, char *why,
                  size_t size)
{
    json_error_t e;
    struct judge j = {.row = row, .set = set, .why = why, .size = size};
    const char *nl = strchr(text, '\n');
    if (!*text || (nl && nl[1])) {
        (void)snprintf(why, size, "printed %s instead of one line", *text ? "more" : "nothing");
        return NULL;
    }
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &e);
    j.line = line;
    if (!json_is_object(line))
        (void)snprintf(why, size, "not a JSON object: %.100s", line ? "" : e.text);
    else if (check_fields(&j) && check_echo(&j, row->params) && (!set || check_echo(&j, set)) &&
             check_work(&j) && check_rate(&j))
        return line;
    json_decref(line);
    return NULL;
}
