/*
 * schedule.c - a report each morning of Berlin, and a beat each second, three times:  schedule [URL]
 *
 * A worker fires the schedules of its store beside its jobs, one of all that run there at a time; each time is put once, whoever dies.
 */
#include <stdio.h>
#include <string.h>

#include <lade/lade.h>

static int n_beats; /* one slot runs, so one thread writes */

/* A job of a schedule knows for which time it is: its id says so. */
static lade_outcome beat(lade_job *job, void *ctx)
{
    lade_worker **w = ctx;
    lade_schedule_id id;
    int64_t at = 0;
    if (lade_schedule_of_job(lade_job_id(job), &id, &at))
        (void)printf("%s for %lld\n", id.text, (long long)(at / LADE_SECOND));
    if (++n_beats == 3)
        lade_worker_stop(*w);
    return LADE_OK;
}

/* When it would fire over the change to summer time, without a store. */
static int preview(const lade_schedule_spec *s, lade_err *err)
{
    int64_t from = INT64_C(1774738800) * LADE_SECOND; /* 2026-03-28 23:00:00 UTC, a day before */
    lade_schedule_time t[2];
    size_t n = 0;
    if (lade_schedule_preview(s, from, from + 2 * LADE_DAY, t, 2, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        (void)printf("report at %lld, %d minutes east of Greenwich\n",
                     (long long)(t[i].at / LADE_SECOND), (int)t[i].utc_offset / 60);
    return n == 2 ? 0 : 1;
}

int main(int argc, char **argv)
{
    lade *q;
    lade_worker *w = NULL;
    lade_err err = {.text = ""};
    lade_schedule_view *v = NULL;
    lade_schedule_spec report = {.id = "report",
                                 .cron = "30 7 * * *",
                                 .tz = "Europe/Berlin",
                                 .missed = LADE_MISSED_ONE,
                                 .overlap = LADE_OVERLAP_SKIP,
                                 .job = {.kind = "report"}};
    lade_schedule_spec each_second = {
        .id = "beat", .every = LADE_SECOND, .limit = 3, .job = {.kind = "beat"}};
    if (preview(&report, &err) != 0)
        goto fail;
    if (lade_open(&q, argc > 1 ? argv[1] : "sqlite:schedule.db", NULL, &err) < 0)
        goto fail;
    if (lade_schedule_set(q, &report, NULL, NULL, &err) < 0 ||
        lade_schedule_set(q, &each_second, NULL, NULL, &err) < 0)
        goto fail;
    if (lade_worker_open(&w, q, &(lade_worker_config){.concurrency = 1}, &err) < 0)
        goto fail;
    if (lade_worker_handle(w, "beat", beat, &w) < 0 || lade_worker_run(w, &err) < 0)
        goto fail;
    lade_worker_close(w);

    if (lade_schedule_get(q, "beat", &v, &err) != 0)
        goto fail;
    (void)printf("beat: %s, %llu fired\n", lade_schedule_state_name(v->state),
                 (unsigned long long)v->n_fired);
    bool ok = v->n_fired == 3 && v->state == LADE_SCHEDULE_ENDED && n_beats == 3;
    lade_schedule_view_free(v);
    lade_close(q);
    return ok ? 0 : 1;
fail:
    (void)fprintf(stderr, "schedule: %s\n", err.text);
    return 1;
}
