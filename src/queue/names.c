#include "queue/names.h"

#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "base/err.h"

/* The words of the product, and those that users of other systems type; filters accept both. */
static const struct {
    const char *name;
    enum lade_state state;
} words[] = {
    {"scheduled", LADE_STATE_SCHEDULED}, {"ready", LADE_STATE_READY},
    {"active", LADE_STATE_ACTIVE},       {"retrying", LADE_STATE_RETRYING},
    {"completed", LADE_STATE_COMPLETED}, {"dead", LADE_STATE_DEAD},
    {"cancelled", LADE_STATE_CANCELLED}, {"delayed", LADE_STATE_SCHEDULED},
    {"pending", LADE_STATE_READY},       {"waiting", LADE_STATE_READY},
    {"available", LADE_STATE_READY},     {"queued", LADE_STATE_READY},
    {"enqueued", LADE_STATE_READY},      {"working", LADE_STATE_ACTIVE},
    {"executing", LADE_STATE_ACTIVE},    {"running", LADE_STATE_ACTIVE},
    {"started", LADE_STATE_ACTIVE},      {"reserved", LADE_STATE_ACTIVE},
    {"retry", LADE_STATE_RETRYING},      {"retryable", LADE_STATE_RETRYING},
    {"archived", LADE_STATE_DEAD},       {"failed", LADE_STATE_DEAD},
    {"discarded", LADE_STATE_DEAD},      {"buried", LADE_STATE_DEAD},
    {"morgue", LADE_STATE_DEAD},         {"finished", LADE_STATE_COMPLETED},
    {"canceled", LADE_STATE_CANCELLED},
};

const char *lade_state_name(enum lade_state state)
{
    /* the first LADE_N_STATES words are the states in order */
    return (unsigned)state < LADE_N_STATES ? words[state].name : NULL;
}

int lade_state_parse(const char *name)
{
    for (size_t i = 0; name && i < LB_ARRAY_LEN(words); i++) {
        if (strcmp(words[i].name, name) == 0)
            return (int)words[i].state;
    }
    return -1;
}

const char *lq_reason_name(enum lq_reason reason)
{
    return lq_reason_word(reason);
}

static bool is_word_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
}

static bool is_word(const char *s, size_t max, bool slash)
{
    size_t n = 0;
    for (; s[n]; n++) {
        if (n == max || !(is_word_char(s[n]) || (slash && s[n] == '/')))
            return false;
    }
    return n > 0;
}

bool lq_name_is_valid(const char *s)
{
    return is_word(s, LADE_NAME_MAX, true);
}

bool lq_id_is_valid(const char *s)
{
    return is_word(s, LADE_ID_MAX, false);
}

int lq_queue_check(const char *queue, const char *where, lade_err *err)
{
    if (queue && lq_name_is_valid(queue))
        return 0;
    return lb_fail(err, LADE_EINVAL, where,
                   "queue '%.60s' must be 1 to %d characters of A-Z a-z 0-9 . _ : / -",
                   queue ? queue : "", LADE_NAME_MAX);
}

/* Also the ids of workflow jobs, FLOW~NUMBER. */
static bool is_any_id(const char *s)
{
    const char *sign = strchr(s, '~');
    if (!sign)
        return lq_id_is_valid(s);
    size_t digits = strspn(sign + 1, "0123456789");
    size_t flow = 0;
    while (is_word_char(s[flow]))
        flow++;
    return flow > 0 && s + flow == sign && digits > 0 && sign[1 + digits] == 0 &&
           flow + 1 + digits <= LADE_ID_MAX;
}

int lq_id_check(const char *id, const char *where, lade_err *err)
{
    if (id && is_any_id(id))
        return 0;
    return lb_fail(err, LADE_EINVAL, where,
                   "id '%.70s' must be 1 to %d characters of A-Z a-z 0-9 . _ : -", id ? id : "",
                   LADE_ID_MAX);
}
