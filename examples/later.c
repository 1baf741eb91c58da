/* later.c - delays, priorities, explicit ids and unique keys:  later [URL] */
#include <stdio.h>
#include <string.h>

#include <lade/lade.h>

static char order[64]; /* one slot runs, so one thread writes */

static lade_outcome note(lade_job *job, void *ctx)
{
    (void)ctx;
    lade_bytes b = lade_job_payload(job);
    (void)strncat(order, b.data, b.size);
    return LADE_OK;
}

int main(int argc, char **argv)
{
    lade *q;
    lade_worker *w;
    lade_err err;
    lade_id id;
    if (lade_open(&q, argc > 1 ? argv[1] : "sqlite:later.db", NULL, &err) < 0)
        goto fail;
    lade_job_spec spec[] = {
        {.kind = "note", .payload = LADE_STR("later "), .in = LADE_SECOND},
        {.kind = "note", .payload = LADE_STR("low "), .priority = -1},
        {.kind = "note", .payload = LADE_STR("high "), .priority = 1},
        {.kind = "note",
         .payload = LADE_STR("once "),
         .unique = {.key = LADE_STR("invoice 17"), .ttl = LADE_HOUR}},
    };
    if (lade_enqueue_many(q, spec, 4, NULL, NULL, &err) < 0)
        goto fail;

    /* The key is held until the first job is done: the second is refused, and id is the first's. */
    int rc = lade_enqueue(q, &spec[3], &id, &err);
    if (rc < 0)
        goto fail;
    (void)printf("second with the same key: %s, it is job %s\n", lade_result_name(rc), id.text);

    if (lade_worker_open(&w, q, &(lade_worker_config){.concurrency = 1, .drain = true}, &err) < 0)
        goto fail;
    if (lade_worker_handle(w, "note", note, NULL) < 0 || lade_worker_run(w, &err) < 0)
        goto fail;
    lade_worker_close(w);
    lade_close(q);
    (void)printf("ran: %s\n", order);
    return rc == LADE_DUPLICATE && strcmp(order, "high once low later ") == 0 ? 0 : 1;
fail:
    (void)fprintf(stderr, "later: %s\n", err.text);
    return 1;
}
