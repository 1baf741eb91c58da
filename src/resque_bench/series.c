/* series.c - what a drain tells by the second, and what a phase costs; see trial.h */
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "resque_bench/trial.h"
#include "resque_bench/words.h"

/* Ends a second: at most --timeout of them, and a few. Out of memory loses the entry, not the run. */
void rb_tick(struct rb_ticker *t, int64_t now, uint64_t jobs, uint64_t errors)
{
    struct rb_result *r = t->r;
    if (r->n_series == r->series_cap) {
        size_t cap = r->series_cap ? 2 * r->series_cap : 64;
        struct rb_second *p = lb_realloc(r->series, cap * sizeof(*p));
        if (!p)
            return;
        r->series = p;
        r->series_cap = cap;
    }
    struct rb_second *e = &r->series[r->n_series++];
    *e = (struct rb_second){.seconds = (double)(now - t->from) / 1e9,
                            .jobs = jobs - t->jobs,
                            .errors = errors - t->errors};
    for (size_t i = 0; i < t->o->n_percentiles; i++)
        e->us[i] = lb_hdr_count(t->second) ? rb_percentile_of(t->second, &t->o->percentile[i]) : 0;
    lb_hdr_clear(t->second);
    t->from = now;
    t->jobs = jobs;
    t->errors = errors;
    if (!t->dots)
        return;
    if (e->errors > 0)
        (void)fprintf(rb_out, "[e:%llu]", (unsigned long long)e->errors);
    else
        (void)fputc('.', rb_out);
    (void)fflush(rb_out);
}

static double cpu_of_self(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void rb_cost_begin(struct rb_server *s, struct rb_cost_from *from)
{
    rb_server_look(s, &from->server);
    from->cpu_s = cpu_of_self();
    from->at = lb_clock_mono();
}

/* Between the two looks at the server's counters lie three INFO of our own. */
#define OWN_COMMANDS 3

void rb_cost_end(struct rb_server *s, const struct rb_cost_from *from, struct rb_cost *out)
{
    struct rb_server_state now;
    out->seconds = (double)(lb_clock_mono() - from->at) / 1e9;
    out->client_cpu_s = cpu_of_self() - from->cpu_s;
    rb_server_look(s, &now);
    out->known = now.known && from->server.known && now.commands >= from->server.commands;
    if (!out->known) /* refused, or the server was started anew in between */
        return;
    out->server_cpu_s = now.cpu_s - from->server.cpu_s;
    out->bytes_in = now.bytes_in - from->server.bytes_in;
    out->bytes_out = now.bytes_out - from->server.bytes_out;
    out->commands = now.commands - from->server.commands - OWN_COMMANDS;
    for (size_t i = 0; i < RB_N_CMDS; i++)
        out->seen[i] = now.calls[i] - from->server.calls[i];
}

void rb_result_fini(struct rb_result *r)
{
    lb_hdr_free(r->residence);
    lb_hdr_free(r->rtt);
    lb_hdr_free(r->pickup.latency);
    lb_hdr_free(r->open.latency);
    lb_free(r->series);
    *r = (struct rb_result){0};
}

bool rb_result_is_fine(const struct rb_result *r)
{
    bool idle = r->idle.ran ? !r->idle.failed && r->idle.clean : !r->idle.skipped[0];
    return !r->timed_out && !r->interrupted && r->errors == 0 && r->lost == 0 && r->foreign == 0 &&
           r->verified && idle && !r->warmup_timed_out && r->pickup.done == r->pickup.asked &&
           r->open.done == r->open.asked;
}
