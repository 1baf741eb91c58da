#include "cli/schedule_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/civil.h"
#include "cli/schedule_words.h"
#include "cli/text.h"

#define PAYLOAD_MAX 4096
#define STALE_AFTER LADE_MINUTE /* nobody has looked for that long: chronos 61 */

static void add_rule_text(struct cli_row *r, const lade_schedule_spec *s)
{
    char text[LADE_CRON_MAX + LADE_TZ_MAX + 8], every[CLI_TIME_LEN];
    if (s->cron) {
        bool has_zone = s->tz && *s->tz;
        (void)snprintf(text, sizeof(text), "%s%s%s", s->cron, has_zone ? " " : "",
                       has_zone ? s->tz : "");
    } else {
        cli_duration_text(every, s->every);
        (void)snprintf(text, sizeof(text), "every %s", every);
    }
    cli_row_text(r, "rule", text);
}

static void add_job(struct cli_row *r, const lade_job_spec *j)
{
    json_t *headers = json_object();
    cli_row_text(r, "kind", j->kind);
    cli_row_text(r, "queue", j->queue);
    cli_row_bytes(r, "payload", j->payload, PAYLOAD_MAX);
    if (j->content_type && *j->content_type)
        cli_row_text(r, "content_type", j->content_type);
    cli_row_int(r, "priority", j->priority);
    cli_row_int(r, "max_attempts", j->max_attempts);
    cli_row_int(r, "timeout_ms", j->timeout / LADE_MILLISECOND);
    if (j->result_ttl > 0)
        cli_row_int(r, "result_ttl_ms", j->result_ttl / LADE_MILLISECOND);
    if (j->unique.key.size > 0)
        cli_row_bytes(r, "unique_key", j->unique.key, LADE_UNIQUE_KEY_MAX);
    if (j->key.size > 0)
        cli_row_bytes(r, "key", j->key, LADE_KEY_MAX);
    if (j->discard_dead)
        cli_row_bool(r, "discard_dead", true);
    for (size_t i = 0; i < j->n_headers; i++)
        (void)json_object_set_new(headers, j->headers[i].name, json_string(j->headers[i].value));
    cli_row_json(r, "headers", headers);
}

static void add_spec(struct cli_row *r, const lade_schedule_spec *s)
{
    add_rule_text(r, s);
    cli_row_text(r, "cron", s->cron);
    if (s->every > 0)
        cli_row_int(r, "every_ms", s->every / LADE_MILLISECOND);
    else
        cli_row_text(r, "every_ms", NULL);
    cli_row_text(r, "anchor", cli_schedule_anchor_name(s->anchor));
    cli_row_text(r, "tz", s->tz && *s->tz ? s->tz : NULL);
    cli_row_text(r, "gap", cli_schedule_gap_name(s->gap));
    cli_row_text(r, "fold", cli_schedule_fold_name(s->fold));
    cli_row_text(r, "missed", cli_schedule_missed_name(s->missed));
    cli_row_int(r, "missed_max", s->missed_max);
    cli_row_int(r, "missed_window_ms", s->missed_window / LADE_MILLISECOND);
    cli_row_text(r, "overlap", cli_schedule_overlap_name(s->overlap));
    cli_row_int(r, "limit", s->limit);
    cli_row_time(r, "start", s->start);
    cli_row_time(r, "end", s->end);
    cli_row_int(r, "jitter_ms", s->jitter / LADE_MILLISECOND);
    add_job(r, &s->job);
}

static void add_leader(struct cli_row *r, const lade_schedule_leader *leader, int64_t now)
{
    cli_row_text(r, "leader", leader->name[0] ? leader->name : NULL);
    cli_row_time(r, "seen_at", leader->seen_at);
    cli_row_bool(r, "stale", now - leader->seen_at > STALE_AFTER);
}

void cli_schedule_row(struct cli_row *r, const lade_schedule_view *v, int64_t now,
                      const lade_schedule_leader *leader)
{
    cli_row_init(r);
    cli_row_text(r, "id", v->id);
    cli_row_text(r, "state", lade_schedule_state_name(v->state));
    if (v->error[0])
        cli_row_text(r, "error", v->error);
    cli_row_time(r, "next_at", v->next_at);
    if (v->due_at > 0)
        cli_row_int(r, "next_in_ms", LB_MAX(v->due_at - now, 0) / LADE_MILLISECOND);
    else
        cli_row_text(r, "next_in_ms", NULL);
    cli_row_time(r, "due_at", v->due_at);
    cli_row_time(r, "last_at", v->last_at);
    if (v->last_at > 0)
        cli_row_int(r, "last_ago_ms", LB_MAX(now - v->last_at, 0) / LADE_MILLISECOND);
    else
        cli_row_text(r, "last_ago_ms", NULL);
    cli_row_text(r, "last_job", v->last_job[0] ? v->last_job : NULL);
    cli_row_time(r, "queued_at", v->queued_at);
    cli_row_u64(r, "fired", v->n_fired);
    cli_row_u64(r, "missed_times", v->n_missed);
    cli_row_u64(r, "overlaps", v->n_overlaps);
    cli_row_u64(r, "duplicates", v->n_duplicates);
    cli_row_time(r, "created_at", v->created_at);
    cli_row_time(r, "changed_at", v->changed_at);
    cli_row_text(r, "tzdata", v->tzdata[0] ? v->tzdata : NULL);
    if (v->spec)
        add_spec(r, v->spec);
    if (leader)
        add_leader(r, leader, now);
}

void cli_fire_row(struct cli_row *r, const lade_fire *f)
{
    cli_row_init(r);
    cli_row_time(r, "at", f->at);
    cli_row_text(r, "outcome", lade_fire_outcome_name(f->outcome));
    cli_row_u64(r, "count", f->count);
    cli_row_time(r, "seen_at", f->seen_at);
    cli_row_int(r, "late_ms", LB_MAX(f->seen_at - f->at, 0) / LADE_MILLISECOND);
}

void cli_schedule_local(char out[64], const lade_schedule_time *t)
{
    struct lb_civil c = lb_civil_of(lb_floor_div(t->at, LADE_SECOND) + t->utc_offset);
    (void)snprintf(out, 64, "%04lld-%02d-%02d %02d:%02d:%02d %s", (long long)c.year, c.month, c.day,
                   c.hour, c.minute, c.second, t->zone);
}

void cli_schedule_time_row(struct cli_row *r, const lade_schedule_time *t)
{
    static const char *const notes[] = {"", "shifted", "first pass", "second pass"};

    char local[64];
    cli_schedule_local(local, t);
    cli_row_init(r);
    cli_row_time(r, "at", t->at);
    cli_row_text(r, "local", local);
    cli_row_int(r, "utc_offset_s", t->utc_offset);
    cli_row_text(r, "note", (unsigned)t->note < LB_ARRAY_LEN(notes) ? notes[t->note] : "?");
}
