#include "bench/driver.h"

#include <lade/base.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/mem.h"

#define PROBE_DEADLINE (60 * LADE_SECOND)
#define BUILD_DEADLINE (LADE_HOUR)

static const char *text_of(const json_t *spec, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(spec, key));
    return text ? text : otherwise;
}

static void read_args(struct bn_contender *c)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(c->spec, "server_args"), i, v)
    {
        if (i < BN_ROW_ARGS_MAX)
            c->args[i] = json_string_value(v);
    }
}

static bool add_contenders(struct bn_drivers *ds, struct bn_driver *d, char *why, size_t size)
{
    size_t i;
    json_t *spec;
    json_array_foreach(json_object_get(d->spec, "contenders"), i, spec)
    {
        const char *name = text_of(spec, "name", NULL);
        if (!name || ds->n_contenders == BN_ALL_CONTENDERS || bn_drivers_find(ds, name)) {
            (void)snprintf(why, size, "%s: contender %zu has no name or one that is taken", d->name,
                           i);
            return false;
        }
        ds->contender[ds->n_contenders++] = (struct bn_contender){
            .name = name,
            .driver = d,
            .spec = spec,
            .set = json_object_get(spec, "set"),
            .server = text_of(spec, "server", text_of(d->spec, "server", "none")),
            .min_server = text_of(spec, "min_server", text_of(d->spec, "min_server", NULL)),
            .notes = text_of(spec, "notes", ""),
            .only = text_of(spec, "only", NULL),
            .is_floor = json_is_true(json_object_get(spec, "floor"))};
        read_args(&ds->contender[ds->n_contenders - 1]);
    }
    return true;
}

static bool add_driver(struct bn_drivers *ds, const char *dir, const char *name, char *why,
                       size_t size)
{
    char path[800];
    json_error_t e;
    struct bn_driver *d = &ds->driver[ds->n];
    (void)snprintf(path, sizeof(path), "%s/%s/driver.json", dir, name);
    if (access(path, R_OK) != 0)
        return true; /* a folder of something else */
    if (ds->n == BN_DRIVERS_MAX) {
        (void)snprintf(why, size, "more than %d drivers", BN_DRIVERS_MAX);
        return false;
    }
    d->spec = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    if (!d->spec ||
        json_unpack_ex(d->spec, &e, 0, "{s:s,s:o}", "name", &d->name, "run", &(json_t *){0}) != 0) {
        json_decref(d->spec);
        (void)snprintf(why, size, "%s:%d: %s", path, e.line, e.text);
        return false;
    }
    (void)snprintf(d->dir, sizeof(d->dir), "%.400s/%.100s", dir, name);
    (void)snprintf(d->out, sizeof(d->out), "%.400s/%.100s", ds->peers, d->name);
    ds->n++;
    return add_contenders(ds, d, why, size);
}

bool bn_drivers_load(struct bn_drivers *ds, const char *dir, const char *peers, char *why,
                     size_t size)
{
    struct dirent **names = NULL;
    *ds = (struct bn_drivers){0};
    ssize_t len = readlink("/proc/self/exe", ds->bin, sizeof(ds->bin) - 1);
    char *slash = len > 0 ? strrchr(ds->bin, '/') : NULL;
    if (slash)
        *slash = '\0';
    (void)snprintf(ds->peers, sizeof(ds->peers), "%s", peers);
    int n = scandir(dir, &names, NULL, alphasort);
    if (n < 0) {
        (void)snprintf(why, size, "%s: %s", dir, strerror(errno));
        return false;
    }
    bool good = true;
    for (int i = 0; i < n; i++) {
        if (good && names[i]->d_name[0] != '.')
            good = add_driver(ds, dir, names[i]->d_name, why, size);
        free(names[i]);
    }
    free(names);
    return good;
}

void bn_drivers_free(struct bn_drivers *ds)
{
    for (size_t i = 0; i < ds->n_contenders; i++)
        json_decref(ds->contender[i].list);
    for (size_t i = 0; i < ds->n; i++)
        json_decref(ds->driver[i].spec);
}

struct bn_contender *bn_drivers_find(struct bn_drivers *ds, const char *name)
{
    for (size_t i = 0; i < ds->n_contenders; i++) {
        if (strcmp(ds->contender[i].name, name) == 0)
            return &ds->contender[i];
    }
    return NULL;
}

bool bn_drivers_replace(struct bn_drivers *ds, const char *impl)
{
    char name[64];
    const char *eq = strchr(impl, '=');
    if (!eq || (size_t)(eq - impl) >= sizeof(name))
        return false;
    (void)snprintf(name, sizeof(name), "%.*s", (int)(eq - impl), impl);
    struct bn_contender *c = bn_drivers_find(ds, name);
    if (c)
        c->impl = eq + 1;
    return c != NULL;
}

static bool push(struct bn_argv *a, const char *text)
{
    if (a->n == BN_DRIVER_ARGV_MAX || !(a->v[a->n] = lb_strdup(text)))
        return false;
    a->v[++a->n] = NULL;
    return true;
}

void bn_argv_free(struct bn_argv *a)
{
    for (size_t i = 0; i < a->n; i++)
        lb_free(a->v[i]);
    a->n = 0;
}

/* ${bin}, ${dir} and ${out} replaced. */
static char *fill_in(const struct bn_drivers *ds, const struct bn_driver *d, const char *text,
                     char *out, size_t size)
{
    const struct {
        const char *name, *value;
    } known[] = {{"${bin}", ds->bin}, {"${dir}", d->dir}, {"${out}", d->out}};

    size_t n = 0;
    out[0] = '\0';
    while (*text && n + 1 < size) {
        size_t k = 0;
        while (k < LB_ARRAY_LEN(known) && strncmp(text, known[k].name, 6) != 0)
            k++;
        if (k < LB_ARRAY_LEN(known)) {
            (void)snprintf(out + n, size - n, "%s", known[k].value);
            n = strlen(out);
            text += 6;
        } else {
            out[n++] = *text++;
            out[n] = '\0';
        }
    }
    return out;
}

static bool push_command(const struct bn_drivers *ds, const struct bn_contender *c,
                         struct bn_argv *a)
{
    size_t i;
    json_t *word;
    char text[1600];
    if (c->impl)
        return push(a, c->impl);
    json_array_foreach(json_object_get(c->driver->spec, "run"), i, word)
    {
        if (!push(a, fill_in(ds, c->driver, json_string_value(word), text, sizeof(text))))
            return false;
    }
    return a->n > 0;
}

static bool push_sets(struct bn_argv *a, const json_t *params)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)params, key, v)
    {
        char value[256];
        char pair[400];
        (void)snprintf(pair, sizeof(pair), "%s=%s", key, bn_param_text(v, value, sizeof(value)));
        if (!push(a, "--set") || !push(a, pair))
            return false;
    }
    return true;
}

bool bn_argv_make(const struct bn_drivers *ds, const struct bn_contender *c,
                  const struct bn_row *row, const char *url, struct bn_argv *out)
{
    char pair[400];
    *out = (struct bn_argv){0};
    (void)snprintf(pair, sizeof(pair), "url=%s", url);
    bool good = push_command(ds, c, out) && push(out, "--scenario") && push(out, row->scenario) &&
                push_sets(out, row->params) && push_sets(out, c->set) &&
                (!*url || (push(out, "--set") && push(out, pair)));
    if (!good)
        bn_argv_free(out);
    return good;
}

static bool is_in_path(const char *program)
{
    char dir[512];
    char path[800];
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        (void)snprintf(dir, sizeof(dir), "%.*s", (int)n, at);
        (void)snprintf(path, sizeof(path), "%s/%s", dir, program);
        if (access(path, X_OK) == 0)
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

/* The first file of ${out} in the command that is not there, or the program itself; NULL = all there. */
static const char *find_missing(struct bn_drivers *ds, struct bn_contender *c, const char *program,
                                char *path, size_t size)
{
    size_t i;
    json_t *word;
    bool there = strchr(program, '/') ? access(program, F_OK) == 0 : is_in_path(program);
    if (!there)
        return program;
    json_array_foreach(json_object_get(c->driver->spec, "run"), i, word)
    {
        const char *text = json_string_value(word);
        if (c->impl || !text || strncmp(text, "${out}", 6) != 0)
            continue;
        if (access(fill_in(ds, c->driver, text, path, size), F_OK) != 0)
            return path;
    }
    return NULL;
}

/* False, with a reason, when what it needs is not there. */
static bool is_built(struct bn_drivers *ds, struct bn_contender *c, const char *program)
{
    char path[1600];
    char failed[600];
    const char *missing = find_missing(ds, c, program, path, sizeof(path));
    if (!missing)
        return true;
    (void)snprintf(failed, sizeof(failed), "%s/failed", c->driver->out);
    if (!strchr(missing, '/'))
        (void)snprintf(c->reason, sizeof(c->reason), "%.250s is not in the PATH", missing);
    else if (!json_object_get(c->driver->spec, "build") || c->impl)
        (void)snprintf(c->reason, sizeof(c->reason), "%.250s is not there", missing);
    else if (access(failed, F_OK) == 0)
        (void)snprintf(c->reason, sizeof(c->reason), "its build failed: %.200s/build.log",
                       c->driver->out);
    else
        (void)snprintf(c->reason, sizeof(c->reason), "not built (scripts/setup --bench builds it)");
    return false;
}

void bn_contender_probe(struct bn_drivers *ds, struct bn_contender *c)
{
    struct bn_argv a = {0};
    struct bn_child_end end;
    char why[320];
    json_error_t e;
    if (c->probed)
        return;
    c->probed = true;
    if (!push_command(ds, c, &a) || !push(&a, "--list")) {
        (void)snprintf(c->reason, sizeof(c->reason), "driver.json: run is empty or too long");
    } else if (is_built(ds, c, a.v[0])) {
        struct bn_child child = {.argv = (const char *const *)a.v, .deadline_ns = PROBE_DEADLINE};
        if (bn_child_run(&child, &end) && end.code == 0 && !end.timed_out)
            c->list = json_loads(end.out, JSON_REJECT_DUPLICATES, &e);
        if (!c->list)
            (void)snprintf(c->reason, sizeof(c->reason), "--list: %.250s",
                           *bn_child_problem(&end, why, sizeof(why)) ? why : "not JSON");
        bn_child_free(&end);
    }
    bn_argv_free(&a);
}

const char *bn_contender_version(const struct bn_contender *c)
{
    return text_of(c->list, "version", "unknown");
}

char *bn_contender_why_not(const struct bn_contender *c, const char *scenario,
                           const struct bn_program *program, char *out, size_t size)
{
    size_t i;
    json_t *name;
    out[0] = '\0';
    if (c->reason[0]) {
        (void)snprintf(out, size, "%s", c->reason);
        return out;
    }
    if (strcmp(c->server, "redis") == 0 && !program)
        (void)snprintf(out, size, "no redis-server on this machine");
    else if (strcmp(c->server, "redis") == 0 && c->min_server &&
             bn_version_compare(program->version, c->min_server) < 0)
        (void)snprintf(out, size, "needs Redis %s, have %s %s", c->min_server, program->name,
                       program->version);
    if (out[0])
        return out;
    json_array_foreach(json_object_get(c->list, "scenarios"), i, name)
    {
        if (json_is_string(name) && strcmp(json_string_value(name), scenario) == 0 &&
            (!c->only || bn_is_listed(c->only, scenario)))
            return out;
    }
    (void)snprintf(out, size, "%s has no %s", c->name, scenario);
    return out;
}

static void make_folders(const char *path)
{
    char part[600];
    (void)snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(part, 0755);
        *slash = '/';
    }
    (void)mkdir(part, 0755);
}

bool bn_driver_build(struct bn_driver *d)
{
    size_t i;
    json_t *word;
    char env[600];
    char failed[600];
    struct bn_child_end end;
    struct bn_argv a = {0};
    json_t *build = json_object_get(d->spec, "build");
    json_array_foreach(json_object_get(d->spec, "needs"), i, word)
    {
        if (!is_in_path(json_string_value(word)))
            return (void)printf("%s: not built: %s is not in the PATH\n", d->name,
                                json_string_value(word)),
                   false;
    }
    if (!build)
        return true;
    make_folders(d->out);
    (void)snprintf(failed, sizeof(failed), "%s/failed", d->out);
    (void)snprintf(env, sizeof(env), "OUT=%s", d->out);
    bool good = push(&a, "sh") && push(&a, "-c") &&
                push(&a, "\"$@\" >\"$OUT/build.log\" 2>&1 && rm -f \"$OUT/failed\" || "
                         "{ touch \"$OUT/failed\"; exit 1; }") &&
                push(&a, "sh");
    json_array_foreach(build, i, word)
    {
        good = good && push(&a, json_string_value(word));
    }
    (void)printf("%s: building, log in %s/build.log\n", d->name, d->out);
    (void)fflush(stdout);
    struct bn_child child = {.argv = (const char *const *)a.v,
                             .env = (const char *[]){env, NULL},
                             .dir = d->dir,
                             .deadline_ns = BUILD_DEADLINE,
                             .show = true};
    good = good && bn_child_run(&child, &end);
    if (good) {
        good = end.code == 0 && !end.timed_out;
        bn_child_free(&end);
    }
    (void)printf("%s: %s\n", d->name, good ? "built" : "its build failed");
    bn_argv_free(&a);
    return good;
}
