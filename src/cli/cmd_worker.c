/* lade worker ls: who works now; `worker run` is in cmd_work.c */
#include "base/base.h"
#include "cli/commands.h"
#include "cli/out.h"

static const struct cli_column columns[] = {
    {"NAME", "name", CLI_CELL_TEXT, false, false},
    {"ID", "id", CLI_CELL_TEXT, false, true},
    {"QUEUES", "queues", CLI_CELL_TEXT, false, true},
    {"SLOTS", "concurrency", CLI_CELL_TEXT, true, false},
    {"ACTIVE", "active", CLI_CELL_TEXT, true, false},
    {"UP", "up_ms", CLI_CELL_DURATION, true, false},
    {"SEEN", "seen_ago_ms", CLI_CELL_DURATION, true, false},
    {"LEASE", "lease_left_ms", CLI_CELL_DURATION, true, false},
};

static void make_row(struct cli_row *r, const lade_worker_info *w, int64_t now)
{
    cli_row_init(r);
    cli_row_text(r, "name", w->name);
    cli_row_text(r, "id", w->id);
    cli_row_text(r, "queues", w->queues);
    cli_row_int(r, "concurrency", w->concurrency);
    cli_row_u64(r, "active", w->n_active);
    cli_row_time(r, "started_at", w->started_at);
    cli_row_time(r, "seen_at", w->seen_at);
    cli_row_time(r, "lease_until", w->lease_until);
    cli_row_int(r, "up_ms", LB_MAX(now - w->started_at, 0) / LADE_MILLISECOND);
    if (w->seen_at > 0)
        cli_row_int(r, "seen_ago_ms", LB_MAX(now - w->seen_at, 0) / LADE_MILLISECOND);
    else
        cli_row_text(r, "seen_ago_ms", NULL);
    cli_row_int(r, "lease_left_ms", LB_MAX(w->lease_until - now, 0) / LADE_MILLISECOND);
}

static enum cli_exit run_ls(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    (void)args;
    (void)n_args;
    lade_err err = {0};
    lade_worker_info *workers = NULL;
    size_t n = 0;
    int64_t now = 0;
    struct cli_out out;
    int rc = cli_look(c, &err);
    if (rc == 0)
        rc = lade_now(c->q, &now, &err);
    if (rc == 0)
        rc = lade_worker_list(c->q, &workers, &n, &err);
    if (rc < 0)
        return cli_complain(&err);
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    for (size_t i = 0; i < n; i++) {
        struct cli_row row;
        make_row(&row, &workers[i], now);
        cli_out_row(&out, &row);
    }
    lade_free(workers);
    rc = cli_out_end(&out, &err);
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

const struct cli_command cli_worker_ls = {
    .noun = "worker",
    .verb = "ls",
    .args = "",
    .about =
        "Lists live workers. Shows what they serve, how many slots, how many jobs they hold, when "
        "they were last seen and when their lease ends.",
    .examples = "  lade worker ls\n  lade worker ls --json",
    .lacks = CLI_LACKS_QUEUE,
    .run = run_ls,
};
