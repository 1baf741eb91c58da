/*
 * bench_main.c - lade-bench: run, list, build
 *
 * Exit status: 0 done, 1 a table could not run or a cell has no good run at all, 2 usage, 130 stopped by the user (the report
 * of what was done until then is written, marked partial).
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/eta.h"
#include "bench/listing.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/runner.h"
#include "bench/times.h"

static volatile sig_atomic_t stop;

static void on_signal(int signum)
{
    (void)signum;
    stop = 1;
}

static void catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal};
    (void)sigemptyset(&a.sa_mask);
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
    (void)sigaction(SIGHUP, &a, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

struct places {
    char root[480], tables[512], drivers[512], peers[512], times[512];
};

/* $LADE_BENCH_DIR is for tests and for a tree that moved. */
static void find_places(struct places *p)
{
    const char *bench = getenv("LADE_BENCH_DIR");
    (void)snprintf(p->root, sizeof(p->root), "%s", BN_SOURCE_DIR);
    bool own = bench && *bench;
    if (!own)
        bench = BN_SOURCE_DIR "/bench";
    (void)snprintf(p->times, sizeof(p->times), "%s/times.json",
                   own ? bench : BN_SOURCE_DIR "/build/bench");
    (void)snprintf(p->tables, sizeof(p->tables), "%s/tables", bench);
    (void)snprintf(p->drivers, sizeof(p->drivers), "%s/drivers", bench);
    (void)snprintf(p->peers, sizeof(p->peers), "%s/build/peers", p->root);
}

static int complain(const char *what)
{
    (void)fprintf(stderr, "lade-bench: %s\n", what);
    return 1;
}

static void make_folders(const char *path)
{
    char part[600];
    (void)snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(part, 0755);
        *slash = '/';
    }
    (void)mkdir(part, 0755);
}

static void choose_out(struct bn_session *s, const struct bn_options *o, const struct places *p)
{
    char when[32];
    time_t now = time(NULL);
    struct tm tm;
    (void)strftime(when, sizeof(when), "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
    if (!o->out)
        (void)snprintf(s->out, sizeof(s->out), "%s/build/bench/%s-%s-%s", p->root, s->table->name,
                       s->profile, when);
    else if (o->n_tables > 1)
        (void)snprintf(s->out, sizeof(s->out), "%.500s/%s", o->out, s->table->name);
    else
        (void)snprintf(s->out, sizeof(s->out), "%.590s", o->out);
    make_folders(s->out);
}

static FILE *open_in(const struct bn_session *s, const char *name)
{
    char path[700];
    (void)snprintf(path, sizeof(path), "%s/%s", s->out, name);
    FILE *f = fopen(path, "we");
    if (!f)
        (void)fprintf(stderr, "lade-bench: %s: %s\n", path, strerror(errno));
    return f;
}

static void copy_to_stdout(const struct bn_session *s, const char *name)
{
    char path[700];
    char piece[8192];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s/%s", s->out, name);
    FILE *f = fopen(path, "re");
    while (f && (n = fread(piece, 1, sizeof(piece), f)) > 0)
        (void)fwrite(piece, 1, n, stdout);
    if (f)
        (void)fclose(f);
}

/* What a reader wants first; the rest is in the file. */
static void print_short(const struct bn_session *s)
{
    (void)printf("# %s\n\n", s->table->title);
    bn_report_figures(s, stdout);
    bn_report_targets(s, stdout);
}

static bool write_reports(const struct bn_session *s, const char *command,
                          const struct bn_options *o)
{
    FILE *md = open_in(s, "report.md");
    FILE *csv = open_in(s, "summary.csv");
    bool good = md && csv;
    if (csv) {
        bn_report_csv(s, csv);
        good = fclose(csv) == 0 && good;
    }
    if (md) {
        bn_report_markdown(s, command, md);
        int plots = bn_report_plots(s);
        for (int i = 0; i < plots; i++)
            (void)fprintf(md, "![%s](plot-%d.svg)\n", s->table->name, i);
        good = fclose(md) == 0 && good;
    }
    if (!o->format_given)
        print_short(s);
    else if (o->format == BN_JSON)
        bn_report_json(s, stdout);
    else
        copy_to_stdout(s, o->format == BN_CSV     ? "summary.csv"
                          : o->format == BN_JSONL ? "raw.jsonl"
                                                  : "report.md");
    (void)fflush(stdout);
    return good;
}

/* No cell that can run is without a good run. */
static bool all_cells_good(const struct bn_session *s)
{
    for (size_t i = 0; i < s->table->n_rows * s->n_contenders; i++) {
        if (!s->cell[i].why_not[0] && s->cell[i].n_runs > 0 && bn_cell_good(&s->cell[i]) == 0)
            return false;
    }
    return true;
}

static void apply_options(struct bn_session *s, const struct bn_options *o)
{
    s->repeats = o->repeats ? o->repeats : LB_MIN(s->table->repeats, BN_REPEATS_MAX);
    s->warmup = o->warmup >= 0 ? o->warmup : s->table->warmup;
    s->discard = o->discard;
    s->scale = o->scale;
    s->profile = s->table->profile;
    if (o->deadline_s > 0)
        s->table->deadline_s = o->deadline_s;
    if (o->transport)
        s->table->tcp = strcmp(o->transport, "tcp") == 0;
}

static int run_table(const char *name, const struct bn_options *o, const struct places *p,
                     struct bn_drivers *drivers, const char *command)
{
    char path[700];
    char why[512] = "";
    struct bn_eta eta;
    struct bn_session s = {.drivers = drivers, .stop = &stop};
    struct bn_choice choice = {.profile = o->profile,
                               .scale = o->scale,
                               .scenarios = o->scenarios,
                               .set = o->set,
                               .n_cpus = bn_machine_n_cpus()};
    (void)snprintf(path, sizeof(path), "%s/%s.json", p->tables, name);
    s.table = bn_table_load(path, &choice, why, sizeof(why));
    if (!s.table)
        return complain(why);
    apply_options(&s, o);
    int code = 0;
    if (!bn_session_open(&s, o->peers, why, sizeof(why)))
        code = complain(why);
    choose_out(&s, o, p);
    if (code == 0 && (s.raw = open_in(&s, "raw.jsonl"))) {
        s.machine = bn_machine_facts(p->root);
        bn_eta_init(&eta, false);
        bn_times_load(&s, p->times);
        bn_session_run(&s, &eta);
        (void)fclose(s.raw);
        bn_times_save(&s, p->times);
        code = write_reports(&s, command, o) && all_cells_good(&s) ? 0 : 1;
        bn_eta_say(&eta, "%s: %s%s/report.md", name, s.partial ? "stopped; partial report in " : "",
                   s.out);
        if (s.partial)
            code = 130;
    } else
        code = 1;
    bn_session_close(&s);
    bn_table_free(s.table);
    return code;
}

static int run_tables(struct bn_options *o, const struct places *p, struct bn_drivers *drivers,
                      const char *command)
{
    int worst = 0;
    static struct bn_names all; /* options point into it */
    if (o->n_tables == 1 && strcmp(o->tables[0], "all") == 0) {
        bn_listing_tables(p->tables, &all);
        o->n_tables = LB_MIN(all.n, (size_t)BN_TABLES_MAX);
        for (size_t i = 0; i < o->n_tables; i++)
            o->tables[i] = all.name[i];
    }
    /* Before any runs: a wrong name must not be found after an hour. */
    for (size_t i = 0; i < o->n_tables; i++) {
        char path[700];
        (void)snprintf(path, sizeof(path), "%s/%s.json", p->tables, o->tables[i]);
        if (access(path, F_OK) == 0)
            continue;
        (void)fprintf(stderr, "lade-bench: %s: no such table; see lade-bench list\n", o->tables[i]);
        return 2;
    }
    for (size_t i = 0; i < o->n_tables && !stop; i++) {
        int code = run_table(o->tables[i], o, p, drivers, command);
        worst = LB_MAX(worst, code);
    }
    return worst;
}

static int build_drivers(const struct bn_options *o, struct bn_drivers *drivers)
{
    int failed = 0;
    for (size_t i = 0; i < drivers->n && !stop; i++) {
        struct bn_driver *d = &drivers->driver[i];
        if (json_object_get(d->spec, "build") && (!o->peers || bn_is_listed(o->peers, d->name)))
            failed += !bn_driver_build(d);
    }
    return failed > 0;
}

static void join_command(int argc, char **argv, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "lade-bench");
    for (int i = 1; i < argc && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, " %s", argv[i]);
}

int main(int argc, char **argv)
{
    struct bn_options o;
    struct places p;
    char why[512];
    char command[1024];
    static struct bn_drivers drivers;
    join_command(argc, argv, command, sizeof(command));
    int code = bn_options_parse(argc, argv, &o);
    if (code != 0)
        return json_decref(o.set), code - 1;
    catch_signals();
    find_places(&p);
    if (!bn_drivers_load(&drivers, p.drivers, p.peers, why, sizeof(why)))
        code = complain(why);
    for (size_t i = 0; i < o.n_impls && code == 0; i++) {
        if (!bn_drivers_replace(&drivers, o.impl[i]))
            code = complain("--impl: no contender of that name");
    }
    if (code == 0 && strcmp(o.command, "list") == 0)
        code = bn_listing_print(p.tables, &drivers, o.format == BN_JSON);
    else if (code == 0 && strcmp(o.command, "build") == 0)
        code = build_drivers(&o, &drivers);
    else if (code == 0)
        code = run_tables(&o, &p, &drivers, command);
    bn_drivers_free(&drivers);
    json_decref(o.set);
    return code;
}
