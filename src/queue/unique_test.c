#include "queue/unique.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#define KEY .key = {"k", 1}
#define MS  LADE_MILLISECOND

static void each_contradiction_is_refused_with_its_field(void **state)
{
    (void)state;

    static const struct {
        lade_unique u;
        bool timed;
        const char *says;
    } bad[] = {
        {{.debounce = MS}, false, "unique.key"},
        {{.on_conflict = LADE_CONFLICT_REPLACE}, false, "unique.key"},
        {{KEY, .until = (enum lade_unique_until)3}, false, "unique.until"},
        {{KEY, .on_conflict = (enum lade_on_conflict)3}, false, "unique.on_conflict"},
        {{KEY, .ttl = 1}, false, "unique.ttl"},
        {{KEY, .ttl = -1}, false, "unique.ttl"},
        {{KEY, .debounce = 999999}, false, "unique.debounce"},
        {{KEY, .throttle = -1}, false, "unique.throttle"},
        {{KEY, .debounce = MS, .throttle = MS}, false, "unique.debounce and unique.throttle"},
        {{KEY, .max_wait = MS}, false, "unique.max_wait"},
        {{KEY, .debounce = 2 * MS, .max_wait = MS}, false, "unique.max_wait"},
        {{KEY, .trailing = true}, false, "unique.trailing"},
        {{KEY, .debounce = MS}, true, "unique.debounce"},
        {{KEY, .throttle = MS}, true, "unique.throttle"},
        {{KEY, .debounce = MS, .ttl = MS}, false, "unique.debounce"},
        {{KEY, .throttle = MS, .until = LADE_UNTIL_TTL}, false, "unique.throttle"},
        {{KEY, .throttle = MS, .on_conflict = LADE_CONFLICT_REJECT}, false, "unique.throttle"},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(bad); i++) {
        lade_err err = {0};
        assert_int_equal(lq_unique_check(&bad[i].u, bad[i].timed, "", &err), -LADE_EINVAL);
        if (!strstr(err.text, bad[i].says))
            fail_msg("case %zu says: %s", i, err.text);
    }
}

static void debounce_and_throttle_become_what_a_store_knows(void **state)
{
    (void)state;
    struct lq_put p = {0};
    lade_unique u = {KEY, .debounce = 5 * LADE_SECOND};
    assert_int_equal(lq_unique_check(&u, false, "", NULL), 0);
    lq_unique_ask(&p, &u);
    assert_int_equal(p.when, LQ_WHEN_IN);
    assert_int_equal(p.when_ms, 5000);
    assert_int_equal(p.bound_ms, 50000);
    assert_int_equal(p.until, LADE_UNTIL_START);
    assert_int_equal(p.conflict, LQ_CONFLICT_REPLACE);
    p = (struct lq_put){0};
    u = (lade_unique){KEY, .throttle = LADE_MINUTE};
    lq_unique_ask(&p, &u);
    assert_int_equal(p.when, LQ_WHEN_NOW);
    assert_int_equal(p.until, LADE_UNTIL_TTL);
    assert_int_equal(p.unique_ttl_ms, 60000);
    assert_int_equal(p.conflict, LQ_CONFLICT_KEEP);
    u.trailing = true;
    lq_unique_ask(&p, &u);
    assert_int_equal(p.conflict, LQ_CONFLICT_TRAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_contradiction_is_refused_with_its_field),
        cmocka_unit_test(debounce_and_throttle_become_what_a_store_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
