#include "bench/table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mem.h"
#include "bench/expr.h"

static const char *text_of(const json_t *spec, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(spec, key));
    return text ? text : otherwise;
}

char *bn_param_text(const json_t *v, char *out, size_t size)
{
    if (json_is_string(v))
        (void)snprintf(out, size, "%s", json_string_value(v));
    else if (json_is_real(v))
        (void)snprintf(out, size, "%.17g", json_real_value(v));
    else if (json_is_boolean(v))
        (void)snprintf(out, size, "%d", json_is_true(v));
    else
        (void)snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    return out;
}

bool bn_is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; *at;) {
        size_t word = strcspn(at, ",");
        if (word == n && strncmp(at, name, n) == 0)
            return true;
        at += word + (at[word] == ',');
    }
    return false;
}

/* "e2e C={concurrency}" with the parameters' values. */
static void write_label(const char *form, const json_t *params, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (const char *at = form; *at && n + 1 < size;) {
        char key[48];
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        if (end && (size_t)(end - at) < sizeof(key)) {
            (void)snprintf(key, sizeof(key), "%.*s", (int)(end - at - 1), at + 1);
            (void)bn_param_text(json_object_get(params, key), out + n, size - n);
            n = strlen(out);
            at = end + 1;
        } else {
            out[n++] = *at++;
            out[n] = '\0';
        }
    }
}

/* A user's value, as a number where it is one. */
static json_t *value_of(const char *text)
{
    char *end = NULL;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    return errno == 0 && end != text && !*end ? json_integer(v) : json_string(text);
}

static void scale_params(const struct bn_table *t, json_t *params, double scale)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(t->spec, "scale"), i, name)
    {
        json_t *v = json_object_get(params, json_string_value(name));
        if (json_is_integer(v))
            (void)json_integer_set(
                v, LB_MAX((json_int_t)llround((double)json_integer_value(v) * scale), 1));
    }
}

static void set_params(json_t *params, const json_t *set)
{
    const char *key;
    json_t *v;
    /* jansson's loop wants a non-const object and changes nothing */
    json_object_foreach((json_t *)set, key, v)
    {
        if (json_object_get(params, key))
            (void)json_object_set_new(params, key, value_of(json_string_value(v)));
    }
}

static void read_views(struct bn_row *row)
{
    size_t i;
    json_t *v;
    json_t *views = json_object_get(row->spec, "views");
    json_array_foreach(views, i, v)
    {
        if (row->n_views == BN_VIEWS_MAX)
            break;
        row->views[row->n_views++] =
            (struct bn_view){.label = text_of(v, "label", ""),
                             .metric = text_of(v, "metric", "rate"),
                             .unit = text_of(v, "unit", "jobs/s"),
                             .lower = strcmp(text_of(v, "better", "higher"), "lower") == 0};
    }
    if (row->n_views == 0)
        row->views[row->n_views++] = (struct bn_view){"", "rate", "jobs/s", false};
}

static int read_cpus(const struct bn_row *row)
{
    const json_t *pin = json_object_get(row->spec, "pin");
    char text[32];
    if (json_is_string(pin))
        pin = json_object_get(row->params, json_string_value(pin));
    return pin ? (int)strtol(bn_param_text(pin, text, sizeof(text)), NULL, 10) : 0;
}

static void read_args(struct bn_row *row)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(row->spec, "server_args"), i, v)
    {
        if (i < BN_ROW_ARGS_MAX)
            row->args[i] = json_string_value(v);
    }
}

static bool is_chosen(const struct bn_choice *choice, const json_t *spec, const char *profile)
{
    const char *profiles = text_of(spec, "profiles", NULL);
    const char *scenario = text_of(spec, "scenario", "");
    if (profiles && !bn_is_listed(profiles, profile))
        return false;
    return !choice->scenarios || bn_is_listed(choice->scenarios, scenario) ||
           bn_is_listed(choice->scenarios, text_of(spec, "id", ""));
}

/* A row like it is there: the user gave the varied parameter one value. */
static bool is_there(const struct bn_table *t, const struct bn_row *row)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        if (t->rows[i].spec == row->spec && json_equal(t->rows[i].params, row->params))
            return true;
    }
    return false;
}

/* Adds the row with these parameters (taken), unless it is there or the machine has too few CPUs. */
static void add_row(struct bn_table *t, const struct bn_choice *choice, const json_t *spec,
                    json_t *params, const char *varied)
{
    struct bn_row *row = &t->rows[t->n_rows];
    *row = (struct bn_row){.spec = spec, .params = params};
    scale_params(t, params, choice->scale > 0 ? choice->scale : 1);
    if (choice->set)
        set_params(params, choice->set);
    row->scenario = text_of(spec, "scenario", "");
    if (varied)
        (void)bn_param_text(json_object_get(params, varied), row->vary, sizeof(row->vary));
    if (is_there(t, row)) {
        json_decref(params);
        return;
    }
    write_label(text_of(spec, "id", row->scenario), params, row->label, sizeof(row->label));
    read_views(row);
    read_args(row);
    row->cpus = read_cpus(row);
    if (row->cpus > choice->n_cpus) {
        size_t n = strlen(t->dropped);
        (void)snprintf(t->dropped + n, sizeof(t->dropped) - n, "%s%s", n ? ", " : "", row->label);
        json_decref(params);
        return;
    }
    t->n_rows++;
}

/* The k-th combination of the varied values into params. Returns the name of the first one, NULL when nothing varies. */
static const char *vary_params(const json_t *vary, size_t k, int n_cpus, json_t *params)
{
    const char *key;
    const char *first = NULL;
    json_t *values;
    json_object_foreach((json_t *)vary, key, values)
    {
        size_t n = json_array_size(values);
        const json_t *v = json_array_get(values, k % n);
        k /= n;
        bool all = json_is_string(v) && strcmp(json_string_value(v), "cpus") == 0;
        (void)json_object_set_new(params, key, all ? json_integer(n_cpus) : json_deep_copy(v));
        first = first ? first : key;
    }
    return first;
}

static size_t count_combinations(const json_t *vary)
{
    const char *key;
    json_t *values;
    size_t n = 1;
    json_object_foreach((json_t *)vary, key, values)
    {
        n *= json_array_size(values);
    }
    return n;
}

static bool add_rows(struct bn_table *t, const struct bn_choice *choice, const char *profile,
                     char *why, size_t size)
{
    size_t i;
    json_t *spec;
    json_array_foreach(json_object_get(t->spec, "rows"), i, spec)
    {
        const json_t *own = json_object_get(spec, profile);
        const json_t *vary = json_object_get(own, "vary");
        if (!vary)
            vary = json_object_get(spec, "vary");
        if (!own && strcmp(profile, "quick") == 0)
            own = json_object_get(spec, "smoke");
        size_t n = vary ? count_combinations(vary) : 1;
        for (size_t k = 0; k < n && is_chosen(choice, spec, profile); k++) {
            json_t *params = json_deep_copy(json_object_get(spec, "params"));
            if (!params || t->n_rows == BN_ROWS_MAX) {
                json_decref(params);
                (void)snprintf(why, size, "row %zu: no params, or more than %d rows", i,
                               BN_ROWS_MAX);
                return false;
            }
            if (own)
                (void)json_object_update(params, (json_t *)own);
            (void)json_object_del(params, "vary");
            const char *varied = vary_params(vary, k, choice->n_cpus, params);
            add_row(t, choice, spec, params, varied);
        }
    }
    return true;
}

static int count_of(const json_t *spec, const char *key, const char *profile, int otherwise)
{
    const json_t *v = json_object_get(spec, key);
    if (json_is_object(v))
        v = json_object_get(v, profile);
    return json_is_integer(v) ? (int)json_integer_value(v) : otherwise;
}

static void read_contenders(struct bn_table *t)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(t->spec, "contenders"), i, v)
    {
        if (json_is_string(v) && t->n_contenders < BN_CONTENDERS_MAX)
            t->contenders[t->n_contenders++] = json_string_value(v);
    }
}

struct bn_table *bn_table_load(const char *path, const struct bn_choice *choice, char *why,
                               size_t size)
{
    json_error_t e;
    struct bn_table *t = lb_calloc(1, sizeof(*t));
    if (!t) {
        (void)snprintf(why, size, "out of memory");
        return NULL;
    }
    t->spec = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    const char *server = NULL;
    if (!t->spec || json_unpack_ex(t->spec, &e, 0, "{s:s,s:s,s:s,s:o,s:o}", "name", &t->name,
                                   "title", &t->title, "server", &server, "rows", &(json_t *){0},
                                   "contenders", &(json_t *){0}) != 0) {
        (void)snprintf(why, size, "%s:%d: %s", path, e.line, e.text);
        bn_table_free(t);
        return NULL;
    }
    const char *profile = choice->profile ? choice->profile : text_of(t->spec, "profile", "full");
    t->profile = profile;
    t->repeats = count_of(t->spec, "repeats", profile, strcmp(profile, "full") == 0 ? 5 : 3);
    t->warmup = count_of(t->spec, "warmup", profile, 1);
    t->deadline_s = count_of(t->spec, "deadline_s", profile, 300);
    t->tcp = strcmp(text_of(t->spec, "transport", "unix"), "tcp") == 0;
    read_contenders(t);
    if (!add_rows(t, choice, profile, why, size)) {
        bn_table_free(t);
        return NULL;
    }
    return t;
}

void bn_table_free(struct bn_table *t)
{
    for (size_t i = 0; t && i < t->n_rows; i++)
        json_decref(t->rows[i].params);
    if (t)
        json_decref(t->spec);
    lb_free(t);
}

struct names {
    const json_t *params, *more;
};

static bool look_up(void *ctx, const char *name, size_t n, uint64_t *out)
{
    const struct names *names = ctx;
    char key[64];
    char text[64];
    if (n >= sizeof(key))
        return false;
    (void)snprintf(key, sizeof(key), "%.*s", (int)n, name);
    const json_t *v = json_object_get(names->more, key);
    if (!v)
        v = json_object_get(names->params, key);
    if (!v)
        return false;
    *out = strtoull(bn_param_text(v, text, sizeof(text)), NULL, 10);
    return true;
}

bool bn_row_formula(const struct bn_row *row, const json_t *more, const char *key, uint64_t *out,
                    char *why, size_t size)
{
    const char *formula = text_of(row->spec, key, NULL);
    struct names names = {row->params, more};
    why[0] = '\0';
    return formula && bn_expr(formula, look_up, &names, out, why, size);
}

double bn_row_published(const struct bn_row *row, const char *metric, const char *contender)
{
    const json_t *v = json_object_get(row->spec, "published");
    v = json_object_get(json_object_get(v, metric), contender);
    if (json_is_object(v))
        v = json_object_get(v, row->vary);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}
