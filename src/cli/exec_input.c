#include "cli/exec_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "base/base.h"
#include "cli/out.h"

static const char *state_name(enum lade_flow_step_state state)
{
    static const char *const names[] = {"waiting", "enqueued",  "completed",
                                        "dead",    "cancelled", "skipped"};

    return (unsigned)state < LB_ARRAY_LEN(names) ? names[state] : "unknown";
}

static bool put(int fd, const void *bytes, size_t size)
{
    const char *p = bytes;
    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

static bool put_line(int fd, const lade_flow_input *input)
{
    struct cli_row row;
    cli_row_init(&row);
    cli_row_text(&row, "id", input->id);
    cli_row_text(&row, "state", state_name(input->state));
    cli_row_bytes(&row, "result", input->result, SIZE_MAX);
    char *text = row.failed ? NULL : json_dumps(row.o, JSON_COMPACT);
    bool ok = text && put(fd, text, strlen(text)) && put(fd, "\n", 1);
    free(text);
    cli_row_fini(&row);
    return ok;
}

static bool fill(struct cli_exec_inputs *in, lade_job *job, lade_err *err)
{
    for (size_t i = 0; i < in->n; i++) {
        lade_flow_input input = {0};
        int rc = lade_job_input(job, i, &input, err);
        if (rc < 0)
            return false;
        if (rc == LADE_NOT_FOUND)
            continue;
        bool ok = put_line(in->all, &input) &&
                  (i > 0 || put(in->first, input.result.data, input.result.size));
        if (!ok) {
            (void)snprintf(err->text, sizeof(err->text), "out of memory");
            return false;
        }
    }
    return lseek(in->first, 0, SEEK_SET) == 0 && lseek(in->all, 0, SEEK_SET) == 0;
}

bool cli_exec_inputs_open(struct cli_exec_inputs *in, lade_job *job)
{
    lade_err err = {0};
    *in = (struct cli_exec_inputs){-1, -1, 0};
    if (!lade_job_flow(job))
        return true;
    bool ok = lade_job_n_inputs(job, &in->n, &err) >= 0;
    if (ok && in->n == 0)
        return true;
    if (ok) {
        in->first = memfd_create("lade-input", MFD_CLOEXEC);
        in->all = memfd_create("lade-inputs", MFD_CLOEXEC);
        ok = in->first >= 0 && in->all >= 0;
        if (!ok)
            (void)snprintf(err.text, sizeof(err.text), "no descriptor is free");
    }
    if (ok)
        ok = fill(in, job, &err);
    if (!ok) {
        lade_job_error(job, "the results of the steps before cannot be read: %s", err.text);
        cli_exec_inputs_close(in);
    }
    return ok;
}

void cli_exec_inputs_close(struct cli_exec_inputs *in)
{
    if (in->first >= 0)
        (void)close(in->first);
    if (in->all >= 0)
        (void)close(in->all);
    in->first = in->all = -1;
}

size_t cli_exec_inputs_variables(const struct cli_exec_inputs *in, struct lb_buf *text,
                                 lade_job *job)
{
    const char *flow = lade_job_flow(job);
    if (!flow)
        return 0;
    lb_buf_add_fmt(text, "LADE_FLOW=%s", flow);
    lb_buf_add_byte(text, 0);
    lb_buf_add_fmt(text, "LADE_INPUTS=%zu", in->n);
    lb_buf_add_byte(text, 0);
    if (in->first < 0)
        return 2;
    lb_buf_add_fmt(text, "LADE_INPUT=/dev/fd/%d", CLI_EXEC_INPUT_FD);
    lb_buf_add_byte(text, 0);
    lb_buf_add_fmt(text, "LADE_INPUTS_FILE=/dev/fd/%d", CLI_EXEC_INPUTS_FD);
    lb_buf_add_byte(text, 0);
    return 4;
}
