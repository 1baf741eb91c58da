/*
 * drv_raw.c - the floor under table chasqui: what the server alone allows, with no queue on top
 *
 *     queue-add          PING, one in flight, by a client that spins for the answer
 *     queue-add-bulk     RPUSH of each payload, `bulk` of them in one send, then their answers
 *
 * Nothing a queue must do is in it; a ratio to it says how much a queue adds.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "bench/drivers/lade/drv.h"
#include "bench/drivers/lade/drv_sample.h"

#define BULK_MAX 1000

struct raw {
    int fd;
    char *out;
    char in[65536];
};

/* Sends all, then spins until so many lines have come. */
static bool exchange(struct raw *r, size_t n, size_t lines)
{
    int64_t deadline = lb_deadline_in(LADE_MINUTE);
    size_t sent = 0;
    while (sent < n || lines > 0) {
        if (sent < n) {
            ssize_t some = send(r->fd, r->out + sent, n - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (some < 0 && errno != EAGAIN)
                return false;
            sent += some > 0 ? (size_t)some : 0;
        }
        ssize_t got = recv(r->fd, r->in, sizeof(r->in), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return false;
        for (ssize_t i = 0; i < got && lines > 0; i++)
            lines -= r->in[i] == '\n';
        if (got < 0 && lb_clock_mono() > deadline)
            return false;
    }
    return true;
}

static int open_raw(struct drv *d, struct raw *r, size_t bytes)
{
    r->fd = bn_info_connect(d->url);
    r->out = malloc(bytes);
    if (r->fd < 0 || !r->out)
        return drv_fail(d, "cannot connect", NULL);
    (void)setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return 0;
}

static void close_raw(struct raw *r)
{
    if (r->fd >= 0)
        (void)close(r->fd);
    free(r->out);
}

/* The numbers [from, to) in calls of `bulk`; form(number) writes one command to out + at and returns its end. */
typedef size_t (*form_fn)(struct raw *r, size_t at, struct drv_sample *s, uint64_t number);

static int call_all(struct drv *d, struct raw *r, struct drv_sample *s, form_fn form,
                    const uint64_t range[2], size_t bulk)
{
    for (uint64_t i = range[0]; i < range[1];) {
        size_t n = LB_MIN((size_t)(range[1] - i), bulk);
        size_t at = 0;
        for (size_t k = 0; k < n; k++) {
            at = form(r, at, s, i + k);
            d->result.check += i + k;
        }
        if (!exchange(r, at, n))
            return drv_fail(d, "no answer", NULL);
        d->result.count += n;
        i += n;
    }
    return 0;
}

static int measure(struct drv *d, form_fn form, size_t bulk)
{
    static struct raw r = {.fd = -1};
    static struct drv_sample s;
    uint64_t warmup = (uint64_t)drv_int(d, "warmup", 1000);
    uint64_t bench = (uint64_t)drv_int(d, "bench", 1000);
    if (!drv_sample_make(d, &s))
        return drv_fail(d, "the payload is too large", NULL);
    int rc = open_raw(d, &r, bulk * (s.size + 64));
    if (rc == 0)
        rc = call_all(d, &r, &s, form, (const uint64_t[]){0, warmup}, bulk);
    drv_begin(d);
    if (rc == 0)
        rc = call_all(d, &r, &s, form, (const uint64_t[]){warmup, warmup + bench}, bulk);
    drv_end(d);
    d->result.n = bench;
    d->result.printed_rate = (double)(warmup + bench) / d->result.seconds;
    close_raw(&r);
    return rc;
}

static size_t form_ping(struct raw *r, size_t at, struct drv_sample *s, uint64_t number)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    (void)s;
    (void)number;
    memcpy(r->out + at, ping, sizeof(ping) - 1);
    return at + sizeof(ping) - 1;
}

static size_t form_push(struct raw *r, size_t at, struct drv_sample *s, uint64_t number)
{
    char head[64];
    int n = snprintf(head, sizeof(head), "*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$%zu\r\n", s->size);
    memcpy(r->out + at, head, (size_t)n);
    at += (size_t)n;
    memcpy(r->out + at, s->text, s->size);
    drv_sample_number(r->out + at, number);
    at += s->size;
    memcpy(r->out + at, "\r\n", 2);
    return at + 2;
}

static int run_ping(struct drv *d)
{
    return measure(d, form_ping, 1);
}

static int run_push(struct drv *d)
{
    int rc = measure(d, form_push, LB_MIN((size_t)drv_int(d, "bulk", 50), (size_t)BULK_MAX));
    const char *length = rc == 0 ? bn_info_ask(&d->info, "LLEN q") : NULL;
    if (rc == 0 && !length)
        return drv_fail(d, "no length", NULL);
    if (rc == 0) /* ":11000" without its colon */
        d->result.count = strtoull(length, NULL, 10);
    return rc;
}

const struct drv_scenario drv_raw[] = {
    {"queue-add", run_ping}, {"queue-add-bulk", run_push}, {NULL, NULL}};
