#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

/* Prints words folded at 78 columns, each line after `indent` blanks. */
static void print_folded(const char *text, int indent)
{
    int column = 0;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column == 0)
            column = printf("%*s%.*s", indent, "", n, text);
        else if (column + 1 + n > 78)
            column = printf("\n%*s%.*s", indent, "", n, text) - 1;
        else
            column += printf(" %.*s", n, text);
        text += n;
        text += strspn(text, " ");
    }
    (void)putchar('\n');
}

bool cli_takes_global(const struct cli_command *command, const struct cli_opt *o)
{
    static const struct {
        const char *name;
        unsigned lack;
    } rows[] = {
        {"url", CLI_LACKS_STORE},
        {"namespace", CLI_LACKS_STORE},
        {"queue", CLI_LACKS_STORE | CLI_LACKS_QUEUE},
        {"output", CLI_LACKS_OUTPUT},
        {"json", CLI_LACKS_OUTPUT},
        {"quiet", CLI_LACKS_STORE},
        {"no-color", CLI_LACKS_STORE | CLI_LACKS_OUTPUT},
    };

    if (strcmp(o->name, "yes") == 0)
        return command->asks;
    if (strcmp(o->name, "dry-run") == 0)
        return command->can_dry_run;
    for (size_t i = 0; i < LB_ARRAY_LEN(rows); i++) {
        if (strcmp(o->name, rows[i].name) == 0)
            return !(command->lacks & rows[i].lack);
    }
    return true;
}

static void print_option(const struct cli_opt *o)
{
    char left[64];
    const char *arg = o->arg ? o->arg : "";
    const char *gap = arg[0] && arg[0] != '[' ? " " : "";
    if (o->letter)
        (void)snprintf(left, sizeof(left), "-%c, --%s%s%s", o->letter, o->name, gap, arg);
    else
        (void)snprintf(left, sizeof(left), "    --%s%s%s", o->name, gap, arg);
    (void)printf("  %-28s %s\n", left, o->help);
}

void cli_help_command(const struct cli_command *command)
{
    (void)printf("Usage: lade %s%s%s [options]%s%s\n\n", command->noun, command->verb[0] ? " " : "",
                 command->verb, command->args[0] ? " " : "", command->args);
    print_folded(command->about, 0);
    if (command->n_opts > 0)
        (void)printf("\nOptions:\n");
    for (size_t i = 0; i < command->n_opts; i++)
        print_option(&command->opts[i]);
    (void)printf("\nGlobal options:\n");
    for (size_t i = 0; i < cli_n_globals; i++) {
        struct cli_opt o = cli_globals[i];
        if (command->queue_help && strcmp(o.name, "queue") == 0)
            o.help = command->queue_help;
        if (cli_takes_global(command, &o))
            print_option(&o);
    }
    (void)printf("\nExamples:\n%s\n", command->examples);
}

static void print_line(const struct cli_command *command)
{
    char left[64];
    const char *end = strchr(command->about, '.');
    int n = end ? (int)(end - command->about) : (int)strlen(command->about);
    (void)snprintf(left, sizeof(left), "%s %s", command->noun, command->verb);
    (void)printf("  %-18s %.*s\n", left, n, command->about);
}

bool cli_help_noun(const char *noun)
{
    bool found = false;
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strcmp(cli_commands[i]->noun, noun) != 0)
            continue;
        if (!found)
            (void)printf("Usage: lade %s VERB [options]\n\n", noun);
        found = true;
        print_line(cli_commands[i]);
    }
    if (found)
        (void)printf("\nMore: lade help %s VERB\n", noun);
    return found;
}

void cli_help_all(void)
{
    (void)printf("lade %s: background jobs on a file or on Redis\n\n"
                 "Usage: lade COMMAND [options]\n\n",
                 lade_version());
    for (size_t i = 0; i < cli_n_commands; i++)
        print_line(cli_commands[i]);
    (void)printf(
        "\nShort: lade enqueue = job enqueue, lade work = worker run.\n"
        "Aliases: task = job, dlq = dead, workflow = flow, cron = schedule, dash = top, list = ls, inspect = show,\n"
        "         run = retry, archive = kill, remove = rm, peek = ls, replay = redrive.\n\nGlobal options:\n");
    for (size_t i = 0; i < cli_n_globals; i++)
        print_option(&cli_globals[i]);
    (void)printf("\nExit: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict or duplicate,\n"
                 "      5 store cannot be used, 6 partly done.\n"
                 "Durations: 500ms 30s 5m 2h 7d. Times: 2026-01-31T12:00:00Z or +10m.\n"
                 "\nExamples:\n"
                 "  lade enqueue --kind resize --queue images --payload @photo.json\n"
                 "  find . -name '*.txt' | lade enqueue --kind wc --lines -\n"
                 "  lade work --queue images,default --kind wc --exec 'wc -w' -c 8\n"
                 "  lade queue ls ; lade job ls --state dead ; lade dead redrive\n");
}
