/* resque_keys.c - see resque_keys.h */
#include "resque/resque_keys.h"

#include <string.h>

#include "base/err.h"

int rq_keys_init(struct rq_keys *k, const char *ns, lade_err *err)
{
    *k = (struct rq_keys){0};
    if (!ns)
        ns = RQ_NAMESPACE;
    size_t n = strlen(ns);
    if (n == 0)
        return 0;
    if (n > 1 && ns[n - 1] == ':')
        n--;
    if (n == 1 && ns[0] == ':')
        return lb_fail(err, LADE_EINVAL, "open",
                       "namespace ':' has no name; leave it empty for none");
    if (n > RQ_NAMESPACE_MAX)
        return lb_fail(err, LADE_EINVAL, "open", "namespace must have at most %d bytes, not %zu",
                       RQ_NAMESPACE_MAX, n);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)ns[i] < 0x20 || ns[i] == 0x7f)
            return lb_fail(err, LADE_EINVAL, "open",
                           "namespace must have no control characters (byte %zu)", i + 1);
    memcpy(k->prefix, ns, n);
    k->prefix[n] = ':';
    k->n = n + 1;
    return 0;
}

void rq_key(const struct rq_keys *k, struct lb_buf *out, const char *name)
{
    lb_buf_add(out, k->prefix, k->n);
    lb_buf_add_str(out, name);
}

void rq_key_of(const struct rq_keys *k, struct lb_buf *out, const char *kind, struct lb_slice part,
               const char *tail)
{
    rq_key(k, out, kind);
    lb_buf_add(out, part.p, part.n);
    lb_buf_add_str(out, tail);
}
