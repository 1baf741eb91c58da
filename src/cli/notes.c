#include "cli/notes.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/text.h"

#define SHOWN 5 /* lines under the card; lade job logs has them all */

void cli_notes_print_line(const lade_log_line *line)
{
    char at[CLI_TIME_LEN];
    struct lb_buf text;
    lb_buf_init(&text);
    cli_time_text(at, line->at);
    cli_add_printable(&text, line->text.data, line->text.size, SIZE_MAX);
    (void)printf("%s  %.*s\n", at, (int)text.n, (const char *)text.p);
    lb_buf_fini(&text);
}

/* 0 with *out, or NULL when the job went meanwhile. */
static int read_notes(const struct cli *c, const lade_job_view *v, size_t limit,
                      lade_job_notes **out, lade_err *err)
{
    *out = NULL;
    int rc = lade_job_get_notes(c->q, v->queue, v->id, -(int64_t)limit, limit, false, out, err);
    return rc < 0 ? rc : 0;
}

int cli_notes_print(const struct cli *c, const lade_job_view *v, lade_err *err)
{
    lade_job_notes *notes = NULL;
    int rc = read_notes(c, v, SHOWN, &notes, err);
    if (rc < 0 || !notes)
        return rc;
    if (notes->percent >= 0) {
        char at[CLI_TIME_LEN];
        struct lb_buf text;
        lb_buf_init(&text);
        cli_time_text(at, notes->progress_at);
        cli_add_printable(&text, notes->note, strlen(notes->note), SIZE_MAX);
        (void)printf("\nprogress %d%%%s%.*s  %s\n", notes->percent, text.n > 0 ? "  " : "",
                     (int)text.n, text.n > 0 ? (const char *)text.p : "", at);
        lb_buf_fini(&text);
    }
    if (notes->total > 0)
        (void)printf("\nlog: %s%zu of %llu lines\n", notes->n < notes->total ? "the last " : "",
                     notes->n, (unsigned long long)notes->total);
    for (size_t i = 0; i < notes->n; i++)
        cli_notes_print_line(&notes->line[i]);
    lade_free(notes);
    return 0;
}

int cli_notes_add(const struct cli *c, struct cli_row *row, const lade_job_view *v, lade_err *err)
{
    lade_job_notes *notes = NULL;
    int rc = read_notes(c, v, 0, &notes, err);
    if (rc < 0 || !notes)
        return rc;
    if (notes->percent >= 0) {
        struct cli_row progress;
        cli_row_init(&progress);
        cli_row_int(&progress, "percent", notes->percent);
        cli_row_text(&progress, "note", notes->note);
        cli_row_time(&progress, "at", notes->progress_at);
        row->failed = row->failed || progress.failed;
        cli_row_json(row, "progress", json_incref(progress.o));
        cli_row_fini(&progress);
    } else {
        cli_row_text(row, "progress", NULL);
    }
    cli_row_u64(row, "log_lines", notes->total);
    lade_free(notes);
    return 0;
}
