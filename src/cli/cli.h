/*
 * cli.h - what every command shares: the global options, exit codes, the command and option tables
 *
 * A command is one row of data (struct cli_command) and one function. cli_main.c finds the row by its words, opt.c fills a
 * struct of its values by offset, the function works with <lade/lade.h> only and prints through out.h.
 * Thread safety: none; the command line is one thread but for `lade work`, which says so where it matters.
 */
#ifndef LADE_CLI_CLI_H
#define LADE_CLI_CLI_H

#include <lade/lade.h>

/* Contracts of docs and scripts: never renumbered. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_NOT_FOUND = 3,
    CLI_CONFLICT = 4,    /* duplicate, or not in a state that allows it */
    CLI_UNAVAILABLE = 5, /* the store cannot be used: unreachable, refused, damaged, full, busy */
    CLI_PARTIAL = 6      /* some done, some not */
};

enum cli_format { CLI_TABLE = 0, CLI_JSON = 1, CLI_NDJSON = 2, CLI_TSV = 3 };

struct cli_command;

struct cli {
    const char *url, *namespace_, *queue;
    enum cli_format format;
    bool quiet, no_color, yes, dry_run, help;
    const struct cli_command *command;
    lade *q;
};

enum cli_opt_kind {
    CLI_OPT_FLAG,     /* bool */
    CLI_OPT_TEXT,     /* const char *, borrowed from argv */
    CLI_OPT_INT,      /* int64_t within range */
    CLI_OPT_SIZE,     /* the same, in bytes, KiB or MiB */
    CLI_OPT_DURATION, /* int64_t nanoseconds within range */
    CLI_OPT_CALL      /* call(values, text); text is NULL when the option has no argument */
};

struct cli_opt {
    const char *name;
    int letter; /* 0 = none */
    enum cli_opt_kind kind;
    size_t at;       /* offset of the value in the command's values */
    const char *arg; /* how help calls its argument; NULL = none; "[=X]" = may be left off */
    const char *help;
    int64_t min, max;
    int (*call)(void *values, const char *text, lade_err *err);
};

/* Global options that a command has no use for: its help leaves them out. */
enum cli_lack {
    CLI_LACKS_STORE = 1, /* opens none: no url, namespace, queue, quiet */
    CLI_LACKS_QUEUE = 2, /* what it does is not of one queue */
    CLI_LACKS_OUTPUT = 4 /* prints one kind of text only */
};

struct cli_command {
    const char *noun;
    const char *verb; /* "" when the noun is the whole command */
    const char *args; /* as help shows them, "ID..." */
    int min_args, max_args;
    const char *about;
    const char *examples; /* lines, each "  lade ..." */
    const struct cli_opt *opts;
    size_t n_opts;
    size_t size;            /* of the values; zeroed before the options are read */
    bool can_dry_run;       /* honours --dry-run; the others refuse it */
    bool asks;              /* before it removes something, unless --yes */
    unsigned lacks;         /* of enum cli_lack */
    const char *queue_help; /* what --queue is here; NULL = the listed words */
    enum cli_exit (*run)(struct cli *c, void *values, char **args, int n_args);
};

#define CLI_MANY_ARGS INT32_MAX

/* The global options (into struct cli) and all commands. */
extern const struct cli_opt cli_globals[];
extern const size_t cli_n_globals;
extern const struct cli_command *const cli_commands[];
extern const size_t cli_n_commands;

struct cli_alias {
    const char *alias, *name;
};

extern const struct cli_alias cli_noun_aliases[], cli_verb_aliases[];
extern const size_t cli_n_noun_aliases, cli_n_verb_aliases;
/* "job" of "task" and so on; the name itself when it is no alias. */
const char *cli_noun_of(const char *word);
const char *cli_verb_of(const char *word);
/* NULL when there is none. */
const struct cli_command *cli_find(const char *noun, const char *verb);
/*
 * Finds the command of 1 or 2 words and sets *used to how many it took. NULL with a one-line complaint in err.
 */
const struct cli_command *cli_find_words(char **words, int n, int *used, lade_err *err);

/*
 * Reads options of `command` (NULL: only the global ones, up to the first word) from argv[*at] on and moves *at to the
 * first argument that is none; with a command, arguments may stand between options and end up last.
 */
LADE_CHECKED int cli_opt_parse(struct cli *c, const struct cli_command *command, void *values,
                               int argc, char **argv, int *at, lade_err *err);

/* Whether the command has a use for a global option. */
bool cli_takes_global(const struct cli_command *command, const struct cli_opt *o);

/* Prints the help of a command, of a noun, or of all, to stdout. */
void cli_help_command(const struct cli_command *command);
/* False when there is no such noun. */
bool cli_help_noun(const char *noun);
void cli_help_all(void);

/* --url, or LADE_URL, or "". */
const char *cli_url(const struct cli *c);
/* Opens c->q: --url, LADE_URL, or the default of lade_open. A file that is not there is made. */
LADE_CHECKED int cli_connect(struct cli *c, const lade_options *opts, lade_err *err);
/* The same for who looks at what is there or acts on it: a file that is not there is a failure, and none is made. */
LADE_CHECKED int cli_look(struct cli *c, lade_err *err);

/* The exit code of a result of the library. */
enum cli_exit cli_exit_of(int result);
/* Prints "lade: TEXT" to stderr and returns the exit code of err. */
enum cli_exit cli_complain(const lade_err *err);
/* The same for a text of our own. */
enum cli_exit cli_say(enum cli_exit code, const char *format, ...) LADE_PRINTF(2, 3);
/* A note on stderr that --quiet silences. */
void cli_note(const struct cli *c, const char *format, ...) LADE_PRINTF(2, 3);

/*
 * Asks before something is destroyed. True when --yes was given or a person at a terminal typed y. Otherwise false,
 * said to stderr, with the exit code in *code.
 */
bool cli_confirm(const struct cli *c, enum cli_exit *code, const char *format, ...)
    LADE_PRINTF(3, 4);

/*
 * Folds the outcomes of several into one exit code: CLI_PARTIAL when some were done and some not; none done = the code
 * of the first.
 */
struct cli_fold {
    uint64_t n_ok, n_bad;
    enum cli_exit first_bad;
};

void cli_fold_add(struct cli_fold *f, enum cli_exit code);
enum cli_exit cli_fold_exit(const struct cli_fold *f);

/* Between two looks: ns from now, through signals that a handler takes. */
void cli_pause(int64_t ns);

#endif
