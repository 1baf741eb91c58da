/* lade key: tenants of a queue, their limits; and lade queue limit */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/commands.h"
#include "cli/limit_opts.h"

#define PAGE 500

static const struct cli_column key_columns[] = {
    {"KEY", "key", CLI_CELL_BYTES, false, true},
    {"READY", "ready", CLI_CELL_TEXT, true, false},
    {"ACTIVE", "active", CLI_CELL_TEXT, true, false},
    {"WAITING", "waiting", CLI_CELL_TEXT, true, false},
    {"HELD", "held", CLI_CELL_TEXT, true, false},
    {"BECAUSE", "because", CLI_CELL_TEXT, false, false},
    {"LATENCY", "latency_ms", CLI_CELL_DURATION, true, false},
    {"AT ONCE", "concurrency", CLI_CELL_TEXT, true, false},
    {"RATE", "rate", CLI_CELL_TEXT, false, false},
    {"WEIGHT", "weight", CLI_CELL_TEXT, true, false},
    {"ORDER", "order", CLI_CELL_TEXT, false, false},
};

/* `rate` is for people; programs read its numbers. */
static void make_row(const struct cli *c, struct cli_row *r, const lade_key_info *k)
{
    cli_row_init(r);
    cli_row_bytes(r, "key", k->key, SIZE_MAX);
    cli_row_u64(r, "ready", k->ready);
    cli_row_u64(r, "active", k->active);
    cli_row_u64(r, "waiting", k->waiting);
    cli_row_u64(r, "held", k->hold != LADE_HELD_NOT ? k->ready : 0);
    cli_row_text(r, "because", lade_key_hold_name(k->hold));
    cli_row_bool(r, "paused", k->paused);
    cli_row_time(r, "until", k->until);
    cli_row_int(r, "latency_ms", k->latency / LADE_MILLISECOND);
    cli_limit_row(r, "", &k->limit, true);
    if (!cli_out_is_json(c)) {
        cli_row_text(r, "rate", cli_limit_rate_text(&k->limit.rate).text);
        cli_row_text(r, "order", cli_limit_order_text(k->limit.order));
    }
    cli_limit_row(r, "own_", &k->own, true);
    /* "none" for this key, which null cannot say */
    cli_row_bool(r, "own_concurrency_lifted", k->own.concurrency == LADE_LIMIT_NONE);
    cli_row_bool(r, "own_rate_lifted", k->own.rate.count == LADE_LIMIT_NONE);
}

static enum cli_exit complain(const struct cli *c, const char *key, int rc, const lade_err *err)
{
    if (rc == LADE_NOT_FOUND && key)
        return cli_say(CLI_NOT_FOUND, "%s: nothing is known of this key of %s; see lade key ls",
                       key, c->queue);
    return rc == LADE_NOT_FOUND
               ? cli_say(CLI_NOT_FOUND, "%s: no such queue; see lade queue ls", c->queue)
               : cli_complain(err);
}

/* The queue by -q or as the first argument, which is then gone. False: said. */
static bool name_queue(struct cli *c, char ***args, int *n_args, enum cli_exit *code)
{
    if (!c->queue && *n_args > 0) {
        c->queue = *(*args)++;
        --*n_args;
    }
    if (!c->queue)
        *code = cli_say(CLI_USAGE, "%s %s: which queue? give its name", c->command->noun,
                        c->command->verb);
    return c->queue;
}

/* The same, and what is there is open. */
static bool take_queue(struct cli *c, char ***args, int *n_args, enum cli_exit *code)
{
    lade_err err = {0};
    if (!name_queue(c, args, n_args, code))
        return false;
    if (cli_look(c, &err) >= 0)
        return true;
    *code = cli_complain(&err);
    return false;
}

static int list_keys(struct cli *c, struct cli_out *out, lade_err *err)
{
    lade_cursor cursor = {0};
    while (!cursor.done) {
        lade_key_info *keys = NULL;
        size_t n = 0;
        int rc = lade_key_list(c->q, c->queue, &cursor, PAGE, &keys, &n, err);
        if (rc < 0)
            return rc;
        for (size_t i = 0; i < n; i++) {
            struct cli_row row;
            make_row(c, &row, &keys[i]);
            cli_out_row(out, &row);
        }
        lade_free(keys);
    }
    return 0;
}

static enum cli_exit run_ls(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    enum cli_exit code = CLI_OK;
    lade_err err = {0};
    lade_queue_info info;
    struct cli_out out;
    if (!take_queue(c, &args, &n_args, &code))
        return code;
    int rc = lade_queue_get(c->q, c->queue, &info, &err);
    if (rc != 0)
        return complain(c, NULL, rc, &err);
    cli_out_begin(&out, c, key_columns, LB_ARRAY_LEN(key_columns));
    rc = list_keys(c, &out, &err);
    return cli_out_finish(&out, rc, &err) < 0 ? cli_complain(&err) : CLI_OK;
}

const struct cli_command cli_key_ls = {
    .noun = "key",
    .verb = "ls",
    .args = "QUEUE",
    .max_args = 1,
    .about =
        "Lists the keys of a queue. Those that have jobs, a limit of their own or a pause, with "
        "why their ready jobs are held (paused, concurrency, rate, order) and the limit that "
        "holds.",
    .examples = "  lade key ls mail\n  lade key ls mail -o ndjson",
    .queue_help = "the queue, in place of an argument",
    .run = run_ls,
};

/* Prints one key. */
static enum cli_exit print_key(struct cli *c, const char *key)
{
    lade_err err = {0};
    lade_key_info *info = NULL;
    struct cli_row row;
    struct cli_out out;
    int rc = lade_key_get(c->q, c->queue, (lade_bytes){key, strlen(key)}, &info, &err);
    if (rc != 0)
        return complain(c, key, rc, &err);
    make_row(c, &row, info);
    lade_free(info);
    if (c->format == CLI_TABLE) {
        cli_out_begin(&out, c, key_columns, LB_ARRAY_LEN(key_columns));
        cli_out_row(&out, &row);
        rc = cli_out_end(&out, &err);
    } else {
        rc = cli_out_object(c, &row, &err);
    }
    return rc < 0 ? cli_complain(&err) : CLI_OK;
}

/* The one key a command is about. NULL: said. */
static const char *take_key(struct cli *c, char **args, int n_args, enum cli_exit *code)
{
    if (!take_queue(c, &args, &n_args, code))
        return NULL;
    if (n_args == 1)
        return args[0];
    *code = cli_say(CLI_USAGE, "key %s: which key? give QUEUE and KEY", c->command->verb);
    return NULL;
}

static enum cli_exit run_show(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    enum cli_exit code = CLI_OK;
    const char *key = take_key(c, args, n_args, &code);
    return key ? print_key(c, key) : code;
}

const struct cli_command cli_key_show = {
    .noun = "key",
    .verb = "show",
    .args = "QUEUE KEY",
    .max_args = 2,
    .about = "Shows one key. Its jobs by state, whether they are held and why, the limit that "
             "holds and, in JSON, what was set for it.",
    .examples = "  lade key show mail customer-17",
    .queue_help = "the queue, in place of an argument",
    .run = run_show,
};

static enum cli_exit pause_key(struct cli *c, char **args, int n_args, bool pause)
{
    enum cli_exit code = CLI_OK;
    lade_err err = {0};
    const char *key = take_key(c, args, n_args, &code);
    if (!key)
        return code;
    lade_bytes bytes = {key, strlen(key)};
    lade_queue_info info;
    /* As of queues: to pause makes it and says so, to resume one that is not there would hide a wrong name. */
    int rc = lade_queue_get(c->q, c->queue, &info, &err);
    bool is_new = pause && rc == LADE_NOT_FOUND;
    if (rc == 0 || is_new)
        rc = pause ? lade_key_pause(c->q, c->queue, bytes, &err)
                   : lade_key_resume(c->q, c->queue, bytes, &err);
    if (rc != 0)
        return complain(c, NULL, rc, &err);
    struct cli_row row;
    cli_row_init(&row);
    cli_row_text(&row, "queue", c->queue);
    cli_row_text(&row, "key", key);
    cli_row_bool(&row, "paused", pause);
    cli_note(c, "%s of %s: %s%s", key, c->queue, pause ? "paused" : "resumed",
             is_new ? " (new queue: no jobs yet)" : "");
    if (c->format != CLI_TABLE)
        return cli_out_object(c, &row, &err) < 0 ? cli_complain(&err) : CLI_OK;
    cli_row_fini(&row);
    return CLI_OK;
}

static enum cli_exit run_pause(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return pause_key(c, args, n_args, true);
}

const struct cli_command cli_key_pause = {
    .noun = "key",
    .verb = "pause",
    .args = "QUEUE KEY",
    .max_args = 2,
    .about = "Stops taking jobs of one key. Those that run go on; more may be enqueued. A queue "
             "that is not there yet is made, and told to be new.",
    .examples = "  lade key pause mail customer-17",
    .queue_help = "the queue, in place of an argument",
    .run = run_pause,
};

static enum cli_exit run_resume(struct cli *c, void *values, char **args, int n_args)
{
    (void)values;
    return pause_key(c, args, n_args, false);
}

const struct cli_command cli_key_resume = {
    .noun = "key",
    .verb = "resume",
    .args = "QUEUE KEY",
    .max_args = 2,
    .about = "Lets jobs of a key be taken again. Also when a handler paused it for some time.",
    .examples = "  lade key resume mail customer-17",
    .queue_help = "the queue, in place of an argument",
    .run = run_resume,
};

/* limits ----------------------------------------------------------------------------------------------------------- */

/* Changes what was said of one scope. */
static int change(struct cli *c, enum lade_limit_scope scope, lade_bytes key,
                  const struct cli_limit_opts *said, const char *prefix, lade_err *err)
{
    lade_limit limit = {0};
    bool of_key = scope == LADE_LIMIT_KEY;
    if (!cli_limit_is_said(said))
        return 0;
    int rc = lade_limit_get(c->q, c->queue, scope, key, &limit, err);
    if (rc == LADE_NOT_FOUND)
        rc = 0;
    if (rc == 0)
        rc = cli_limit_read(said, prefix, of_key, &limit, err);
    if (rc == 0 && !c->dry_run)
        rc = lade_limit_set(c->q, c->queue, scope, key, &limit, err);
    return rc;
}

static enum cli_exit run_limit(struct cli *c, void *values, char **args, int n_args)
{
    enum cli_exit code = CLI_OK;
    lade_err err = {0};
    const struct cli_limit_opts *said = values;
    const char *key = take_key(c, args, n_args, &code);
    if (!key)
        return code;
    if (change(c, LADE_LIMIT_KEY, (lade_bytes){key, strlen(key)}, said, "", &err) < 0)
        return cli_complain(&err);
    if (c->dry_run)
        return CLI_OK;
    code = print_key(c, key);
    return cli_limit_is_said(said) && code == CLI_NOT_FOUND ? CLI_OK : code;
}

#define AT(member) offsetof(struct cli_limit_opts, member)

static const struct cli_opt limit_opts[] = {
    {"concurrency", 0, CLI_OPT_TEXT, AT(concurrency), "N|none|default", "jobs active at once", 0, 0,
     NULL},
    {"rate", 0, CLI_OPT_TEXT, AT(rate), "N/PERIOD|none|default", "jobs started, as 100/1s", 0, 0,
     NULL},
    {"burst", 0, CLI_OPT_TEXT, AT(burst), "N", "how many of them at once (default N of the rate)",
     0, 0, NULL},
    {"weight", 0, CLI_OPT_TEXT, AT(weight), "N|default", "turns beside others' one (default 1)", 0,
     0, NULL},
    {"order", 0, CLI_OPT_TEXT, AT(order), "any|fifo|default", "fifo: one at a time, in order", 0, 0,
     NULL},
};

const struct cli_command cli_key_limit = {
    .noun = "key",
    .verb = "limit",
    .args = "QUEUE KEY",
    .max_args = 2,
    .about = "Sets limits of one key, or shows it. They come before the defaults of the queue "
             "(lade queue limit --key-...): none lifts a default, default returns to it. What is "
             "not said stays. Workers obey from their next take on.",
    .examples = "  lade key limit mail customer-17 --concurrency 2 --rate 100/1s\n"
                "  lade key limit mail customer-17 --concurrency default --weight 3",
    .opts = limit_opts,
    .n_opts = LB_ARRAY_LEN(limit_opts),
    .size = sizeof(struct cli_limit_opts),
    .can_dry_run = true,
    .queue_help = "the queue, in place of an argument",
    .run = run_limit,
};

struct queue_limit {
    struct cli_limit_opts queue, key;
    struct cli_bound_opts bound;
};

static int change_bound(struct cli *c, const struct cli_bound_opts *said, lade_err *err)
{
    lade_bound bound = {0};
    if (!said->max_jobs && !said->max_bytes && !said->on_full)
        return 0;
    int rc = lade_bound_get(c->q, c->queue, &bound, err);
    if (rc >= 0)
        rc = cli_bound_read(said, &bound, err);
    if (rc == 0 && !c->dry_run)
        rc = lade_bound_set(c->q, c->queue, &bound, err);
    return rc;
}

static enum cli_exit print_limits(struct cli *c)
{
    static const struct cli_column columns[] = {
        {"QUEUE", "queue", CLI_CELL_TEXT, false, false},
        {"MAX JOBS", "max_jobs", CLI_CELL_TEXT, true, false},
        {"MAX BYTES", "max_bytes", CLI_CELL_TEXT, true, false},
        {"ON FULL", "on_full", CLI_CELL_TEXT, false, false},
        {"AT ONCE", "at_once", CLI_CELL_TEXT, true, false},
        {"RATE", "rate", CLI_CELL_TEXT, false, false},
        {"KEY AT ONCE", "key_at_once", CLI_CELL_TEXT, true, false},
        {"KEY RATE", "key_rate", CLI_CELL_TEXT, false, false},
        {"KEY ORDER", "key_order_text", CLI_CELL_TEXT, false, false},
    };

    lade_err err = {0};
    lade_limit queue, keys;
    struct cli_row row;
    struct cli_out out;
    lade_bytes none = {0};
    int rc = lade_limit_get(c->q, c->queue, LADE_LIMIT_QUEUE, none, &queue, &err);
    if (rc == 0)
        rc = lade_limit_get(c->q, c->queue, LADE_LIMIT_KEYS, none, &keys, &err);
    if (rc != 0)
        return complain(c, NULL, rc, &err);
    cli_row_init(&row);
    cli_row_text(&row, "queue", c->queue);
    cli_limit_row(&row, "", &queue, false);
    cli_limit_row(&row, "key_", &keys, true);
    if (cli_bound_row(c, c->queue, &row, &err) < 0) {
        cli_row_fini(&row);
        return cli_complain(&err);
    }
    if (c->format != CLI_TABLE)
        return cli_out_object(c, &row, &err) < 0 ? cli_complain(&err) : CLI_OK;
    cli_row_text(&row, "at_once", cli_limit_number_text(queue.concurrency).text);
    cli_row_text(&row, "rate", cli_limit_rate_text(&queue.rate).text);
    cli_row_text(&row, "key_at_once", cli_limit_number_text(keys.concurrency).text);
    cli_row_text(&row, "key_rate", cli_limit_rate_text(&keys.rate).text);
    cli_row_text(&row, "key_order_text", cli_limit_order_text(keys.order));
    cli_out_begin(&out, c, columns, LB_ARRAY_LEN(columns));
    cli_out_row(&out, &row);
    return cli_out_end(&out, &err) < 0 ? cli_complain(&err) : CLI_OK;
}

static bool is_said(const struct queue_limit *l)
{
    return l->bound.max_jobs || l->bound.max_bytes || l->bound.on_full ||
           cli_limit_is_said(&l->queue) || cli_limit_is_said(&l->key);
}

static enum cli_exit run_queue_limit(struct cli *c, void *values, char **args, int n_args)
{
    enum cli_exit code = CLI_OK;
    lade_err err = {0};
    const struct queue_limit *l = values;
    lade_bytes none = {0};
    if (!name_queue(c, &args, &n_args, &code))
        return code;
    /* Both are read before either is set. */
    if (cli_limit_read(&l->key, "key-", false, &(lade_limit){.rate = {1, LADE_SECOND, 1}}, &err) <
            0 ||
        cli_limit_read(&l->queue, "", false, &(lade_limit){.rate = {1, LADE_SECOND, 1}}, &err) < 0)
        return cli_complain(&err);
    if (cli_bound_read(&l->bound, &(lade_bound){.max_jobs = 1}, &err) < 0) /* any bound */
        return cli_complain(&err);
    /* What is set makes its queue, and so a file that is not there. */
    if ((is_said(l) && !c->dry_run ? cli_connect(c, NULL, &err) : cli_look(c, &err)) < 0)
        return cli_complain(&err);
    if (change_bound(c, &l->bound, &err) < 0 ||
        change(c, LADE_LIMIT_QUEUE, none, &l->queue, "", &err) < 0 ||
        change(c, LADE_LIMIT_KEYS, none, &l->key, "key-", &err) < 0)
        return cli_complain(&err);
    return c->dry_run ? CLI_OK : print_limits(c);
}

#undef AT
#define AT(member) offsetof(struct queue_limit, member)

static const struct cli_opt queue_opts[] = {
    {"max-jobs", 0, CLI_OPT_TEXT, AT(bound.max_jobs), "N|none",
     "jobs that may wait: ready, scheduled and retrying", 0, 0, NULL},
    {"max-bytes", 0, CLI_OPT_TEXT, AT(bound.max_bytes), "SIZE|none",
     "bytes they may have, as 64MiB: payload, kind, headers", 0, 0, NULL},
    {"on-full", 0, CLI_OPT_TEXT, AT(bound.on_full), "reject|block",
     "what an enqueue then does (default reject)", 0, 0, NULL},
    {"concurrency", 0, CLI_OPT_TEXT, AT(queue.concurrency), "N|none", "jobs active at once", 0, 0,
     NULL},
    {"rate", 0, CLI_OPT_TEXT, AT(queue.rate), "N/PERIOD|none", "jobs started, as 100/1s", 0, 0,
     NULL},
    {"burst", 0, CLI_OPT_TEXT, AT(queue.burst), "N",
     "how many of them at once (default N of the rate)", 0, 0, NULL},
    {"key-concurrency", 0, CLI_OPT_TEXT, AT(key.concurrency), "N|none", "the same for each key", 0,
     0, NULL},
    {"key-rate", 0, CLI_OPT_TEXT, AT(key.rate), "N/PERIOD|none", "the same for each key", 0, 0,
     NULL},
    {"key-burst", 0, CLI_OPT_TEXT, AT(key.burst), "N", "the same for each key", 0, 0, NULL},
    {"key-order", 0, CLI_OPT_TEXT, AT(key.order), "any|fifo",
     "fifo: one of a key at a time, in order", 0, 0, NULL},
};

const struct cli_command cli_queue_limit = {
    .noun = "queue",
    .verb = "limit",
    .args = "QUEUE",
    .max_args = 1,
    .about =
        "Sets or shows limits of a queue. Of the whole, and with --key- the defaults of each of "
        "its keys. They hold over all workers, from their next take on. With --max-jobs "
        "and --max-bytes no enqueue ever makes more jobs or bytes wait than that: it is refused "
        "whole (exit 4), or waits for room as long as a call may take; retries, steps of workflows and schedules pass. What is "
        "not said stays; a queue that is not there yet is made.",
    .examples = "  lade queue limit mail --concurrency 20 --rate 100/1s --burst 10\n"
                "  lade queue limit mail --max-jobs 100000 --on-full block\n"
                "  lade queue limit mail --max-bytes 64MiB\n"
                "  lade queue limit mail --key-concurrency 2\n  lade queue limit mail -o json",
    .opts = queue_opts,
    .n_opts = LB_ARRAY_LEN(queue_opts),
    .size = sizeof(struct queue_limit),
    .can_dry_run = true,
    .queue_help = "the queue, in place of an argument",
    .run = run_queue_limit,
};
