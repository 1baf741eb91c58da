/* cli_main.c - words to a command, options to values, values to its function; the result is the exit code */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"

/* Descriptors 0, 1 and 2 must be there, or the next file opened would be taken for one of them. */
static bool reserve_std_fds(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd > STDERR_FILENO)
        (void)close(fd);
    return fd >= 0;
}

static enum cli_exit check_args(const struct cli_command *command, int n_args)
{
    const char *gap = command->verb[0] ? " " : "";
    if (n_args < command->min_args)
        return cli_say(CLI_USAGE, "%s%s%s: too few arguments; give %s", command->noun, gap,
                       command->verb, command->args);
    if (n_args > command->max_args)
        return cli_say(CLI_USAGE, "%s%s%s: too many arguments; %s%s", command->noun, gap,
                       command->verb, command->args[0] ? "give " : "it takes none", command->args);
    return CLI_OK;
}

static enum cli_exit run_command(struct cli *c, const struct cli_command *command, int argc,
                                 char **argv, int at)
{
    lade_err err = {0};
    void *values = lb_calloc(1, command->size ? command->size : 1);
    if (!values)
        return cli_say(CLI_FAILED, "out of memory");
    enum cli_exit code = CLI_OK;
    c->command = command;
    if (cli_opt_parse(c, command, values, argc, argv, &at, &err) < 0)
        code = cli_complain(&err);
    else if (c->help)
        cli_help_command(command);
    else if (c->dry_run && !command->can_dry_run)
        code = cli_say(CLI_USAGE, "--dry-run: not for this command");
    else if (c->queue && (command->lacks & (CLI_LACKS_STORE | CLI_LACKS_QUEUE)))
        code = cli_say(CLI_USAGE, "--queue: not for this command");
    else
        code = check_args(command, argc - at);
    if (code == CLI_OK && !c->help) {
        code = command->run(c, values, argv + at, argc - at);
        lade_close(c->q);
    }
    lb_free(values);
    return code;
}

static enum cli_exit start(struct cli *c, int argc, char **argv)
{
    lade_err err = {0};
    int at = 1;
    int used = 0;
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void)printf("lade %s\n", lade_version());
        return CLI_OK;
    }
    if (cli_opt_parse(c, NULL, NULL, argc, argv, &at, &err) < 0)
        return cli_complain(&err);
    if (at == argc) {
        cli_help_all();
        return c->help ? CLI_OK : CLI_USAGE;
    }
    const struct cli_command *command = cli_find_words(argv + at, argc - at, &used, &err);
    if (command)
        return run_command(c, command, argc, argv, at + used);
    const char *noun = cli_noun_of(argv[at]);
    bool wants_help =
        c->help ||
        (at + 1 < argc && (strcmp(argv[at + 1], "--help") == 0 || strcmp(argv[at + 1], "-h") == 0));
    if (wants_help && cli_help_noun(noun))
        return CLI_OK;
    return cli_complain(&err);
}

int main(int argc, char **argv)
{
    struct cli c = {0};
    bool has_stdout = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
    if (!reserve_std_fds())
        return CLI_FAILED;
    if (!has_stdout)
        return cli_say(
            CLI_FAILED,
            "stdout: closed; nothing was done; where no output is wanted give >/dev/null");
    (void)setlocale(LC_CTYPE, "");
    json_set_alloc_funcs(lb_malloc, lb_free);
    enum cli_exit code = start(&c, argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == CLI_OK)
        code = cli_say(CLI_FAILED, "stdout: cannot be written; is the disk full?");
    return code;
}
