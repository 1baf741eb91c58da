#include "support/rig_role.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "support/rig.h"

struct role {
    struct ts_role h; /* what the handlers need */
    int argc;
    char **argv;
    struct ts_ledger_file ledger;
    lade *q;
    int backoff_ms;
};

static const char *find_text(const struct role *r, const char *name, const char *otherwise)
{
    size_t len = strlen(name);
    for (int i = 3; i < r->argc; i++) {
        if (strncmp(r->argv[i], name, len) == 0 && r->argv[i][len] == '=')
            return r->argv[i] + len + 1;
    }
    return otherwise;
}

static int find_int(const struct role *r, const char *name, int otherwise)
{
    const char *text = find_text(r, name, NULL);
    return text ? (int)strtol(text, NULL, 10) : otherwise;
}

/* handlers -------------------------------------------------------------------------------------------------------- */

/* The first word of the payload, or 0. */
static int payload_int(const lade_job *job)
{
    char text[24] = "";
    lade_bytes p = lade_job_payload(job);
    memcpy(text, p.data, LB_MIN(p.size, sizeof(text) - 1));
    return (int)strtol(text, NULL, 10);
}

/* True on the first call for this job in the life of the rig, over all processes. */
static bool mark_first(const struct ts_role *r, const lade_job *job)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s.once", r->dir, lade_job_id(job));
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static lade_outcome wait_for(const lade_job *job, int64_t ms, const char *gate, bool deaf)
{
    int64_t deadline = ms < 0 ? LB_FOREVER : lb_deadline_in(ms * LADE_MILLISECOND);
    while (lb_clock_mono() < deadline) {
        if (gate && access(gate, F_OK) == 0)
            return LADE_OK;
        if (!deaf && lade_job_cancelled(job))
            return LADE_RETRY;
        ts_nap_ms(2);
    }
    return LADE_OK;
}

static lade_outcome run_gate(const lade_job *job, bool deaf)
{
    char path[256];
    lade_bytes p = lade_job_payload(job);
    (void)snprintf(path, sizeof(path), "%.*s", (int)p.size, (const char *)p.data);
    return wait_for(job, -1, path, deaf);
}

static lade_outcome run_snooze(const struct ts_role *r, lade_job *job)
{
    if (!mark_first(r, job))
        return LADE_OK;
    lade_job_snooze_for(job, payload_int(job) * LADE_MILLISECOND);
    return LADE_SNOOZE;
}

static lade_outcome fail_with_text(lade_job *job)
{
    lade_job_error(job, "attempt %d of %s failed", lade_job_attempt(job), lade_job_id(job));
    return LADE_RETRY;
}

/* Fails when the gate opens, the first time; succeeds from then on. */
static lade_outcome run_flip(const struct ts_role *r, lade_job *job)
{
    if (!mark_first(r, job))
        return LADE_OK;
    (void)run_gate(job, true);
    return fail_with_text(job);
}

lade_outcome (*ts_role_own)(const struct ts_role *r, lade_job *job);

static lade_outcome run_kind(const struct ts_role *r, lade_job *job)
{
    const char *kind = lade_job_kind(job);
    if (ts_role_own && strncmp(kind, "own", 3) == 0)
        return ts_role_own(r, job);
    if (strcmp(kind, "sleep") == 0)
        return wait_for(job, payload_int(job), NULL, true);
    if (strcmp(kind, "nap") == 0)
        return wait_for(job, payload_int(job), NULL, false);
    if (strcmp(kind, "gate") == 0 || strcmp(kind, "deaf") == 0)
        return run_gate(job, *kind == 'd');
    if (strcmp(kind, "flaky") == 0)
        return lade_job_attempt(job) <= payload_int(job) ? fail_with_text(job) : LADE_OK;
    if (strcmp(kind, "flip") == 0)
        return run_flip(r, job);
    if (strcmp(kind, "fail") == 0)
        return fail_with_text(job);
    if (strcmp(kind, "dead") == 0)
        return LADE_DEAD;
    if (strcmp(kind, "cancel") == 0)
        return LADE_CANCEL;
    if (strcmp(kind, "discard") == 0)
        return LADE_DISCARD;
    if (strcmp(kind, "snooze") == 0)
        return run_snooze(r, job);
    if (strcmp(kind, "poison") == 0 || (strcmp(kind, "poison1") == 0 && mark_first(r, job)))
        (void)kill(getpid(), SIGKILL);
    return LADE_OK;
}

lade_outcome ts_role_handle(lade_job *job, void *ctx)
{
    const struct ts_role *r = ctx;
    ts_ledger_started(r->ledger, job);
    lade_outcome outcome = run_kind(r, job);
    ts_ledger_ended(r->ledger, job, outcome);
    return outcome;
}

static int64_t fixed_backoff(const lade_job *job, int attempt, void *ctx)
{
    (void)job;
    (void)attempt;
    const struct role *r = ctx;
    return r->backoff_ms * LADE_MILLISECOND;
}

static void log_line(void *ctx, const char *line)
{
    struct role *r = ctx;
    ts_ledger_log(&r->ledger, line);
}

/* worker ---------------------------------------------------------------------------------------------------------- */

static void write_numbers(struct role *r, lade_worker *w)
{
    lade_worker_stats s;
    lade_worker_get_stats(w, &s);
    ts_ledger_number(&r->ledger, "completed", s.completed);
    ts_ledger_number(&r->ledger, "lost", s.lost);
    ts_ledger_number(&r->ledger, "recovered", s.recovered);
    ts_ledger_number(&r->ledger, "quarantined", s.quarantined);
    ts_ledger_number(&r->ledger, "timed_out", s.timed_out);
}

static size_t split_queues(char *text, lade_worker_queue *out, size_t max)
{
    size_t n = 0;
    char *rest = NULL;
    for (char *s = strtok_r(text, ",", &rest); s && n < max; s = strtok_r(NULL, ",", &rest))
        out[n++] = (lade_worker_queue){.name = s};
    return n;
}

static int run_worker(struct role *r)
{
    char names[256];
    lade_worker_queue queues[8];
    lade_err err;
    (void)snprintf(names, sizeof(names), "%s", find_text(r, "queues", "default"));
    lade_worker_config c = {
        .cancel_grace = LADE_SECOND,
        .concurrency = find_int(r, "c", 4),
        .queues = queues,
        .n_queues = split_queues(names, queues, LB_ARRAY_LEN(queues)),
        .name = find_text(r, "name", "w"),
        .lease = find_int(r, "lease", TS_LEASE_MS) * LADE_MILLISECOND,
        .sweep = find_int(r, "sweep", TS_SWEEP_MS) * LADE_MILLISECOND,
        .shutdown_timeout = find_int(r, "grace", 5000) * LADE_MILLISECOND,
        .prefetch_max = find_int(r, "prefetch", 0),
        .max_crashes = find_int(r, "max_crashes", 0),
        .drain = find_int(r, "drain", 0) != 0,
        .log = log_line,
        .log_ctx = r,
    };
    if (find_int(r, "grace", 0) == -1)
        c.shutdown_timeout = -1;
    r->backoff_ms = find_int(r, "backoff", 0);
    if (r->backoff_ms) {
        c.backoff = fixed_backoff;
        c.backoff_ctx = r;
    }
    lade_worker *w;
    if (lade_worker_open(&w, r->q, &c, &err) < 0 ||
        lade_worker_handle(w, "*", ts_role_handle, &r->h) < 0 || lade_worker_run(w, &err) < 0) {
        (void)fprintf(stderr, "worker: %s\n", err.text);
        return 1;
    }
    write_numbers(r, w);
    lade_worker_close(w);
    return 0;
}

/* producer -------------------------------------------------------------------------------------------------------- */

#define BATCH_MAX 256

/* One call, repeated until it succeeds when the ids are ours and so make that safe. */
static bool enqueue_batch(struct role *r, const lade_job_spec *spec, size_t n, bool repeat)
{
    lade_id ids[BATCH_MAX];
    lade_err err;
    int64_t deadline = lb_deadline_in(120 * LADE_SECOND);
    while (lade_enqueue_many(r->q, spec, n, ids, NULL, &err) < 0) {
        ts_ledger_log(&r->ledger, err.text);
        if (!repeat || lb_clock_mono() > deadline) {
            for (size_t i = 0; i < n && spec[i].id; i++)
                ts_ledger_acted(&r->ledger, spec[i].id, "refused");
            return false;
        }
        ts_nap_ms(20);
    }
    for (size_t i = 0; i < n; i++)
        ts_ledger_acked(&r->ledger, ids[i].text);
    return true;
}

static int run_producer(struct role *r)
{
    const char *prefix = find_text(r, "prefix", NULL), *payload = find_text(r, "payload", "");
    int n = find_int(r, "n", 1), batch = LB_MIN(find_int(r, "batch", 1), BATCH_MAX);
    int refused = 0, size = find_int(r, "size", 0);
    char *filler = size ? calloc(1, (size_t)size) : NULL;
    LB_CHECK(batch > 0 && (filler || !size));
    for (int at = 0; at < n; at += batch) {
        lade_job_spec spec[BATCH_MAX];
        char id[BATCH_MAX][LADE_ID_MAX + 1];
        int count = LB_MIN(batch, n - at);
        for (int i = 0; i < count; i++) {
            (void)snprintf(id[i], sizeof(id[i]), "%s-%d", prefix ? prefix : "", at + i);
            spec[i] = (lade_job_spec){
                .kind = find_text(r, "kind", "ok"),
                .queue = find_text(r, "queue", "default"),
                .payload = {filler ? filler : payload, filler ? (size_t)size : strlen(payload)},
                .id = prefix ? id[i] : NULL,
                .in = find_int(r, "in", 0) * LADE_MILLISECOND,
                .max_attempts = find_int(r, "max_attempts", 0),
            };
        }
        bool repeat = prefix && !find_int(r, "once", 0);
        refused += !enqueue_batch(r, spec, (size_t)count, repeat);
        ts_nap_ms(find_int(r, "pause", 0));
    }
    free(filler);
    ts_ledger_number(&r->ledger, "refused", (uint64_t)refused);
    return refused ? 3 : 0;
}

/*
 * Jobs that together touch every arrow: at once and delayed, batched and single, failing, snoozed, unique, dead,
 * cancelled, discarded, one that crashed a worker before.
 */
static int produce_mixed(struct role *r, int n)
{
    static const char *const kinds[] = {"ok",     "flaky",   "snooze", "dead",
                                        "cancel", "discard", "ok",     "ok"};
    for (int i = 0; i < n; i++) {
        char id[LADE_ID_MAX + 1], key[32];
        lade_id out;
        lade_err err;
        (void)snprintf(id, sizeof(id), "mix-%d", i);
        (void)snprintf(key, sizeof(key), "key-%d", i);
        lade_job_spec spec = {.kind = kinds[i % 8], .payload = LADE_STR("1"), .id = id};
        if (i % 4 == 3)
            spec.in = 5 * LADE_MILLISECOND;
        if (i % 3 == 0)
            spec.unique = (lade_unique){.key = {key, strlen(key)}};
        int rc = lade_enqueue(r->q, &spec, &out, &err);
        if (rc < 0) {
            (void)fprintf(stderr, "produce: %s\n", err.text);
            return 1;
        }
        if (strcmp(out.text, id) == 0)
            ts_ledger_acked(&r->ledger, id);
    }
    return 0;
}

/* Enqueues, and notes in the ledger the steps whose numbers are in `runs`: they must run. */
static int produce_flow(struct role *r, const lade_flow_spec *spec, const char *runs)
{
    lade_err err;
    int rc = lade_flow_enqueue(r->q, spec, NULL, &err);
    if (rc < 0) {
        (void)fprintf(stderr, "produce: %s\n", err.text);
        return 1;
    }
    for (; *runs; runs++) {
        char id[LADE_ID_MAX + 1];
        (void)snprintf(id, sizeof(id), "%.40s~%c", spec->id, *runs);
        ts_ledger_acked(&r->ledger, id);
    }
    return 0;
}

/* Workflows: "flow-a" completes with a step that is retried and one that snoozes, "flow-b" fails with a handler. */
static int produce_flows(struct role *r)
{
    lade_job_spec ok = {.kind = "ok"}, dead = {.kind = "dead"};
    lade_job_spec flaky = {.kind = "flaky", .payload = LADE_STR("1")};
    lade_job_spec snooze = {.kind = "snooze", .payload = LADE_STR("1")};
    lade_flow_step links[] = {lade_flow_job(&ok), lade_flow_job(&snooze)};
    lade_flow_step members[] = {lade_flow_job(&ok), lade_flow_job(&flaky),
                                lade_flow_chain(links, 2)};
    lade_flow_step steps[] = {lade_flow_job(&ok), lade_flow_group(members, 3, &ok),
                              lade_flow_job(&ok)};
    lade_flow_step pair[] = {lade_flow_job(&dead), lade_flow_job(&ok)};
    int rc = produce_flow(r, &(lade_flow_spec){.id = "flow-a", .root = lade_flow_chain(steps, 3)},
                          "0123456");
    if (rc != 0)
        return rc;
    return produce_flow(
        r,
        &(lade_flow_spec){.id = "flow-b", .root = lade_flow_group(pair, 2, &ok), .on_failure = &ok},
        "013");
}

int ts_role_main(int argc, char **argv)
{
    struct role r = {.argc = argc, .argv = argv};
    lade_err err;
    if (argc < 3)
        return 2;
    r.h = (struct ts_role){.dir = find_text(&r, "dir", "."), .ledger = &r.ledger};
    if (!ts_ledger_open(&r.ledger, r.h.dir, argv[2]))
        return 2;
    r.ledger.no_sync = find_int(&r, "no_sync", 0) != 0;
    lade_options o = ts_rig_options();
    o.timeout = find_int(&r, "timeout", 10000) * LADE_MILLISECOND;
    int rc = lade_open(&r.q, find_text(&r, "url", ""), &o, &err);
    if (rc < 0) {
        ts_ledger_log(&r.ledger, err.text);
        (void)fprintf(stderr, "%s: open: %s\n", argv[2], err.text);
        return 4;
    }
    if (strcmp(argv[2], "producer") == 0) {
        rc = run_producer(&r);
    } else {
        int produce = find_int(&r, "produce", 0);
        rc = produce_mixed(&r, produce);
        if (rc == 0 && produce > 0)
            rc = produce_flows(&r);
        if (rc == 0)
            rc = run_worker(&r);
    }
    lade_close(r.q);
    ts_ledger_close(&r.ledger);
    return rc;
}
