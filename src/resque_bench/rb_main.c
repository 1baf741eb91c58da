/* rb_main.c - resque-bench: from flags to report */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mem.h"
#include "resque_bench/export.h"
#include "resque_bench/rb_report.h"
#include "resque_bench/settings.h"
#include "resque_bench/trial.h"
#include "resque_bench/words.h"

FILE *rb_out;

static volatile sig_atomic_t interrupted;

static void on_signal(int signum)
{
    (void)signum;
    interrupted = 1;
}

bool rb_interrupted(void)
{
    return interrupted != 0;
}

/* The first asks for an end in order, the second ends at once. A reader of the text who leaves (| head) ends nothing. */
static void catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
    struct sigaction now;
    if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN) /* nohup */
        (void)sigaction(SIGHUP, &a, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

struct run {
    struct rb_options o;
    struct rb_server server;
    struct rb_result *result;
    size_t n;
    char tag[128], output[RB_OUTPUT_MAX];
};

static int fail(const lade_err *err)
{
    (void)fprintf(stderr, "Error: %s\n", err->text);
    return 1;
}

static int run_trials(struct run *r, lade_err *err)
{
    for (size_t m = 0; m < r->o.n_modes; m++)
        for (size_t i = 0; i < r->o.n_workers && !rb_interrupted(); i++) {
            struct rb_result *one = &r->result[r->n++];
            int rc = rb_trial_run(&r->server, r->o.modes[m], r->o.workers[i], one, err);
            if (rc < 0)
                return rc;
            if (!r->o.quiet)
                rb_report_trial(&r->o, one);
        }
    return 0;
}

/* The tag is asked for before anything is checked, so that a report of what was refused has its name. */
static void choose_tag(struct run *r)
{
    if (r->o.tag)
        rb_tag_clean(r->tag, sizeof(r->tag), r->o.tag);
    else
        rb_server_tag(&r->server, r->tag, sizeof(r->tag));
    if (r->o.output)
        (void)snprintf(r->output, sizeof(r->output), "%s", r->o.output);
    else
        (void)snprintf(r->output, sizeof(r->output), "resque_bench_%s.json", r->tag);
}

static int finish(struct run *r, int rc, const lade_err *why)
{
    lade_err err;
    rb_server_clean(&r->server);
    if (r->n > 0)
        rb_report_tables(&r->o, r->result, r->n);
    bool to_file = strcmp(r->output, "-") != 0;
    if (rb_export(&r->server, r->tag, r->result, r->n, r->output, &err) < 0)
        return fail(&err);
    if (to_file)
        (void)fprintf(rb_out, "\nResults saved → %s\n", r->output);
    if (rc < 0)
        return fail(why);
    if (rb_interrupted())
        return 130;
    bool fine = true;
    for (size_t i = 0; i < r->n; i++)
        fine &= rb_result_is_fine(&r->result[i]);
    if (!fine)
        (void)fprintf(
            stderr,
            "Warning: the results are incomplete or not clean: see errors, timed_out, lost_jobs, foreign_jobs and idle_poll\n");
    return fine ? 0 : 1;
}

static int run(struct run *r)
{
    lade_err err = {0};
    int rc = rb_server_init(&r->server, &r->o, &err);
    if (rc < 0)
        return fail(&err);
    rc = rb_server_connect(&r->server, &err);
    choose_tag(r);
    if (rc < 0) {
        (void)fprintf(stderr, "Warning: the server's version is unknown: it could not be asked\n");
        return fail(&err);
    }
    rc = rb_cluster_enter(&r->server, &err);
    if (rc == 0)
        rc = rb_safe_check(&r->server, &err);
    if (rc == 0)
        rc = rb_output_prepare(r->output, &err);
    if (rc < 0)
        return fail(&err);
    r->result = lb_calloc(r->o.n_modes * r->o.n_workers, sizeof(*r->result));
    if (!r->result)
        return fail(&(lade_err){.text = "out of memory"});
    if (!r->o.quiet)
        rb_report_header(&r->server, r->tag);
    catch_signals();
    rc = run_trials(r, &err);
    return finish(r, rc, &err);
}

int main(int argc, char **argv)
{
    static struct run r;
    rb_out = stdout;
    enum rb_settled settled = rb_settings_read(&r.o, argc, argv);
    int rc = settled == RB_EXIT_OK ? 0 : settled == RB_EXIT_USAGE ? 2 : 1;
    if (settled == RB_GO) {
        if (r.o.output && strcmp(r.o.output, "-") == 0)
            rb_out = stderr;
        rc = run(&r);
    }
    for (size_t i = 0; i < r.n; i++)
        rb_result_fini(&r.result[i]);
    lb_free(r.result);
    rb_server_fini(&r.server);
    rb_settings_fini();
    return rc;
}
