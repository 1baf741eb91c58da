#include "queue/flow.h"

#include "base/base.h"

bool lq_flow_split(struct lb_slice id, struct lb_slice *flow, uint32_t *node)
{
    const uint8_t *sign = id.n > 0 ? memchr(id.p, LQ_FLOW_SIGN, id.n) : NULL;
    if (!sign)
        return false;
    const uint8_t *end = id.p + id.n;
    uint32_t v = 0;
    if (sign == id.p || sign + 1 == end || end - sign > 6)
        return false;
    for (const uint8_t *p = sign + 1; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        v = 10 * v + (uint32_t)(*p - '0');
    }
    *flow = lb_slice(id.p, (size_t)(sign - id.p));
    *node = v;
    return true;
}

size_t lq_flow_join(char out[LADE_ID_MAX + 1], struct lb_slice flow, uint32_t node)
{
    char digit[10];
    size_t n = LB_MIN(flow.n, (size_t)LADE_FLOW_ID_MAX), digits = 0;
    for (; digits == 0 || node > 0; node /= 10)
        digit[digits++] = (char)('0' + node % 10);
    memcpy(out, flow.p, n);
    out[n++] = LQ_FLOW_SIGN;
    while (digits > 0 && n < LADE_ID_MAX)
        out[n++] = digit[--digits];
    out[n] = 0;
    return n;
}

/* What the flow counts as failed: its share before and after the change. */
static int count_failed(enum lade_flow_step_state state, enum lade_flow_policy policy)
{
    return policy == LADE_FLOW_FAIL && lq_node_is_down(state);
}

static struct lq_node_change change(enum lade_flow_step_state from, enum lade_flow_step_state to,
                                    enum lade_flow_policy policy)
{
    return (struct lq_node_change){
        .to = to,
        .passes = !lq_node_has_passed(from) && lq_node_has_passed(to),
        .failed = count_failed(to, policy) - count_failed(from, policy),
    };
}

struct lq_node_change lq_node_ended(enum lade_flow_step_state state, enum lade_flow_policy policy,
                                    enum lade_flow_step_state ended)
{
    if (ended == LADE_STEP_COMPLETED)
        return change(state, LADE_STEP_COMPLETED, policy);
    if (state != LADE_STEP_ENQUEUED)
        return change(state, state, policy);
    return change(state, policy == LADE_FLOW_CONTINUE ? LADE_STEP_SKIPPED : ended, policy);
}

struct lq_node_change lq_node_revived(enum lade_flow_step_state state, enum lade_flow_policy policy)
{
    return change(state, lq_node_is_down(state) ? LADE_STEP_ENQUEUED : state, policy);
}
