#include "queue/retry.h"

#include "base/base.h"

#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

/* a * b within cap, without overflow; all >= 0. */
static int64_t multiply_within(int64_t a, int64_t b, int64_t cap)
{
    if (a == 0 || b == 0)
        return 0;
    return a > cap / b ? cap : a * b;
}

static int64_t power4_within(int64_t n, int64_t cap)
{
    int64_t square = multiply_within(n, n, cap);
    return multiply_within(square, square, cap);
}

int64_t lq_retry_delay_ms(const struct lq_backoff *b, int attempt, uint32_t chance)
{
    int64_t cap = b->type == LADE_BACKOFF_DEFAULT || b->cap_ms <= 0 ? DAY_MS : b->cap_ms;
    int64_t n = LB_MAX(attempt, 1);
    int64_t delay = 0;
    int64_t jitter = b->jitter;
    switch (b->type) {
    case LADE_BACKOFF_FIXED:
        delay = LB_MIN(b->base_ms, cap);
        break;
    case LADE_BACKOFF_EXPONENTIAL:
        delay = n > 62 ? cap : multiply_within(b->base_ms, INT64_C(1) << (n - 1), cap);
        break;
    case LADE_BACKOFF_POLYNOMIAL:
        delay = multiply_within(b->base_ms, power4_within(n, cap), cap);
        break;
    case LADE_BACKOFF_DEFAULT:
    default:
        delay = multiply_within(power4_within(n, cap), 1000, cap) + 15000;
        jitter = 10;
        break;
    }
    delay += (int64_t)((double)delay / 100 * (double)jitter * ((double)chance / UINT32_MAX));
    return LB_MIN(delay, cap);
}
