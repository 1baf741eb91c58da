#include "bench/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "bench/machine.h"
#include "bench/metric.h"
#include "bench/verify.h"

#define ENV_PAD_MAX 4096
#define NO_SUCH     2 /* a driver's exit status: it cannot do this here */

size_t bn_order(size_t repeat, size_t k, size_t n)
{
    return (k + repeat) % n;
}

size_t bn_cell_good(const struct bn_cell *cell)
{
    size_t n = 0;
    for (size_t i = 0; i < cell->n_runs; i++)
        n += cell->run[i].line != NULL;
    return n;
}

bool bn_session_stats(const struct bn_session *s, size_t row, size_t c, const char *metric,
                      bool lower_is_better, struct bn_stats *out)
{
    const struct bn_cell *cell = bn_session_cell(s, row, c);
    double v[BN_REPEATS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < cell->n_runs; i++)
        n += cell->run[i].line && bn_metric(cell->run[i].line, metric, &v[n]);
    n = bn_stats_discard(v, n, (size_t)s->discard, lower_is_better);
    bn_stats_of(v, n, out);
    return n > 0;
}

/* The server of the PATH, unless a contender that could run here needs a newer one that is there: then all run on that. */
static void choose_server(struct bn_session *s)
{
    const struct bn_program *best = s->n_programs > 0 ? &s->program[0] : NULL;
    for (size_t c = 0; c < s->n_contenders && best; c++) {
        const struct bn_contender *who = s->contender[c];
        if (!who || who->reason[0] || !who->min_server || strcmp(who->server, "redis") != 0)
            continue;
        for (size_t i = 0;
             i < s->n_programs && bn_version_compare(best->version, who->min_server) < 0; i++) {
            if (bn_version_compare(s->program[i].version, who->min_server) >= 0)
                best = &s->program[i];
        }
    }
    s->server.program = best;
    s->server.tcp = s->table->tcp;
}

/* The columns of lade's own driver are the table's reason to be: --peers chooses among the others. */
static bool is_wanted(struct bn_drivers *drivers, const char *peers, const char *name)
{
    const struct bn_contender *c = bn_drivers_find(drivers, name);
    bool own = c && strncmp(c->driver->name, "lade", 4) == 0;
    return !peers || own || bn_is_listed(peers, name);
}

static void narrow_contenders(struct bn_session *s, const char *peers)
{
    size_t n = 0;
    for (size_t c = 0; c < s->table->n_contenders; c++) {
        if (is_wanted(s->drivers, peers, s->table->contenders[c]))
            s->table->contenders[n++] = s->table->contenders[c];
    }
    s->table->n_contenders = n;
    s->n_contenders = n;
}

/* A contender is what its settings make it: a row that asks for the contrary is none of its. */
static bool contradicts(const struct bn_session *s, size_t row, size_t c, char *out, size_t size)
{
    const char *key;
    json_t *own;
    json_object_foreach((json_t *)s->contender[c]->set, key, own)
    {
        char wanted[64];
        char set[64];
        const json_t *v = json_object_get(s->table->rows[row].params, key);
        if (!v || strcmp(bn_param_text(v, wanted, sizeof(wanted)),
                         bn_param_text(own, set, sizeof(set))) == 0)
            continue;
        (void)snprintf(out, size, "not applicable: %s sets %s=%s, the row is of %s=%s",
                       s->contender[c]->name, key, set, key, wanted);
        return true;
    }
    return false;
}

bool bn_session_open(struct bn_session *s, const char *peers, char *why, size_t size)
{
    narrow_contenders(s, peers);
    if (s->n_contenders == 0 || s->table->n_rows == 0) {
        (void)snprintf(why, size, "table %s: nothing is left to run (%s)", s->table->name,
                       s->table->dropped[0] ? s->table->dropped : "see --scenario and --peers");
        return false;
    }
    s->cell = lb_calloc(s->table->n_rows * s->n_contenders, sizeof(*s->cell));
    s->machine = NULL;
    if (!s->cell) {
        (void)snprintf(why, size, "out of memory");
        return false;
    }
    s->n_programs = bn_server_programs(s->drivers->peers, s->program);
    for (size_t c = 0; c < s->n_contenders; c++) {
        s->contender[c] = bn_drivers_find(s->drivers, s->table->contenders[c]);
        if (s->contender[c])
            bn_contender_probe(s->drivers, s->contender[c]);
    }
    choose_server(s);
    for (size_t r = 0; r < s->table->n_rows; r++) {
        for (size_t c = 0; c < s->n_contenders; c++) {
            struct bn_cell *cell = bn_session_cell(s, r, c);
            if (!s->contender[c])
                (void)snprintf(cell->why_not, sizeof(cell->why_not), "no driver here");
            else if (!*bn_contender_why_not(s->contender[c], s->table->rows[r].scenario,
                                            s->server.program, cell->why_not,
                                            sizeof(cell->why_not)))
                (void)contradicts(s, r, c, cell->why_not, sizeof(cell->why_not));
        }
    }
    return true;
}

/* Seconds that what is left will take, by what each cell took last; < 0 before anything ran. */
static double estimate_left(const struct bn_session *s, int repeat, size_t row, size_t k)
{
    double known = 0;
    double sum = 0;
    size_t n_known = 0;
    size_t n_all = 0;
    for (size_t i = 0; i < s->table->n_rows * s->n_contenders; i++) {
        n_all += !s->cell[i].why_not[0];
        n_known += s->cell[i].last_wall_s > 0;
        known += s->cell[i].last_wall_s;
    }
    if (n_known == 0)
        return -1;
    double mean = known / (double)n_known;
    for (size_t r = 0; r < s->table->n_rows; r++) {
        for (size_t c = 0; c < s->n_contenders; c++) {
            const struct bn_cell *cell = bn_session_cell(s, r, c);
            double one = cell->last_wall_s > 0 ? cell->last_wall_s : mean;
            int rounds = s->repeats - repeat - 1 + (r > row || (r == row && c >= k));
            sum += cell->why_not[0] ? 0 : one * rounds;
        }
    }
    return n_all > 0 ? sum : -1;
}

/* What the run cost the server, unless the driver measured its own window. */
static void add_server_usage(json_t *line, const struct bn_usage *before,
                             const struct bn_usage *after)
{
    bool whole = false;
    if (json_is_null(json_object_get(line, "server_cpu_s"))) {
        (void)json_object_set_new(line, "server_cpu_s", json_real(after->cpu_s - before->cpu_s));
        whole = true;
    }
    if (json_is_null(json_object_get(line, "server_commands"))) {
        (void)json_object_set_new(line, "server_commands",
                                  json_integer((json_int_t)(after->commands - before->commands)));
        whole = true;
    }
    if (whole)
        (void)json_object_set_new(line, "server_whole_run", json_true());
}

static void add_client_usage(json_t *line, const struct bn_child_end *end)
{
    if (json_is_null(json_object_get(line, "client_cpu_s")))
        (void)json_object_set_new(line, "client_cpu_s", json_real(end->cpu_s));
    if (json_is_null(json_object_get(line, "rss_bytes")))
        (void)json_object_set_new(line, "rss_bytes", json_integer(end->rss_bytes));
    (void)json_object_set_new(line, "process_cpu_s", json_real(end->cpu_s));
}

/* Where the run finds its store: "" when it needs none. False: reason in why. */
static bool prepare_store(struct bn_session *s, size_t row, const struct bn_contender *c, char *url,
                          size_t size, char *why, size_t why_size)
{
    url[0] = '\0';
    if (strcmp(c->server, "redis") == 0) {
        const char *const *args = c->args[0] ? c->args : s->table->rows[row].args;
        if (!bn_server_ensure(&s->server, args, why, why_size))
            return false;
        (void)snprintf(url, size, "%s", s->server.url);
    } else if (strcmp(c->server, "sqlite") == 0 && !bn_server_fresh_file(&s->server, url, size)) {
        (void)snprintf(why, why_size, "cannot make a folder for the file");
        return false;
    }
    return true;
}

/* One run of one cell. */
static void run_once(struct bn_session *s, size_t row, size_t c, struct bn_run *run)
{
    char url[256];
    char pad[ENV_PAD_MAX + 32];
    struct bn_argv argv;
    struct bn_child_end end = {0};
    struct bn_usage before = {0};
    struct bn_usage after = {0};
    struct bn_contender *who = s->contender[c];
    const struct bn_row *r = &s->table->rows[row];
    if (!prepare_store(s, row, who, url, sizeof(url), run->why, sizeof(run->why)))
        return;
    if (!bn_argv_make(s->drivers, who, r, url, &argv)) {
        (void)snprintf(run->why, sizeof(run->why), "the command line is too long");
        return;
    }
    (void)snprintf(pad, sizeof(pad), "BENCH_ENV_PAD=%0*d", (int)lb_rand_below(ENV_PAD_MAX) + 1, 0);
    struct bn_child child = {.argv = (const char *const *)argv.v,
                             .env = (const char *[]){pad, NULL},
                             .n_cpus = r->cpus,
                             .deadline_ns = (int64_t)(s->table->deadline_s * 1e9),
                             .stop = s->stop};
    bool on_server = strcmp(who->server, "redis") == 0;
    bool counted = on_server && bn_info_usage(&s->server.info, &before);
    if (!bn_child_run(&child, &end))
        (void)snprintf(run->why, sizeof(run->why), "%.300s", end.err);
    else if (end.code == NO_SUCH && !end.timed_out && !end.stopped)
        run->cannot = *bn_child_problem(&end, run->why, sizeof(run->why)) != '\0';
    else if (!*bn_child_problem(&end, run->why, sizeof(run->why)))
        run->line = bn_verify(r, who->set, end.out, run->why, sizeof(run->why));
    run->wall_s = end.wall_s;
    if (run->line) {
        add_client_usage(run->line, &end);
        if (counted && bn_info_usage(&s->server.info, &after))
            add_server_usage(run->line, &before, &after);
    }
    bn_child_free(&end);
    bn_argv_free(&argv);
    bn_server_drop_file(&s->server);
}

/* One line of raw.jsonl; in the true order of running. */
static void write_raw(struct bn_session *s, size_t row, size_t c, const struct bn_run *run)
{
    json_t *line = run->line ? json_deep_copy(run->line) : json_object();
    (void)json_object_set_new(line, "seq", json_integer(s->seq));
    (void)json_object_set_new(line, "repeat", json_integer(run->repeat));
    (void)json_object_set_new(line, "row", json_string(s->table->rows[row].label));
    (void)json_object_set_new(line, "contender", json_string(bn_session_column(s, c)));
    (void)json_object_set_new(line, "wall_s", json_real(run->wall_s));
    (void)json_object_set_new(line, "load", json_real(bn_machine_load()));
    if (!run->line)
        (void)json_object_set_new(line, "failed", json_string(run->why));
    (void)json_dumpf(line, s->raw, JSON_COMPACT | JSON_REAL_PRECISION(9));
    (void)fputc('\n', s->raw);
    (void)fflush(s->raw);
    json_decref(line);
}

/* The k-th run of a row in this repeat. */
static void step(struct bn_session *s, struct bn_eta *eta, int repeat, size_t row, size_t k)
{
    size_t c = bn_order((size_t)(repeat + s->warmup) + row, k, s->n_contenders);
    struct bn_cell *cell = bn_session_cell(s, row, c);
    struct bn_run run = {.repeat = LB_MAX(repeat, -1)};
    char what[200];
    if (cell->why_not[0])
        return;
    (void)snprintf(what, sizeof(what), "%s on %s", s->table->rows[row].label,
                   bn_session_column(s, c));
    bn_eta_step(eta, s->table->name, repeat, s->repeats, what, estimate_left(s, repeat, row, k));
    run_once(s, row, c, &run);
    if (s->stop && *s->stop) { /* cut short: neither good nor failed */
        json_decref(run.line);
        return;
    }
    write_raw(s, row, c, &run);
    s->seq++;
    if (run.cannot) {
        const char *said = strstr(run.why, ": ");
        (void)snprintf(cell->why_not, sizeof(cell->why_not), "%s", said ? said + 2 : run.why);
        return;
    }
    cell->last_wall_s = run.wall_s;
    if (!run.line) {
        (void)snprintf(cell->last_error, sizeof(cell->last_error), "%s", run.why);
        bn_eta_say(eta, "%s: %s: failed: %s", s->table->name, what, run.why);
    }
    if (repeat < 0)
        json_decref(run.line);
    else
        cell->run[cell->n_runs++] = run;
}

/* What is to come, before anything ran: by the times of the last run here. */
static void say_extent(const struct bn_session *s, struct bn_eta *eta)
{
    size_t n = 0;
    size_t n_known = 0;
    for (size_t i = 0; i < s->table->n_rows * s->n_contenders; i++) {
        n += !s->cell[i].why_not[0];
        n_known += !s->cell[i].why_not[0] && s->cell[i].last_wall_s > 0;
    }
    double left = estimate_left(s, -s->warmup, 0, 0);
    char time[96] = "never run here, so its time is known only after the first round";
    if (n_known > 0)
        (void)snprintf(time, sizeof(time), "about %.0f min by the last runs here", left / 60);
    bn_eta_say(eta, "%s: %zu cells, %d rounds (%d of them warm-up): %s", s->table->name, n,
               s->repeats + s->warmup, s->warmup, time);
}

void bn_session_run(struct bn_session *s, struct bn_eta *eta)
{
    int64_t began = lb_clock_mono();
    s->load_before = bn_machine_load();
    say_extent(s, eta);
    for (int repeat = -s->warmup; repeat < s->repeats; repeat++) {
        for (size_t row = 0; row < s->table->n_rows; row++) {
            for (size_t k = 0; k < s->n_contenders && !(s->stop && *s->stop); k++)
                step(s, eta, repeat, row, k);
        }
    }
    s->partial = s->stop && *s->stop;
    s->load_after = bn_machine_load();
    s->elapsed_s = (double)(lb_clock_mono() - began) / 1e9;
    bn_eta_clear(eta);
}

void bn_session_close(struct bn_session *s)
{
    bn_server_stop(&s->server);
    for (size_t i = 0; s->cell && i < s->table->n_rows * s->n_contenders; i++) {
        for (size_t k = 0; k < s->cell[i].n_runs; k++)
            json_decref(s->cell[i].run[k].line);
    }
    lb_free(s->cell);
    json_decref(s->machine);
    s->cell = NULL;
    s->machine = NULL;
}
