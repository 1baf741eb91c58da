#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/text.h"

/* In the order help shows them. */
const struct cli_command *const cli_commands[] = {
    &cli_job_enqueue,
    &cli_job_ls,
    &cli_job_show,
    &cli_job_retry,
    &cli_job_kill,
    &cli_job_cancel,
    &cli_job_edit,
    &cli_job_rm,
    &cli_job_wait,
    &cli_job_logs,
    &cli_job_trace,
    &cli_worker_run,
    &cli_worker_ls,
    &cli_worker_show,
    &cli_worker_quiet,
    &cli_worker_resume,
    &cli_worker_stop,
    &cli_worker_stacks,
    &cli_queue_ls,
    &cli_queue_show,
    &cli_queue_pause,
    &cli_queue_resume,
    &cli_queue_purge,
    &cli_queue_rm,
    &cli_queue_events,
    &cli_queue_limit,
    &cli_key_ls,
    &cli_key_show,
    &cli_key_limit,
    &cli_key_pause,
    &cli_key_resume,
    &cli_dead_ls,
    &cli_dead_classes,
    &cli_dead_show,
    &cli_dead_redrive,
    &cli_dead_purge,
    &cli_flow_run,
    &cli_flow_ls,
    &cli_flow_show,
    &cli_flow_cancel,
    &cli_flow_retry,
    &cli_flow_rm,
    &cli_events,
    &cli_stats,
    &cli_top,
    &cli_export,
    &cli_import,
    &cli_doctor,
    &cli_version,
    &cli_help,
    &cli_completion,
    &cli_schedule_ls,
    &cli_schedule_show,
    &cli_schedule_set,
    &cli_schedule_rm,
    &cli_schedule_pause,
    &cli_schedule_resume,
    &cli_schedule_run,
    &cli_schedule_preview,
    &cli_schedule_explain,
    &cli_schedule_serve,
};
const size_t cli_n_commands = LB_ARRAY_LEN(cli_commands);

const struct cli_alias cli_noun_aliases[] = {{"task", "job"},
                                             {"dlq", "dead"},
                                             {"jobs", "job"},
                                             {"queues", "queue"},
                                             {"workers", "worker"},
                                             {"tasks", "job"},
                                             {"keys", "key"},
                                             {"workflow", "flow"},
                                             {"workflows", "flow"},
                                             {"flows", "flow"},
                                             {"cron", "schedule"},
                                             {"schedules", "schedule"},
                                             {"repeatable", "schedule"},
                                             {"dash", "top"}};
const size_t cli_n_noun_aliases = LB_ARRAY_LEN(cli_noun_aliases);

/* run = retry is apart, in cli_find_words. */
const struct cli_alias cli_verb_aliases[] = {
    {"list", "ls"},   {"inspect", "show"}, {"archive", "kill"},  {"remove", "rm"},
    {"delete", "rm"}, {"peek", "ls"},      {"replay", "redrive"}};
const size_t cli_n_verb_aliases = LB_ARRAY_LEN(cli_verb_aliases);

static const char *find_alias(const struct cli_alias *aliases, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(aliases[i].alias, word) == 0)
            return aliases[i].name;
    }
    return word;
}

const char *cli_noun_of(const char *word)
{
    return find_alias(cli_noun_aliases, cli_n_noun_aliases, word);
}

const char *cli_verb_of(const char *word)
{
    return find_alias(cli_verb_aliases, cli_n_verb_aliases, word);
}

const struct cli_command *cli_find(const char *noun, const char *verb)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strcmp(cli_commands[i]->noun, noun) == 0 && strcmp(cli_commands[i]->verb, verb) == 0)
            return cli_commands[i];
    }
    return NULL;
}

static bool is_noun(const char *noun)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strcmp(cli_commands[i]->noun, noun) == 0)
            return true;
    }
    return false;
}

static void fail_noun(const char *word, lade_err *err)
{
    const char *names[64] = {"enqueue", "work"};
    size_t n = 2;
    for (size_t i = 0; i < cli_n_commands && n < LB_ARRAY_LEN(names); i++)
        names[n++] = cli_commands[i]->noun;
    const char *near = cli_nearest(word, names, n);
    (void)lb_fail(err, LADE_EINVAL, "usage", "%.40s: unknown command; %s%s%s", word,
                  near ? "did you mean lade " : "see lade help", near ? near : "", near ? "?" : "");
}

static void fail_verb(const char *noun, const char *word, lade_err *err)
{
    const char *names[64];
    char all[160] = "";
    size_t n = 0;
    for (size_t i = 0; i < cli_n_commands && n < LB_ARRAY_LEN(names); i++) {
        if (strcmp(cli_commands[i]->noun, noun) != 0)
            continue;
        size_t at = strlen(all);
        (void)snprintf(all + at, sizeof(all) - at, "%s%s", n ? ", " : "", cli_commands[i]->verb);
        names[n++] = cli_commands[i]->verb;
    }
    const char *near = word ? cli_nearest(word, names, n) : NULL;
    if (!word)
        (void)lb_fail(err, LADE_EINVAL, "usage", "%s: which verb? give one of %s", noun, all);
    else if (near)
        (void)lb_fail(err, LADE_EINVAL, "usage", "%s %.40s: unknown verb; did you mean %s?", noun,
                      word, near);
    else
        (void)lb_fail(err, LADE_EINVAL, "usage", "%s %.40s: unknown verb; give one of %s", noun,
                      word, all);
}

const struct cli_command *cli_find_words(char **words, int n, int *used, lade_err *err)
{
    *used = 1;
    if (strcmp(words[0], "enqueue") == 0)
        return &cli_job_enqueue;
    if (strcmp(words[0], "work") == 0)
        return &cli_worker_run;
    const char *noun = cli_noun_of(words[0]);
    const struct cli_command *command = cli_find(noun, "");
    if (command)
        return command;
    if (!is_noun(noun)) {
        fail_noun(words[0], err);
        return NULL;
    }
    bool has_verb = n > 1 && words[1][0] != '-';
    if (has_verb) {
        *used = 2;
        command = cli_find(noun, cli_verb_of(words[1]));
        /* asynq's `task run` sets a job going by hand; `worker run` is another thing. */
        if (!command && strcmp(words[1], "run") == 0)
            command = cli_find(noun, "retry");
    }
    if (!command)
        fail_verb(noun, has_verb ? words[1] : NULL, err);
    return command;
}
