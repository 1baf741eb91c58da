/* key_kit.h - contract: jobs with keys in a line of text */
#ifndef LADE_TESTS_CONTRACT_KEY_KIT_H
#define LADE_TESTS_CONTRACT_KEY_KIT_H

#include "contract.h"
#include "queue/key_store.h"

/* Ends the test at once on a store that has no keys; what is then not held is said by the op table itself. */
#define KY_NEEDS_KEYS()                     \
    do {                                    \
        if (!ct.ops->key_list) {            \
            assert_null(ct.ops->limit_set); \
            return;                         \
        }                                   \
    } while (0)

/*
 * A case once more with envelopes as bodies, which tell the key: stores may then let jobs of keys wait as they came, up to LQ_TURN_JOBS of
 * each (docs/limits.md). Other bodies tell nothing, and turns are of one job each.
 */
#define KY_TEST_DRESSED(f)                                                \
    {                                                                     \
#        f " (envelopes)", f, ky_setup_dressed, ky_teardown_dressed, NULL \
    }
int ky_setup_dressed(void **state);
int ky_teardown_dressed(void **state);
/* In such a case: gives the job an envelope with its key. */
void ky_dress(struct lq_put *put);

/* One call: "ID:KEY ID:KEY ID", ready, of the default level; none may be there. */
void ky_add(const char *queue, const char *jobs);
/* One call: `n` jobs of a key, named PREFIX0000 and up. */
void ky_add_many(const char *queue, const char *prefix, const char *key, size_t n);
void ky_limit(const char *queue, const char *key, struct lq_limit limit);
void ky_usual(const char *queue, struct lq_limit limit);
void ky_pause(const char *queue, const char *key, bool paused);
/* "A 2/1/0 concurrency, B 0/1/0": ready, active, waiting, and why it is held. */
const char *ky_show(const char *queue);
/* The words of a text, sorted. */
const char *ky_sorted(const char *words);

extern const struct ct_group ct_key_group, ct_limit_group, ct_company_group, ct_company_batch_group;

#endif
