#include "support/ledger.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

#define LINE_MAX_BYTES 512

bool ts_ledger_open(struct ts_ledger_file *f, const char *dir, const char *name)
{
    char path[512];
    int n = snprintf(path, sizeof(path), "%s/%s-%d.ledger", dir, name, (int)getpid());
    LB_CHECK(n > 0 && (size_t)n < sizeof(path));
    *f = (struct ts_ledger_file){.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    if (f->fd < 0)
        perror(path);
    return f->fd >= 0;
}

void ts_ledger_close(struct ts_ledger_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    f->fd = -1;
}

/* A ledger that cannot be written proves nothing: the process ends at once. */
LADE_PRINTF(2, 3)

static void append(const struct ts_ledger_file *f, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line, sizeof(line) - 1, format, ap);
    va_end(ap);
    LB_CHECK(n > 0);
    size_t len = LB_MIN((size_t)n, sizeof(line) - 2);
    line[len] = '\n';
    LB_CHECK(write(f->fd, line, len + 1) == (ssize_t)(len + 1));
    if (!f->no_sync)
        LB_CHECK(fsync(f->fd) == 0);
}

void ts_ledger_acked(struct ts_ledger_file *f, const char *id)
{
    append(f, "A %lld %s", (long long)lb_clock_mono(), id);
}

void ts_ledger_started(struct ts_ledger_file *f, const lade_job *job)
{
    append(f, "S %lld %s %d %llu", (long long)lb_clock_mono(), lade_job_id(job),
           lade_job_attempt(job), (unsigned long long)lade_job_fence(job));
}

void ts_ledger_ended(struct ts_ledger_file *f, const lade_job *job, lade_outcome outcome)
{
    append(f, "E %lld %s %d %llu %d", (long long)lb_clock_mono(), lade_job_id(job),
           lade_job_attempt(job), (unsigned long long)lade_job_fence(job), (int)outcome);
}

void ts_ledger_acted(struct ts_ledger_file *f, const char *id, const char *verb)
{
    append(f, "R %lld %s %s", (long long)lb_clock_mono(), id, verb);
}

void ts_ledger_process(struct ts_ledger_file *f, char what, pid_t pid)
{
    append(f, "%c %lld %d", what, (long long)lb_clock_mono(), (int)pid);
}

void ts_ledger_log(struct ts_ledger_file *f, const char *line)
{
    append(f, "W %lld %s", (long long)lb_clock_mono(), line);
}

void ts_ledger_number(struct ts_ledger_file *f, const char *name, uint64_t value)
{
    append(f, "X %lld %s %llu", (long long)lb_clock_mono(), name, (unsigned long long)value);
}

/* One more zeroed element at the end of an array that grows by doubling. */
static void *push(void **array, size_t *n, size_t size)
{
    if ((*n & (*n - 1)) == 0) {
        void *more = realloc(*array, (*n ? *n * 2 : 1) * size);
        LB_CHECK(more);
        *array = more;
    }
    char *at = (char *)*array + *n * size;
    memset(at, 0, size);
    (*n)++;
    return at;
}

#define PUSH(array, n) push((void **)&(array), &(n), sizeof(*(array)))

static void copy_word(char *out, size_t size, const char *word)
{
    (void)snprintf(out, size, "%s", word ? word : "");
}

/* Starts of this file come before their ends; the search goes back from the newest of the same process. */
static void add_end(struct ts_ledger *l, size_t first, const struct ts_run *end)
{
    for (size_t i = l->n_runs; i-- > first;) {
        struct ts_run *r = &l->run[i];
        if (r->ended == 0 && r->fence == end->fence && strcmp(r->id, end->id) == 0) {
            r->ended = end->ended;
            r->outcome = end->outcome;
            return;
        }
    }
    LB_CHECK(0 && "a handler that ended without a start");
}

static void add_run(struct ts_ledger *l, size_t first, char **rest, pid_t pid, bool is_end,
                    int64_t at)
{
    struct ts_run r = {.pid = pid, .started = at, .outcome = -1};
    copy_word(r.id, sizeof(r.id), strtok_r(NULL, " ", rest));
    const char *attempt = strtok_r(NULL, " ", rest);
    const char *fence = strtok_r(NULL, " ", rest);
    LB_CHECK(attempt && fence);
    r.attempt = (int)strtol(attempt, NULL, 10);
    r.fence = strtoull(fence, NULL, 10);
    if (is_end) {
        const char *outcome = strtok_r(NULL, " ", rest);
        LB_CHECK(outcome);
        r.ended = at;
        r.outcome = (int)strtol(outcome, NULL, 10);
        add_end(l, first, &r);
        return;
    }
    struct ts_run *more = PUSH(l->run, l->n_runs);
    *more = r;
}

static void add_line(struct ts_ledger *l, size_t first, char *line, pid_t pid)
{
    char *rest = NULL;
    const char *what = strtok_r(line, " ", &rest);
    const char *time = strtok_r(NULL, " ", &rest);
    LB_CHECK(what && time);
    int64_t at = strtoll(time, NULL, 10);
    if (*what == 'S' || *what == 'E') {
        add_run(l, first, &rest, pid, *what == 'E', at);
    } else if (*what == 'A') {
        struct ts_id *id = PUSH(l->acked, l->n_acked);
        id->at = at;
        copy_word(id->text, sizeof(id->text), strtok_r(NULL, " ", &rest));
    } else if (*what == 'R') {
        struct ts_id *id = PUSH(l->act, l->n_acts);
        id->at = at;
        copy_word(id->text, sizeof(id->text), strtok_r(NULL, " ", &rest));
        copy_word(id->verb, sizeof(id->verb), strtok_r(NULL, " ", &rest));
    } else if (*what == 'W') {
        struct ts_log_line *w = PUSH(l->log, l->n_log);
        w->at = at;
        w->pid = pid;
        copy_word(w->text, sizeof(w->text), rest);
    } else if (*what == 'X') {
        struct ts_number *x = PUSH(l->number, l->n_numbers);
        x->pid = pid;
        copy_word(x->name, sizeof(x->name), strtok_r(NULL, " ", &rest));
        x->value = strtoull(rest, NULL, 10);
    } else {
        struct ts_event *e = PUSH(l->event, l->n_events);
        e->what = *what;
        e->at = at;
        e->pid = (pid_t)strtol(rest, NULL, 10);
    }
}

/* A last line without its end was being written when its process died: it never happened. */
static bool read_file(struct ts_ledger *l, const char *dir, const char *name)
{
    char path[768], line[LINE_MAX_BYTES + 2];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    const char *dash = strrchr(name, '-');
    FILE *f = fopen(path, "re");
    if (!f || !dash) {
        perror(path);
        if (f)
            (void)fclose(f);
        return false;
    }
    pid_t pid = (pid_t)strtol(dash + 1, NULL, 10);
    size_t first = l->n_runs;
    while (fgets(line, sizeof(line), f)) {
        char *end = strchr(line, '\n');
        if (!end)
            break;
        *end = 0;
        add_line(l, first, line, pid);
    }
    (void)fclose(f);
    return true;
}

static int compare_runs(const void *a, const void *b)
{
    const struct ts_run *x = a, *y = b;
    int by_id = strcmp(x->id, y->id);
    if (by_id)
        return by_id;
    if (x->fence != y->fence)
        return x->fence < y->fence ? -1 : 1;
    return x->started < y->started ? -1 : x->started > y->started;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(((const struct ts_id *)a)->text, ((const struct ts_id *)b)->text);
}

static int compare_events(const void *a, const void *b)
{
    const struct ts_event *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void sort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    if (n > 1)
        qsort(array, n, size, compare);
}

static void drop_repeated_ids(struct ts_ledger *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_acked; i++) {
        if (n == 0 || strcmp(l->acked[n - 1].text, l->acked[i].text) != 0)
            l->acked[n++] = l->acked[i];
    }
    l->n_acked = n;
}

bool ts_ledger_read(struct ts_ledger *l, const char *dir)
{
    *l = (struct ts_ledger){0};
    DIR *d = opendir(dir);
    bool ok = d != NULL;
    if (!d)
        perror(dir);
    for (const struct dirent *e = d ? readdir(d) : NULL; e && ok; e = readdir(d)) {
        size_t len = strlen(e->d_name);
        if (len > 7 && strcmp(e->d_name + len - 7, ".ledger") == 0)
            ok = read_file(l, dir, e->d_name);
    }
    if (d)
        (void)closedir(d);
    if (!ok) {
        ts_ledger_free(l);
        return false;
    }
    sort(l->run, l->n_runs, sizeof(*l->run), compare_runs);
    sort(l->acked, l->n_acked, sizeof(*l->acked), compare_ids);
    sort(l->act, l->n_acts, sizeof(*l->act), compare_ids);
    sort(l->event, l->n_events, sizeof(*l->event), compare_events);
    drop_repeated_ids(l);
    return true;
}

void ts_ledger_free(struct ts_ledger *l)
{
    free(l->run);
    free(l->acked);
    free(l->act);
    free(l->event);
    free(l->number);
    free(l->log);
    *l = (struct ts_ledger){0};
}

const struct ts_run *ts_ledger_runs(const struct ts_ledger *l, const char *id, size_t *n)
{
    size_t low = 0, high = l->n_runs;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(l->run[mid].id, id) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    size_t end = low;
    while (end < l->n_runs && strcmp(l->run[end].id, id) == 0)
        end++;
    *n = end - low;
    return l->run ? l->run + low : NULL;
}

size_t ts_ledger_ends(const struct ts_ledger *l, const char *id)
{
    size_t n, ends = 0;
    const struct ts_run *r = ts_ledger_runs(l, id, &n);
    for (size_t i = 0; i < n; i++)
        ends += r[i].ended != 0;
    return ends;
}

static bool contains(const struct ts_id *ids, size_t n, const char *id)
{
    struct ts_id key;
    copy_word(key.text, sizeof(key.text), id);
    return n > 0 && bsearch(&key, ids, n, sizeof(*ids), compare_ids);
}

bool ts_ledger_was_acked(const struct ts_ledger *l, const char *id)
{
    return contains(l->acked, l->n_acked, id);
}

bool ts_ledger_was_acted_on(const struct ts_ledger *l, const char *id)
{
    return contains(l->act, l->n_acts, id);
}

uint64_t ts_ledger_sum(const struct ts_ledger *l, const char *name)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->n_numbers; i++)
        sum += strcmp(l->number[i].name, name) == 0 ? l->number[i].value : 0;
    return sum;
}

size_t ts_ledger_logged(const struct ts_ledger *l, const char *text)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_log; i++)
        n += strstr(l->log[i].text, text) != NULL;
    return n;
}

size_t ts_ledger_count_ends(const char *dir)
{
    struct ts_ledger l;
    size_t n = 0;
    if (!ts_ledger_read(&l, dir))
        return 0;
    for (size_t i = 0; i < l.n_runs; i++)
        n += l.run[i].ended != 0;
    ts_ledger_free(&l);
    return n;
}

size_t ts_ledger_count_starts(const char *dir)
{
    struct ts_ledger l;
    if (!ts_ledger_read(&l, dir))
        return 0;
    size_t n = l.n_runs;
    ts_ledger_free(&l);
    return n;
}

size_t ts_ledger_count_log(const char *dir, const char *text)
{
    struct ts_ledger l;
    if (!ts_ledger_read(&l, dir))
        return 0;
    size_t n = ts_ledger_logged(&l, text);
    ts_ledger_free(&l);
    return n;
}
