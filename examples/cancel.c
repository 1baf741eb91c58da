/* cancel.c - a long handler that stops when asked, by its timeout here:  cancel [URL] */
#include <poll.h>
#include <stdio.h>

#include <lade/lade.h>

static lade_outcome long_work(lade_job *job, void *ctx)
{
    (void)ctx;
    struct pollfd stop = {.fd = lade_job_cancel_fd(job), .events = POLLIN};
    /* A loop asks lade_job_cancelled(job); code that waits for descriptors adds this one. */
    if (poll(&stop, 1, 10000) > 0 && lade_job_cancelled(job)) {
        lade_job_error(job, "stopped in time; the upload was at 40%%");
        return LADE_RETRY;
    }
    return LADE_OK;
}

int main(int argc, char **argv)
{
    lade *q;
    lade_worker *w;
    lade_err err;
    lade_id id;
    lade_job_view *seen;
    if (lade_open(&q, argc > 1 ? argv[1] : "sqlite:cancel.db", NULL, &err) < 0)
        goto fail;
    lade_job_spec spec = {.kind = "long", .timeout = 100 * LADE_MILLISECOND, .max_attempts = 1};
    if (lade_enqueue(q, &spec, &id, &err) < 0)
        goto fail;
    if (lade_worker_open(&w, q, &(lade_worker_config){.drain = true}, &err) < 0)
        goto fail;
    if (lade_worker_handle(w, "long", long_work, NULL) < 0 || lade_worker_run(w, &err) < 0)
        goto fail;
    lade_worker_close(w);
    if (lade_job_get(q, NULL, id.text, &seen, &err) != 0)
        goto fail;
    int dead = seen->state == LADE_STATE_DEAD && seen->n_history == 1;
    if (dead)
        (void)printf("%s: %s (%s): %.*s\n", lade_state_name(seen->state), seen->reason,
                     seen->history[0].outcome, (int)seen->history[0].error.size,
                     (const char *)seen->history[0].error.data);
    lade_job_view_free(seen);
    lade_close(q);
    return dead ? 0 : 1;
fail:
    (void)fprintf(stderr, "cancel: %s\n", err.text);
    return 1;
}
