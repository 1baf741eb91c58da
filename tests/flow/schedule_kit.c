#include "flow/schedule_kit.h"

struct sk_fix fix;

static int64_t read_clock(void *ctx)
{
    return *(const int64_t *)ctx;
}

static void keep_line(void *ctx, const char *line)
{
    (void)ctx;
    if (fix.n_log < LOG_MAX)
        (void)snprintf(fix.log[fix.n_log++], sizeof(fix.log[0]), "%s", line);
}

bool has_logged(const char *text)
{
    for (size_t i = 0; i < fix.n_log; i++) {
        if (strstr(fix.log[i], text))
            return true;
    }
    return false;
}

lade_scheduler *add_scheduler(void)
{
    lade_scheduler_config config = {.log = keep_line};
    lade_scheduler **s = &fix.s[fix.n_s++];
    assert_int_equal(lade_scheduler_open(s, fix.q, &config, &fix.err), 0);
    return *s;
}

int sk_start(void **state)
{
    (void)state;
    memset(&fix, 0, sizeof(fix));
    ts_rig_start(&fix.rig, TS_PLAIN);
    fix.clock = BEGIN;
    lade_options o = {.clock = read_clock, .clock_ctx = &fix.clock};
    o.keep_completed.age = 1000 * LADE_DAY;
    o.keep_completed.count = 1000000;
    o.keep_dead.age = 1000 * LADE_DAY;
    if (lade_open(&fix.q, fix.rig.url, &o, &fix.err) < 0)
        return -1;
    (void)add_scheduler();
    return 0;
}

static void count_finding(const char *where, size_t n, const lade_finding *f)
{
    for (size_t i = 0; i < n; i++)
        print_error("%s: %s %s\n", where, f[i].queue, f[i].text);
}

int sk_stop(void **state)
{
    (void)state;
    lade_finding *f = NULL;
    size_t n = 0;
    int rc = lade_check(fix.q, &f, &n, &fix.err);
    count_finding("check", n, f);
    lade_free(f);
    for (size_t i = 0; i < fix.n_s; i++)
        lade_scheduler_close(fix.s[i]);
    lade_close(fix.q);
    ts_rig_stop(&fix.rig);
    return rc != 0 || n > 0;
}

void step(int64_t ns)
{
    fix.clock += ns;
}

/* Looks until nothing is due any more. */
void look_with(lade_scheduler *s)
{
    for (int i = 0; i < 1000; i++) {
        int64_t until = 0;
        int rc = lq_scheduler_look(s, &until, &fix.err);
        if (rc < 0)
            fail_msg("look: %s", fix.err.text);
        if (until > lb_clock_mono())
            return;
    }
    fail_msg("there is always something due");
}

void look(void)
{
    look_with(fix.s[0]);
}

/* Seconds, a look each. */
void pass(int seconds)
{
    for (int i = 0; i < seconds; i++) {
        step(LADE_SECOND);
        look();
    }
}

lade_schedule_spec every(int64_t ns, const char *id)
{
    return (lade_schedule_spec){.id = id, .every = ns, .job = {.kind = "job"}};
}

lade_schedule_spec cron(const char *text, const char *id)
{
    return (lade_schedule_spec){.id = id, .cron = text, .job = {.kind = "job"}};
}

enum lade_schedule_change set(lade_schedule_spec spec)
{
    enum lade_schedule_change change = LADE_SCHEDULE_UNCHANGED;
    if (lade_schedule_set(fix.q, &spec, NULL, &change, &fix.err) != 0)
        fail_msg("set: %s", fix.err.text);
    return change;
}

/* The caller frees. */
lade_schedule_view *get(const char *id)
{
    lade_schedule_view *v = NULL;
    assert_int_equal(lade_schedule_get(fix.q, id, &v, &fix.err), 0);
    return v;
}

int64_t next_of(const char *id)
{
    lade_schedule_view *v = get(id);
    int64_t next = v->next_at;
    lade_schedule_view_free(v);
    return next;
}

enum lade_schedule_state state_of(const char *id)
{
    lade_schedule_view *v = get(id);
    enum lade_schedule_state state = v->state;
    lade_schedule_view_free(v);
    return state;
}

/* The newest outcome, and its count. */
enum lade_fire_outcome outcome_of(const char *id, uint64_t *count)
{
    lade_schedule_view *v = get(id);
    assert_true(v->n_history > 0);
    lade_fire f = v->history[v->n_history - 1];
    lade_schedule_view_free(v);
    if (count)
        *count = f.count;
    return f.outcome;
}

uint64_t count(const char *queue, enum lade_state state)
{
    lade_queue_info info;
    int rc = lade_queue_get(fix.q, queue, &info, &fix.err);
    return rc == LADE_NOT_FOUND ? 0 : info.count[state];
}

uint64_t n_ready(void)
{
    return count("default", LADE_STATE_READY);
}

uint64_t n_enqueued(void)
{
    lade_queue_info info;
    return lade_queue_get(fix.q, "default", &info, &fix.err) == 0 ? info.total_enqueued : 0;
}

/* Whether the job of that nominal time is there. */
bool has_job(const char *id, int64_t at)
{
    char job[LADE_ID_MAX + 1];
    lade_job_view *v = NULL;
    (void)snprintf(job, sizeof(job), "%s:%lld", id, (long long)(at / LADE_MILLISECOND));
    int rc = lade_job_get(fix.q, NULL, job, &v, &fix.err);
    lade_job_view_free(v);
    return rc == 0;
}

void purge(void)
{
    size_t n = 0;
    while (lade_queue_purge(fix.q, "default", LADE_STATE_READY, 1000, &n, &fix.err) == LADE_MORE)
        ;
}
