/* The public header alone, as strict C11: it must stand on its own, and everything the README shows must compile. */
#include <lade/lade.h>
#include <lade/rt.h>

static lade_outcome resize(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes payload = lade_job_payload(job);
    if (payload.size == 0) {
        lade_job_error(job, "empty payload of %s", lade_job_id(job));
        return LADE_DEAD;
    }
    return lade_job_result(job, payload) == 0 ? LADE_OK : LADE_RETRY;
}

int main(void)
{
    lade *q;
    lade_err err;
    lade_id id;
    lade_worker *w;
    if (lade_open(&q, "memory:", &(lade_options){.timeout = 5 * LADE_SECOND}, &err) < 0)
        return 1;
    lade_job_spec spec = {.kind = "resize", .payload = LADE_STR("{}"), .in = 5 * LADE_MILLISECOND};
    int rc = lade_enqueue(q, &spec, &id, &err);
    if (rc == 0)
        rc = lade_worker_open(&w, q, &(lade_worker_config){.concurrency = 2, .drain = true}, &err);
    if (rc == 0) {
        rc = lade_worker_handle(w, "resize", resize, NULL);
        if (rc == 0)
            rc = lade_worker_run(w, &err);
        lade_worker_close(w);
    }
    lade_close(q);
    return rc == 0 ? 0 : 1;
}
