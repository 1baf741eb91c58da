/* lade doctor, version, help, completion */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/commands.h"
#include "cli/out.h"

static enum cli_exit run_doctor(struct cli *c, void *values, char **args, int n_args)
{
    static const struct cli_column columns[] = {
        {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
        {"FINDING", "finding", CLI_CELL_TEXT, false, false},
    };

    (void)values;
    (void)args;
    (void)n_args;
    lade_err err = {0};
    lade_finding *findings = NULL;
    size_t n = 0;
    struct cli_out out;
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = lade_check(c->q, &findings, &n, &err);
    if (rc < 0)
        return cli_complain(&err);
    if (n == 0 && c->format == CLI_TABLE) {
        lade_free(findings);
        (void)printf("sound\n");
        return CLI_OK;
    }
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    for (size_t i = 0; i < n; i++) {
        struct cli_row row;
        cli_row_init(&row);
        cli_row_text(&row, "queue", findings[i].queue);
        cli_row_text(&row, "finding", findings[i].text);
        cli_out_row(&out, &row);
    }
    lade_free(findings);
    rc = cli_out_end(&out, &err);
    if (rc < 0)
        return cli_complain(&err);
    return n > 0 ? cli_say(CLI_FAILED, "doctor: %zu findings: the store is not sound", n) : CLI_OK;
}

const struct cli_command cli_doctor = {
    .noun = "doctor",
    .verb = "",
    .args = "",
    .about = "Checks the store. Each job in exactly one state, counts right, nothing "
             "without its owner. Reads every job. Exit 0 when sound, 1 with findings.",
    .examples = "  lade doctor\n  lade doctor -u redis://localhost -o json",
    .lacks = CLI_LACKS_QUEUE,
    .run = run_doctor,
};

static enum cli_exit run_version(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    (void)args;
    (void)n_args;
    struct cli_row row;
    lade_err err = {0};
    if (c->format == CLI_TABLE) {
        (void)printf("lade %s\n", lade_version());
        return CLI_OK;
    }
    cli_row_init(&row);
    cli_row_text(&row, "version", lade_version());
    return cli_out_object(c, &row, &err) < 0 ? cli_complain(&err) : CLI_OK;
}

const struct cli_command cli_version = {
    .noun = "version",
    .verb = "",
    .args = "",
    .about = "Prints the version.",
    .examples = "  lade version",
    .lacks = CLI_LACKS_STORE,
    .run = run_version,
};

static enum cli_exit run_help(struct cli *c, void *values, char **args, int n_args)
{
    (void)c;
    (void)values;
    lade_err err = {0};
    int used = 0;
    if (n_args == 0) {
        cli_help_all();
        return CLI_OK;
    }
    if (n_args == 1 && !cli_find(cli_noun_of(args[0]), "") && cli_help_noun(cli_noun_of(args[0])))
        return CLI_OK;
    const struct cli_command *command = cli_find_words(args, n_args, &used, &err);
    if (!command)
        return cli_complain(&err);
    cli_help_command(command);
    return CLI_OK;
}

const struct cli_command cli_help = {
    .noun = "help",
    .verb = "",
    .args = "[COMMAND [VERB]]",
    .max_args = 2,
    .about = "Explains a command.",
    .examples = "  lade help work\n  lade help queue purge",
    .lacks = CLI_LACKS_STORE | CLI_LACKS_OUTPUT,
    .run = run_help,
};

static void print_words(const char *noun)
{
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strcmp(cli_commands[i]->noun, noun) == 0 && cli_commands[i]->verb[0])
            (void)printf("%s ", cli_commands[i]->verb);
    }
}

static bool is_first_of_noun(size_t i)
{
    return i == 0 || strcmp(cli_commands[i]->noun, cli_commands[i - 1]->noun) != 0;
}

static void print_options(const struct cli_command *command)
{
    for (size_t i = 0; i < command->n_opts; i++)
        (void)printf(" --%s", command->opts[i].name);
}

static enum cli_exit run_completion(struct cli *c, void *values, char **args, int n_args)
{
    (void)c;
    (void)values;
    (void)n_args;
    if (strcmp(args[0], "bash") != 0)
        return cli_say(CLI_USAGE, "completion %s: unknown shell; give bash", args[0]);
    (void)printf("# eval \"$(lade completion bash)\"\n_lade() {\n"
                 "    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
                 "    if [ \"$COMP_CWORD\" = 1 ]; then\n        words='enqueue work ");
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (is_first_of_noun(i))
            (void)printf("%s ", cli_commands[i]->noun);
    }
    (void)printf("'\n    elif [ \"${cur#-}\" = \"$cur\" ] && [ \"$COMP_CWORD\" = 2 ]; then\n"
                 "        case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (!is_first_of_noun(i) || !cli_commands[i]->verb[0])
            continue;
        (void)printf("        %s) words='", cli_commands[i]->noun);
        print_words(cli_commands[i]->noun);
        (void)printf("' ;;\n");
    }
    (void)printf("        esac\n    else\n        words='");
    for (size_t i = 0; i < cli_n_globals; i++)
        (void)printf(" --%s", cli_globals[i].name);
    (void)printf("'\n        case ${COMP_WORDS[1]} in\n        enqueue) words+='");
    print_options(&cli_job_enqueue);
    (void)printf("' ;;\n        work) words+='");
    print_options(&cli_worker_run);
    (void)printf("' ;;\n        esac\n        case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        (void)printf("        \"%s %s\") words+='", cli_commands[i]->noun, cli_commands[i]->verb);
        print_options(cli_commands[i]);
        (void)printf("' ;;\n");
    }
    (void)printf("        esac\n    fi\n"
                 "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                 "}\ncomplete -o default -F _lade lade\n");
    return CLI_OK;
}

const struct cli_command cli_completion = {
    .noun = "completion",
    .verb = "",
    .args = "bash",
    .min_args = 1,
    .max_args = 1,
    .about = "Prints a completion script for a shell.",
    .examples = "  eval \"$(lade completion bash)\"",
    .lacks = CLI_LACKS_STORE | CLI_LACKS_OUTPUT,
    .run = run_completion,
};
