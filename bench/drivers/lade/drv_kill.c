/*
 * drv_kill.c - table durable: what a kill -9 loses of what was acknowledged
 *
 * Round by round: one producer, one job a call, counts what was acknowledged; somewhere between `n` and 2n of those, whoever writes
 * the data is killed: the producer's own process for a file, the server for Redis. Then the store is opened again and counted.
 *
 *     lost = acknowledged - there       (there may be one more: written, and killed before it was acknowledged)
 *
 * The server is one of this driver's own, the program that the runner's server runs, with the contender's appendfsync (`fsync`; none:
 * no log at all) in a folder of its own. A power cut cannot be tried here.
 */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/ident.h"
#include "bench/drivers/lade/drv.h"

#define SOON      (20 * LADE_SECOND)
#define POLL_NS   200000
#define ROUNDS    10
#define CALL_TIME LADE_SECOND /* of the producer whose server is gone */

struct kill {
    struct drv *d;
    char url[300];
    char program[300], dir[64]; /* of the server */
    pid_t victim;
    _Atomic uint64_t *acked; /* shared with the child that is killed */
    bool end;                /* atomic: the producer's thread is to stop */
};

static int open_store(struct kill *k, int64_t timeout, lade **q)
{
    lade_err err;
    lade_options opts = {.timeout = timeout, .connect_timeout = timeout};
    return lade_open(q, k->url, &opts, &err) < 0 ? drv_fail(k->d, "open", &err) : 0;
}

static void produce(struct kill *k, lade *q)
{
    char payload[200];
    lade_err err;
    while (!__atomic_load_n(&k->end, __ATOMIC_ACQUIRE)) {
        size_t size = drv_pad_payload(payload, sizeof(payload), 0, *k->acked, 100);
        if (lade_enqueue(q, &(lade_job_spec){.kind = "bench", .payload = {payload, size}}, NULL,
                         &err) != 0)
            return;
        (void)atomic_fetch_add(k->acked, 1);
    }
}

/* A file: the producer is a process, and the one to be killed. */
static int start_child(struct kill *k)
{
    k->victim = fork();
    if (k->victim != 0)
        return k->victim > 0 ? 0 : drv_fail(k->d, "fork", NULL);
    lade *q = NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (open_store(k, SOON, &q) == 0)
        produce(k, q);
    _exit(1);
}

static void *produce_on_thread(void *arg)
{
    struct kill *k = arg;
    lade *q = NULL;
    if (open_store(k, CALL_TIME, &q) == 0)
        produce(k, q);
    lade_close(q);
    return NULL;
}

static void exec_server(struct kill *k)
{
    const char *fsync = drv_text(k->d, "fsync", NULL);
    char socket[100];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)snprintf(socket, sizeof(socket), "%s/redis.sock", k->dir);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO); /* which is for the result line */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)execl(k->program, "redis-server", "--port", "0", "--unixsocket", socket, "--dir", k->dir,
                "--save", "", "--appendonly", fsync ? "yes" : "no", "--appendfsync",
                fsync ? fsync : "no", (char *)NULL);
    _exit(127);
}

static int start_server(struct kill *k)
{
    k->victim = fork();
    if (k->victim == 0)
        exec_server(k);
    if (k->victim < 0)
        return drv_fail(k->d, "fork", NULL);
    struct bn_info info = {.fd = -1};
    int64_t deadline = lb_deadline_in(SOON);
    bool up = false;
    while (!up && lb_clock_mono() < deadline) { /* not before its log is read again */
        const char *text =
            bn_info_open(&info, k->url) ? bn_info_ask(&info, "INFO persistence") : NULL;
        up = text && bn_info_field(text, "loading") == 0;
        bn_info_close(&info);
        drv_nap_until(lb_deadline_in(10 * POLL_NS));
    }
    return up ? 0 : drv_fail(k->d, "the server did not start", NULL);
}

static void kill_victim(struct kill *k)
{
    if (k->victim <= 0)
        return;
    (void)kill(k->victim, SIGKILL);
    (void)waitpid(k->victim, NULL, 0);
    k->victim = 0;
}

/* True when the producer got that far. */
static bool wait_acked(struct kill *k, uint64_t n)
{
    int64_t deadline = lb_deadline_in(SOON);
    while (atomic_load(k->acked) < n && lb_clock_mono() < deadline)
        drv_nap_until(lb_deadline_in(POLL_NS));
    return atomic_load(k->acked) >= n;
}

static int count_there(struct kill *k, uint64_t *out)
{
    lade *q = NULL;
    lade_err err;
    lade_queue_info info = {0};
    int rc = open_store(k, SOON, &q);
    if (rc == 0 && lade_queue_get(q, "default", &info, &err) < 0)
        rc = drv_fail(k->d, "count", &err);
    lade_close(q);
    *out = info.count[LADE_STATE_READY];
    return rc;
}

/* From start to kill; the store has what it has. */
static int run_until_killed(struct kill *k, uint64_t n)
{
    pthread_t thread;
    if (!k->d->on_redis) {
        int rc = start_child(k);
        if (rc == 0 && !wait_acked(k, n))
            rc = drv_fail(k->d, "enqueue", NULL);
        kill_victim(k);
        return rc;
    }
    k->end = false;
    if (pthread_create(&thread, NULL, produce_on_thread, k) != 0)
        return drv_fail(k->d, "thread", NULL);
    int rc = wait_acked(k, n) ? 0 : drv_fail(k->d, "enqueue", NULL);
    kill_victim(k);
    __atomic_store_n(&k->end, true, __ATOMIC_RELEASE);
    (void)pthread_join(thread, NULL);
    return rc < 0 ? rc : start_server(k);
}

static int run_rounds(struct kill *k)
{
    uint64_t n = (uint64_t)drv_int(k->d, "n", 500), lost = 0, before = 0;
    int rc = 0;
    int64_t rounds = drv_int(k->d, "rounds", ROUNDS);
    for (int64_t i = 0; i < rounds && rc == 0; i++) {
        uint64_t there = 0;
        atomic_store(k->acked, 0);
        rc = run_until_killed(k, n + lb_rand_below(n));
        uint64_t acked = atomic_load(k->acked);
        if (rc == 0)
            rc = count_there(k, &there);
        lost += before + acked > there ? before + acked - there : 0;
        before = there;
        k->d->result.n += acked;
    }
    k->d->result.count = before;
    drv_extra(k->d, "lost", (double)lost);
    return rc;
}

/* The program of the runner's server, and a folder and a first start of our own. */
static int prepare_server(struct kill *k)
{
    char link[64];
    const char *text = bn_info_ask(&k->d->info, "INFO server");
    (void)snprintf(link, sizeof(link), "/proc/%.0f/exe",
                   text ? bn_info_field(text, "process_id") : 0);
    ssize_t n = readlink(link, k->program, sizeof(k->program) - 1);
    (void)snprintf(k->dir, sizeof(k->dir), "/tmp/lade-kill-XXXXXX");
    if (n <= 0 || !mkdtemp(k->dir))
        return drv_fail(k->d, "the server's program or a folder for it", NULL);
    k->program[n] = '\0';
    (void)snprintf(k->url, sizeof(k->url), "unix://%s/redis.sock", k->dir);
    return start_server(k);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int run_kill(struct drv *d)
{
    struct kill k = {.d = d};
    (void)snprintf(k.url, sizeof(k.url), "%s", d->url);
    void *shared =
        mmap(NULL, sizeof(*k.acked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return drv_fail(d, "out of memory", NULL);
    k.acked = shared;
    int rc = d->on_redis ? prepare_server(&k) : 0;
    drv_begin(d);
    if (rc == 0)
        rc = run_rounds(&k);
    drv_end(d);
    kill_victim(&k);
    if (k.dir[0])
        (void)nftw(k.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    (void)munmap(shared, sizeof(*k.acked));
    d->result.no_rate = true;
    return rc;
}

const struct drv_scenario drv_kill[] = {{"kill", run_kill}, {NULL, NULL}};
