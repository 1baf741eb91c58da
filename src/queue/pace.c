#include "queue/pace.h"

#include "base/base.h"

#define REST_MIN     16
#define REST_MAX     4096
#define CREDIT       4
#define CREDIT_MAX   8
#define GAP_TRIPS    4
#define GAP_FIRST    400000 /* ns */
#define COMPANY      3      /* outcomes that make a trip worth waiting for */
#define EACH         40000 /* ns of the gap that an outcome is worth: it grows at more than 25,000 jobs/s */
#define OUTCOMES_MAX 1000
#define SHARE        4 /* of the moving average */

static int64_t first_gap(const struct lq_pace *p)
{
    return LB_MIN(GAP_TRIPS * p->trip, GAP_FIRST);
}

static int64_t gap(const struct lq_pace *p)
{
    return LB_MAX(first_gap(p), LB_MIN(p->worth, LQ_PACE_MAX));
}

int64_t lq_pace_next(const struct lq_pace *p)
{
    return p->credit > 0 && p->dry ? p->began + gap(p) : 0;
}

static void judge(struct lq_pace *p, size_t outcomes)
{
    if (outcomes >= COMPANY)
        p->credit = LB_MIN(p->credit + 1, CREDIT_MAX);
    else if (outcomes > 0 && --p->credit == 0)
        p->rest = LB_MIN(2 * p->rest, (uint32_t)REST_MAX);
    if (p->credit == CREDIT_MAX)
        p->rest = REST_MIN;
}

void lq_pace_begin(struct lq_pace *p, int64_t now, size_t outcomes)
{
    if (p->rest == 0)
        p->rest = REST_MIN;
    bool close = p->dry && now - p->began < 2 * first_gap(p);
    if (p->credit > 0) {
        judge(p, outcomes);
        p->worth += ((int64_t)LB_MIN(outcomes, OUTCOMES_MAX) * EACH - p->worth) / SHARE;
        p->close = 0;
    } else if (!close) {
        p->close = 0;
    } else if (++p->close >= p->rest) {
        p->credit = CREDIT;
        p->worth = 0;
        p->close = 0;
    }
    p->began = now;
}

void lq_pace_end(struct lq_pace *p, int64_t now, bool dry)
{
    p->trip += (now - p->began - p->trip) / 8;
    p->dry = dry;
}
