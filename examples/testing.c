/*
 * testing.c - a test of one's own handlers: a week goes by in milliseconds, without a thread and without a wait
 *
 *     cc testing.c -llade -llade-rt && ./a.out
 *
 * The handler sends a reminder and asks again after a day, three times; the mail server is down on the second day, and the retry an hour
 * later gets through. The test says so, and says it the same each time.
 */
#include <lade/lade.h>
#include <lade/testing.h>

#include <stdio.h>
#include <string.h>

static lade_test_clock test_clock = LADE_TEST_CLOCK;
static int sent, refused;

/* What is tested: nothing in it knows of the test, but for the mail server, which is faked. */
static lade_outcome remind(lade_job *job, void *ctx)
{
    lade *q = ctx;
    bool down = sent == 1 && refused == 0;
    if (down) {
        refused++;
        lade_job_error(job, "mail server: connection refused");
        return LADE_RETRY;
    }
    sent++;
    lade_job_spec next = {.kind = "remind", .in = LADE_DAY};
    return sent < 3 && lade_enqueue(q, &next, NULL, NULL) < 0 ? LADE_RETRY : LADE_OK;
}

static int fail(const char *what, const lade_err *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err->text);
    return 1;
}

int main(void)
{
    lade *q;
    lade_worker *w;
    lade_err err = {0};
    lade_drain_stats stats;
    lade_options options = {.clock = lade_test_clock_read, .clock_ctx = &test_clock};
    lade_job_spec first = {.kind = "remind",
                           .in = LADE_DAY,
                           .backoff = {.type = LADE_BACKOFF_FIXED, .base = LADE_HOUR}};
    lade_test_seed(1);
    if (lade_open(&q, "memory:", &options, &err) < 0)
        return fail("open", &err);
    if (lade_worker_open(&w, q, NULL, &err) < 0)
        return fail("worker", &err);
    if (lade_worker_handle(w, "remind", remind, q) < 0 || lade_enqueue(q, &first, NULL, &err) < 0 ||
        lade_worker_drain(w, test_clock.now + 7 * LADE_DAY, &stats, &err) != 0)
        return fail("test", &err);
    size_t waiting = 0;
    if (lade_test_count(q, NULL, "remind", LADE_STATE_SCHEDULED, &waiting, &err) < 0)
        return fail("count", &err);
    printf("a week: %llu runs, %d sent, %d refused, %zu waiting\n", (unsigned long long)stats.runs,
           sent, refused, waiting);
    lade_worker_close(w);
    lade_close(q);
    return sent == 3 && refused == 1 && stats.runs == 4 && waiting == 0 ? 0 : 1;
}
