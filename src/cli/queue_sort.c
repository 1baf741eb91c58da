#include "cli/queue_sort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"
#include "cli/text.h"

struct cli_sort_key {
    const char *name;
    size_t at; /* of a number of 64 bits that is not negative; SIZE_MAX: the name */
};

#define AT(member) offsetof(lade_queue_info, member)

static const struct cli_sort_key keys[] = {
    {"name", SIZE_MAX},
    {"ready", AT(count[LADE_STATE_READY])},
    {"scheduled", AT(count[LADE_STATE_SCHEDULED])},
    {"retrying", AT(count[LADE_STATE_RETRYING])},
    {"active", AT(count[LADE_STATE_ACTIVE])},
    {"dead", AT(count[LADE_STATE_DEAD])},
    {"completed", AT(count[LADE_STATE_COMPLETED])},
    {"cancelled", AT(count[LADE_STATE_CANCELLED])},
    {"held", AT(held)},
    {"latency", AT(latency)},
    {"workers", AT(n_workers)},
    {"enqueued", AT(total_enqueued)},
    {"done", AT(total_completed)},
    {"failed", AT(total_failed)},
    {"died", AT(total_dead)},
};

static_assert(sizeof(((lade_queue_info *)0)->n_workers) == sizeof(uint64_t), "a number of 64 bits");

const char *cli_queue_sort_words(void)
{
    static char words[256];
    words[0] = '\0';
    for (size_t i = 0; i < LB_ARRAY_LEN(keys); i++) {
        size_t n = strlen(words);
        (void)snprintf(words + n, sizeof(words) - n, "%s%s", i ? " " : "", keys[i].name);
    }
    return words;
}

static int fail(const char *what, const char *word, lade_err *err)
{
    const char *names[LB_ARRAY_LEN(keys)];
    for (size_t i = 0; i < LB_ARRAY_LEN(keys); i++)
        names[i] = keys[i].name;
    const char *near = cli_nearest(word, names, LB_ARRAY_LEN(names));
    if (near)
        return lb_fail(err, LADE_EINVAL, "usage", "%s: '%.40s' is unknown; did you mean %s?", what,
                       word, near);
    return lb_fail(err, LADE_EINVAL, "usage", "%s: '%.40s' is unknown; give some of %s", what, word,
                   cli_queue_sort_words());
}

int cli_queue_sort_read(struct cli_queue_sort *out, const char *what, const char *text,
                        lade_err *err)
{
    struct cli_queue_sort sort = {.reverse = out->reverse};
    for (const char *p = text;;) {
        char word[48];
        size_t n = strcspn(p, ","), i = 0;
        (void)snprintf(word, sizeof(word), "%.*s", (int)LB_MIN(n, sizeof(word) - 1), p);
        while (i < LB_ARRAY_LEN(keys) && strcmp(keys[i].name, word) != 0)
            i++;
        if (i == LB_ARRAY_LEN(keys))
            return fail(what, word, err);
        if (sort.n == CLI_SORT_KEYS_MAX)
            return lb_fail(err, LADE_EINVAL, "usage", "%s: more than %d words", what,
                           CLI_SORT_KEYS_MAX);
        sort.by[sort.n++] = &keys[i];
        if (!p[n])
            break;
        p += n + 1;
    }
    *out = sort;
    return 0;
}

static uint64_t number_at(const lade_queue_info *q, size_t at)
{
    uint64_t v;
    memcpy(&v, (const char *)q + at, sizeof(v));
    return v;
}

static int compare(const void *left, const void *right, void *ctx)
{
    const struct cli_queue_sort *sort = ctx;
    const lade_queue_info *a = left, *b = right;
    int order = 0;
    for (size_t i = 0; i < sort->n && order == 0; i++) {
        if (sort->by[i]->at == SIZE_MAX) {
            order = strcmp(a->name, b->name);
        } else {
            uint64_t va = number_at(a, sort->by[i]->at), vb = number_at(b, sort->by[i]->at);
            order = va > vb ? -1 : va < vb;
        }
    }
    if (order == 0)
        order = strcmp(a->name, b->name);
    return sort->reverse ? -order : order;
}

void cli_queue_sort(const struct cli_queue_sort *sort, lade_queue_info *queues, size_t n)
{
    if (n > 1)
        qsort_r(queues, n, sizeof(*queues), compare, (void *)sort);
}
