/*
 * settings.c - see settings.h
 *
 * One table says what there is. Names, defaults and variables are those of redis-performance/resque-benchmark, with more of our own.
 * Numbers and words that cannot be read exit with 2, values that are not allowed with 1 and a line that names the flag.
 */
#include "resque_bench/settings.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "resque_bench/words.h"

enum kind { TEXT, SECRET, NUMBER, FLAG };

struct setting {
    const char *name;
    enum kind kind;
    size_t at;
    const char *env;
    int64_t min, max;
    const char *too_small; /* why min; NULL = "must be > 0" or the range */
};

#define AT(field) offsetof(struct rb_options, field)
#define YEAR_S    31536000
#define DAY_MS    86400000

static const struct setting setting[] = {
    {"url", TEXT, AT(url), "REDIS_URL", 0, 0, NULL},
    {"host", TEXT, AT(host), NULL, 0, 0, NULL},
    {"port", NUMBER, AT(port), NULL, 1, 65535, NULL},
    {"user", TEXT, AT(user), NULL, 0, 0, NULL},
    {"password", SECRET, AT(password), "REDIS_PASSWORD", 0, 0, NULL},
    {"password-file", TEXT, AT(password_file), NULL, 0, 0, NULL},
    {"tls", FLAG, AT(tls), "REDIS_TLS", 0, 0, NULL},
    {"tls-ca", TEXT, AT(tls_ca), NULL, 0, 0, NULL},
    {"tls-cert", TEXT, AT(tls_cert), NULL, 0, 0, NULL},
    {"tls-key", TEXT, AT(tls_key), NULL, 0, 0, NULL},
    {"tls-sni", TEXT, AT(tls_sni), NULL, 0, 0, NULL},
    {"tls-insecure", FLAG, AT(insecure), "REDIS_TLS_INSECURE", 0, 0, NULL},
    {"insecure", FLAG, AT(insecure), NULL, 0, 0, NULL},
    {"db", NUMBER, AT(db), NULL, 0, LS_REDIS_DB_MAX, NULL},
    {"namespace", TEXT, AT(namespace_), NULL, 0, 0, NULL},
    {"workers", TEXT, AT(workers_text), NULL, 0, 0, NULL},
    {"modes", TEXT, AT(modes_text), NULL, 0, 0, NULL},
    {"connections", NUMBER, AT(connections), NULL, 0, RB_WORKERS_MAX, NULL},
    {"jobs", NUMBER, AT(jobs), NULL, 1, INT64_C(1000000000000), NULL},
    {"warmup-jobs", NUMBER, AT(warmup), NULL, 0, INT64_C(1000000000000), NULL},
    {"payload-size", NUMBER, AT(payload_size), NULL, 0, RB_PAYLOAD_MAX, NULL},
    {"queue", TEXT, AT(queue), NULL, 0, 0, NULL},
    {"num-queues", NUMBER, AT(n_queues), NULL, 1, RB_QUEUES_MAX, NULL},
    {"latency-percentiles", TEXT, AT(percentiles_text), NULL, 0, 0, NULL},
    {"tag", TEXT, AT(tag), NULL, 0, 0, NULL},
    {"output", TEXT, AT(output), NULL, 0, 0, NULL},
    {"timeout", NUMBER, AT(timeout_s), NULL, 1, YEAR_S, NULL},
    {"quiet", FLAG, AT(quiet), NULL, 0, 0, NULL},
    {"allow-flushdb", FLAG, AT(allow_flushdb), "RESQUE_BENCH_ALLOW_FLUSHDB", 0, 0, NULL},
    {"yes-destroy", FLAG, AT(yes_destroy), NULL, 0, 0, NULL},
    {"force", FLAG, AT(force), NULL, 0, 0, NULL},
    {"poll-interval-ms", NUMBER, AT(interval_ms), NULL, 1, DAY_MS, NULL},
    {"poll-min-ms", NUMBER, AT(min_ms), NULL, 1, DAY_MS, NULL},
    {"poll-max-ms", NUMBER, AT(max_ms), NULL, 1, DAY_MS, NULL},
    {"poll-backoff-ms", NUMBER, AT(backoff_ms), NULL, 0, DAY_MS, NULL},
    {"poll-profile", TEXT, AT(profile_text), NULL, 0, 0, NULL},
    {"poll-start", TEXT, AT(start_text), NULL, 0, 0, NULL},
    {"dynamic-queues", FLAG, AT(dynamic), NULL, 0, 0, NULL},
    {"block-timeout-s", NUMBER, AT(block_s), NULL, 0, YEAR_S, NULL},
    {"idle-poll-duration-s", NUMBER, AT(idle_s), NULL, 1, YEAR_S, NULL},
    {"no-idle", FLAG, AT(no_idle), NULL, 0, 0, NULL},
    {"pickup-jobs", NUMBER, AT(pickup_jobs), NULL, 0, 1000000, NULL},
    {"pickup-gap-ms", NUMBER, AT(pickup_gap_ms), NULL, 1, DAY_MS, NULL},
    {"rate", NUMBER, AT(rate), NULL, 0, 10000000, NULL},
    {"rate-duration-s", NUMBER, AT(rate_s), NULL, 1, YEAR_S, NULL},
};

static char *password_text; /* read from --password-file */

static void say(const char *format, ...) LADE_PRINTF(1, 2);

static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("Error: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

static void set_defaults(struct rb_options *o)
{
    *o = (struct rb_options){
        .url = "redis://127.0.0.1:6379/13",
        .port = -1,
        .db = -1,
        .workers_text = "10,50,100,200",
        .modes_text = "poll",
        .percentiles_text = "p50,p90,p99,p999,max",
        .jobs = 500000,
        .payload_size = 6,
        .n_queues = 1,
        .timeout_s = 300,
        .idle_s = 30,
        .interval_ms = -1,
        .min_ms = -1,
        .max_ms = -1,
        .backoff_ms = -1,
        .profile_text = "plain",
        .start_text = "spread",
        .block_s = 5,
        .pickup_jobs = -1,
        .pickup_gap_ms = 100,
        .rate_s = 10,
    };
    (void)snprintf(o->own_queue, sizeof(o->own_queue), "bench:%d", (int)getpid());
    o->queue = o->own_queue;
}

/* Fields by their place in the options, as the table names them. */
static void *field(struct rb_options *o, const struct setting *s)
{
    return (char *)o + s->at;
}

static bool set_flag(struct rb_options *o, const struct setting *s, const char *text)
{
    static const char *const yes[] = {"1", "true", "yes"};
    static const char *const no[] = {"0", "false", "no", ""};
    bool *at = field(o, s);
    for (size_t i = 0; i < LB_ARRAY_LEN(yes); i++)
        if (strcasecmp(text, yes[i]) == 0) {
            *at = true;
            return true;
        }
    for (size_t i = 0; i < LB_ARRAY_LEN(no); i++)
        if (strcasecmp(text, no[i]) == 0)
            return true;
    return false;
}

/* 0, or what to exit with. */
static enum rb_settled set_number(struct rb_options *o, const struct setting *s, const char *text)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (!*text || *end || errno || strchr(" \t\n+-", text[0])) {
        say("--%s needs a whole number, not '%.40s'", s->name, text);
        return RB_EXIT_USAGE;
    }
    if (v < s->min && s->min == 1) {
        say("--%s must be > 0", s->name);
        return RB_EXIT_INVALID;
    }
    if (v < s->min || v > s->max) {
        say("--%s must be %lld to %lld, not %lld", s->name, (long long)s->min, (long long)s->max,
            v);
        return RB_EXIT_INVALID;
    }
    int64_t *at = field(o, s);
    *at = v;
    return RB_GO;
}

static enum rb_settled set(struct rb_options *o, const struct setting *s, const char *text)
{
    if (s->kind == NUMBER)
        return set_number(o, s, text);
    const char **at = field(o, s);
    *at = text;
    return RB_GO;
}

static enum rb_settled read_env(struct rb_options *o)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(setting); i++) {
        const struct setting *s = &setting[i];
        const char *text = s->env ? getenv(s->env) : NULL;
        if (!text)
            continue;
        if (s->kind == FLAG) {
            if (!set_flag(o, s, text)) {
                say("%s must be 1, true, yes, 0, false, no or empty", s->env);
                return RB_EXIT_USAGE;
            }
        } else if (*text) {
            enum rb_settled rc = set(o, s, text);
            if (rc != RB_GO)
                return rc;
        }
    }
    return RB_GO;
}

/* What ps shows of a secret is taken away; the program keeps a copy. */
static const char *hide(char *text)
{
    size_t n = strlen(text);
    lb_free(password_text);
    password_text = lb_strdup(text);
    memset(text, '*', n);
    return password_text;
}

static void hide_url(struct rb_options *o, char *text)
{
    static char *copy;
    char *at = strrchr(text, '@');
    char *from = strstr(text, "://");
    char *option = strstr(text, "password=");
    if (!(at && from && at > from) && !option)
        return;
    lb_free(copy);
    copy = lb_strdup(text);
    if (!copy)
        return;
    o->url = copy;
    if (at && from && at > from)
        memset(from + 3, '*', (size_t)(at - from - 3));
    if (option)
        memset(option + 9, '*', strcspn(option + 9, "&"));
}

#define LONG_FIRST 256

/* Names the flag and nothing that stands behind its '=': that may be a secret. */
static enum rb_settled refuse_flag(char *const *argv, int c)
{
    const char *word = argv[optind - 1];
    if (c == '?' && optopt > 0 && optopt < LONG_FIRST)
        say("-%c is no flag; see resque-bench --help", optopt);
    else if (c == ':' || optopt >= LONG_FIRST)
        say("%.*s %s; see resque-bench --help", (int)strcspn(word, "="), word,
            c == ':' ? "needs a value" : "takes no value");
    else
        say("%.*s is no flag, or short for several; see resque-bench --help",
            (int)strcspn(word, "="), word);
    return RB_EXIT_USAGE;
}

static enum rb_settled read_args(struct rb_options *o, int argc, char **argv)
{
    struct option option[LB_ARRAY_LEN(setting) + 3] = {{0}};
    for (size_t i = 0; i < LB_ARRAY_LEN(setting); i++)
        option[i] =
            (struct option){.name = setting[i].name,
                            .has_arg = setting[i].kind == FLAG ? no_argument : required_argument,
                            .val = LONG_FIRST + (int)i};
    option[LB_ARRAY_LEN(setting)] = (struct option){"help", no_argument, NULL, 'h'};
    option[LB_ARRAY_LEN(setting) + 1] = (struct option){"version", no_argument, NULL, 'V'};
    opterr = 0; /* getopt's own messages show what stands behind a flag */
    for (;;) {
        int c = getopt_long(argc, argv, ":hV", option, NULL);
        if (c == -1)
            break;
        if (c == 'h') {
            rb_settings_help(stdout);
            return RB_EXIT_OK;
        }
        if (c == 'V') {
            (void)printf("resque-bench %s (lade)\n", LADE_VERSION);
            return RB_EXIT_OK;
        }
        if (c < LONG_FIRST)
            return refuse_flag(argv, c);
        const struct setting *s = &setting[c - LONG_FIRST];
        if (s->kind == FLAG) {
            bool *at = field(o, s);
            *at = true;
            continue;
        }
        enum rb_settled rc = set(o, s, optarg);
        if (rc != RB_GO)
            return rc;
        if (s->kind == SECRET)
            o->password = hide(optarg);
        if (s->at == AT(url))
            hide_url(o, optarg);
    }
    if (optind < argc) {
        say("argument %d stands behind no flag; see resque-bench --help", optind);
        return RB_EXIT_USAGE;
    }
    return RB_GO;
}

/* lists ------------------------------------------------------------------------------------------------------------ */

/* Cuts the next word off a list; false at its end. Empty words are words. */
static bool next_word(const char **list, char word[64])
{
    if (!*list)
        return false;
    size_t n = strcspn(*list, ",");
    (void)snprintf(word, 64, "%.*s", (int)LB_MIN(n, (size_t)63), *list);
    *list = (*list)[n] ? *list + n + 1 : NULL;
    return true;
}

static enum rb_settled read_workers(struct rb_options *o)
{
    const char *list = o->workers_text;
    char word[64];
    if (!*list) {
        say("--workers needs at least one concurrency level, such as --workers 10,50");
        return RB_EXIT_INVALID;
    }
    while (next_word(&list, word)) {
        char *end;
        unsigned long n = strtoul(word, &end, 10);
        if (!*word || *end || word[0] < '0' || word[0] > '9') {
            say("--workers needs whole numbers with commas between them, not '%s'", word);
            return RB_EXIT_USAGE;
        }
        if (n == 0) {
            say("--workers must not contain 0: nobody would take the jobs, and the trial would only wait for --timeout");
            return RB_EXIT_INVALID;
        }
        if (n > RB_WORKERS_MAX || o->n_workers == RB_TRIALS_MAX) {
            say("--workers takes at most %d numbers of at most %d", RB_TRIALS_MAX, RB_WORKERS_MAX);
            return RB_EXIT_INVALID;
        }
        o->workers[o->n_workers++] = n;
    }
    return RB_GO;
}

static enum rb_settled read_modes(struct rb_options *o)
{
    const char *list = o->modes_text;
    char word[64];
    while (next_word(&list, word)) {
        size_t m = 0;
        while (m < RB_N_MODES && strcmp(word, rb_mode_name[m]) != 0)
            m++;
        if (m == RB_N_MODES) {
            say("--modes knows poll, blpop, blmove and native, not '%s'", word);
            return RB_EXIT_USAGE;
        }
        if (o->connections > 0 && (m == RB_BLPOP || m == RB_BLMOVE)) {
            say("--connections shares connections between workers, and --modes %s would block those it shares with",
                word);
            return RB_EXIT_INVALID;
        }
        for (size_t i = 0; i < o->n_modes; i++)
            if (o->modes[i] == (enum rb_mode)m) {
                say("--modes names %s twice", word);
                return RB_EXIT_INVALID;
            }
        if (m == RB_BLMOVE && o->n_queues > 1) {
            say("--modes blmove works one queue only, since BLMOVE takes one source; use blpop, or --num-queues 1");
            return RB_EXIT_INVALID;
        }
        o->modes[o->n_modes++] = (enum rb_mode)m;
    }
    return RB_GO;
}

static enum rb_settled read_percentiles(struct rb_options *o)
{
    const char *list = o->percentiles_text;
    char word[64];
    while (next_word(&list, word)) {
        lade_err err;
        struct rb_percentile p;
        if (rb_percentile_parse(&p, word, &err) < 0) {
            say("%s", err.text);
            return RB_EXIT_INVALID;
        }
        bool seen = false;
        for (size_t i = 0; i < o->n_percentiles; i++)
            seen |= strcmp(o->percentile[i].name, p.name) == 0;
        if (seen)
            continue;
        if (o->n_percentiles == RB_PERCENTILES_MAX) {
            say("--latency-percentiles takes at most %d", RB_PERCENTILES_MAX);
            return RB_EXIT_INVALID;
        }
        o->percentile[o->n_percentiles++] = p;
    }
    return RB_GO;
}

/* rest ------------------------------------------------------------------------------------------------------------- */

static enum rb_settled read_choices(struct rb_options *o)
{
    o->resque_profile = strcmp(o->profile_text, "resque") == 0;
    if (!o->resque_profile && strcmp(o->profile_text, "plain") != 0) {
        say("--poll-profile must be plain or resque, not '%.40s'", o->profile_text);
        return RB_EXIT_USAGE;
    }
    o->start = strcmp(o->start_text, "together") == 0 ? RB_TOGETHER : RB_SPREAD;
    if (o->start == RB_SPREAD && strcmp(o->start_text, "spread") != 0) {
        say("--poll-start must be spread or together, not '%.40s'", o->start_text);
        return RB_EXIT_USAGE;
    }
    if (o->dynamic && !o->resque_profile) {
        say("--dynamic-queues is part of --poll-profile resque: give both");
        return RB_EXIT_INVALID;
    }
    if (!*o->queue || strlen(o->queue) > 200) {
        say("--queue must have 1 to 200 bytes");
        return RB_EXIT_INVALID;
    }
    return RB_GO;
}

/* Resque's meaning of interval, min, max and backoff, in the original's default: one fixed interval. */
static enum rb_settled read_pace(struct rb_options *o)
{
    int64_t interval = o->interval_ms >= 0 ? o->interval_ms : o->min_ms >= 0 ? o->min_ms : 5000;
    int64_t max = o->max_ms >= 0 ? o->max_ms : interval;
    int64_t min = o->min_ms >= 0 ? o->min_ms : LB_MIN(interval, max);
    if (min > max) {
        say("--poll-min-ms (%lld) must not be over --poll-max-ms (%lld)", (long long)min,
            (long long)max);
        return RB_EXIT_INVALID;
    }
    o->interval_ms = interval;
    o->min_ms = min;
    o->max_ms = max;
    o->backoff_ms = LB_MAX(o->backoff_ms, 0);
    o->pace = (struct rq_pace_opts){.interval = interval * LADE_MILLISECOND,
                                    .min = min * LADE_MILLISECOND,
                                    .max = max * LADE_MILLISECOND,
                                    .backoff = o->backoff_ms * LADE_MILLISECOND};
    if (interval < 10)
        (void)fprintf(stderr,
                      "Warning: --poll-interval-ms %lld makes %lld LPOP/s for each idle worker\n",
                      (long long)interval, (long long)(1000 / interval));
    return RB_GO;
}

static enum rb_settled read_password(struct rb_options *o)
{
    if (!o->password_file)
        return RB_GO;
    char text[1024];
    FILE *f = fopen(o->password_file, "re");
    bool ok = f && fgets(text, sizeof(text), f);
    if (f)
        (void)fclose(f);
    if (!ok) {
        say("--password-file: cannot read a line of %.150s: %s", o->password_file,
            f ? "it is empty" : strerrordesc_np(errno));
        return RB_EXIT_INVALID;
    }
    text[strcspn(text, "\r\n")] = 0;
    o->password = hide(text);
    return RB_GO;
}

static enum rb_settled check(struct rb_options *o)
{
    static enum rb_settled (*const step[])(struct rb_options *) = {
        read_workers, read_modes, read_percentiles, read_choices, read_pace, read_password};

    for (size_t i = 0; i < LB_ARRAY_LEN(step); i++) {
        enum rb_settled rc = step[i](o);
        if (rc != RB_GO)
            return rc;
    }
    lade_err err;
    struct rq_keys keys;
    if ((o->output && strcmp(o->output, "-") != 0 && rb_output_check(o->output, &err) < 0) ||
        rq_keys_init(&keys, o->namespace_, &err) < 0) {
        say("%s", err.text);
        return RB_EXIT_INVALID;
    }
    if (o->pickup_jobs < 0) /* a comparison of modes is about this too */
        o->pickup_jobs = o->n_modes > 1 ? 100 : 0;
    for (size_t i = 0; i < o->n_workers; i++)
        for (size_t m = 0; m < o->n_modes; m++)
            if (o->modes[m] == RB_NATIVE && o->workers[i] > RB_NATIVE_MAX) {
                say("--workers %zu is more than mode native has: at most %d slots", o->workers[i],
                    RB_NATIVE_MAX);
                return RB_EXIT_INVALID;
            }
    for (size_t i = 0; i < o->n_workers; i++)
        if (o->workers[i] > 5000) {
            (void)fprintf(
                stderr,
                "Warning: %zu workers need as many descriptors and as many of the server's maxclients\n",
                o->workers[i]);
            break;
        }
    return RB_GO;
}

enum rb_settled rb_settings_read(struct rb_options *o, int argc, char **argv)
{
    set_defaults(o);
    enum rb_settled rc = read_env(o);
    if (rc == RB_GO)
        rc = read_args(o, argc, argv);
    return rc == RB_GO ? check(o) : rc;
}

void rb_settings_fini(void)
{
    lb_free(password_text);
    password_text = NULL;
}
