/* hello.c - enqueue one job, work it, see what became of it:  hello [URL] */
#include <stdio.h>
#include <string.h>

#include <lade/lade.h>

static lade_outcome greet(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes name = lade_job_payload(job);
    (void)printf("hello, %.*s! (attempt %d)\n", (int)name.size, (const char *)name.data,
                 lade_job_attempt(job));
    return lade_job_result(job, LADE_STR("greeted")) == 0 ? LADE_OK : LADE_RETRY;
}

static int fail(const lade_err *err)
{
    (void)fprintf(stderr, "hello: %s: %s\n", err->where ? err->where : "?", err->text);
    return 1;
}

int main(int argc, char **argv)
{
    lade *q;
    lade_err err;
    if (lade_open(&q, argc > 1 ? argv[1] : "sqlite:hello.db", NULL, &err) < 0)
        return fail(&err);

    lade_id id;
    if (lade_enqueue(q, &(lade_job_spec){.kind = "greet", .payload = LADE_STR("world")}, &id,
                     &err) < 0)
        return fail(&err);

    lade_worker *
        w; /* drain: stop by itself when nothing is left; a service leaves it out and runs until TERM */
    if (lade_worker_open(&w, q, &(lade_worker_config){.concurrency = 4, .drain = true}, &err) < 0)
        return fail(&err);
    if (lade_worker_handle(w, "greet", greet, NULL) < 0 || lade_worker_run(w, &err) < 0)
        return fail(&err);
    lade_worker_close(w);

    lade_job_view *seen;
    if (lade_job_get(q, NULL, id.text, &seen, &err) != 0)
        return fail(&err);
    (void)printf("job %s is %s, result '%.*s'\n", seen->id, lade_state_name(seen->state),
                 (int)seen->result.size, (const char *)seen->result.data);
    int rc = seen->state == LADE_STATE_COMPLETED && seen->result.size == 7 ? 0 : 1;
    lade_job_view_free(seen);
    lade_close(q);
    return rc;
}
