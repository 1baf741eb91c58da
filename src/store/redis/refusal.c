/*
 * refusal.c - see refusal.h
 *
 * Three places are looked at, the first that matches counts: the first word; the word behind the last
 * "@user_script:1: " (Redis up to 6 and its relatives put the whole error of the inner command there); and, for the
 * unspecific ERR, phrases that servers use without or before a code word. Texts are never searched for code words at
 * any place, since they may quote what a user wrote.
 */
#include "store/redis/refusal.h"

#include <string.h>

#include "base/base.h"
#include "base/err.h"

/* One row per class: code, remedy, and what it means with what to do. In the order of the enum. */
static const struct {
    enum lade_errno code;
    enum ls_redis_remedy remedy;
    const char *meaning;
} class_of[] = {
    [LS_REDIS_REFUSED_NOT] = {LADE_EPROTO, LS_REDIS_REMEDY_NONE, "no error"},
    [LS_REDIS_REFUSED_OTHER] = {LADE_EPROTO, LS_REDIS_REMEDY_NONE, "refused a command"},
    [LS_REDIS_REFUSED_READONLY] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_RECONNECT,
                                   "is a read-only replica; use the address of the primary"},
    [LS_REDIS_REFUSED_LOADING] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_WAIT,
                                  "still loads its data set; try again later"},
    [LS_REDIS_REFUSED_BUSY] = {LADE_EBUSY, LS_REDIS_REMEDY_WAIT,
                               "is held up by a long script; end it with SCRIPT KILL"},
    [LS_REDIS_REFUSED_MASTERDOWN] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_RECONNECT,
                                     "is a replica without its primary"},
    [LS_REDIS_REFUSED_OOM] = {LADE_ENOSPACE, LS_REDIS_REMEDY_NONE,
                              "is at its maxmemory; raise it or remove data"},
    [LS_REDIS_REFUSED_MISCONF] = {LADE_ENOSPACE, LS_REDIS_REMEDY_NONE,
                                  "cannot save to its disk and so takes no writes; see its log"},
    [LS_REDIS_REFUSED_NOAUTH] = {LADE_EAUTH, LS_REDIS_REMEDY_NONE,
                                 "refused user or password; check the URL"},
    [LS_REDIS_REFUSED_NOPERM] = {LADE_EACCESS, LS_REDIS_REMEDY_NONE,
                                 "has an ACL that forbids it; extend the user's rules"},
    [LS_REDIS_REFUSED_NOSCRIPT] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_RELOAD,
                                   "keeps forgetting scripts; something flushes them"},
    [LS_REDIS_REFUSED_FUNCTIONS] = {LADE_EACCESS, LS_REDIS_REMEDY_RELOAD,
                                    "has an ACL that forbids functions; extend the user's rules"},
    [LS_REDIS_REFUSED_WRONGTYPE] =
        {LADE_EFOREIGN, LS_REDIS_REMEDY_NONE,
         "has a key of that name that is not lade's; use another namespace"},
    [LS_REDIS_REFUSED_MOVED] =
        {LADE_EUNSUPPORTED, LS_REDIS_REMEDY_NONE,
         "is a cluster node that does not own the key; clusters of several nodes are not supported"},
    [LS_REDIS_REFUSED_ASK] =
        {LADE_EUNSUPPORTED, LS_REDIS_REMEDY_NONE,
         "is a cluster node that moves the key; clusters of several nodes are not supported"},
    [LS_REDIS_REFUSED_CROSSSLOT] = {LADE_EUNSUPPORTED, LS_REDIS_REMEDY_NONE,
                                    "is a cluster that wants all keys of a call in one slot"},
    [LS_REDIS_REFUSED_CLUSTERDOWN] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_WAIT,
                                      "belongs to a cluster that is down"},
    [LS_REDIS_REFUSED_TRYAGAIN] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_WAIT,
                                   "moves the keys to another node; try again later"},
    [LS_REDIS_REFUSED_UNBLOCKED] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_WAIT,
                                    "ended a blocking read; it may have changed its role"},
    [LS_REDIS_REFUSED_NOREPLICAS] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_WAIT,
                                     "has too few replicas to take writes"},
    [LS_REDIS_REFUSED_MAXCLIENTS] = {LADE_EUNAVAILABLE, LS_REDIS_REMEDY_RECONNECT,
                                     "has no connection left; raise its maxclients"},
    [LS_REDIS_REFUSED_DENIED] = {LADE_EACCESS, LS_REDIS_REMEDY_NONE,
                                 "is in protected mode; set a password there"},
    [LS_REDIS_REFUSED_DB] = {LADE_EINVAL, LS_REDIS_REMEDY_NONE,
                             "has no db of that number; check the URL"},
    [LS_REDIS_REFUSED_PROTOCOL] = {LADE_EUNSUPPORTED, LS_REDIS_REMEDY_NONE,
                                   "does not speak the protocol version asked for"},
    [LS_REDIS_REFUSED_UNKNOWN_COMMAND] = {LADE_EUNSUPPORTED, LS_REDIS_REMEDY_NONE,
                                          "does not know or allow a command lade needs"},
    [LS_REDIS_REFUSED_LUA] = {LADE_EPROTO, LS_REDIS_REMEDY_NONE,
                              "does not take lade's Lua, a fault of lade; please report this"},
};

struct mark {
    const char *text;
    enum ls_redis_refusal refusal;
};

static const struct mark code_word[] = {
    {"READONLY", LS_REDIS_REFUSED_READONLY},
    {"LOADING", LS_REDIS_REFUSED_LOADING},
    {"BUSY", LS_REDIS_REFUSED_BUSY},
    {"MASTERDOWN", LS_REDIS_REFUSED_MASTERDOWN},
    {"OOM", LS_REDIS_REFUSED_OOM},
    {"MISCONF", LS_REDIS_REFUSED_MISCONF},
    {"NOAUTH", LS_REDIS_REFUSED_NOAUTH},
    {"WRONGPASS", LS_REDIS_REFUSED_NOAUTH},
    {"NOPERM", LS_REDIS_REFUSED_NOPERM},
    {"NOSCRIPT", LS_REDIS_REFUSED_NOSCRIPT},
    {"WRONGTYPE", LS_REDIS_REFUSED_WRONGTYPE},
    {"MOVED", LS_REDIS_REFUSED_MOVED},
    {"ASK", LS_REDIS_REFUSED_ASK},
    {"CROSSSLOT", LS_REDIS_REFUSED_CROSSSLOT},
    {"CLUSTERDOWN", LS_REDIS_REFUSED_CLUSTERDOWN},
    {"TRYAGAIN", LS_REDIS_REFUSED_TRYAGAIN},
    {"UNBLOCKED", LS_REDIS_REFUSED_UNBLOCKED},
    {"NOREPLICAS", LS_REDIS_REFUSED_NOREPLICAS},
    {"DENIED", LS_REDIS_REFUSED_DENIED},
    {"NOPROTO", LS_REDIS_REFUSED_PROTOCOL},
};

/* At the start of an ERR. */
static const struct mark opening[] = {
    {"Function not found", LS_REDIS_REFUSED_NOSCRIPT},
    {"unknown command 'FCALL", LS_REDIS_REFUSED_FUNCTIONS},
    {"unknown command", LS_REDIS_REFUSED_UNKNOWN_COMMAND},
    {"Error compiling function", LS_REDIS_REFUSED_LUA},
    {"Error compiling script", LS_REDIS_REFUSED_LUA},
    {"Error registering functions: ERR FUNCTION LOAD timeout", LS_REDIS_REFUSED_BUSY},
    {"Error registering functions", LS_REDIS_REFUSED_LUA},
    {"No functions registered", LS_REDIS_REFUSED_LUA},
    {"unknown subcommand", LS_REDIS_REFUSED_UNKNOWN_COMMAND},
    {"max number of clients", LS_REDIS_REFUSED_MAXCLIENTS},
    {"DB index is out of range", LS_REDIS_REFUSED_DB},
    {"invalid DB index", LS_REDIS_REFUSED_DB},
    {"invalid password", LS_REDIS_REFUSED_NOAUTH},
    {"Client sent AUTH, but no password is set", LS_REDIS_REFUSED_NOAUTH},
    {"AUTH <password> called without any password", LS_REDIS_REFUSED_NOAUTH},
    {"Redis is loading the dataset", LS_REDIS_REFUSED_LOADING},
    {"You can't write against a read only", LS_REDIS_REFUSED_READONLY},
};

/* Anywhere in an ERR that comes out of a script. */
static const struct mark phrase[] = {
    {"You can't write against a read only", LS_REDIS_REFUSED_READONLY},
    {"read only slave", LS_REDIS_REFUSED_READONLY},
    {"Redis is loading the dataset", LS_REDIS_REFUSED_LOADING},
    {"Redis is busy running a script", LS_REDIS_REFUSED_BUSY},
    {"Link with MASTER is down", LS_REDIS_REFUSED_MASTERDOWN},
    {"not allowed when used memory > 'maxmemory'", LS_REDIS_REFUSED_OOM},
    {"against a key holding the wrong kind of value", LS_REDIS_REFUSED_WRONGTYPE},
};

static bool starts(struct lb_slice s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

static struct lb_slice after(struct lb_slice s, size_t n)
{
    return lb_slice(s.p + n, s.n - n);
}

static enum ls_redis_refusal find_code(struct lb_slice s)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(code_word); i++) {
        size_t n = strlen(code_word[i].text);
        if (starts(s, code_word[i].text) && (s.n == n || s.p[n] == ' '))
            return code_word[i].refusal;
    }
    return LS_REDIS_REFUSED_OTHER;
}

/* "NOPERM this user has no permissions to run the 'fcall' command": of what is called, not of what it does. */
static bool is_function_refused(struct lb_slice s)
{
    static const char call[] = "run the 'fcall";
    return memmem(s.p, s.n, call, sizeof(call) - 1) != NULL;
}

static enum ls_redis_refusal find_opening(struct lb_slice s)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(opening); i++) {
        if (starts(s, opening[i].text))
            return opening[i].refusal;
    }
    return LS_REDIS_REFUSED_OTHER;
}

static enum ls_redis_refusal find_phrase(struct lb_slice s)
{
    for (size_t i = 0; i < LB_ARRAY_LEN(phrase); i++) {
        if (memmem(s.p, s.n, phrase[i].text, strlen(phrase[i].text)))
            return phrase[i].refusal;
    }
    return LS_REDIS_REFUSED_OTHER;
}

/* What stands behind the last "@user_script:1: " or "@user_function: 12: -"; empty when that is the end of the text. */
static struct lb_slice find_inner(struct lb_slice s)
{
    struct lb_slice inner = {0};
    const uint8_t *at;
    while (s.n > 0 && (at = memmem(s.p, s.n, "@user_", 6))) {
        s = after(s, (size_t)(at - s.p) + 6);
        while (s.n > 0 && strchr("abcdefghijklmnopqrstuvwxyz_0123456789: ", s.p[0]) && s.p[0])
            s = after(s, 1);
        if (s.n > 0 && s.p[0] == '-')
            s = after(s, 1);
        inner = s;
    }
    return inner;
}

enum ls_redis_refusal ls_redis_refusal_of(struct lb_slice text, bool *wrapped)
{
    if (wrapped)
        *wrapped = false;
    if (text.n == 0)
        return LS_REDIS_REFUSED_OTHER;
    bool from_script = memmem(text.p, text.n, "@user_", 6) != NULL ||
                       memmem(text.p, text.n, "running script", 14) != NULL;
    if (wrapped)
        *wrapped = from_script;
    enum ls_redis_refusal r = find_code(text);
    if (r == LS_REDIS_REFUSED_NOPERM && !from_script && is_function_refused(text))
        return LS_REDIS_REFUSED_FUNCTIONS;
    if (r != LS_REDIS_REFUSED_OTHER || !starts(text, "ERR "))
        return r;
    struct lb_slice body = after(text, 4);
    r = find_opening(body);
    if (r != LS_REDIS_REFUSED_OTHER || !from_script)
        return r;
    r = find_code(find_inner(body));
    return r != LS_REDIS_REFUSED_OTHER ? r : find_phrase(body);
}

enum ls_redis_remedy ls_redis_refusal_remedy(enum ls_redis_refusal r)
{
    return class_of[r].remedy;
}

int ls_redis_refusal_fail(lade_err *err, const char *where, const char *server,
                          struct lb_slice text)
{
    enum ls_redis_refusal r = ls_redis_refusal_of(text, NULL);
    return lb_fail(err, class_of[r].code, where, "%s %s (server: %.*s)", server,
                   class_of[r].meaning, (int)LB_MIN(text.n, 120), (const char *)text.p);
}
