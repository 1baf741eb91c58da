/*
 * schedule_rule.h - the options of a rule, for the commands that take one
 *
 * What is typed is kept as text until the store's time is known, from which +10m counts.
 */
#ifndef LADE_CLI_SCHEDULE_RULE_H
#define LADE_CLI_SCHEDULE_RULE_H

#include "cli/arg.h"
#include "cli/cli.h"

struct cli_rule {
    const char *cron, *tz, *anchor, *gap, *fold, *start, *end;
    int64_t every, jitter;
};

/* Rows of an option table; `at` is the offset of the struct cli_rule in the values. */
#define CLI_RULE_OPTS(at)                                                      \
    {"cron",                                                                   \
     0,                                                                        \
     CLI_OPT_TEXT,                                                             \
     (at) + offsetof(struct cli_rule, cron),                                   \
     "EXPRESSION",                                                             \
     "five fields, six with seconds first, or @daily",                         \
     0,                                                                        \
     0,                                                                        \
     NULL},                                                                    \
        {"every",                                                              \
         0,                                                                    \
         CLI_OPT_DURATION,                                                     \
         (at) + offsetof(struct cli_rule, every),                              \
         "DURATION",                                                           \
         "instead of --cron; 1s or more",                                      \
         0,                                                                    \
         CLI_DURATION_MAX,                                                     \
         NULL},                                                                \
        {"anchor",                                                             \
         0,                                                                    \
         CLI_OPT_TEXT,                                                         \
         (at) + offsetof(struct cli_rule, anchor),                             \
         "epoch|start|TIME",                                                   \
         "what --every counts from (default epoch)",                           \
         0,                                                                    \
         0,                                                                    \
         NULL},                                                                \
        {"tz",                                                                 \
         0,                                                                    \
         CLI_OPT_TEXT,                                                         \
         (at) + offsetof(struct cli_rule, tz),                                 \
         "ZONE",                                                               \
         "Europe/Berlin, +02:00 (default UTC)",                                \
         0,                                                                    \
         0,                                                                    \
         NULL},                                                                \
        {"gap",                                                                \
         0,                                                                    \
         CLI_OPT_TEXT,                                                         \
         (at) + offsetof(struct cli_rule, gap),                                \
         "shift|skip",                                                         \
         "local times that a change of the clock leaves out",                  \
         0,                                                                    \
         0,                                                                    \
         NULL},                                                                \
        {"fold",                                                               \
         0,                                                                    \
         CLI_OPT_TEXT,                                                         \
         (at) + offsetof(struct cli_rule, fold),                               \
         "first|both|second",                                                  \
         "local times that come twice",                                        \
         0,                                                                    \
         0,                                                                    \
         NULL},                                                                \
        {"start",                                                              \
         0,                                                                    \
         CLI_OPT_TEXT,                                                         \
         (at) + offsetof(struct cli_rule, start),                              \
         "TIME",                                                               \
         "no fire before",                                                     \
         0,                                                                    \
         0,                                                                    \
         NULL},                                                                \
    {                                                                          \
        "end", 0, CLI_OPT_TEXT, (at) + offsetof(struct cli_rule, end), "TIME", \
            "no fire from then on", 0, 0, NULL                                 \
    }

/* Into a spec, whose other fields stay. */
LADE_CHECKED int cli_rule_read(const struct cli_rule *rule, int64_t now, lade_schedule_spec *spec,
                               lade_err *err);

#endif
