#include "bench/listing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/machine.h"

void bn_listing_tables(const char *dir, struct bn_names *out)
{
    struct dirent **found = NULL;
    int n = scandir(dir, &found, NULL, alphasort);
    out->n = 0;
    for (int i = 0; i < n; i++) {
        size_t len = strlen(found[i]->d_name);
        if (len > 5 && len < sizeof(out->name[0]) && out->n < BN_NAMES_MAX &&
            strcmp(found[i]->d_name + len - 5, ".json") == 0)
            (void)snprintf(out->name[out->n++], sizeof(out->name[0]), "%.*s", (int)len - 5,
                           found[i]->d_name);
        free(found[i]);
    }
    free(found);
}

/* "" when some server on this machine will do. */
static void find_reason(const struct bn_contender *c, const struct bn_program *program, size_t n,
                        char *out, size_t size)
{
    const char *first = json_string_value(json_array_get(json_object_get(c->list, "scenarios"), 0));
    (void)bn_contender_why_not(c, first ? first : "", n > 0 ? &program[0] : NULL, out, size);
    for (size_t i = 1; i < n && *out; i++)
        (void)bn_contender_why_not(c, first ? first : "", &program[i], out, size);
}

/* {"name", "title", "contenders", "scenarios"} of a table; NULL, said on stderr, when it cannot be read. */
static json_t *describe_table(const char *dir, const char *name)
{
    char path[700];
    char why[512];
    struct bn_choice choice = {.profile = "full", .n_cpus = bn_machine_n_cpus()};
    (void)snprintf(path, sizeof(path), "%s/%s.json", dir, name);
    struct bn_table *t = bn_table_load(path, &choice, why, sizeof(why));
    if (!t) {
        (void)fprintf(stderr, "lade-bench: %s\n", why);
        return NULL;
    }
    json_t *rows = json_array();
    for (size_t r = 0; r < t->n_rows; r++)
        (void)json_array_append_new(rows, json_string(t->rows[r].label));
    json_t *o = json_pack("{s:s,s:s,s:O,s:o}", "name", t->name, "title", t->title, "contenders",
                          json_object_get(t->spec, "contenders"), "rows", rows);
    bn_table_free(t);
    return o;
}

static json_t *describe_contender(struct bn_drivers *ds, struct bn_contender *c,
                                  const struct bn_program *program, size_t n)
{
    char reason[400];
    bn_contender_probe(ds, c);
    find_reason(c, program, n, reason, sizeof(reason));
    json_t *scenarios = json_object_get(c->list, "scenarios");
    return json_pack("{s:s,s:s,s:s,s:b,s:s,s:O?}", "name", c->name, "driver", c->driver->name,
                     "version", bn_contender_version(c), "runs", reason[0] == '\0', "reason",
                     reason, "scenarios", scenarios);
}

static void print_words(const json_t *words, const char *between)
{
    size_t i;
    json_t *w;
    json_array_foreach(words, i, w)
    {
        (void)printf("%s%s", i ? between : "", json_string_value(w));
    }
    (void)putchar('\n');
}

static void print_text(const json_t *all)
{
    size_t i;
    json_t *o;
    (void)puts("Tables");
    json_array_foreach(json_object_get(all, "tables"), i, o)
    {
        (void)printf("\n  %-10s %s\n             contenders: ",
                     json_string_value(json_object_get(o, "name")),
                     json_string_value(json_object_get(o, "title")));
        print_words(json_object_get(o, "contenders"), ", ");
        (void)printf("             rows: ");
        print_words(json_object_get(o, "rows"), ", ");
    }
    (void)puts("\nContenders\n");
    json_array_foreach(json_object_get(all, "contenders"), i, o)
    {
        bool runs = json_is_true(json_object_get(o, "runs"));
        (void)printf("  %-28s %s%s\n", json_string_value(json_object_get(o, "name")),
                     runs ? "runs here, version " : "not run: ",
                     json_string_value(json_object_get(o, runs ? "version" : "reason")));
        if (runs) {
            (void)printf("  %-28s scenarios: ", "");
            print_words(json_object_get(o, "scenarios"), ", ");
        }
    }
    (void)puts("\nServers\n");
    json_array_foreach(json_object_get(all, "servers"), i, o)
    {
        (void)printf("  %s\n", json_string_value(o));
    }
}

int bn_listing_print(const char *tables_dir, struct bn_drivers *drivers, bool json)
{
    static struct bn_program program[BN_SERVERS_MAX];
    struct bn_names names;
    int code = 0;
    json_t *all = json_pack("{s:[],s:[],s:[]}", "tables", "contenders", "servers");
    bn_listing_tables(tables_dir, &names);
    for (size_t i = 0; i < names.n; i++) {
        json_t *o = describe_table(tables_dir, names.name[i]);
        code |= o == NULL;
        if (o)
            (void)json_array_append_new(json_object_get(all, "tables"), o);
    }
    size_t n = bn_server_programs(drivers->peers, program);
    for (size_t i = 0; i < drivers->n_contenders; i++)
        (void)json_array_append_new(
            json_object_get(all, "contenders"),
            describe_contender(drivers, &drivers->contender[i], program, n));
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(
            json_object_get(all, "servers"),
            json_sprintf("%s %s, %s", program[i].name, program[i].version, program[i].path));
    if (json) {
        (void)json_dumpf(all, stdout, JSON_COMPACT);
        (void)putchar('\n');
    } else
        print_text(all);
    json_decref(all);
    return code;
}
