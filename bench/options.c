#include "bench/options.h"

#include <lade/lade.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/session.h"

static const char help[] =
    "usage: lade-bench run TABLE[,TABLE...] [options]    run tables, write a report\n"
    "       lade-bench list [-o json]                    tables, scenarios, contenders: what can run here\n"
    "       lade-bench build [--peers a,b]               build the peers' drivers (uses the network)\n"
    "\n"
    "Measures lade beside other queues and runtimes: runs are interleaved, each run's work is checked, and\n"
    "the report gives medians with confidence intervals. TABLE is one of `lade-bench list`, or `all`.\n"
    "Private servers are started and ended; the user's are never touched.\n"
    "\n"
    "  --peers a,b            only these contenders beside lade's own; none: lade alone\n"
    "  --scenario a,b         only these scenarios\n"
    "  --profile P            full, smoke or quick: counts and repeats\n"
    "  --quick                the same as --profile quick\n"
    "  --repeats N            measured runs of each cell, 1 to 101\n"
    "  --warmup N             runs of each cell that are thrown away first\n"
    "  --scale S              multiplies the counts of jobs\n"
    "  --discard-slowest K    leaves out the K slowest runs of each cell\n"
    "  --format F             to standard output: markdown, jsonl (each run) or csv; -o json: each figure. Without it the figures\n"
    "                         and targets; the whole report is always in the folder\n"
    "  --out DIR              report.md, summary.csv, raw.jsonl and plots; default build/bench/TABLE-TIME\n"
    "  --set KEY=VALUE        replaces a parameter where a row has it\n"
    "  -tasks N -concurrency N -producers N -payload N -chainlen N -groupsize N    the same for these\n"
    "  --impl NAME=PATH       another binary for a contender\n"
    "  --transport T          unix or tcp, instead of the table's\n"
    "  --deadline SECONDS     longest one run may take\n"
    "  --help, --version\n"
    "\n"
    "example: lade-bench run chronos --peers asynq,chronos-go --repeats 5\n"
    "         lade-bench run chasqui --repeats 5 --scale 5 --discard-slowest 1 --format jsonl\n";

enum {
    OPT_PEERS = 256,
    OPT_SCENARIO,
    OPT_PROFILE,
    OPT_QUICK,
    OPT_REPEATS,
    OPT_WARMUP,
    OPT_SCALE,
    OPT_DISCARD,
    OPT_FORMAT,
    OPT_OUT,
    OPT_SET,
    OPT_IMPL,
    OPT_TRANSPORT,
    OPT_DEADLINE,
    OPT_VERSION,
    OPT_HELP,
    OPT_PARAM /* and above: index into params */
};

/* The originals' names for what our rows call otherwise. */
static const struct {
    const char *flag;
    const char *param[3];
} params[] = {
    {"tasks", {"n", "bench", NULL}},      {"concurrency", {"concurrency", NULL, NULL}},
    {"producers", {"producers", NULL}},   {"payload", {"payload", NULL, NULL}},
    {"chainlen", {"length", NULL, NULL}}, {"groupsize", {"size", NULL, NULL}},
    {"threads", {"threads", NULL, NULL}},
};

#define N_PARAMS (sizeof(params) / sizeof(params[0]))

static int complain(const char *what, const char *value)
{
    (void)fprintf(stderr, "lade-bench: %s%s%s; see lade-bench --help\n", what, value ? ": " : "",
                  value ? value : "");
    return 3;
}

static bool parse_number(const char *text, double min, double max, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= min && *out <= max;
}

static bool parse_count(const char *text, int min, int max, int *out)
{
    double v = 0;
    if (!parse_number(text, min, max, &v))
        return false;
    *out = (int)v;
    return (double)*out >= v && (double)*out <= v; /* whole */
}

static bool parse_format(struct bn_options *o, const char *text, bool short_form)
{
    static const char *const name[] = {"markdown", "jsonl", "csv", "json"};
    o->format_given = true;
    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        if (strcmp(text, name[i]) == 0) {
            o->format = (enum bn_format)i;
            return i != BN_JSON || short_form;
        }
    }
    return false;
}

static bool is_word_of(const char *text, const char *list)
{
    return bn_is_listed(list, text);
}

static bool set_param(struct bn_options *o, const char *key, const char *value)
{
    return json_object_set_new(o->set, key, json_string(value)) == 0;
}

static bool parse_set(struct bn_options *o, const char *pair)
{
    char key[64];
    const char *eq = strchr(pair, '=');
    if (!eq || eq == pair || (size_t)(eq - pair) >= sizeof(key))
        return false;
    (void)snprintf(key, sizeof(key), "%.*s", (int)(eq - pair), pair);
    return set_param(o, key, eq + 1);
}

static bool parse_param(struct bn_options *o, size_t i, const char *value)
{
    double v = 0;
    bool good = parse_number(value, 1, 1e12, &v);
    for (size_t k = 0; k < 3 && params[i].param[k] && good; k++)
        good = set_param(o, params[i].param[k], value);
    return good;
}

/* One option; false when its value is not allowed. */
static bool take_option(struct bn_options *o, int c, const char *value)
{
    switch (c) {
    case OPT_PEERS:
        o->peers = value;
        return true;
    case OPT_SCENARIO:
        o->scenarios = value;
        return true;
    case OPT_PROFILE:
        o->profile = value;
        return is_word_of(value, "full,smoke,quick");
    case OPT_QUICK:
        o->profile = "quick";
        return true;
    case OPT_REPEATS:
        return parse_count(value, 1, BN_REPEATS_MAX, &o->repeats);
    case OPT_WARMUP:
        return parse_count(value, 0, BN_REPEATS_MAX, &o->warmup);
    case OPT_SCALE:
        return parse_number(value, 1e-6, 1e6, &o->scale);
    case OPT_DISCARD:
        return parse_count(value, 0, BN_REPEATS_MAX, &o->discard);
    case OPT_FORMAT:
        return parse_format(o, value, false);
    case 'o':
        return parse_format(o, value, true);
    case OPT_OUT:
        o->out = value;
        return *value != '\0';
    case OPT_SET:
        return parse_set(o, value);
    case OPT_IMPL:
        o->impl[o->n_impls % BN_IMPLS_MAX] = value;
        return strchr(value, '=') && ++o->n_impls <= BN_IMPLS_MAX;
    case OPT_TRANSPORT:
        o->transport = value;
        return is_word_of(value, "unix,tcp");
    case OPT_DEADLINE:
        return parse_number(value, 0.1, 86400, &o->deadline_s);
    default:
        return parse_param(o, (size_t)(c - OPT_PARAM), value);
    }
}

static bool split_tables(struct bn_options *o, char *list)
{
    for (char *at = list; at && *at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        if (o->n_tables == BN_TABLES_MAX)
            return false;
        if (*at)
            o->tables[o->n_tables++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

static int take_words(struct bn_options *o, int argc, char **argv)
{
    if (argc < 1)
        return complain("a command is missing: run, list or build", NULL);
    o->command = argv[0];
    if (!is_word_of(o->command, "run,list,build"))
        return complain("no such command", o->command);
    for (int i = 1; i < argc; i++) {
        if (!split_tables(o, argv[i]))
            return complain("too many tables", argv[i]);
    }
    if (strcmp(o->command, "run") == 0 && o->n_tables == 0)
        return complain("run which table? `lade-bench list` has them", NULL);
    return 0;
}

int bn_options_parse(int argc, char **argv, struct bn_options *o)
{
    static const struct option fixed[] = {{"peers", required_argument, NULL, OPT_PEERS},
                                          {"scenario", required_argument, NULL, OPT_SCENARIO},
                                          {"profile", required_argument, NULL, OPT_PROFILE},
                                          {"quick", no_argument, NULL, OPT_QUICK},
                                          {"repeats", required_argument, NULL, OPT_REPEATS},
                                          {"warmup", required_argument, NULL, OPT_WARMUP},
                                          {"scale", required_argument, NULL, OPT_SCALE},
                                          {"discard-slowest", required_argument, NULL, OPT_DISCARD},
                                          {"format", required_argument, NULL, OPT_FORMAT},
                                          {"out", required_argument, NULL, OPT_OUT},
                                          {"set", required_argument, NULL, OPT_SET},
                                          {"impl", required_argument, NULL, OPT_IMPL},
                                          {"transport", required_argument, NULL, OPT_TRANSPORT},
                                          {"deadline", required_argument, NULL, OPT_DEADLINE},
                                          {"version", no_argument, NULL, OPT_VERSION},
                                          {"help", no_argument, NULL, OPT_HELP}};

    enum { N_FIXED = sizeof(fixed) / sizeof(fixed[0]) };
    struct option longs[N_FIXED + N_PARAMS + 1] = {0};
    memcpy(longs, fixed, sizeof(fixed));
    for (size_t i = 0; i < N_PARAMS; i++)
        longs[N_FIXED + i] =
            (struct option){params[i].flag, required_argument, NULL, OPT_PARAM + (int)i};
    *o = (struct bn_options){.warmup = -1, .set = json_object()};
    opterr = 0; /* we say it */
    int at = -1;
    for (int c; (c = getopt_long_only(argc, argv, "o:h", longs, &at)) >= 0; at = -1) {
        if (c == 'h' || c == OPT_HELP)
            return fputs(help, stdout) < 0 ? 2 : 1;
        if (c == OPT_VERSION)
            return printf("lade-bench %s\n", lade_version()) < 0 ? 2 : 1;
        if (c == '?')
            return complain("unknown option, or one whose value is missing", argv[optind - 1]);
        if (!take_option(o, c, optarg)) {
            char what[64];
            (void)snprintf(what, sizeof(what), "--%s has a bad value",
                           at < 0 ? "o" : longs[at].name);
            return complain(at < 0 ? what + 1 : what, optarg);
        }
    }
    return take_words(o, argc - optind, argv + optind);
}
