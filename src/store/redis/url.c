/*
 * url.c - see url.h
 *
 * The text is cut at its separators first and each part is decoded afterwards, so that an encoded separator is an
 * ordinary character. All decoded strings lie in one block.
 */
#include "store/redis/url.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/slice.h"

#define WHERE         "open"
#define SOCK_PATH_MAX 107 /* sun_path without its NUL */
#define HOST_MAX      253

struct parse {
    struct ls_redis_url *u;
    char *to; /* free room of u->mem */
    bool verify_seen, db_seen, replicas_seen;
    bool secretive; /* there may be pieces of a password among the options */
    lade_err *err;
};

static int refuse(struct parse *p, const char *part, const char *rule)
{
    return lb_fail(p->err, LADE_EINVAL, WHERE, "Redis URL: %s %s", part, rule);
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes s into the block; *out is a string. */
static int decode(struct parse *p, struct lb_slice s, const char *part, const char **out)
{
    *out = p->to;
    for (size_t i = 0; i < s.n; i++) {
        int c = s.p[i];
        if (c == '%') {
            int high = s.n - i > 2 ? hex_value(s.p[i + 1]) : -1;
            int low = s.n - i > 2 ? hex_value(s.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return refuse(p, part, "has a '%' that is not followed by two hexadecimal digits");
            c = high * 16 + low;
            i += 2;
        }
        if (c == 0)
            return refuse(p, part, "contains %00");
        *p->to++ = (char)c;
    }
    *p->to++ = 0;
    return 0;
}

/* Cuts s at the first (or last) `c`: head before it, tail after it. False, and all in head, when there is none. */
static bool cut(struct lb_slice s, char c, bool last, struct lb_slice *head, struct lb_slice *tail)
{
    const uint8_t *at = s.n == 0 ? NULL : last ? memrchr(s.p, c, s.n) : memchr(s.p, c, s.n);
    *head = at ? lb_slice(s.p, (size_t)(at - s.p)) : s;
    *tail = at ? lb_slice(at + 1, s.n - (size_t)(at - s.p) - 1) : (struct lb_slice){0};
    return at != NULL;
}

/* Digits only. -1: not a number, or over max. */
static int64_t parse_number(const char *text, int64_t max)
{
    int64_t v = 0;
    if (!*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        v = v * 10 + (*text - '0');
        if (v > max)
            return -1;
    }
    return v;
}

static int set_db(struct parse *p, const char *text)
{
    if (p->db_seen)
        return refuse(p, "db", "is given twice");
    int64_t db = parse_number(text, LS_REDIS_DB_MAX);
    if (db < 0)
        return refuse(p, "db", "must be a number from 0 to 1000000");
    p->u->db = (int)db;
    p->db_seen = true;
    return 0;
}

static int set_replicas(struct parse *p, const char *text)
{
    if (p->replicas_seen)
        return refuse(p, "option replicas", "is given twice");
    int64_t n = parse_number(text, LS_REDIS_REPLICAS_MAX);
    if (n < 0)
        return refuse(p, "option replicas", "must be a number from 0 to 16");
    p->u->replicas = (int)n;
    p->replicas_seen = true;
    return 0;
}

static int set_verify(struct parse *p, const char *text)
{
    if (p->verify_seen)
        return refuse(p, "option verify", "is given twice");
    bool yes = strcmp(text, "yes") == 0;
    if (!yes && strcmp(text, "no") != 0)
        return refuse(p, "option verify", "must be yes or no");
    p->u->verify = yes;
    p->verify_seen = true;
    return 0;
}

static int set_text(struct parse *p, const char **field, const char *part, const char *text)
{
    if (*field)
        return refuse(p, part, "is given twice");
    if (!*text)
        return refuse(p, part, "is empty");
    *field = text;
    return 0;
}

/* Names it only where it cannot be a piece of a password with an unencoded '?' or '&'. */
static int refuse_option(struct parse *p, const char *name)
{
    const char *known = p->u->path ? "unix:// knows db, user, password, replicas"
                        : p->u->tls
                            ? "rediss:// knows ca, cert, key, verify, sni, replicas"
                            : "redis:// knows replicas, rediss:// also ca, cert, key, verify, sni";
    return lb_fail(p->err, LADE_EINVAL, WHERE, "Redis URL: unknown option%s%.32s; %s",
                   p->secretive ? "" : " ", p->secretive ? "" : name, known);
}

static int set_option(struct parse *p, const char *name, const char *text)
{
    struct ls_redis_url *u = p->u;
    if (strcmp(name, "replicas") == 0)
        return set_replicas(p, text);
    if (u->path && strcmp(name, "db") == 0)
        return set_db(p, text);
    if (u->path && strcmp(name, "user") == 0)
        return set_text(p, &u->user, "option user", text);
    if (u->path && strcmp(name, "password") == 0)
        return set_text(p, &u->password, "option password", text);
    if (u->tls && strcmp(name, "ca") == 0)
        return set_text(p, &u->ca, "option ca", text);
    if (u->tls && strcmp(name, "cert") == 0)
        return set_text(p, &u->cert, "option cert", text);
    if (u->tls && strcmp(name, "key") == 0)
        return set_text(p, &u->key, "option key", text);
    if (u->tls && strcmp(name, "sni") == 0)
        return set_text(p, &u->sni, "option sni", text);
    if (u->tls && strcmp(name, "verify") == 0)
        return set_verify(p, text);
    return refuse_option(p, name);
}

static int parse_options(struct parse *p, struct lb_slice s)
{
    while (s.n > 0) {
        struct lb_slice one;
        struct lb_slice name;
        struct lb_slice value;
        (void)cut(s, '&', false, &one, &s);
        if (!cut(one, '=', false, &name, &value))
            return refuse(p, "an option", "has no '='");
        const char *key;
        const char *text;
        int rc = decode(p, name, "an option's name", &key);
        if (rc == 0)
            rc = decode(p, value, "an option's value", &text);
        if (rc == 0)
            rc = set_option(p, key, text);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int parse_login(struct parse *p, struct lb_slice s)
{
    struct lb_slice user;
    struct lb_slice password;
    (void)cut(s, ':', false, &user, &password);
    if (user.n == 0 && password.n == 0)
        return refuse(p, "user and password", "are empty before the '@'");
    int rc = user.n ? decode(p, user, "user", &p->u->user) : 0;
    if (rc == 0 && password.n > 0)
        rc = decode(p, password, "password", &p->u->password);
    return rc;
}

static int parse_port(struct parse *p, struct lb_slice s)
{
    const char *text;
    int rc = decode(p, s, "port", &text);
    if (rc < 0)
        return rc;
    int64_t port = parse_number(text, 65535);
    if (port < 1)
        return refuse(p, "port", "must be a number from 1 to 65535");
    p->u->port = (uint16_t)port;
    return 0;
}

static bool is_host(const char *host, bool bracketed)
{
    size_t n = strlen(host);
    if (n == 0 || n > HOST_MAX)
        return false;
    for (const char *c = host; *c; c++) {
        bool plain = isalnum((unsigned char)*c) || *c == '.' || *c == '-' || *c == '_';
        if (!plain && !(bracketed && (*c == ':' || *c == '%')))
            return false;
    }
    return true;
}

static int parse_host(struct parse *p, struct lb_slice s)
{
    struct lb_slice host;
    struct lb_slice port = {0};
    bool bracketed = s.n > 0 && s.p[0] == '[';
    bool has_port;
    if (bracketed) {
        if (!cut(lb_slice(s.p + 1, s.n - 1), ']', false, &host, &s))
            return refuse(p, "host", "has a '[' without its ']'");
        has_port = s.n > 0;
        if (has_port && s.p[0] != ':')
            return refuse(p, "host", "is followed by something that is not ':port'");
        if (has_port)
            port = lb_slice(s.p + 1, s.n - 1);
    } else {
        has_port = cut(s, ':', false, &host, &port);
        if (port.n > 0 && memchr(port.p, ':', port.n))
            return refuse(p, "host", "with several ':' must stand in brackets: [::1]");
    }
    int rc = decode(p, host, "host", &p->u->host);
    if (rc < 0)
        return rc;
    if (!is_host(p->u->host, bracketed))
        return refuse(p, "host", "must be a name or an address of 1 to 253 characters");
    return has_port ? parse_port(p, port) : 0;
}

static int parse_net(struct parse *p, struct lb_slice s)
{
    struct lb_slice authority;
    struct lb_slice db;
    struct lb_slice login;
    struct lb_slice host;
    (void)cut(s, '/', false, &authority, &db);
    int rc = 0;
    if (cut(authority, '@', true, &login, &host))
        rc = parse_login(p, login);
    else
        host = authority;
    if (rc == 0)
        rc = parse_host(p, host);
    if (rc < 0 || db.n == 0)
        return rc;
    const char *text;
    rc = decode(p, db, "db", &text);
    return rc < 0 ? rc : set_db(p, text);
}

static int parse_unix(struct parse *p, struct lb_slice s)
{
    struct lb_slice path = s;
    const uint8_t *at = s.n > 0 && s.p[0] != '/' ? memmem(s.p, s.n, "@/", 2) : NULL;
    if (at) {
        path = lb_slice(at + 1, s.n - (size_t)(at + 1 - s.p));
        int rc = parse_login(p, lb_slice(s.p, (size_t)(at - s.p)));
        if (rc < 0)
            return rc;
    }
    if (path.n == 0 || path.p[0] != '/')
        return refuse(p, "path", "must be absolute: unix:///run/redis.sock");
    int rc = decode(p, path, "path", &p->u->path);
    if (rc == 0 && strlen(p->u->path) > SOCK_PATH_MAX)
        return refuse(p, "path", "is longer than 107 bytes, the limit of Unix sockets");
    return rc;
}

static int check_whole(struct parse *p)
{
    struct ls_redis_url *u = p->u;
    if (!u->cert != !u->key)
        return refuse(p, "options cert and key", "must be given together");
    if (u->user && !u->password)
        return refuse(p, "user", "needs a password");
    return 0;
}

static void describe(struct parse *p, size_t room)
{
    struct ls_redis_url *u = p->u;
    u->text = p->to;
    if (u->path)
        (void)snprintf(p->to, room, "unix://%s", u->path);
    else
        (void)snprintf(p->to, room, strchr(u->host, ':') ? "%s://[%s]:%u" : "%s://%s:%u",
                       u->tls ? "rediss" : "redis", u->host, u->port);
}

static int parse_url(struct parse *p, struct lb_slice s)
{
    static const struct {
        const char *prefix;
        bool tls, is_unix;
    } scheme[] = {{"redis://", false, false}, {"rediss://", true, false}, {"unix://", false, true}};

    for (size_t i = 0; i < LB_ARRAY_LEN(scheme); i++) {
        size_t n = strlen(scheme[i].prefix);
        if (s.n < n || strncasecmp((const char *)s.p, scheme[i].prefix, n) != 0)
            continue;
        struct lb_slice rest;
        struct lb_slice options;
        (void)cut(lb_slice(s.p + n, s.n - n), '?', false, &rest, &options);
        p->u->tls = scheme[i].tls;
        p->secretive = options.n > 0 && (memchr(options.p, '@', options.n) ||
                                         memmem(options.p, options.n, "pass", 4));
        int rc = scheme[i].is_unix ? parse_unix(p, rest) : parse_net(p, rest);
        if (rc == 0)
            rc = parse_options(p, options);
        return rc == 0 ? check_whole(p) : rc;
    }
    return refuse(p, "scheme", "must be redis://, rediss:// or unix://");
}

int ls_redis_url_parse(struct ls_redis_url *out, const char *url, lade_err *err)
{
    *out = (struct ls_redis_url){.port = LS_REDIS_PORT, .verify = true};
    struct lb_slice s = lb_slice_str(url);
    if (s.n > 4096)
        return lb_fail(err, LADE_EINVAL, WHERE, "Redis URL: it is longer than 4096 bytes");
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] <= ' ' || s.p[i] == 0x7f || s.p[i] == '#')
            return lb_fail(err, LADE_EINVAL, WHERE,
                           "Redis URL: spaces, control characters and '#' must be percent-encoded");
    }
    /* Each decoded part is no longer than its source and its NUL takes the place of a separator, or one of few more. */
    size_t room = 2 * s.n + 64;
    out->mem = lb_calloc(1, 2 * room);
    if (!out->mem)
        return lb_fail_nomem(err, WHERE);
    struct parse p = {.u = out, .to = out->mem, .err = err};
    int rc = parse_url(&p, s);
    if (rc < 0) {
        ls_redis_url_fini(out);
        return rc;
    }
    describe(&p, room);
    return 0;
}

void ls_redis_url_fini(struct ls_redis_url *u)
{
    if (u->password)
        explicit_bzero(u->mem + (u->password - u->mem), strlen(u->password));
    lb_free(u->mem);
    *u = (struct ls_redis_url){0};
}
