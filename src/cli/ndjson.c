#include "cli/ndjson.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/arg.h"
#include "cli/text.h"

/* jansson recurses: depth is bounded before it sees the line. */
static bool is_too_deep(const char *p, size_t n, size_t limit)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        if (in_string) {
            if (p[i] == '\\')
                i++;
            else if (p[i] == '"')
                in_string = false;
        } else if (p[i] == '"') {
            in_string = true;
        } else if (p[i] == '{' || p[i] == '[') {
            if (++depth > limit)
                return true;
        } else if ((p[i] == '}' || p[i] == ']') && depth > 0) {
            depth--;
        }
    }
    return false;
}

static int fail_syntax(const json_error_t *e, lade_err *err)
{
    enum json_error_code code = json_error_code(e);
    /* jansson leaves the code empty at some places where memory runs out. */
    if (code == json_error_out_of_memory || code == json_error_unknown)
        return lb_fail_nomem(err, "ndjson");
    if (code == json_error_null_character || code == json_error_null_byte_in_key)
        return lb_fail(err, LADE_EINVAL, "ndjson",
                       "byte %d: a string holds a NUL; give such bytes as payload_base64",
                       e->position);
    if (code == json_error_invalid_utf8)
        return lb_fail(err, LADE_EINVAL, "ndjson",
                       "byte %d: not UTF-8; give such bytes as payload_base64", e->position);
    return lb_fail(err, LADE_EINVAL, "ndjson", "byte %d: not JSON: %s", e->position, e->text);
}

static int fail_type(const char *name, const char *rule, lade_err *err)
{
    return lb_fail(err, LADE_EINVAL, "ndjson", "\"%.40s\": must be %s", name, rule);
}

static int read_text(const char *name, const json_t *v, const char **out, lade_err *err)
{
    if (!json_is_string(v))
        return fail_type(name, "a string", err);
    *out = json_string_value(v);
    return 0;
}

static int read_int(const char *name, const json_t *v, struct cli_range range, int64_t *out,
                    lade_err *err)
{
    if (!json_is_integer(v))
        return fail_type(name, "a whole number", err);
    int64_t n = json_integer_value(v);
    if (n < range.min || n > range.max)
        return lb_fail(err, LADE_EINVAL, "ndjson",
                       "\"%s\": %lld is out of range; give %lld to %lld", name, (long long)n,
                       (long long)range.min, (long long)range.max);
    *out = n;
    return 0;
}

static int read_duration(const char *name, const json_t *v, int64_t min, int64_t *out,
                         lade_err *err)
{
    char quoted[48];
    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    if (!json_is_string(v))
        return fail_type(name, "a duration in a string, as \"30s\"", err);
    return cli_arg_duration(quoted, json_string_value(v), (struct cli_range){min, CLI_DURATION_MAX},
                            out, err);
}

/* What reads one member into the job. */
typedef int (*read_fn)(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err);

static int read_kind(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    return read_text(name, v, &j->spec.kind, err);
}

static int read_queue(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    return read_text(name, v, &j->spec.queue, err);
}

static int read_id(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    return read_text(name, v, &j->spec.id, err);
}

static int read_key(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    const char *key = "";
    int rc = read_text(name, v, &key, err);
    if (rc == 0 && !*key)
        rc = fail_type(name, "a string that is not empty", err);
    if (rc == 0)
        j->spec.key = (lade_bytes){key, strlen(key)};
    return rc;
}

static int read_content_type(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    return read_text(name, v, &j->spec.content_type, err);
}

static int read_payload(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    if (!json_is_string(v))
        return fail_type(name, "a string; give other values as payload_json", err);
    j->spec.payload = (lade_bytes){json_string_value(v), json_string_length(v)};
    return 0;
}

static int read_payload_base64(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    if (!json_is_string(v) ||
        !cli_base64_decode(&j->payload, json_string_value(v), json_string_length(v)))
        return fail_type(name, "a string of base 64 with its padding", err);
    if (j->payload.failed)
        return lb_fail_nomem(err, "ndjson");
    j->spec.payload = (lade_bytes){j->payload.p, j->payload.n};
    return 0;
}

static int add_chunk(const char *p, size_t n, void *buf)
{
    struct lb_buf *b = buf;
    lb_buf_add(b, p, n);
    return b->failed ? -1 : 0;
}

static int read_payload_json(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    (void)name;
    if (json_dump_callback(v, add_chunk, &j->payload, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
        return lb_fail_nomem(err, "ndjson");
    j->spec.payload = (lade_bytes){j->payload.p, j->payload.n};
    if (!j->spec.content_type)
        j->spec.content_type = "application/json";
    return 0;
}

static int read_in(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    j->spec.at = 0;
    return read_duration(name, v, 0, &j->spec.in, err);
}

static int read_at(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    if (!json_is_string(v))
        return fail_type(name, "a time in a string, as \"2026-01-31T12:00:00Z\"", err);
    return cli_arg_run_at("\"at\"", json_string_value(v), &j->spec.at, &j->spec.in, err);
}

static int read_priority(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    int64_t n = 0;
    struct cli_range range = {LADE_PRIORITY_MIN, LADE_PRIORITY_MAX};
    int rc = read_int(name, v, range, &n, err);
    j->spec.priority = (int)n;
    return rc;
}

static int read_max_attempts(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    int64_t n = 0;
    int rc = read_int(name, v, (struct cli_range){1, 1000}, &n, err);
    j->spec.max_attempts = (int)n;
    return rc;
}

static int read_result_ttl(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    return read_duration(name, v, LADE_MILLISECOND, &j->spec.result_ttl, err);
}

static int read_timeout(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    return read_duration(name, v, LADE_MILLISECOND, &j->spec.timeout, err);
}

static int read_discard_dead(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    if (!json_is_boolean(v))
        return fail_type(name, "true or false", err);
    j->spec.discard_dead = json_is_true(v);
    return 0;
}

static int read_unique(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    const char *member = NULL;
    json_t *value = NULL;
    if (!json_is_object(v) || !json_object_get(v, "key"))
        return fail_type(name, "an object with a \"key\"", err);
    json_object_foreach(v, member, value)
    {
        int rc = 0;
        const char *text = NULL;
        if (strcmp(member, "ttl") == 0)
            rc = read_duration("unique.ttl", value, LADE_MILLISECOND, &j->spec.unique.ttl, err);
        else if (strcmp(member, "key") == 0)
            rc = read_text("unique.key", value, &text, err);
        else if (strcmp(member, "until") == 0)
            rc = read_text("unique.until", value, &text, err);
        else if (strcmp(member, "on_conflict") == 0)
            rc = read_text("unique.on_conflict", value, &text, err);
        else if (strcmp(member, "debounce") == 0)
            rc = read_duration("unique.debounce", value, LADE_MILLISECOND, &j->spec.unique.debounce,
                               err);
        else if (strcmp(member, "max_wait") == 0)
            rc = read_duration("unique.max_wait", value, LADE_MILLISECOND, &j->spec.unique.max_wait,
                               err);
        else if (strcmp(member, "throttle") == 0)
            rc = read_duration("unique.throttle", value, LADE_MILLISECOND, &j->spec.unique.throttle,
                               err);
        else if (strcmp(member, "trailing") == 0 && json_is_boolean(value))
            j->spec.unique.trailing = json_is_true(value);
        else
            rc = lb_fail(err, LADE_EINVAL, "ndjson",
                         "\"unique\": \"%.40s\" is unknown; give key, ttl, until, on_conflict, "
                         "debounce, max_wait, throttle, trailing (true or false)",
                         member);
        if (rc == 0 && strcmp(member, "until") == 0)
            rc = cli_arg_until("\"unique.until\"", text, &j->spec.unique.until, err);
        if (rc == 0 && strcmp(member, "on_conflict") == 0)
            rc = cli_arg_conflict("\"unique.on_conflict\"", text, &j->spec.unique.on_conflict, err);
        if (rc == 0 && strcmp(member, "key") == 0)
            j->spec.unique.key = (lade_bytes){text, json_string_length(value)};
        if (rc < 0)
            return rc;
    }
    if (j->spec.unique.key.size == 0)
        return fail_type("unique.key", "a string that is not empty", err);
    return 0;
}

static int read_backoff(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    const char *member = NULL;
    json_t *value = NULL;
    lade_backoff b = {0};
    char text[96] = "";
    if (!json_is_object(v) || !json_is_string(json_object_get(v, "type")))
        return fail_type(name, "an object with a \"type\"", err);
    const char *type = json_string_value(json_object_get(v, "type"));
    const char *base = json_string_value(json_object_get(v, "base"));
    bool is_polynomial = strcmp(type, "polynomial") == 0;
    if (!is_polynomial && strcmp(type, "fixed") != 0 && strcmp(type, "exponential") != 0)
        return fail_type("backoff.type", "fixed, exponential or polynomial", err);
    if (!base && (!is_polynomial || json_object_get(v, "base")))
        return fail_type("backoff.base", "a duration in a string, as \"30s\"", err);
    (void)snprintf(text, sizeof(text), "%s%s%.40s", type, base ? ":" : "", base ? base : "");
    int rc = cli_arg_backoff("\"backoff\"", text, &b, err);
    json_object_foreach(v, member, value)
    {
        int64_t n = 0;
        if (rc < 0)
            return rc;
        if (strcmp(member, "cap") == 0)
            rc = read_duration("backoff.cap", value, LADE_MILLISECOND, &b.cap, err);
        else if (strcmp(member, "jitter") == 0)
            rc = read_int("backoff.jitter", value, (struct cli_range){0, 100}, &n, err);
        else if (strcmp(member, "type") != 0 && strcmp(member, "base") != 0)
            rc = lb_fail(err, LADE_EINVAL, "ndjson",
                         "\"backoff\": \"%.40s\" is unknown; give type, base, cap, jitter", member);
        if (strcmp(member, "jitter") == 0)
            b.jitter = (uint8_t)n;
    }
    j->spec.backoff = b;
    return rc;
}

static int read_headers(struct cli_ndjson *j, const char *name, json_t *v, lade_err *err)
{
    const char *member = NULL;
    json_t *value = NULL;
    size_t n = 0;
    if (!json_is_object(v))
        return fail_type(name, "an object of strings", err);
    if (json_object_size(v) > LADE_HEADERS_MAX)
        return lb_fail(err, LADE_ETOOBIG, "ndjson", "\"headers\": %zu; at most %d are allowed",
                       json_object_size(v), LADE_HEADERS_MAX);
    j->headers = lb_calloc(json_object_size(v) + 1, sizeof(*j->headers));
    if (!j->headers)
        return lb_fail_nomem(err, "ndjson");
    json_object_foreach(v, member, value)
    {
        j->headers[n].name = member;
        char place[64];
        (void)snprintf(place, sizeof(place), "headers.%.48s", member);
        int rc = read_text(place, value, &j->headers[n++].value, err);
        if (rc < 0)
            return rc;
    }
    j->spec.headers = j->headers;
    j->spec.n_headers = n;
    return 0;
}

static const struct field {
    const char *name;
    unsigned group; /* members of one group exclude each other */
    read_fn read;
} fields[] = {
    {"kind", 1, read_kind},
    {"type", 1, read_kind},
    {"name", 1, read_kind},
    {"queue", 0, read_queue},
    {"content_type", 0, read_content_type},
    {"payload", 2, read_payload},
    {"payload_base64", 2, read_payload_base64},
    {"payload_json", 2, read_payload_json},
    {"id", 0, read_id},
    {"key", 0, read_key},
    {"in", 4, read_in},
    {"at", 4, read_at},
    {"priority", 0, read_priority},
    {"max_attempts", 0, read_max_attempts},
    {"result_ttl", 0, read_result_ttl},
    {"timeout", 0, read_timeout},
    {"discard_dead", 0, read_discard_dead},
    {"unique", 0, read_unique},
    {"headers", 0, read_headers},
    {"backoff", 0, read_backoff},
};

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(fields); i++) {
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    }
    return NULL;
}

static int fail_unknown(const char *name, lade_err *err)
{
    const char *names[LB_ARRAY_LEN(fields)];
    for (size_t i = 0; i < LB_ARRAY_LEN(fields); i++)
        names[i] = fields[i].name;
    const char *near = cli_nearest(name, names, LB_ARRAY_LEN(fields));
    return lb_fail(err, LADE_EINVAL, "ndjson", "\"%.40s\": unknown member%s%s%s", name,
                   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* The member of the same group that is there, too. */
static const char *find_other(const struct cli_ndjson *j, const struct field *f)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(fields); i++) {
        if (&fields[i] != f && (fields[i].group & f->group) &&
            json_object_get(j->root, fields[i].name))
            return fields[i].name;
    }
    return f->name;
}

static int read_members(struct cli_ndjson *j, lade_err *err)
{
    const char *name = NULL;
    json_t *value = NULL;
    unsigned seen = 0;
    json_object_foreach(j->root, name, value)
    {
        const struct field *f = find_field(name);
        if (!f)
            return fail_unknown(name, err);
        if (seen & f->group)
            return lb_fail(err, LADE_EINVAL, "ndjson", "\"%s\": not with \"%s\"; give one of them",
                           name, find_other(j, f));
        seen |= f->group;
        int rc = f->read(j, name, value, err);
        if (rc < 0)
            return rc;
    }
    if (!j->spec.kind)
        return lb_fail(err, LADE_EINVAL, "ndjson", "no \"kind\"; give it in the line or by --kind");
    return 0;
}

int cli_json_load(json_t **out, const char *text, size_t n, size_t depth, lade_err *err)
{
    json_error_t e = {0};
    if (is_too_deep(text, n, depth))
        return lb_fail(err, LADE_EINVAL, "ndjson", "nested deeper than %zu", depth);
    /* Without ALLOW_NUL no string holds a NUL, so every one is what strlen says. */
    *out = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    return *out ? 0 : fail_syntax(&e, err);
}

int cli_ndjson_read(struct cli_ndjson *out, json_t *object, const lade_job_spec *defaults,
                    lade_err *err)
{
    struct cli_ndjson j = {.spec = *defaults, .root = json_incref(object)};
    lb_buf_init(&j.payload);
    int rc = json_is_object(object)
                 ? read_members(&j, err)
                 : lb_fail(err, LADE_EINVAL, "ndjson", "not an object; give {\"kind\":...}");
    if (rc < 0)
        cli_ndjson_fini(&j);
    else
        *out = j;
    return rc;
}

int cli_ndjson_parse(struct cli_ndjson *out, const char *line, size_t n,
                     const lade_job_spec *defaults, lade_err *err)
{
    json_t *root = NULL;
    int rc = cli_json_load(&root, line, n, CLI_NDJSON_DEPTH, err);
    if (rc == 0)
        rc = cli_ndjson_read(out, root, defaults, err);
    json_decref(root);
    return rc;
}

void cli_ndjson_fini(struct cli_ndjson *j)
{
    json_decref(j->root);
    lb_buf_fini(&j->payload);
    lb_free(j->headers);
    *j = (struct cli_ndjson){0};
}
