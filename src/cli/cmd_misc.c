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
        {"SEVERITY", "severity", CLI_CELL_TEXT, false, false},
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
    size_t n_bad = 0;
    for (size_t i = 0; i < n; i++) {
        struct cli_row row;
        n_bad += !findings[i].is_note;
        cli_row_init(&row);
        cli_row_text(&row, "queue", findings[i].queue);
        cli_row_text(&row, "severity", findings[i].is_note ? "note" : "broken");
        cli_row_text(&row, "finding", findings[i].text);
        cli_out_row(&out, &row);
    }
    lade_free(findings);
    rc = cli_out_end(&out, &err);
    if (rc < 0)
        return cli_complain(&err);
    return n_bad > 0 ? cli_say(CLI_FAILED, "doctor: %zu findings: the store is not sound", n_bad)
                     : CLI_OK;
}

const struct cli_command cli_doctor = {
    .noun = "doctor",
    .verb = "",
    .args = "",
    .about =
        "Checks the store. Each job in exactly one state, counts right, nothing "
        "without its owner. Reads every job. Exit 0 when sound, also with notes about what grows; 1 when something is broken.",
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
