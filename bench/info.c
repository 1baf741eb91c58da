#include "bench/info.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "base/mem.h"

#define TEXT_MAX (1U << 20)
#define WAIT_MS  10000

static int connect_unix(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path))
        return -1;
    memcpy(a.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static int connect_port(const char *host_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    char host[64];
    const char *colon = strchr(host_port, ':');
    if (!colon || (size_t)(colon - host_port) >= sizeof(host))
        return -1;
    memcpy(host, host_port, (size_t)(colon - host_port));
    host[colon - host_port] = '\0';
    a.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &a.sin_addr) != 1)
        return -1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

int bn_info_connect(const char *url)
{
    if (strncmp(url, "unix://", 7) == 0)
        return connect_unix(url + 7);
    return strncmp(url, "redis://", 8) == 0 ? connect_port(url + 8) : -1;
}

bool bn_info_open(struct bn_info *i, const char *url)
{
    *i = (struct bn_info){.fd = -1, .size = TEXT_MAX};
    i->text = lb_malloc(TEXT_MAX);
    if (!i->text)
        return false;
    i->fd = bn_info_connect(url);
    if (i->fd < 0)
        bn_info_close(i);
    return i->fd >= 0;
}

void bn_info_close(struct bn_info *i)
{
    if (i->fd >= 0)
        (void)close(i->fd);
    lb_free(i->text);
    *i = (struct bn_info){.fd = -1};
}

/* Where the reply's text begins and how long the whole is; 0 while more is needed. */
static size_t measure_reply(const char *text, size_t n, size_t *begin)
{
    const char *nl = memchr(text, '\n', n);
    if (!nl)
        return 0;
    size_t line = (size_t)(nl - text) + 1;
    if (text[0] != '$') {
        *begin = 1;
        return line;
    }
    long body = strtol(text + 1, NULL, 10);
    *begin = line;
    return body < 0 ? line : line + (size_t)body + 2;
}

const char *bn_info_ask(struct bn_info *i, const char *line)
{
    char words[256];
    size_t n = 0;
    size_t begin = 0;
    int len = snprintf(words, sizeof(words), "%s\r\n", line);
    if (i->fd < 0 || len >= (int)sizeof(words) || send(i->fd, words, (size_t)len, MSG_NOSIGNAL) < 0)
        return NULL;
    for (;;) {
        struct pollfd p = {.fd = i->fd, .events = POLLIN};
        if (n + 1 >= i->size || poll(&p, 1, WAIT_MS) <= 0)
            return NULL;
        ssize_t got = read(i->fd, i->text + n, i->size - 1 - n);
        if (got <= 0)
            return NULL;
        n += (size_t)got;
        size_t all = measure_reply(i->text, n, &begin);
        if (all > 0 && n >= all)
            break;
    }
    i->text[n] = '\0';
    return i->text[0] == '-' ? NULL : i->text + begin;
}

double bn_info_field(const char *text, const char *field)
{
    size_t n = strlen(field);
    for (const char *at = text; at && (at = strstr(at, field)); at += n) {
        if ((at == text || at[-1] == '\n') && at[n] == ':')
            return strtod(at + n + 1, NULL);
    }
    return -1;
}

static uint64_t count_calls(const char *text)
{
    uint64_t sum = 0;
    for (const char *at = text; (at = strstr(at, "cmdstat_")); at++) {
        const char *calls = strstr(at, ":calls=");
        if (calls && strncmp(at, "cmdstat_info:", 13) != 0)
            sum += strtoull(calls + 7, NULL, 10);
    }
    return sum;
}

bool bn_info_usage(struct bn_info *i, struct bn_usage *out)
{
    const char *text = bn_info_ask(i, "INFO cpu");
    if (!text)
        return false;
    out->cpu_s = bn_info_field(text, "used_cpu_user") + bn_info_field(text, "used_cpu_sys");
    if (!(text = bn_info_ask(i, "INFO memory")))
        return false;
    out->memory = (uint64_t)bn_info_field(text, "used_memory");
    if (!(text = bn_info_ask(i, "INFO commandstats")))
        return false;
    out->commands = count_calls(text);
    if (!(text = bn_info_ask(i, "INFO stats")))
        return false;
    out->reads = (uint64_t)LB_MAX(bn_info_field(text, "total_reads_processed"), 0);
    return true;
}
