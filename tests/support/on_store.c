/*
 * on_store - runs a program with the URL of a fresh, private store
 *
 *     on_store sqlite|redis PROGRAM [ARG...]      every argument {} becomes the URL
 *
 * The exit status is the program's; the store is gone afterwards.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/redis_server.h"
#include "support/tmpdir.h"

static int run(char **argv, char *url)
{
    assert(argv[0]);
    for (char **a = argv; *a; a++) {
        if (strcmp(*a, "{}") == 0)
            *a = url;
    }
    if (!argv[0])
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        (void)execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_on_redis(char **argv)
{
    struct ts_redis r = {0};
    if (!ts_redis_start(&r, NULL))
        return EXIT_FAILURE;
    int rc = run(argv, r.url);
    ts_redis_stop(&r);
    return rc;
}

static int run_on_sqlite(char **argv)
{
    struct ts_tmpdir dir;
    char url[sizeof(dir.path) + 32];
    if (!ts_tmpdir_make(&dir))
        return EXIT_FAILURE;
    (void)snprintf(url, sizeof(url), "sqlite:%s/jobs.db", dir.path);
    int rc = run(argv, url);
    ts_tmpdir_remove(&dir);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "redis") == 0)
        return run_on_redis(argv + 2);
    if (argc >= 3 && strcmp(argv[1], "sqlite") == 0)
        return run_on_sqlite(argv + 2);
    (void)fprintf(stderr, "usage: on_store sqlite|redis PROGRAM [ARG...]   ({} becomes the URL)\n");
    return 2;
}
