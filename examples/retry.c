/* retry.c - a handler that fails twice, one that never succeeds, and the place for the dead:  retry [URL] */
#include <stdio.h>

#include <lade/lade.h>

static lade_outcome flaky(lade_job *job, void *ctx)
{
    (void)ctx;
    if (lade_job_attempt(job) < 3) {
        lade_job_error(job, "the other side answered 503");
        return LADE_RETRY; /* waits as the job's backoff says */
    }
    return LADE_OK;
}

static lade_outcome hopeless(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_job_error(job, "no such customer");
    return LADE_DEAD; /* trying again cannot help */
}

static int print_dead(lade *q, lade_err *err)
{
    lade_cursor cursor = {0};
    lade_job_view *job[10];
    size_t n = 0;
    int dead = 0;
    while (lade_job_list(q, "default", LADE_STATE_DEAD, &cursor, 10, job, &n, err) == 0) {
        for (size_t i = 0; i < n; i++, dead++) {
            const lade_attempt *last = &job[i]->history[job[i]->n_history - 1];
            (void)printf("dead: %s after %d attempts (%s): %.*s\n", job[i]->kind, job[i]->attempts,
                         job[i]->reason, (int)last->error.size, (const char *)last->error.data);
            lade_job_view_free(job[i]);
        }
    }
    return dead;
}

int main(int argc, char **argv)
{
    lade *q;
    lade_worker *w;
    lade_err err;
    if (lade_open(&q, argc > 1 ? argv[1] : "sqlite:retry.db", NULL, &err) < 0)
        goto fail;
    lade_job_spec spec[2] = {
        {.kind = "flaky", .backoff = {LADE_BACKOFF_FIXED, 20 * LADE_MILLISECOND, 0, 0}},
        {.kind = "hopeless"},
    };
    if (lade_enqueue_many(q, spec, 2, NULL, NULL, &err) < 0)
        goto fail;
    if (lade_worker_open(&w, q, &(lade_worker_config){.drain = true}, &err) < 0)
        goto fail;
    if (lade_worker_handle(w, "flaky", flaky, NULL) < 0 ||
        lade_worker_handle(w, "hopeless", hopeless, NULL) < 0 || lade_worker_run(w, &err) < 0)
        goto fail;

    lade_worker_stats st;
    lade_worker_get_stats(w, &st);
    (void)printf("completed %d, retried %d, dead %d\n", (int)st.completed, (int)st.retried,
                 (int)st.dead);
    lade_worker_close(w);
    int dead = print_dead(q, &err);
    lade_close(q);
    return st.completed == 1 && st.retried == 2 && dead == 1 ? 0 : 1;
fail:
    (void)fprintf(stderr, "retry: %s\n", err.text);
    return 1;
}
