/* flow.c - a workflow: load, then two sizes at once, then publish what they made:  flow [URL] */
#include <stdio.h>
#include <string.h>

#include <lade/lade.h>

static lade_outcome load(lade_job *job, void *ctx)
{
    (void)ctx;
    return lade_job_result(job, LADE_STR("photo.jpg")) == 0 ? LADE_OK : LADE_RETRY;
}

/* The result of the step before is input 0. */
static lade_outcome resize(lade_job *job, void *ctx)
{
    (void)ctx;
    char text[64];
    lade_err err;
    lade_flow_input photo;
    lade_bytes size = lade_job_payload(job);
    if (lade_job_input(job, 0, &photo, &err) != 0)
        return LADE_RETRY;
    int n = snprintf(text, sizeof(text), "%.*s@%.*s", (int)photo.result.size,
                     (const char *)photo.result.data, (int)size.size, (const char *)size.data);
    return lade_job_result(job, (lade_bytes){text, (size_t)n}) == 0 ? LADE_OK : LADE_RETRY;
}

/* A callback has the results of all members, in their order. */
static lade_outcome publish(lade_job *job, void *ctx)
{
    lade_err err;
    lade_flow_input in;
    int rc = 0;
    char *out = ctx;
    for (size_t i = 0; (rc = lade_job_input(job, i, &in, &err)) == 0; i++)
        (void)snprintf(out + strlen(out), 128 - strlen(out), "%.*s ", (int)in.result.size,
                       (const char *)in.result.data);
    return rc == LADE_NOT_FOUND ? LADE_OK : LADE_RETRY; /* no more inputs */
}

int main(int argc, char **argv)
{
    lade *q;
    lade_worker *w;
    lade_err err;
    lade_id id;
    char published[128] = "";
    if (lade_open(&q, argc > 1 ? argv[1] : "sqlite:flow.db", NULL, &err) < 0)
        goto fail;
    lade_job_spec first = {.kind = "load"}, last = {.kind = "publish"};
    lade_job_spec small = {.kind = "resize", .payload = LADE_STR("200x200")};
    lade_job_spec large = {.kind = "resize", .payload = LADE_STR("2000x2000")};
    lade_flow_step sizes[] = {lade_flow_job(&small), lade_flow_job(&large)};
    lade_flow_step steps[] = {lade_flow_job(&first), lade_flow_group(sizes, 2, &last)};
    if (lade_flow_enqueue(q, &(lade_flow_spec){.root = lade_flow_chain(steps, 2)}, &id, &err) < 0)
        goto fail;
    if (lade_worker_open(&w, q, &(lade_worker_config){.drain = true}, &err) < 0)
        goto fail;
    if (lade_worker_handle(w, "load", load, NULL) < 0 ||
        lade_worker_handle(w, "resize", resize, NULL) < 0 ||
        lade_worker_handle(w, "publish", publish, published) < 0 || lade_worker_run(w, &err) < 0)
        goto fail;
    lade_worker_close(w);
    lade_close(q);
    (void)printf("%s: %s\n", id.text, published);
    return strcmp(published, "photo.jpg@200x200 photo.jpg@2000x2000 ") == 0 ? 0 : 1;
fail:
    (void)fprintf(stderr, "flow: %s\n", err.text);
    return 1;
}
