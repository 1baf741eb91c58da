/* deadopt.h - the options that say which dead jobs, for the commands about them. Thread safety: none. */
#ifndef LADE_CLI_DEADOPT_H
#define LADE_CLI_DEADOPT_H

#include "cli/arg.h"
#include "cli/cli.h"

/* The first member of a command's values. */
struct cli_dead_filter {
    const char *class_id, *kind, *reason;
    int64_t older, newer; /* ages, ns; 0 = not given */
    int64_t before, before_in;
};

/* "class=ID" and so on. */
LADE_CHECKED int cli_dead_where(struct cli_dead_filter *f, const char *text, lade_err *err);
bool cli_dead_is_filtered(const struct cli_dead_filter *f);
/* Ages into times of the store's clock. */
LADE_CHECKED int cli_dead_resolve(struct cli *c, const struct cli_dead_filter *f,
                                  lade_dead_filter *out, lade_err *err);

static inline int cli_dead_set_where(void *values, const char *text, lade_err *err)
{
    return cli_dead_where(values, text, err);
}

static inline int cli_dead_set_before(void *values, const char *text, lade_err *err)
{
    struct cli_dead_filter *f = values;
    return cli_arg_time("--before", text, &f->before, &f->before_in, err);
}

#define CLI_DEAD_FILTER_OPTS                                                                        \
    {"class",                                                                                       \
     0,                                                                                             \
     CLI_OPT_TEXT,                                                                                  \
     offsetof(struct cli_dead_filter, class_id),                                                    \
     "CLASS",                                                                                       \
     "only this class; see lade dead classes",                                                      \
     0,                                                                                             \
     0,                                                                                             \
     NULL},                                                                                         \
        {"kind", 0, CLI_OPT_TEXT, offsetof(struct cli_dead_filter, kind), "KIND", "only this kind", \
         0,      0, NULL},                                                                          \
        {"reason",                                                                                  \
         0,                                                                                         \
         CLI_OPT_TEXT,                                                                              \
         offsetof(struct cli_dead_filter, reason),                                                  \
         "REASON",                                                                                  \
         "exhausted, killed, quarantined or unrecoverable",                                         \
         0,                                                                                         \
         0,                                                                                         \
         NULL},                                                                                     \
        {"where",                                                                                   \
         0,                                                                                         \
         CLI_OPT_CALL,                                                                              \
         0,                                                                                         \
         "WHAT=VALUE",                                                                              \
         "the same as class=, kind=, reason=; may be repeated",                                     \
         0,                                                                                         \
         0,                                                                                         \
         cli_dead_set_where},                                                                       \
        {"older",                                                                                   \
         0,                                                                                         \
         CLI_OPT_DURATION,                                                                          \
         offsetof(struct cli_dead_filter, older),                                                   \
         "DURATION",                                                                                \
         "only those dead for longer",                                                              \
         1,                                                                                         \
         CLI_DURATION_MAX,                                                                          \
         NULL},                                                                                     \
        {"newer",                                                                                   \
         0,                                                                                         \
         CLI_OPT_DURATION,                                                                          \
         offsetof(struct cli_dead_filter, newer),                                                   \
         "DURATION",                                                                                \
         "only those dead for less",                                                                \
         1,                                                                                         \
         CLI_DURATION_MAX,                                                                          \
         NULL},                                                                                     \
    {                                                                                               \
        "before", 0, CLI_OPT_CALL, 0, "TIME", "only those that died before", 0, 0,                  \
            cli_dead_set_before                                                                     \
    }

#endif
