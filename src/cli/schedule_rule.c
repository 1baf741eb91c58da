#include "cli/schedule_rule.h"

#include "base/err.h"
#include "cli/schedule_words.h"

int cli_rule_read(const struct cli_rule *rule, int64_t now, lade_schedule_spec *spec, lade_err *err)
{
    int rc = 0;
    if (rule->anchor && rule->cron)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--anchor: not with --cron; it is what --every counts from");
    if (rule->tz && !*rule->tz)
        return lb_fail(err, LADE_EINVAL, "usage",
                       "--tz: empty; give UTC, an offset as +02:00, or a name as Europe/Berlin");
    spec->cron = rule->cron;
    spec->every = rule->every;
    spec->tz = rule->tz;
    if (rule->anchor)
        rc = cli_schedule_anchor("--anchor", rule->anchor, now, spec, err);
    if (rc == 0 && rule->gap)
        rc = cli_schedule_gap("--gap", rule->gap, spec, err);
    if (rc == 0 && rule->fold)
        rc = cli_schedule_fold("--fold", rule->fold, spec, err);
    if (rc == 0 && rule->start)
        rc = cli_schedule_time("--start", rule->start, now, &spec->start, err);
    if (rc == 0 && rule->end)
        rc = cli_schedule_time("--end", rule->end, now, &spec->end, err);
    return rc;
}
