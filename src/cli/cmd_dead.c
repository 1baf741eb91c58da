/* lade dead: bring dead jobs back, or remove them; ls and show are in cmd_job.c */
#include <stdio.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/commands.h"
#include "cli/view.h"

#define STEP 1000

struct dead {
    int64_t limit; /* 0 = all */
};

typedef int (*step_fn)(lade *q, const char *queue, size_t max, size_t *n, lade_err *err);

static int purge_step(lade *q, const char *queue, size_t max, size_t *n, lade_err *err)
{
    return lade_queue_purge(q, queue, LADE_STATE_DEAD, max, n, err);
}

/*
 * Repeats bounded steps over one queue. At most as many jobs as were dead at the start, so that jobs which die again
 * meanwhile cannot keep it going.
 */
static int repeat_steps(struct cli *c, const lade_queue_info *info, step_fn step, uint64_t *left,
                        uint64_t *done, lade_err *err)
{
    uint64_t here = LB_MIN(info->count[LADE_STATE_DEAD], *left);
    int rc = LADE_MORE;
    *left -= here;
    if (c->dry_run) {
        *done += here;
        return 0;
    }
    while (rc == LADE_MORE && here > 0) {
        size_t n = 0;
        rc = step(c->q, info->name, (size_t)LB_MIN(here, (uint64_t)STEP), &n, err);
        if (rc < 0)
            return rc;
        here -= LB_MIN(here, (uint64_t)n);
        *done += n;
    }
    return 0;
}

static int print_done(const struct cli *c, uint64_t done, lade_err *err)
{
    struct cli_row row;
    if (!cli_out_is_json(c)) {
        (void)printf("%llu\n", (unsigned long long)done);
        return 0;
    }
    cli_row_init(&row);
    cli_row_text(&row, "verb", c->command->verb);
    cli_row_bool(&row, "dry_run", c->dry_run);
    cli_row_u64(&row, "done", done);
    return cli_out_object(c, &row, err);
}

static enum cli_exit run_steps(struct cli *c, const struct dead *d, step_fn step, const char *word)
{
    lade_err err = {0};
    lade_queue_info *queues = NULL;
    size_t n = 0;
    uint64_t left = d->limit > 0 ? (uint64_t)d->limit : UINT64_MAX;
    uint64_t done = 0;
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = cli_view_queues(c, &queues, &n, &err);
    if (rc > 0)
        return cli_say(cli_exit_of(rc), "%s", err.text);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = repeat_steps(c, &queues[i], step, &left, &done, &err);
    lade_free(queues);
    if (rc == 0 || done > 0) {
        lade_err why = {0};
        if (print_done(c, done, &why) < 0)
            return cli_complain(&why);
        cli_note(c, "%llu dead %s%s", (unsigned long long)done, c->dry_run ? "would be " : "",
                 word);
    }
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

static enum cli_exit run_redrive(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    return run_steps(c, values, lade_dead_redrive, "redriven");
}

static enum cli_exit run_purge(struct cli *c, void *values, char **args, int n_args)
{
    (void)args;
    (void)n_args;
    enum cli_exit code = CLI_OK;
    if (!cli_confirm(c, &code, "remove the dead of %s", c->queue ? c->queue : "all queues"))
        return code;
    return run_steps(c, values, purge_step, "removed");
}

static const struct cli_opt opts[] = {
    {"limit", 'l', CLI_OPT_INT, offsetof(struct dead, limit), "N",
     "at most so many, the oldest first (default all)", 1, INT64_MAX, NULL},
};

const struct cli_command cli_dead_redrive = {
    .noun = "dead",
    .verb = "redrive",
    .args = "",
    .about = "Moves dead jobs back to ready. Oldest first, with all their attempts again. Prints "
             "how many.",
    .examples = "  lade dead redrive -q mail\n  lade dead redrive --dry-run",
    .opts = opts,
    .n_opts = LB_ARRAY_LEN(opts),
    .size = sizeof(struct dead),
    .can_dry_run = true,
    .run = run_redrive,
};

const struct cli_command cli_dead_purge = {
    .noun = "dead",
    .verb = "purge",
    .args = "",
    .about = "Removes dead jobs. Oldest first; prints how many. Cannot be undone.",
    .examples = "  lade dead purge -q mail --yes\n  lade dead purge --dry-run",
    .opts = opts,
    .n_opts = LB_ARRAY_LEN(opts),
    .size = sizeof(struct dead),
    .can_dry_run = true,
    .asks = true,
    .run = run_purge,
};
