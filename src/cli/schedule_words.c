#include "cli/schedule_words.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/arg.h"

static const char *const anchors[] = {"epoch", "start", "time"};
static const char *const gaps[] = {"shift", "skip"};
static const char *const folds[] = {"first", "both", "second"};
static const char *const misseds[] = {"one", "skip", "all"};
static const char *const overlaps[] = {"allow", "skip", "queue-one"};

struct words {
    const char *const *word;
    size_t n;
};

#define WORDS(array) ((struct words){array, LB_ARRAY_LEN(array)})

static const char *name_of(struct words w, unsigned i)
{
    return i < w.n ? w.word[i] : "?";
}

/* The number of the word, or -LADE_EINVAL. */
static int find(const char *what, const char *text, struct words w, const char *all, lade_err *err)
{
    for (size_t i = 0; i < w.n; i++) {
        if (strcmp(w.word[i], text) == 0)
            return (int)i;
    }
    return lb_fail(err, LADE_EINVAL, "usage", "%s: '%.40s' is unknown; give %s", what, text, all);
}

int cli_schedule_time(const char *what, const char *text, int64_t now, int64_t *out, lade_err *err)
{
    int64_t at = 0, in = 0;
    int rc = cli_arg_time(what, text, &at, &in, err);
    if (rc == 0)
        *out = in > 0 ? now + in : at;
    return rc;
}

int cli_schedule_anchor(const char *what, const char *text, int64_t now, lade_schedule_spec *spec,
                        lade_err *err)
{
    if (strcmp(text, "epoch") == 0 || strcmp(text, "start") == 0) {
        spec->anchor = *text == 'e' ? LADE_ANCHOR_EPOCH : LADE_ANCHOR_START;
        return 0;
    }
    if (*text != '+' && (*text < '0' || *text > '9'))
        return lb_fail(err, LADE_EINVAL, "usage",
                       "%s: '%.40s' is unknown; give epoch, start or a time", what, text);
    spec->anchor = LADE_ANCHOR_TIME;
    return cli_schedule_time(what, text, now, &spec->anchor_at, err);
}

int cli_schedule_gap(const char *what, const char *text, lade_schedule_spec *spec, lade_err *err)
{
    int i = find(what, text, WORDS(gaps), "shift or skip", err);
    if (i >= 0)
        spec->gap = (enum lade_schedule_gap)i;
    return LB_MIN(i, 0);
}

int cli_schedule_fold(const char *what, const char *text, lade_schedule_spec *spec, lade_err *err)
{
    int i = find(what, text, WORDS(folds), "first, both or second", err);
    if (i >= 0)
        spec->fold = (enum lade_schedule_fold)i;
    return LB_MIN(i, 0);
}

int cli_schedule_missed(const char *what, const char *text, lade_schedule_spec *spec, lade_err *err)
{
    int64_t max = 0;
    if (strncmp(text, "all:", 4) == 0) {
        spec->missed = LADE_MISSED_ALL;
        int rc = cli_arg_int(what, text + 4, (struct cli_range){1, LADE_MISSED_MAX}, &max, err);
        spec->missed_max = (uint32_t)max;
        return rc;
    }
    int i = find(what, text, WORDS(misseds), "one, skip, all or all:N", err);
    if (i >= 0)
        spec->missed = (enum lade_schedule_missed)i;
    return LB_MIN(i, 0);
}

int cli_schedule_overlap(const char *what, const char *text, lade_schedule_spec *spec,
                         lade_err *err)
{
    int i = find(what, strcmp(text, "queue_one") == 0 ? "queue-one" : text, WORDS(overlaps),
                 "allow, skip or queue-one", err);
    if (i >= 0)
        spec->overlap = (enum lade_schedule_overlap)i;
    return LB_MIN(i, 0);
}

const char *cli_schedule_anchor_name(enum lade_schedule_anchor anchor)
{
    return name_of(WORDS(anchors), (unsigned)anchor);
}

const char *cli_schedule_gap_name(enum lade_schedule_gap gap)
{
    return name_of(WORDS(gaps), (unsigned)gap);
}

const char *cli_schedule_fold_name(enum lade_schedule_fold fold)
{
    return name_of(WORDS(folds), (unsigned)fold);
}

const char *cli_schedule_missed_name(enum lade_schedule_missed missed)
{
    return name_of(WORDS(misseds), (unsigned)missed);
}

const char *cli_schedule_overlap_name(enum lade_schedule_overlap overlap)
{
    return name_of(WORDS(overlaps), (unsigned)overlap);
}

/* a line ----------------------------------------------------------------------------------------------------------- */

static int read_duration(const char *what, const char *text, int64_t *out, lade_err *err)
{
    return cli_arg_duration(what, text, (struct cli_range){0, CLI_DURATION_MAX}, out, err);
}

/* A member whose value is a string. 1 when it is none of those. */
static int read_text(lade_schedule_spec *s, const char *name, const char *text, int64_t now,
                     lade_err *err)
{
    char what[48];
    (void)snprintf(what, sizeof(what), "\"%.40s\"", name);
    if (strcmp(name, "id") == 0)
        s->id = text;
    else if (strcmp(name, "cron") == 0)
        s->cron = text;
    else if (strcmp(name, "tz") == 0)
        s->tz = text;
    else if (strcmp(name, "every") == 0)
        return read_duration(what, text, &s->every, err);
    else if (strcmp(name, "jitter") == 0)
        return read_duration(what, text, &s->jitter, err);
    else if (strcmp(name, "missed_window") == 0)
        return read_duration(what, text, &s->missed_window, err);
    else if (strcmp(name, "anchor") == 0)
        return cli_schedule_anchor(what, text, now, s, err);
    else if (strcmp(name, "gap") == 0)
        return cli_schedule_gap(what, text, s, err);
    else if (strcmp(name, "fold") == 0)
        return cli_schedule_fold(what, text, s, err);
    else if (strcmp(name, "missed") == 0)
        return cli_schedule_missed(what, text, s, err);
    else if (strcmp(name, "overlap") == 0)
        return cli_schedule_overlap(what, text, s, err);
    else if (strcmp(name, "start") == 0)
        return cli_schedule_time(what, text, now, &s->start, err);
    else if (strcmp(name, "end") == 0)
        return cli_schedule_time(what, text, now, &s->end, err);
    else
        return 1;
    return 0;
}

/* 1 when it is no member of a schedule: then of its job. */
static int read_member(lade_schedule_spec *s, const char *name, const json_t *v, int64_t now,
                       lade_err *err)
{
    if (strcmp(name, "limit") == 0) {
        s->limit = json_integer_value(v);
        return json_is_integer(v)
                   ? 0
                   : lb_fail(err, LADE_EINVAL, "usage", "\"limit\" must be a whole number");
    }
    if (strcmp(name, "paused") == 0) {
        s->paused = json_is_true(v);
        return json_is_boolean(v)
                   ? 0
                   : lb_fail(err, LADE_EINVAL, "usage", "\"paused\" must be true or false");
    }
    lade_schedule_spec scratch = {0};
    if (!json_is_string(v))
        return read_text(&scratch, name, "1", now, NULL) == 1
                   ? 1
                   : lb_fail(err, LADE_EINVAL, "usage", "\"%.40s\" must be a string", name);
    return read_text(s, name, json_string_value(v), now, err);
}

static int read_line(struct cli_schedule_line *l, const lade_job_spec *defaults, int64_t now,
                     lade_err *err)
{
    const char *name = NULL;
    json_t *value = NULL, *job = json_object();
    int rc = job ? 0 : lb_fail_nomem(err, "usage");
    if (rc == 0 && !json_is_object(l->root))
        rc = lb_fail(err, LADE_EINVAL, "usage", "not an object; give {\"cron\":...,\"kind\":...}");
    json_object_foreach(l->root, name, value)
    {
        rc = rc < 0 ? rc : read_member(&l->spec, name, value, now, err);
        if (rc == 1)
            rc = json_object_set(job, name, value) < 0 ? lb_fail_nomem(err, "usage") : 0;
    }
    if (rc == 0)
        rc = cli_ndjson_read(&l->job, job, defaults, err);
    json_decref(job);
    if (rc == 0)
        l->spec.job = l->job.spec;
    return rc;
}

int cli_schedule_parse(struct cli_schedule_line *out, const char *line, size_t n,
                       const lade_job_spec *defaults, int64_t now, lade_err *err)
{
    struct cli_schedule_line l = {.root = NULL};
    int rc = cli_json_load(&l.root, line, n, CLI_NDJSON_DEPTH, err);
    if (rc == 0)
        rc = read_line(&l, defaults, now, err);
    if (rc < 0)
        json_decref(l.root);
    else
        *out = l;
    return rc;
}

void cli_schedule_line_fini(struct cli_schedule_line *l)
{
    cli_ndjson_fini(&l->job);
    json_decref(l->root);
    l->root = NULL;
}
