#include "store/redis/conn_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"

void rig_open(struct rig *r, const char *url, const struct ls_redis_conn_config *config)
{
    *r = (struct rig){0};
    if (config)
        r->config = *config;
    assert_int_equal(ls_redis_url_parse(&r->url, url, &r->err), 0);
    r->config.url = &r->url;
    if (!r->config.name)
        r->config.name = "lade";
    if (r->config.connect_timeout == 0)
        r->config.connect_timeout = LADE_SECOND;
    assert_int_equal(ls_redis_conn_open(&r->c, &r->config, &r->err), 0);
}

void rig_close(struct rig *r)
{
    ls_redis_conn_close(r->c);
    ls_redis_url_fini(&r->url);
}

struct lines {
    struct rig *r;
    const char *const *line;
    size_t n;
};

static void encode_lines(struct ls_redis_conn *c, void *ctx, bool repeat)
{
    struct lines *l = ctx;
    l->r->encoded++;
    l->r->repeats += repeat;
    for (size_t i = 0; i < l->n; i++) {
        struct ls_redis_cmd *cmd = ls_redis_conn_begin(c, 3);
        const char *word = l->line[i];
        while (*word) {
            size_t n = strcspn(word, " ");
            ls_redis_arg(cmd, word, n);
            word += n + (word[n] == ' ');
        }
        ls_redis_cmd_end(cmd);
    }
}

int rig_run_all(struct rig *r, const char *const *line, size_t n, bool once, int64_t timeout)
{
    struct lines l = {.r = r, .line = line, .n = n};
    struct ls_redis_call call = {.encode = encode_lines, .ctx = &l, .where = "test", .once = once};
    r->encoded = r->repeats = 0;
    return ls_redis_conn_call(r->c, &call, lb_deadline_in(timeout), &r->err);
}

int rig_run(struct rig *r, const char *line, int64_t timeout)
{
    return rig_run_all(r, &line, 1, false, timeout);
}

void rig_must(struct rig *r, const char *line)
{
    int rc = rig_run(r, line, 5 * LADE_SECOND);
    if (rc != 0)
        print_error("%s: %s\n", line, r->err.text);
    assert_int_equal(rc, 0);
}

void rig_expect(struct rig *r, size_t i, const char *text)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(r->c, i);
    struct lb_slice s = ls_redis_read_bytes(&cur);
    assert_false(cur.bad);
    assert_int_equal(s.n, strlen(text));
    assert_memory_equal(s.p, text, s.n);
}

int64_t rig_int(struct rig *r, size_t i)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(r->c, i);
    int64_t v = ls_redis_read_int(&cur);
    assert_false(cur.bad);
    return v;
}

const char *rig_text(struct rig *r, char *out, size_t size)
{
    struct ls_redis_cursor cur = ls_redis_conn_reply(r->c, 0);
    struct lb_slice s = ls_redis_read_bytes(&cur);
    assert_false(cur.bad);
    (void)snprintf(out, size, "%.*s", (int)s.n, (const char *)s.p);
    return out;
}
