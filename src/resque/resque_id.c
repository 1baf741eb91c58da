/* resque_id.c - see resque_id.h */
#include "resque/resque_id.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/ident.h"

#define HOSTNAME_MAX 64

void rq_host_init(struct rq_host *h, const char *hostname)
{
    static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz";
    char own[HOSTNAME_MAX + 1] = "";
    if (!hostname && gethostname(own, sizeof(own) - 1) == 0)
        hostname = own;
    if (!hostname || !*hostname)
        hostname = "host";
    size_t n = 0;
    for (const char *p = hostname; *p && n < HOSTNAME_MAX; p++) {
        unsigned char c = (unsigned char)*p;
        bool harmless = c > 0x20 && c < 0x7f && !strchr(":/,*", c);
        h->name[n] = *p;
        if (!harmless)
            h->name[n] = '-';
        n++;
    }
    h->name[n++] = '-';
    for (int i = 0; i < RQ_ID_SUFFIX_LEN; i++)
        h->name[n++] = letters[lb_rand_below(sizeof(letters) - 1)];
    h->name[n] = 0;
}

void rq_id_write(struct lb_buf *out, const struct rq_host *h, int64_t pid, unsigned slot,
                 struct lb_slice queues)
{
    rq_id_write_head(out, h, pid);
    lb_buf_add_fmt(out, "%u", slot);
    rq_id_write_tail(out, queues);
}

void rq_id_write_head(struct lb_buf *out, const struct rq_host *h, int64_t pid)
{
    lb_buf_add_fmt(out, "%s:%lld.", h->name, (long long)pid);
}

void rq_id_write_tail(struct lb_buf *out, struct lb_slice queues)
{
    lb_buf_add_byte(out, ':');
    lb_buf_add(out, queues.p, queues.n);
}

bool rq_id_read(struct rq_id *out, struct lb_slice text)
{
    const uint8_t *first = text.n ? memchr(text.p, ':', text.n) : NULL;
    if (!first)
        return false;
    const uint8_t *end = text.p + text.n;
    const uint8_t *second = memchr(first + 1, ':', (size_t)(end - first - 1));
    if (!second)
        return false;
    out->host = lb_slice(text.p, (size_t)(first - text.p));
    out->pid = lb_slice(first + 1, (size_t)(second - first - 1));
    out->queues = lb_slice(second + 1, (size_t)(end - second - 1));
    return true;
}

bool rq_id_serves(const struct rq_id *id, struct lb_slice queue)
{
    const uint8_t *p = id->queues.p;
    const uint8_t *end = p + id->queues.n;
    while (p <= end) {
        const uint8_t *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
        struct lb_slice one = lb_slice(p, (size_t)((comma ? comma : end) - p));
        if (lb_slice_eq(one, queue) || lb_slice_eq(one, lb_slice_str("*")))
            return true;
        if (!comma)
            return false;
        p = comma + 1;
    }
    return false;
}
