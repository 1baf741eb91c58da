/*
 * lade completion: a script for the shell, made from the tables of commands and options
 *
 * All three find the noun and the verb among the words so far, passing over options and their values, and offer: nouns, then the
 * noun's verbs, then the options of that command with those global ones that it takes; after an option with known values, these.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/commands.h"
#include "cli/queue_sort.h"

static const char states[] = "scheduled ready active retrying completed dead cancelled";
static const char formats[] = "table json ndjson tsv";

static bool is_first_of_noun(size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(cli_commands[i]->noun, cli_commands[k]->noun) == 0)
            return false;
    }
    return true;
}

static void print_nouns(void)
{
    (void)printf("enqueue work");
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (is_first_of_noun(i))
            (void)printf(" %s", cli_commands[i]->noun);
    }
}

static void print_verbs(const char *noun)
{
    const char *gap = "";
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strcmp(cli_commands[i]->noun, noun) != 0 || !cli_commands[i]->verb[0])
            continue;
        (void)printf("%s%s", gap, cli_commands[i]->verb);
        gap = " ";
    }
}

static void print_options(const struct cli_command *command)
{
    const char *gap = "";
    for (size_t i = 0; i < command->n_opts; i++) {
        (void)printf("%s--%s", gap, command->opts[i].name);
        gap = " ";
    }
    for (size_t i = 0; i < cli_n_globals; i++) {
        if (cli_takes_global(command, &cli_globals[i]))
            (void)printf("%s--%s", gap, cli_globals[i].name);
        gap = " ";
    }
}

static bool takes_value(const struct cli_opt *o)
{
    return o->arg && o->arg[0] != '[';
}

/* "--url|-u" of the options of a table that take a value and are not in those before it. */
static void print_valued(const struct cli_opt *opts, size_t n, const char **gap)
{
    for (size_t i = 0; i < n; i++) {
        if (!takes_value(&opts[i]))
            continue;
        (void)printf("%s--%s", *gap, opts[i].name);
        if (opts[i].letter)
            (void)printf("|-%c", opts[i].letter);
        *gap = "|";
    }
}

static void print_all_valued(void)
{
    const char *gap = "";
    print_valued(cli_globals, cli_n_globals, &gap);
    for (size_t i = 0; i < cli_n_commands; i++)
        print_valued(cli_commands[i]->opts, cli_commands[i]->n_opts, &gap);
}

/* The aliases that stand for another word, as lines of a case. */
static void print_aliases(void)
{
    (void)printf("    case $noun in\n"
                 "    enqueue) noun=job verb=enqueue ;;\n"
                 "    work) noun=worker verb=run ;;\n");
    for (size_t i = 0; i < cli_n_noun_aliases; i++)
        (void)printf("    %s) noun=%s ;;\n", cli_noun_aliases[i].alias, cli_noun_aliases[i].name);
    (void)printf("    esac\n    case $verb in\n");
    for (size_t i = 0; i < cli_n_verb_aliases; i++)
        (void)printf("    %s) verb=%s ;;\n", cli_verb_aliases[i].alias, cli_verb_aliases[i].name);
    (void)printf("    esac\n");
}

/* words='...' by noun and verb; the variables are the same in both shells. */
static void print_cases(void)
{
    (void)printf("    case \"$noun $verb\" in\n    ' ') words='");
    print_nouns();
    (void)printf("' ;;\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        const struct cli_command *c = cli_commands[i];
        if (is_first_of_noun(i) && c->verb[0]) {
            (void)printf("    '%s ') words='", c->noun);
            print_verbs(c->noun);
            (void)printf("' ;;\n");
        }
        (void)printf("    '%s %s'%s) words='", c->noun, c->verb, c->verb[0] ? "" : "*");
        if (strcmp(c->noun, "completion") == 0)
            (void)printf("bash zsh fish ");
        print_options(c);
        (void)printf("' ;;\n");
    }
    (void)printf("    esac\n");
}

static void print_bash(void)
{
    (void)printf("# eval \"$(lade completion bash)\"\n_lade() {\n"
                 "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                 "    local noun= verb= words= i\n"
                 "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                 "        case ${COMP_WORDS[i]} in\n        ");
    print_all_valued();
    (void)printf(") ((i++)) ;;\n"
                 "        -*) ;;\n"
                 "        *) if [ -z \"$noun\" ]; then noun=${COMP_WORDS[i]}; "
                 "elif [ -z \"$verb\" ]; then verb=${COMP_WORDS[i]}; fi ;;\n"
                 "        esac\n    done\n");
    print_aliases();
    print_cases();
    (void)printf("    case $prev in\n"
                 "    --output|-o) words='%s' ;;\n"
                 "    --state) words='%s' ;;\n"
                 "    --sort) words='%s' ;;\n    ",
                 formats, states, cli_queue_sort_words());
    print_all_valued();
    (void)printf(") words= ;;\n    esac\n"
                 "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                 "}\ncomplete -o default -F _lade lade\n");
}

static void print_zsh(void)
{
    (void)printf("#compdef lade\n# source <(lade completion zsh)\n_lade() {\n"
                 "    local noun= verb= list= i prev=${words[CURRENT - 1]}\n"
                 "    for ((i = 2; i < CURRENT; i++)); do\n"
                 "        case ${words[i]} in\n        (");
    print_all_valued();
    (void)printf(") ((i++)) ;;\n"
                 "        (-*) ;;\n"
                 "        (*) if [[ -z $noun ]]; then noun=${words[i]}; "
                 "elif [[ -z $verb ]]; then verb=${words[i]}; fi ;;\n"
                 "        esac\n    done\n    () {\n    local words=\n");
    print_aliases();
    print_cases();
    (void)printf("    list=$words\n    }\n    case $prev in\n"
                 "    (--output|-o) list='%s' ;;\n"
                 "    (--state) list='%s' ;;\n"
                 "    (--sort) list='%s' ;;\n    (",
                 formats, states, cli_queue_sort_words());
    print_all_valued();
    (void)printf(") list= ;;\n    esac\n"
                 "    if [[ -n $list ]]; then compadd -- ${=list}; else _files; fi\n"
                 "}\ncompdef _lade lade\n");
}

/* In single quotes, for fish. */
static void print_quoted(const char *text)
{
    (void)putchar('\'');
    for (; *text; text++)
        (void)printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    (void)putchar('\'');
}

static void print_fish_option(const struct cli_command *c, const struct cli_opt *o)
{
    (void)printf("complete -c lade -n '__lade_is %s%s%s' -l %s", c->noun, c->verb[0] ? " " : "",
                 c->verb, o->name);
    if (o->letter)
        (void)printf(" -s %c", o->letter);
    if (strcmp(o->name, "output") == 0)
        (void)printf(" -x -a '%s'", formats);
    else if (strcmp(o->name, "state") == 0)
        (void)printf(" -x -a '%s'", states);
    else if (strcmp(o->name, "sort") == 0)
        (void)printf(" -x -a '%s'", cli_queue_sort_words());
    else if (takes_value(o))
        (void)printf(" -r");
    (void)printf(" -d ");
    print_quoted(o->help);
    (void)putchar('\n');
}

static void print_fish(void)
{
    (void)printf(
        "# lade completion fish | source\n"
        "function __lade_words\n"
        "    set -l skip 0\n"
        "    for w in (commandline -opc)[2..-1]\n"
        "        if test $skip = 1\n            set skip 0\n            continue\n        end\n"
        "        if string match -qr -- '^(");
    print_all_valued();
    (void)printf(
        ")$' $w\n            set skip 1\n"
        "        else if not string match -q -- '-*' $w\n            echo $w\n        end\n    end\nend\n"
        "function __lade_is\n"
        "    set -l w (__lade_words)\n"
        "    test \"$w[1..2]\" = \"$argv\"\n"
        "    or begin; test \"$argv\" = 'job enqueue'; and test \"$w[1]\" = enqueue; end\n"
        "    or begin; test \"$argv\" = 'worker run'; and test \"$w[1]\" = work; end\n"
        "end\n"
        "complete -c lade -f -n 'test (count (__lade_words)) = 0' -a '");
    print_nouns();
    (void)printf("'\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        const struct cli_command *c = cli_commands[i];
        if (is_first_of_noun(i) && c->verb[0]) {
            (void)printf("complete -c lade -f -n '__lade_is %s' -a '", c->noun);
            print_verbs(c->noun);
            (void)printf("'\n");
        }
        for (size_t k = 0; k < c->n_opts; k++)
            print_fish_option(c, &c->opts[k]);
        for (size_t k = 0; k < cli_n_globals; k++) {
            if (cli_takes_global(c, &cli_globals[k]))
                print_fish_option(c, &cli_globals[k]);
        }
    }
    (void)printf("complete -c lade -f -n '__lade_is completion' -a 'bash zsh fish'\n");
}

static enum cli_exit run_completion(struct cli *c, void *values, char **args, int n_args)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

    (void)c;
    (void)values;
    (void)n_args;
    for (size_t i = 0; i < LB_ARRAY_LEN(shells); i++) {
        if (strcmp(args[0], shells[i].name) == 0) {
            shells[i].print();
            return CLI_OK;
        }
    }
    return cli_say(CLI_USAGE, "completion %s: unknown shell; give bash, zsh or fish", args[0]);
}

const struct cli_command cli_completion = {
    .noun = "completion",
    .verb = "",
    .args = "bash|zsh|fish",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Prints a completion script for a shell. It offers nouns, their verbs, and the options of "
        "the command that stands there.",
    .examples = "  eval \"$(lade completion bash)\"\n  lade completion fish | source",
    .lacks = CLI_LACKS_STORE | CLI_LACKS_OUTPUT,
    .run = run_completion,
};
