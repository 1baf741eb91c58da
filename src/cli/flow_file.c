#include "cli/flow_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/ndjson.h"
#include "cli/text.h"

#define WHERE_MAX 160
/* A chain of chains is two levels of JSON for each of its own; payload_json may add its part. */
#define DEPTH_MAX ((size_t)2 * LADE_FLOW_DEPTH_MAX + CLI_NDJSON_DEPTH)

/* A job of the flow: in the arena, in a list for the end. */
struct cli_flow_job {
    struct cli_flow_job *next;
    struct cli_ndjson parsed;
};

struct reader {
    struct cli_flow *flow;
    const lade_job_spec *defaults;
    int depth;
    lade_err *err;
};

static int fail(const struct reader *r, const char *where, const char *what)
{
    return lb_fail(r->err, LADE_EINVAL, "flow", "%s: %s", *where ? where : "flow", what);
}

static void *allocate(struct reader *r, size_t size)
{
    void *p = lb_arena_alloc(&r->flow->arena, size);
    if (p)
        memset(p, 0, size);
    else
        (void)lb_fail_nomem(r->err, "flow");
    return p;
}

static int read_step(struct reader *r, const char *where, json_t *v, lade_flow_step *out);

static int read_job(struct reader *r, const char *where, json_t *v, const lade_job_spec **out)
{
    lade_err inner = {0};
    struct cli_flow_job *job = allocate(r, sizeof(*job));
    if (!job)
        return -LADE_ENOMEM;
    int rc = cli_ndjson_read(&job->parsed, v, r->defaults, &inner);
    if (rc < 0)
        return rc == -LADE_ENOMEM ? lb_fail_nomem(r->err, "flow") : fail(r, where, inner.text);
    job->next = r->flow->jobs;
    r->flow->jobs = job;
    *out = &job->parsed.spec;
    return 0;
}

static int read_policy(struct reader *r, const char *where, const json_t *v,
                       enum lade_flow_policy *out)
{
    static const char *const names[] = {"fail", "continue", "wait"};

    const char *text = json_string_value(v);
    for (size_t i = 0; text && i < LB_ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum lade_flow_policy)(LADE_FLOW_FAIL + (int)i);
            return 0;
        }
    }
    return fail(r, where, "\"on_dead\": must be \"fail\", \"continue\" or \"wait\"");
}

/* The members of a chain or of a group. */
static int read_list(struct reader *r, const char *where, json_t *v, lade_flow_step *out)
{
    char at[WHERE_MAX];
    if (!json_is_array(v))
        return fail(r, where, "must be an array of steps");
    out->n_steps = json_array_size(v);
    lade_flow_step *steps = allocate(r, (out->n_steps + 1) * sizeof(*steps));
    if (!steps)
        return -LADE_ENOMEM;
    out->steps = steps;
    for (size_t i = 0; i < out->n_steps; i++) {
        (void)snprintf(at, sizeof(at), "%.100s[%zu]", where, i);
        int rc = read_step(r, at, json_array_get(v, i), &steps[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* graph ------------------------------------------------------------------------------------------------------------ */

/* The names of a graph's steps, in the order of the file. */
struct names {
    const char **name;
    size_t n;
};

static int find_name(struct reader *r, const char *where, const struct names *names,
                     const char *text, size_t *out)
{
    char what[160];
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->name[i], text) == 0) {
            *out = i;
            return 0;
        }
    }
    const char *near = cli_nearest(text, names->name, names->n);
    (void)snprintf(what, sizeof(what), "\"after\": no step is called \"%.40s\"%s%.40s%s", text,
                   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return fail(r, where, what);
}

static int read_after(struct reader *r, const char *where, const struct names *names,
                      const json_t *v, lade_flow_step *out)
{
    if (!json_is_array(v))
        return fail(r, where, "\"after\": must be an array of names");
    out->n_after = json_array_size(v);
    size_t *after = allocate(r, (out->n_after + 1) * sizeof(*after));
    if (!after)
        return -LADE_ENOMEM;
    out->after = after;
    for (size_t i = 0; i < out->n_after; i++) {
        const char *text = json_string_value(json_array_get(v, i));
        int rc = text ? find_name(r, where, names, text, &after[i])
                      : fail(r, where, "\"after\": must be an array of names");
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_graph(struct reader *r, const char *where, json_t *v, lade_flow_step *out)
{
    const char *name = NULL;
    json_t *value = NULL;
    size_t i = 0;
    if (!json_is_object(v))
        return fail(r, where, "must be an object of named steps");
    struct names names = {.n = json_object_size(v)};
    lade_flow_step *steps = allocate(r, (names.n + 1) * sizeof(*steps));
    names.name = steps ? allocate(r, (names.n + 1) * sizeof(*names.name)) : NULL;
    if (!names.name)
        return -LADE_ENOMEM;
    out->steps = steps;
    out->n_steps = names.n;
    json_object_foreach(v, name, value) names.name[i++] = name;
    for (i = 0; i < names.n; i++) {
        char at[WHERE_MAX];
        value = json_object_get(v, names.name[i]);
        json_t *after = json_is_object(value) ? json_object_get(value, "after") : NULL;
        (void)snprintf(at, sizeof(at), "%.100s.%.40s", where, names.name[i]);
        int rc = after ? read_after(r, at, &names, after, &steps[i]) : 0;
        if (after)
            (void)json_object_del(value, "after");
        if (rc == 0)
            rc = read_step(r, at, value, &steps[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* steps ------------------------------------------------------------------------------------------------------------ */

static int read_shape(struct reader *r, const char *where, json_t *v, lade_flow_step *out)
{
    static const char *const shapes[] = {"chain", "group", "graph"};
    char at[WHERE_MAX];
    int rc = 0;
    for (size_t i = 0; i < LB_ARRAY_LEN(shapes); i++) {
        json_t *list = json_object_get(v, shapes[i]);
        if (!list)
            continue;
        if (out->type != LADE_FLOW_JOB)
            return fail(r, where, "give one of chain, group, graph");
        out->type = (enum lade_flow_type)(LADE_FLOW_CHAIN + (int)i);
        (void)snprintf(at, sizeof(at), "%.100s%s%s", where, *where ? "." : "", shapes[i]);
        rc = out->type == LADE_FLOW_GRAPH ? read_graph(r, at, list, out)
                                          : read_list(r, at, list, out);
        if (rc < 0)
            return rc;
    }
    json_t *callback = json_object_get(v, "callback");
    if (!callback)
        return 0;
    if (out->type != LADE_FLOW_GROUP)
        return fail(r, where, "\"callback\": only a group has one");
    (void)snprintf(at, sizeof(at), "%.100s%scallback", where, *where ? "." : "");
    return read_job(r, at, callback, &out->job);
}

static int check_members(const struct reader *r, const char *where, json_t *v)
{
    static const char *const known[] = {"chain", "group", "graph", "callback", "on_dead"};
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(v, name, value)
    {
        size_t i = 0;
        while (i < LB_ARRAY_LEN(known) && strcmp(known[i], name) != 0)
            i++;
        if (i < LB_ARRAY_LEN(known))
            continue;
        char what[128];
        (void)snprintf(what, sizeof(what), "\"%.40s\": unknown member beside chain, group or graph",
                       name);
        return fail(r, where, what);
    }
    return 0;
}

static int read_step(struct reader *r, const char *where, json_t *v, lade_flow_step *out)
{
    int rc = 0;
    if (r->depth == LADE_FLOW_DEPTH_MAX)
        return fail(r, where, "steps nest deeper than 32 (LADE_FLOW_DEPTH_MAX)");
    if (!json_is_object(v))
        return fail(r, where, "a step must be an object");
    const json_t *policy = json_object_get(v, "on_dead");
    if (policy)
        rc = read_policy(r, where, policy, &out->on_dead);
    if (rc < 0)
        return rc;
    r->depth++;
    if (json_object_get(v, "chain") || json_object_get(v, "group") || json_object_get(v, "graph")) {
        rc = check_members(r, where, v);
        if (rc == 0)
            rc = read_shape(r, where, v, out);
    } else {
        if (policy)
            (void)json_object_del(v, "on_dead");
        rc = read_job(r, where, v, &out->job);
    }
    r->depth--;
    return rc;
}

/* Takes a member of the file out of the root, so that the rest is a step. */
static json_t *take_member(struct reader *r, json_t *root, const char *name)
{
    json_t *v = json_incref(json_object_get(root, name));
    if (!v)
        return NULL;
    (void)json_object_del(root, name);
    /* kept alive by the root, under a name that is no member */
    char kept[32];
    (void)snprintf(kept, sizeof(kept), "\x01%s", name);
    if (json_object_set_new(r->flow->root, kept, v) < 0)
        return NULL;
    return v;
}

static int read_texts(struct reader *r, json_t *root)
{
    lade_flow_spec *s = &r->flow->spec;
    const json_t *id = take_member(r, root, "id"), *name = take_member(r, root, "name");
    const json_t *siblings = take_member(r, root, "cancel_siblings");
    if ((id && !json_is_string(id)) || (name && !json_is_string(name)))
        return fail(r, "flow", "\"id\" and \"name\" must be strings");
    if (siblings && !json_is_boolean(siblings))
        return fail(r, "flow", "\"cancel_siblings\": must be true or false");
    s->id = json_string_value(id);
    s->name = json_string_value(name);
    s->cancel_siblings = json_is_true(siblings);
    return 0;
}

static int read_file(struct reader *r, json_t *root)
{
    if (!json_is_object(root))
        return fail(r, "flow", "not an object; give {\"chain\":[...]}");
    if (!json_object_get(root, "chain") && !json_object_get(root, "group") &&
        !json_object_get(root, "graph") && !json_object_get(root, "kind"))
        return fail(r, "flow", "no \"chain\", \"group\", \"graph\" or \"kind\"");
    int rc = read_texts(r, root);
    json_t *handler = rc == 0 ? take_member(r, root, "on_failure") : NULL;
    if (rc == 0 && handler)
        rc = read_job(r, "on_failure", handler, &r->flow->spec.on_failure);
    return rc < 0 ? rc : read_step(r, "", root, &r->flow->spec.root);
}

int cli_flow_parse(struct cli_flow *out, const char *text, size_t n, const lade_job_spec *defaults,
                   lade_err *err)
{
    *out = (struct cli_flow){0};
    lb_arena_init(&out->arena);
    json_t *root = NULL;
    int rc = cli_json_load(&root, text, n, DEPTH_MAX, err);
    if (rc < 0)
        return rc;
    struct reader r = {.flow = out, .defaults = defaults, .err = err};
    out->root = json_object();
    if (!out->root || json_object_set(out->root, "root", root) < 0)
        rc = lb_fail_nomem(err, "flow");
    if (rc == 0)
        rc = read_file(&r, root);
    json_decref(root);
    if (rc < 0)
        cli_flow_fini(out);
    return rc;
}

void cli_flow_fini(struct cli_flow *f)
{
    for (struct cli_flow_job *j = f->jobs; j; j = j->next)
        cli_ndjson_fini(&j->parsed);
    json_decref(f->root);
    lb_arena_fini(&f->arena);
    *f = (struct cli_flow){0};
}

/* places ----------------------------------------------------------------------------------------------------------- */

/* The step number i of a step of the file, with its name appended to `to`; NULL when there is none. */
static json_t *walk_to(json_t *step, size_t i, struct lb_buf *to)
{
    static const char *const lists[] = {"chain", "group"};
    const char *dot = to->n > 0 ? "." : "";
    for (size_t k = 0; k < LB_ARRAY_LEN(lists); k++) {
        json_t *list = json_object_get(step, lists[k]);
        if (json_is_array(list) && i < json_array_size(list)) {
            lb_buf_add_fmt(to, "%s%s[%zu]", dot, lists[k], i);
            return json_array_get(list, i);
        }
    }
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(step, "graph"), name, value)
    {
        if (i-- == 0) {
            lb_buf_add_fmt(to, "%sgraph.%.40s", dot, name);
            return value;
        }
    }
    return NULL;
}

/* The number in "steps[N]" or "step N" at *p, which moves behind it. */
static bool take_index(const char **p, size_t *i)
{
    char *end = NULL;
    if (strncmp(*p, "step ", 5) == 0 && (*p)[5] >= '0' && (*p)[5] <= '9') {
        *i = strtoul(*p + 5, &end, 10);
        *p = end;
        return true;
    }
    if (strncmp(*p, "steps[", 6) != 0)
        return false;
    *i = strtoul(*p + 6, &end, 10);
    if (end == *p + 6 || *end != ']')
        return false;
    *p = end + 1;
    return true;
}

/* Appends the rest of a text about `step`, in which steps[N] are its own. */
static void add_text(struct lb_buf *to, json_t *step, const char *p)
{
    while (*p) {
        struct lb_buf name;
        size_t i = 0;
        const char *from = p;
        lb_buf_init(&name);
        if (take_index(&p, &i) && walk_to(step, i, &name))
            lb_buf_add(to, name.p, name.n);
        else
            lb_buf_add(to, from, (size_t)((p = from + 1) - from));
        lb_buf_fini(&name);
    }
}

void cli_flow_name_place(const struct cli_flow *f, lade_err *err)
{
    json_t *step = json_object_get(f->root, "root");
    const char *p = err->text;
    struct lb_buf to;
    size_t i = 0;
    if (strncmp(p, "root", 4) != 0)
        return;
    lb_buf_init(&to);
    p += 4;
    while (step && strncmp(p, ".steps[", 7) == 0) {
        p++;
        step = take_index(&p, &i) ? walk_to(step, i, &to) : NULL;
    }
    if (step && strncmp(p, ".job", 4) == 0) {
        lb_buf_add_fmt(&to, "%scallback", to.n > 0 ? "." : "");
        p += 4;
    }
    if (step && *p == ':') {
        if (to.n == 0)
            lb_buf_add_str(&to, "flow");
        const char *shape = json_object_get(step, "chain")   ? "chain"
                            : json_object_get(step, "group") ? "group"
                                                             : "graph";
        if (strncmp(p, ": steps ", 8) == 0) { /* the member itself */
            lb_buf_add_fmt(&to, ": %s ", shape);
            p += 8;
        }
        add_text(&to, step, p);
        lb_buf_add_byte(&to, 0);
        if (!to.failed)
            (void)snprintf(err->text, sizeof(err->text), "%s", (const char *)to.p);
    }
    lb_buf_fini(&to);
}
