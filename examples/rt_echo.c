/* An echo server: a task for each connection, written as if it had a thread. Ends after its own client was served. */
#include <lade/rt.h>

#include <stdio.h>
#include <string.h>

static void echo(void *arg)
{
    lade_fd *fd = arg;
    char buf[256];
    long n;
    while ((n = lade_fd_read(fd, buf, sizeof(buf), LADE_FOREVER)) > 0) {
        if (lade_fd_write(fd, buf, (size_t)n, LADE_FOREVER) != n)
            break;
    }
    (void)lade_fd_close(fd);
}

static void serve(void *arg)
{
    lade_fd *fd;
    while (lade_net_accept(arg, LADE_FOREVER, &fd) == 0) {
        if (lade_task_start(NULL, echo, fd) < 0)
            (void)lade_fd_close(fd);
    }
}

static int run(void *arg)
{
    (void)arg;
    lade_fd *listener;
    if (lade_net_listen("127.0.0.1:0", &listener) < 0 || lade_task_start(NULL, serve, listener) < 0)
        return 1;
    char addr[32];
    (void)snprintf(addr, sizeof(addr), "127.0.0.1:%d", lade_net_port(listener));
    int64_t until = lade_clock_now() + 10 * LADE_SECOND;
    lade_fd *fd;
    char back[16] = "";
    if (lade_net_connect(addr, until, &fd) < 0 || lade_fd_write(fd, "hello", 5, until) != 5)
        return 1;
    for (size_t n = 0; n < 5;) {
        long got = lade_fd_read(fd, back + n, 5 - n, until);
        if (got <= 0)
            return 1;
        n += (size_t)got;
    }
    printf("%s said: %s\n", addr, back);
    return lade_fd_close(fd) < 0 || lade_fd_close(listener) < 0 || strcmp(back, "hello") != 0;
}

int main(void)
{
    return lade_rt_run(NULL, run, NULL);
}
