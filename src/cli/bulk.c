#include "cli/bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/lines.h"
#include "cli/ndjson.h"
#include "cli/out.h"

#define PROGRESS_EVERY (LADE_SECOND / 5)

struct run {
    struct cli *c;
    const struct cli_bulk *b;
    struct cli_lines lines;
    struct cli_ndjson *jobs; /* ndjson: owners of what the specs point to */
    lade_job_spec *specs;
    uint64_t *line_of; /* the line of each spec */
    lade_id *ids;
    int *outcomes;
    size_t n, n_bytes;
    struct lb_buf bytes; /* lines: payloads of the batch, specs hold offsets until it is sent */
    uint64_t n_added, n_duplicate, n_held, n_bad, n_refused, n_printed;
    int64_t started_at, shown_at;
    bool has_terminal;
};

static bool is_held(int outcome)
{
    return outcome == LADE_DUPLICATE || outcome == LADE_CONFLICT;
}

/* One that took the place of a job that waited counts as added. */
static bool is_added(int outcome)
{
    return outcome == 0 || outcome == LADE_REPLACED;
}

/* What became of spec i. */
static void count(struct run *r, size_t i)
{
    const lade_job_spec *spec = &r->specs[i];
    r->n_added += is_added(r->outcomes[i]);
    if (!is_held(r->outcomes[i]))
        return;
    r->n_duplicate++;
    if (!r->b->tells_held || !spec->id || strcmp(spec->id, r->ids[i].text) == 0)
        return;
    r->n_held++;
    (void)cli_say(
        CLI_PARTIAL,
        "%s: line %llu: %s: not added: job %s holds its unique key; import it when that has ended, or without the key",
        r->lines.name, (unsigned long long)r->line_of[i], spec->id, r->ids[i].text);
}

static int init_run(struct run *r, lade_err *err)
{
    r->specs = lb_calloc(CLI_BULK_JOBS, sizeof(*r->specs));
    r->jobs = lb_calloc(CLI_BULK_JOBS, sizeof(*r->jobs));
    r->line_of = lb_calloc(CLI_BULK_JOBS, sizeof(*r->line_of));
    r->ids = lb_calloc(CLI_BULK_JOBS, sizeof(*r->ids));
    r->outcomes = lb_calloc(CLI_BULK_JOBS, sizeof(*r->outcomes));
    lb_buf_init(&r->bytes);
    r->lines.fd = -1;
    if (!r->specs || !r->jobs || !r->line_of || !r->ids || !r->outcomes)
        return lb_fail_nomem(err, "enqueue");
    size_t max = r->b->is_ndjson ? cli_ndjson_line_max(r->b->payload_max) : r->b->payload_max;
    return cli_lines_open(&r->lines, r->b->path, max, err);
}

static void clear_batch(struct run *r)
{
    for (size_t i = 0; r->b->is_ndjson && i < r->n; i++)
        cli_ndjson_fini(&r->jobs[i]);
    lb_buf_clear(&r->bytes);
    r->n = 0;
    r->n_bytes = 0;
}

static void fini_run(struct run *r)
{
    clear_batch(r);
    cli_lines_close(&r->lines);
    lb_buf_fini(&r->bytes);
    lb_free(r->specs);
    lb_free(r->jobs);
    lb_free(r->line_of);
    lb_free(r->ids);
    lb_free(r->outcomes);
}

static void show_progress(struct run *r, bool last)
{
    int64_t now = lb_clock_mono();
    if (!r->has_terminal || (!last && now - r->shown_at < PROGRESS_EVERY))
        return;
    r->shown_at = now;
    double seconds = (double)(now - r->started_at) / (double)LADE_SECOND;
    double rate = seconds > 0 ? (double)r->n_added / seconds : 0;
    (void)fprintf(stderr, "\r\033[K%llu added, %.0f/s%s", (unsigned long long)r->n_added, rate,
                  last ? "\r\033[K" : "");
    (void)fflush(stderr);
}

static int print_id(struct run *r, size_t i, lade_err *err)
{
    struct cli_row row;
    if (!r->b->print_ids)
        return 0;
    if (r->c->format == CLI_JSON) {
        json_t *id = json_string(r->ids[i].text);
        (void)fputs(r->n_printed++ ? ",\n" : "{\"ids\":[\n", stdout);
        int rc = id ? json_dumpf(id, stdout, JSON_ENCODE_ANY) : -1;
        json_decref(id);
        return rc == 0 ? 0 : lb_fail_nomem(err, "print");
    }
    if (r->c->format == CLI_TSV) {
        (void)printf("%s%llu\t%s\t%s\n", r->n_printed++ ? "" : "line\tid\tduplicate\n",
                     (unsigned long long)r->line_of[i], r->ids[i].text,
                     is_held(r->outcomes[i]) ? "yes" : "no");
        return 0;
    }
    if (r->c->format != CLI_NDJSON) {
        (void)printf("%s\n", r->ids[i].text);
        return 0;
    }
    cli_row_init(&row);
    cli_row_int(&row, "line", (int64_t)r->line_of[i]);
    cli_row_text(&row, "id", r->ids[i].text);
    cli_row_bool(&row, "duplicate", is_held(r->outcomes[i]));
    return cli_out_object(r->c, &row, err);
}

/* Writes the batch. 0 or a failure. */
static int send_batch(struct run *r, lade_err *err)
{
    const uint8_t *base = r->bytes.p;
    for (size_t i = 0, at = 0; !r->b->is_ndjson && i < r->n; i++) {
        r->specs[i].payload.data = base ? base + at : NULL;
        at += r->specs[i].payload.size;
    }
    if (r->n == 0)
        return 0;
    if (r->c->dry_run) {
        r->n_added += r->n;
        clear_batch(r);
        return 0;
    }
    int rc = lade_enqueue_many(r->c->q, r->specs, r->n, r->ids, r->outcomes, err);
    r->n_refused += rc == LADE_FULL ? r->n : 0;
    if (rc < 0 || rc == LADE_FULL)
        return rc;
    for (size_t i = 0; i < r->n; i++)
        count(r, i);
    for (size_t i = 0; rc >= 0 && i < r->n; i++)
        rc = print_id(r, i, err);
    clear_batch(r);
    show_progress(r, false);
    return LB_MIN(rc, 0);
}

/* Puts one line into the batch. 0, or a failure when the line is bad. */
static int add_line(struct run *r, lade_bytes line, lade_err *err)
{
    lade_job_spec *spec = &r->specs[r->n];
    if (r->b->is_ndjson) {
        struct cli_ndjson *j = &r->jobs[r->n];
        int rc = cli_ndjson_parse(j, line.data, line.size, r->b->base, err);
        if (rc < 0)
            return rc;
        *spec = j->spec;
        if (spec->payload.size > r->b->payload_max) {
            cli_ndjson_fini(j);
            return lb_fail(err, LADE_ETOOBIG, "enqueue", "payload: over %u bytes%s",
                           r->b->payload_max, cli_size_advice(r->b->payload_max));
        }
    } else {
        *spec = *r->b->base;
        spec->payload = line;
        lb_buf_add(&r->bytes, line.data, line.size);
        if (r->bytes.failed)
            return lb_fail_nomem(err, "enqueue");
    }
    r->line_of[r->n++] = r->lines.number;
    r->n_bytes += line.size;
    return 0;
}

static bool is_blank(lade_bytes line)
{
    const char *p = line.data;
    size_t n = 0;
    while (n < line.size && (p[n] == ' ' || p[n] == '\t' || p[n] == '\r'))
        n++;
    return n == line.size;
}

/* Of this line; a store that has no place for what a job asks (Resque: a priority) refuses the line, too. */
static bool is_bad_input(int rc)
{
    return rc == -LADE_EINVAL || rc == -LADE_ETOOBIG || rc == -LADE_EUNSUPPORTED;
}

/* One line, added, passed over, or refused. 0, LADE_EMPTY at the end, or a failure. */
static int read_line(struct run *r, lade_err *err)
{
    lade_bytes line = {0};
    lade_err why = {0};
    char where[320];
    int rc = cli_lines_next(&r->lines, &line, &why);
    /* What cannot be read as a line is told with its line already. */
    bool has_place = rc < 0;
    if (rc == 0 && r->b->is_ndjson && is_blank(line))
        return 0;
    if (rc == 0)
        rc = add_line(r, line, &why);
    if (rc >= 0)
        return rc;
    if (!is_bad_input(rc)) {
        *err = why;
        return rc;
    }
    (void)snprintf(where, sizeof(where), "%.280s: line %llu: ", r->lines.name,
                   (unsigned long long)r->lines.number);
    if (!r->b->skip_bad)
        return lb_fail(err, LADE_EINVAL, "enqueue", "%s%s", has_place ? "" : where, why.text);
    r->n_bad++;
    if (has_place)
        (void)cli_say(CLI_PARTIAL, "%s: passed over", why.text);
    else
        (void)cli_say(CLI_PARTIAL, "%spassed over: %s", where, why.text);
    return 0;
}

/*
 * The library refused a spec of the batch, which the parser could not know (a bad name, say). One by one finds which.
 */
static int send_singly(struct run *r, lade_err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        lade_err why = {0};
        int rc = lade_enqueue(r->c->q, &r->specs[i], &r->ids[i], &why);
        r->n_refused += rc == LADE_FULL ? r->n - i : 0;
        if (rc == LADE_FULL || (rc < 0 && !is_bad_input(rc))) {
            *err = why;
            return rc;
        }
        if (rc < 0) {
            r->n_bad++;
            (void)cli_say(CLI_PARTIAL, "%s: line %llu: passed over: %s", r->lines.name,
                          (unsigned long long)r->line_of[i], why.text);
            continue;
        }
        r->outcomes[i] = rc;
        count(r, i);
        rc = print_id(r, i, err);
        if (rc < 0)
            return rc;
    }
    clear_batch(r);
    return 0;
}

/* The library names a bad spec of a batch by its index, "job 7: ..."; people want its line. */
static int fail_spec(const struct run *r, size_t n, const lade_err *why, lade_err *err)
{
    enum lade_errno code = (enum lade_errno) - why->code;
    char *rest = NULL;
    unsigned long i = n;
    if (strncmp(why->text, "job ", 4) == 0)
        i = strtoul(why->text + 4, &rest, 10);
    if (i < n && rest[0] == ':')
        return lb_fail(err, code, "enqueue", "%s: line %llu%s", r->lines.name,
                       (unsigned long long)r->line_of[i], rest);
    return lb_fail(err, code, "enqueue", "%s: lines %llu to %llu: %s", r->lines.name,
                   (unsigned long long)r->line_of[0], (unsigned long long)r->line_of[n - 1],
                   why->text);
}

/* Its queue is full: the lines that were refused. */
static int fail_full(const struct run *r, const lade_err *why, lade_err *err)
{
    (void)lb_fail(err, LADE_ENOSPACE, "enqueue", "%s: lines %llu to %llu refused: %s",
                  r->lines.name, (unsigned long long)r->line_of[0],
                  (unsigned long long)r->line_of[r->n - 1], why->text);
    err->code = LADE_FULL;
    return LADE_FULL;
}

static int flush_batch(struct run *r, lade_err *err)
{
    size_t n = r->n;
    lade_err why = {0};
    int rc = send_batch(r, &why);
    if (is_bad_input(rc) && r->b->skip_bad)
        return send_singly(r, err);
    if (is_bad_input(rc))
        return fail_spec(r, n, &why, err);
    if (rc == LADE_FULL)
        return fail_full(r, &why, err);
    if (rc < 0)
        *err = why;
    return rc;
}

static int run_all(struct run *r, lade_err *err)
{
    for (;;) {
        int rc = read_line(r, err);
        if (rc < 0)
            return rc;
        bool is_full = r->n == CLI_BULK_JOBS || r->n_bytes >= CLI_BULK_BYTES;
        if (rc == LADE_EMPTY || is_full) {
            int sent = flush_batch(r, err);
            if (sent != 0 || rc == LADE_EMPTY)
                return sent;
        }
    }
}

/* The counts: in JSON the end of the one object; ids, when asked for, were written as they came. */
static void print_counts(const struct run *r, uint64_t n_bad)
{
    bool has_ids = r->c->format == CLI_JSON && r->b->print_ids;
    /* A line for each job, when those are asked for, says it all in TSV and NDJSON. */
    bool has_lines = r->b->print_ids && !r->c->dry_run && r->c->format != CLI_JSON;
    if (r->c->format == CLI_TABLE || (has_lines && (r->c->format == CLI_NDJSON || r->n_printed)))
        return;
    if (r->c->format == CLI_TSV && has_lines) {
        (void)puts("line\tid\tduplicate");
        return;
    }
    if (r->c->format == CLI_TSV) {
        (void)printf("dry_run\tadded\tduplicates\tbad\trefused\n%s\t%llu\t%llu\t%llu\t%llu\n",
                     r->c->dry_run ? "yes" : "no", (unsigned long long)r->n_added,
                     (unsigned long long)r->n_duplicate, (unsigned long long)n_bad,
                     (unsigned long long)r->n_refused);
        return;
    }
    if (has_ids)
        (void)fputs(r->n_printed ? "\n],\n" : "{\"ids\":[],\n", stdout);
    (void)printf(
        "%s\"dry_run\":%s,\"added\":%llu,\"duplicates\":%llu,\"bad\":%llu,\"refused\":%llu}\n",
        has_ids ? "" : "{", r->c->dry_run ? "true" : "false", (unsigned long long)r->n_added,
        (unsigned long long)r->n_duplicate, (unsigned long long)n_bad,
        (unsigned long long)r->n_refused);
}

enum cli_exit cli_bulk_run(struct cli *c, const struct cli_bulk *b)
{
    struct run r = {.c = c, .b = b, .started_at = lb_clock_mono()};
    lade_err err = {0};
    r.has_terminal = isatty(STDERR_FILENO) && !c->quiet && !c->dry_run;
    int rc = init_run(&r, &err);
    if (rc < 0) {
        fini_run(&r);
        return cli_complain(&err);
    }
    rc = run_all(&r, &err);
    show_progress(&r, true);
    uint64_t n_bad = r.n_bad + (rc < 0 && is_bad_input(rc));
    print_counts(&r, n_bad);
    if (rc != 0)
        (void)cli_complain(&err);
    char refused[48] = "";
    if (r.n_refused > 0)
        (void)snprintf(refused, sizeof(refused), ", %llu refused", (unsigned long long)r.n_refused);
    cli_note(c, "%llu %sadded, %llu duplicates, %llu bad%s", (unsigned long long)r.n_added,
             c->dry_run ? "would be " : "", (unsigned long long)r.n_duplicate,
             (unsigned long long)n_bad, refused);
    fini_run(&r);
    if (rc != 0)
        return cli_exit_of(rc);
    if (r.n_bad + r.n_held > 0)
        return CLI_PARTIAL;
    return r.n_duplicate > 0 ? CLI_CONFLICT : CLI_OK;
}
