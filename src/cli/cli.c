#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/text.h"

const char *cli_url(const struct cli *c)
{
    const char *url = c->url ? c->url : getenv("LADE_URL");
    return url ? url : "";
}

/* Said, since commands of two namespaces would meet in one file. */
static void note_no_namespace(const struct cli *c)
{
    const char *url = cli_url(c);
    bool is_file = !*url || strncmp(url, "sqlite:", 7) == 0 || strncmp(url, "file:", 5) == 0;
    if (c->namespace_ && is_file)
        cli_note(c,
                 "--namespace %s: without effect, a file has one namespace; give each a --url "
                 "of its own",
                 c->namespace_);
}

int cli_connect(struct cli *c, const lade_options *opts, lade_err *err)
{
    /* Who only looks at jobs can look at those of any size. */
    lade_options o = opts ? *opts : (lade_options){.payload_max = LADE_PAYLOAD_MAX_HARD};
    o.namespace_ = c->namespace_;
    int rc = lade_open(&c->q, c->url, &o, err);
    if (rc == 0)
        note_no_namespace(c);
    return rc;
}

int cli_look(struct cli *c, lade_err *err)
{
    lade_options o = {.payload_max = LADE_PAYLOAD_MAX_HARD, .must_exist = true};
    return cli_connect(c, &o, err);
}

enum cli_exit cli_exit_of(int result)
{
    switch (result) {
    case 0:
    case LADE_EMPTY:
    case LADE_MORE:
    case LADE_REPLACED:
        return CLI_OK;
    case LADE_NOT_FOUND:
    case -LADE_ENOSTORE:
        return CLI_NOT_FOUND;
    case LADE_DUPLICATE:
    case LADE_CONFLICT:
    case LADE_WRONG_STATE:
    case LADE_TIMEOUT:
    case LADE_FULL:
        return CLI_CONFLICT;
    case -LADE_EINVAL:
    case -LADE_ETOOBIG:
        return CLI_USAGE;
    case -LADE_EUNAVAILABLE:
    case -LADE_EAUTH:
    case -LADE_EFORMAT:
    case -LADE_EPROTO:
    case -LADE_ENOSPACE:
    case -LADE_EBUSY:
    case -LADE_EACCESS:
    case -LADE_EUNSUPPORTED:
    case -LADE_EFOREIGN:
        return CLI_UNAVAILABLE;
    default:
        return CLI_FAILED;
    }
}

static void print_line(const char *text)
{
    struct lb_buf line;
    lb_buf_init(&line);
    lb_buf_add_str(&line, "lade: ");
    cli_add_printable(&line, text, strlen(text), SIZE_MAX);
    lb_buf_add_byte(&line, '\n');
    if (line.failed)
        (void)fputs("lade: out of memory\n", stderr);
    else
        (void)fwrite(line.p, 1, line.n, stderr);
    lb_buf_fini(&line);
}

enum cli_exit cli_complain(const lade_err *err)
{
    (void)fflush(stdout);
    print_line(err->text[0] ? err->text : lade_result_name(err->code));
    return cli_exit_of(err->code);
}

enum cli_exit cli_say(enum cli_exit code, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fflush(stdout);
    print_line(text);
    return code;
}

void cli_note(const struct cli *c, const char *format, ...)
{
    char text[512];
    va_list args;
    if (c->quiet)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fflush(stdout);
    print_line(text);
}

bool cli_confirm(const struct cli *c, enum cli_exit *code, const char *format, ...)
{
    char what[256];
    char answer[16];
    va_list args;
    if (c->yes || c->dry_run)
        return true;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    if (!isatty(STDIN_FILENO)) {
        *code = cli_say(CLI_USAGE,
                        "%s: not without --yes: nobody can be asked, stdin is no terminal", what);
        return false;
    }
    (void)fprintf(stderr, "%s? [y/N] ", what);
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    *code = cli_say(CLI_FAILED, "%s: not done", what);
    return false;
}

void cli_fold_add(struct cli_fold *f, enum cli_exit code)
{
    if (code == CLI_OK) {
        f->n_ok++;
        return;
    }
    if (f->n_bad == 0)
        f->first_bad = code;
    f->n_bad++;
}

enum cli_exit cli_fold_exit(const struct cli_fold *f)
{
    if (f->n_bad == 0)
        return CLI_OK;
    return f->n_ok > 0 ? CLI_PARTIAL : f->first_bad;
}

void cli_pause(int64_t ns)
{
    struct timespec t = {ns / LADE_SECOND, ns % LADE_SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
}
