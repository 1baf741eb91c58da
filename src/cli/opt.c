/*
 * Options by table. getopt_long does the splitting; the tables say what each value is and where it goes, so that a
 * command never reads argv itself and every bad value is refused with the name of its option.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/arg.h"
#include "cli/cli.h"
#include "cli/text.h"

#define OPTS_MAX 64

static int set_output(void *values, const char *text, lade_err *err)
{
    static const char *const names[] = {"table", "json", "ndjson", "tsv"};

    struct cli *c = values;
    for (size_t i = 0; i < LB_ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            c->format = (enum cli_format)i;
            return 0;
        }
    }
    return lb_fail(err, LADE_EINVAL, "usage",
                   "--output: '%.40s' is unknown; give table, json, ndjson or tsv", text);
}

static int set_json(void *values, const char *text, lade_err *err)
{
    (void)text;
    (void)err;
    struct cli *c = values;
    c->format = CLI_JSON;
    return 0;
}

#define AT(member) offsetof(struct cli, member)

const struct cli_opt cli_globals[] = {
    {"url", 'u', CLI_OPT_TEXT, AT(url), "URL",
     "sqlite:PATH, redis://, rediss://, unix://, resque:// (default: env LADE_URL, else a file of yours)",
     0, 0, NULL},
    {"namespace", 'n', CLI_OPT_TEXT, AT(namespace_), "NAME", "first part of every Redis key", 0, 0,
     NULL},
    {"queue", 'q', CLI_OPT_TEXT, AT(queue), "QUEUE", "only this queue", 0, 0, NULL},
    {"output", 'o', CLI_OPT_CALL, 0, "FORMAT", "table, json, ndjson or tsv", 0, 0, set_output},
    {"json", 0, CLI_OPT_CALL, 0, NULL, "the same as -o json", 0, 0, set_json},
    {"quiet", 0, CLI_OPT_FLAG, AT(quiet), NULL, "no notes on stderr", 0, 0, NULL},
    {"no-color", 0, CLI_OPT_FLAG, AT(no_color), NULL, "no colours (env NO_COLOR)", 0, 0, NULL},
    {"yes", 'y', CLI_OPT_FLAG, AT(yes), NULL, "do not ask before something is removed", 0, 0, NULL},
    {"dry-run", 0, CLI_OPT_FLAG, AT(dry_run), NULL, "only say what would be done", 0, 0, NULL},
    {"help", 'h', CLI_OPT_FLAG, AT(help), NULL, "show this", 0, 0, NULL},
};
const size_t cli_n_globals = LB_ARRAY_LEN(cli_globals);

/* What one parse works on: the rows of both tables in the order getopt knows them. */
struct table {
    struct cli *c;
    void *values;
    const struct cli_opt *row[OPTS_MAX];
    bool given[OPTS_MAX];
    size_t n, n_global;
    struct option longs[OPTS_MAX + 1];
    char shorts[2 + 2 * OPTS_MAX + 1];
};

static void add_row(struct table *t, const struct cli_opt *o)
{
    LB_CHECK(t->n < OPTS_MAX);
    bool is_optional = o->arg && o->arg[0] == '[';
    int has = is_optional ? optional_argument : o->arg ? required_argument : no_argument;
    t->longs[t->n] = (struct option){o->name, has, NULL, (int)(256 + t->n)};
    t->row[t->n++] = o;
    if (o->letter) {
        size_t at = strlen(t->shorts);
        t->shorts[at++] = (char)o->letter;
        if (has == required_argument)
            t->shorts[at++] = ':';
        t->shorts[at] = '\0';
    }
}

static void make_table(struct table *t, const struct cli_command *command)
{
    /* ':' tells a missing argument from an unknown option; '+' stops at the first word. */
    (void)snprintf(t->shorts, sizeof(t->shorts), "%s", command ? ":" : "+:");
    for (size_t i = 0; i < cli_n_globals; i++)
        add_row(t, &cli_globals[i]);
    t->n_global = t->n;
    for (size_t i = 0; command && i < command->n_opts; i++)
        add_row(t, &command->opts[i]);
}

static size_t index_of(const struct table *t, int found)
{
    if (found >= 256)
        return (size_t)found - 256;
    for (size_t i = 0; i < t->n; i++) {
        if (t->row[i]->letter == found)
            return i;
    }
    return t->n;
}

static int fail_unknown(const struct table *t, const char *typed, lade_err *err)
{
    const char *names[OPTS_MAX];
    char word[64];
    for (size_t i = 0; i < t->n; i++)
        names[i] = t->row[i]->name;
    if (optopt >= 256 && index_of(t, optopt) < t->n)
        return lb_fail(err, LADE_EINVAL, "usage", "--%s: takes no value; leave it off",
                       t->row[index_of(t, optopt)]->name);
    if (strncmp(typed, "--", 2) != 0)
        return lb_fail(err, LADE_EINVAL, "usage", "-%c: unknown option; see --help",
                       optopt ? optopt : '?');
    (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
    const char *near = cli_nearest(word, names, t->n);
    if (near)
        return lb_fail(err, LADE_EINVAL, "usage", "--%.40s: unknown option; did you mean --%s?",
                       word, near);
    return lb_fail(err, LADE_EINVAL, "usage", "--%.40s: unknown option; see --help", word);
}

static int set_value(struct table *t, size_t i, const char *text, lade_err *err)
{
    const struct cli_opt *o = t->row[i];
    char *base = i < t->n_global ? (char *)t->c : t->values;
    void *at = base + o->at;
    char name[40];
    (void)snprintf(name, sizeof(name), "--%s", o->name);
    switch (o->kind) {
    case CLI_OPT_FLAG:
        *(bool *)at = true;
        return 0;
    case CLI_OPT_TEXT:
        /* Of the global ones the last holds, so that an alias may set them. */
        if (i >= t->n_global && t->given[i])
            return lb_fail(err, LADE_EINVAL, "usage", "%s: given twice; give it once", name);
        t->given[i] = true;
        *(const char **)at = text;
        return 0;
    case CLI_OPT_INT:
        return cli_arg_int(name, text, (struct cli_range){o->min, o->max}, at, err);
    case CLI_OPT_SIZE:
        return cli_arg_size(name, text, (struct cli_range){o->min, o->max}, at, err);
    case CLI_OPT_DURATION:
        return cli_arg_duration(name, text, (struct cli_range){o->min, o->max}, at, err);
    case CLI_OPT_CALL:
        return o->call(base, text, err);
    }
    return 0;
}

int cli_opt_parse(struct cli *c, const struct cli_command *command, void *values, int argc,
                  char **argv, int *at, lade_err *err)
{
    struct table t = {.c = c, .values = values};
    make_table(&t, command);
    /* 0 makes glibc start over; it takes argv[0] for the program's name. */
    optind = 0;
    opterr = 0;
    char **from = argv + *at - 1;
    int n = argc - *at + 1;
    for (;;) {
        int found = getopt_long(n, from, t.shorts, t.longs, NULL);
        if (found == -1)
            break;
        if (found == '?')
            return fail_unknown(&t, from[optind - 1], err);
        if (found == ':') {
            size_t i = index_of(&t, optopt);
            return lb_fail(err, LADE_EINVAL, "usage", "--%s: needs a value; give %s",
                           t.row[i]->name, t.row[i]->arg);
        }
        int rc = set_value(&t, index_of(&t, found), optarg, err);
        if (rc < 0)
            return rc;
    }
    *at += optind - 1;
    return 0;
}
