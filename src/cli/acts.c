#include "cli/acts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/lines.h"
#include "cli/out.h"

static const struct cli_column with_job[] = {
    {"ID", "id", CLI_CELL_TEXT, false, false},
    {"VERB", "verb", CLI_CELL_TEXT, false, false},
    {"RESULT", "result", CLI_CELL_TEXT, false, false},
    {"DRY RUN", "dry_run", CLI_CELL_TEXT, false, false},
    {"JOB", "job", CLI_CELL_TEXT, false, false},
};

/* "not_found" of LADE_NOT_FOUND. */
static void word_of(int outcome, char *out, size_t size)
{
    const char *name = lade_result_name(outcome);
    if (strncmp(name, "LADE_", 5) == 0)
        name += 5;
    size_t n = 0;
    for (; name[n] && n + 1 < size; n++)
        out[n] = (char)tolower((unsigned char)name[n]);
    out[n] = 0;
}

struct loop {
    struct cli *c;
    const struct cli_acts *acts;
    struct cli_out *list; /* NULL: the one row is an object of its own, or a table */
    struct cli_fold fold;
};

static int print(struct loop *l, const char *id, const struct cli_act *act, lade_err *err)
{
    struct cli_row row;
    char word[40];
    const char *job = act->job.text[0] ? act->job.text : NULL;
    if (l->c->format == CLI_TABLE) {
        if (job && act->outcome == 0 && !l->c->dry_run)
            (void)printf("%s\n", job);
        return 0;
    }
    word_of(act->outcome, word, sizeof(word));
    cli_row_init(&row);
    cli_row_text(&row, "id", id);
    cli_row_text(&row, "verb", l->c->command->verb);
    cli_row_text(&row, "result", word);
    cli_row_bool(&row, "dry_run", l->c->dry_run);
    if (l->acts->makes_jobs)
        cli_row_text(&row, "job", job);
    if (!l->list)
        return cli_out_object(l->c, &row, err);
    cli_out_row(l->list, &row);
    return 0;
}

/* One call; < 0 when it failed. */
static int act_on(struct loop *l, const lade_id *ids, size_t n, struct cli_act *done, lade_err *err)
{
    memset(done, 0, n * sizeof(*done));
    int rc = l->acts->act(l->c, l->acts->verb, ids, n, done, err);
    for (size_t i = 0; rc >= 0 && i < n; i++) {
        enum cli_exit code = CLI_OK;
        if (done[i].outcome != 0)
            code = l->acts->refuse(l->acts->verb, ids[i].text, &done[i]);
        cli_fold_add(&l->fold, code);
        rc = print(l, ids[i].text, &done[i], err);
    }
    return rc;
}

static enum cli_exit end(struct loop *l, int rc, const lade_err *err)
{
    lade_err end_err = {0};
    if (l->list && cli_out_end(l->list, &end_err) < 0)
        return cli_complain(&end_err);
    if (l->fold.n_ok > 0 || rc >= 0)
        cli_note(l->c, "%llu %s%s", (unsigned long long)l->fold.n_ok,
                 l->c->dry_run ? "would be " : "", l->acts->done);
    if (rc < 0)
        cli_fold_add(&l->fold, cli_complain(err));
    return cli_fold_exit(&l->fold);
}

enum cli_exit cli_acts_run(struct cli *c, const struct cli_acts *acts, char **args, int n_args)
{
    static lade_id batch[CLI_ACTS_STEP];
    static struct cli_act done[CLI_ACTS_STEP];
    struct loop l = {.c = c, .acts = acts};
    struct cli_out list;
    struct cli_ids ids;
    lade_err err = {0};
    size_t n = 0, step = acts->step ? acts->step : CLI_ACTS_STEP;
    int rc = cli_look(c, &err);
    if (rc < 0)
        return cli_complain(&err);
    if (cli_out_needs_list(c, args, n_args)) {
        cli_out_begin(&list, c, with_job, LB_ARRAY_LEN(with_job) - !acts->makes_jobs);
        l.list = &list;
    }
    cli_ids_init(&ids, args, n_args);
    rc = cli_ids_next(&ids, batch, step, &n, &err);
    while (rc == 0 && n > 0) {
        rc = act_on(&l, batch, n, done, &err);
        if (rc >= 0)
            rc = cli_ids_next(&ids, batch, step, &n, &err);
    }
    cli_ids_fini(&ids);
    return end(&l, rc, &err);
}
