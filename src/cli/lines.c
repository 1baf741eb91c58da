#include "cli/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"

#define READ_SIZE (64U << 10)

/* A file that was named wrongly is a wrong argument, not a store that cannot be used. */
static int fail_open(const char *path, int errnum, lade_err *err)
{
    char buf[96];
    if (errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE || errnum == EIO)
        return lb_fail_errno(err, errnum, "read", path);
    return lb_fail(err, LADE_EINVAL, "read", "%s: cannot be read: %s", path,
                   strerror_r(errnum, buf, sizeof(buf)));
}

static int open_input(const char *path, int *fd, bool *is_owned, lade_err *err)
{
    struct stat st;
    *is_owned = strcmp(path, "-") != 0;
    if (!path[0])
        return lb_fail(err, LADE_EINVAL, "read", "no file is named; give its name, or - for stdin");
    *fd = *is_owned ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (*fd < 0)
        return fail_open(path, errno, err);
    /* A directory opens and fails only when it is read. */
    if (fstat(*fd, &st) != 0 || !S_ISDIR(st.st_mode))
        return 0;
    if (*is_owned)
        (void)close(*fd);
    *fd = -1;
    return fail_open(*is_owned ? path : "stdin", EISDIR, err);
}

/* Appends what one read gives. Returns the bytes read, 0 at the end, or a failure. */
static int64_t read_some(int fd, const char *name, struct lb_buf *buf, lade_err *err)
{
    uint8_t *to = lb_buf_reserve(buf, READ_SIZE);
    if (!to)
        return lb_fail_nomem(err, "read");
    ssize_t got = 0;
    do {
        got = read(fd, to, READ_SIZE);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return lb_fail_errno(err, errno, "read", name);
    buf->n += (size_t)got;
    return got;
}

int cli_lines_open(struct cli_lines *l, const char *path, size_t max, lade_err *err)
{
    *l = (struct cli_lines){.fd = -1, .max = max};
    l->name = strcmp(path, "-") == 0 ? "stdin" : path;
    lb_buf_init(&l->buf);
    return open_input(path, &l->fd, &l->is_owned, err);
}

void cli_lines_close(struct cli_lines *l)
{
    if (l->is_owned && l->fd >= 0)
        (void)close(l->fd);
    lb_buf_fini(&l->buf);
    l->fd = -1;
}

/* Drops what was handed out and reads more. As read_some. */
static int64_t refill(struct cli_lines *l, lade_err *err)
{
    if (l->at > 0 && l->buf.p) {
        memmove(l->buf.p, l->buf.p + l->at, l->buf.n - l->at);
        l->buf.n -= l->at;
        l->at = 0;
    }
    int64_t got = read_some(l->fd, l->name, &l->buf, err);
    l->eof = got == 0;
    return got;
}

/* Throws the rest of an overlong line away, in bounded memory. */
static int skip_line(struct cli_lines *l, lade_err *err)
{
    for (;;) {
        size_t have = l->buf.n - l->at;
        uint8_t *end = have && l->buf.p ? memchr(l->buf.p + l->at, '\n', have) : NULL;
        l->at = end ? (size_t)(end + 1 - l->buf.p) : l->buf.n;
        if (end || l->eof)
            return lb_fail(err, LADE_ETOOBIG, "read", "%s: line %llu is over %zu bytes", l->name,
                           (unsigned long long)l->number, l->max);
        int64_t got = refill(l, err);
        if (got < 0)
            return (int)got;
    }
}

int cli_lines_next(struct cli_lines *l, lade_bytes *line, lade_err *err)
{
    size_t looked = 0;
    for (;;) {
        size_t have = l->buf.n - l->at;
        uint8_t *start = have ? l->buf.p + l->at : NULL;
        uint8_t *end = start && have > looked ? memchr(start + looked, '\n', have - looked) : NULL;
        size_t n = end ? (size_t)(end - start) : have;
        if (n > l->max) {
            l->number++;
            return skip_line(l, err);
        }
        if (end || (l->eof && n > 0)) {
            *line = (lade_bytes){start, n};
            l->at += n + (end != NULL);
            l->number++;
            return 0;
        }
        if (l->eof)
            return LADE_EMPTY;
        looked = have;
        int64_t got = refill(l, err);
        if (got < 0)
            return (int)got;
    }
}

const char *cli_size_advice(size_t max)
{
    if (max > LADE_PAYLOAD_MAX_HARD)
        return "";
    return max == LADE_PAYLOAD_MAX_HARD
               ? ", the most there can be; store big data elsewhere and enqueue its name"
               : "; store big data elsewhere and enqueue its name, or raise --payload-max (at most "
                 "64MiB)";
}

int cli_read_file(const char *path, size_t max, struct lb_buf *out, lade_err *err)
{
    int fd = -1;
    bool is_owned = false;
    int64_t got = open_input(path, &fd, &is_owned, err);
    if (got < 0)
        return (int)got;
    do {
        got = read_some(fd, is_owned ? path : "stdin", out, err);
        if (got > 0 && out->n > max)
            got = lb_fail(err, LADE_ETOOBIG, "read", "%s: over %zu bytes%s",
                          is_owned ? path : "stdin", max, cli_size_advice(max));
    } while (got > 0);
    if (is_owned)
        (void)close(fd);
    return (int)got;
}

void cli_ids_init(struct cli_ids *ids, char **args, int n_args)
{
    *ids = (struct cli_ids){.args = args, .n_args = n_args};
}

void cli_ids_fini(struct cli_ids *ids)
{
    if (ids->in_stdin)
        cli_lines_close(&ids->lines);
}

/* One id as text without its end. 0, LADE_EMPTY, or a failure. */
static int next_text(struct cli_ids *ids, lade_bytes *text, lade_err *err)
{
    while (ids->in_stdin || ids->at < ids->n_args) {
        if (!ids->in_stdin && strcmp(ids->args[ids->at], "-") != 0) {
            const char *arg = ids->args[ids->at++];
            *text = (lade_bytes){arg, strlen(arg)};
            return 0;
        }
        if (!ids->in_stdin) {
            int rc = cli_lines_open(&ids->lines, "-", 4096, err);
            if (rc < 0)
                return rc;
            ids->in_stdin = true;
        }
        int rc = cli_lines_next(&ids->lines, text, err);
        if (rc < 0)
            return rc;
        const char *p = text->data;
        while (text->size > 0 && (p[text->size - 1] == '\r' || p[text->size - 1] == ' '))
            text->size--;
        if (rc == 0 && text->size > 0)
            return 0;
        if (rc == LADE_EMPTY) {
            cli_lines_close(&ids->lines);
            ids->in_stdin = false;
            ids->at++;
        }
    }
    return LADE_EMPTY;
}

int cli_ids_next(struct cli_ids *ids, lade_id *out, size_t max, size_t *n, lade_err *err)
{
    size_t found = 0;
    while (found < max) {
        lade_bytes text = {0};
        int rc = next_text(ids, &text, err);
        if (rc < 0)
            return rc;
        if (rc == LADE_EMPTY)
            break;
        if (text.size == 0 || text.size > LADE_ID_MAX || memchr(text.data, 0, text.size))
            return lb_fail(
                err, LADE_EINVAL, "usage", "id: '%.*s' is no job id; ids have 1 to %d characters",
                (int)LB_MIN(text.size, (size_t)40), (const char *)text.data, LADE_ID_MAX);
        memcpy(out[found].text, text.data, text.size);
        out[found++].text[text.size] = '\0';
    }
    *n = found;
    return 0;
}
