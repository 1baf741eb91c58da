/*
 * rb.h - resque-bench: what its files share
 *
 *   options   what was asked for                     server    a connection of our own: INFO, prefill, cleaning, what is there
 *   loop      simulated workers, one epoll           trial     drain, idle and pickup phase of one number of workers
 *   native    the same work by lade's own queue      report    console      export   JSON
 *
 * Everything is one thread: a worker is a connection and a few words of state, so that five thousand of them cost what their
 * commands cost and no lock or switch is measured along (docs/adr/0024).
 */
#ifndef LADE_RESQUE_BENCH_RB_H
#define LADE_RESQUE_BENCH_RB_H

#include <lade/base.h>

#include <stdio.h>

#include "base/hdr.h"
#include "resque/resque_keys.h"
#include "resque/resque_pace.h"
#include "store/redis/url.h"

#define RB_TRIALS_MAX      64    /* entries of --workers */
#define RB_WORKERS_MAX     20000 /* of one trial: connections */
#define RB_NATIVE_MAX      10000 /* slots of one worker of liblade */
#define RB_QUEUES_MAX      10000
#define RB_PERCENTILES_MAX 32
#define RB_PAYLOAD_MAX     67108864
#define RB_CLASS           "LoadWorker"

enum rb_mode {
    RB_POLL,   /* LPOP and sleep: what Resque does */
    RB_BLPOP,  /* BLPOP over all queues */
    RB_BLMOVE, /* BLMOVE to a list of the worker's own, LREM when done: one queue only */
    RB_NATIVE, /* lade's own queue on the same server */
    RB_N_MODES
};

enum rb_phase_start {
    RB_SPREAD,  /* the first polls of a fleet lie evenly over one interval */
    RB_TOGETHER /* all poll at once */
};

struct rb_percentile {
    char name[20];
    double at; /* part of 1; 1 = max; -1 = mean */
};

struct rb_options {
    /* where */
    const char *url, *host, *user, *password, *password_file;
    const char *tls_ca, *tls_cert, *tls_key, *tls_sni;
    int64_t port, db; /* -1 = not given */
    bool tls, insecure;
    const char *namespace_;
    /* what */
    const char *workers_text, *modes_text, *percentiles_text;
    size_t workers[RB_TRIALS_MAX], n_workers;
    enum rb_mode modes[RB_N_MODES];
    size_t n_modes;
    int64_t jobs, warmup, payload_size, n_queues;
    const char *queue;
    char own_queue[32]; /* "bench:<pid>" */
    int64_t timeout_s, idle_s;
    int64_t connections; /* 0 = one for each worker */
    bool no_idle;
    /* how workers poll; ms, -1 = not given */
    int64_t interval_ms, min_ms, max_ms, backoff_ms;
    const char *profile_text, *start_text;
    bool resque_profile, dynamic;
    enum rb_phase_start start;
    int64_t block_s;
    /* open loop */
    int64_t pickup_jobs, pickup_gap_ms, rate, rate_s;
    /* saying */
    const char *tag, *output;
    bool quiet;
    struct rb_percentile percentile[RB_PERCENTILES_MAX];
    size_t n_percentiles;
    /* leave given */
    bool allow_flushdb, yes_destroy, force;
    /* derived */
    struct rq_pace_opts pace; /* ns */
};

/* Commands that simulated workers and their producer send: what is counted on both sides. */
enum rb_cmd {
    RB_LPOP,
    RB_BLPOP_CMD,
    RB_BLMOVE_CMD,
    RB_LREM,
    RB_GET,
    RB_SET,
    RB_DEL,
    RB_INCRBY,
    RB_SMEMBERS,
    RB_RPUSH,
    RB_N_CMDS
};

extern const char *const rb_cmd_name[RB_N_CMDS];
extern const char *const rb_mode_name[RB_N_MODES];

/* What the server says of itself: INFO. Counters since its start. */
struct rb_server_state {
    double cpu_s;
    int64_t bytes_in, bytes_out, commands;
    int64_t calls[RB_N_CMDS];
    bool known; /* false when INFO was refused */
};

/* What a phase cost. */
struct rb_cost {
    double seconds, client_cpu_s;
    double server_cpu_s;
    int64_t bytes_in, bytes_out, commands; /* of the server, from all its clients */
    uint64_t sent[RB_N_CMDS];              /* answered commands, as we count them */
    uint64_t unanswered;
    int64_t seen[RB_N_CMDS]; /* as the server counts them */
    bool known;              /* the server's part */
};

struct rb_idle {
    bool ran;
    bool failed;       /* the server was lost during it */
    bool clean;        /* nobody else put jobs there */
    bool insufficient; /* shorter than one interval: a count, not a rate */
    double seconds, qps, per_worker, expected_qps;
    uint64_t polls;  /* LPOP or what the mode has instead */
    uint64_t errors; /* refused or lost */
    uint64_t foreign;
    char skipped[256]; /* why it did not run or does not count; "" */
    struct rb_cost cost;
};

struct rb_pickup {
    bool ran;
    bool jitter; /* not every gap is the same */
    uint64_t asked, done, errors;
    double seconds, offered; /* jobs/s as asked for */
    struct lb_hdr *latency;  /* from the time a job was due to a worker having it */
    struct rb_cost cost;
};

/* One second. */
struct rb_second {
    double seconds; /* 1, less for the last */
    uint64_t jobs, errors;
    int64_t us[RB_PERCENTILES_MAX];
};

struct rb_result {
    enum rb_mode mode;
    size_t workers;
    uint64_t jobs; /* completed, ours */
    uint64_t asked;
    uint64_t errors;  /* entries that are no jobs, and commands refused */
    uint64_t foreign; /* jobs of others that we popped; given back at the end */
    uint64_t lost;    /* jobs that were queued and never came */
    uint64_t reconnects, misses;
    bool timed_out, interrupted, verified;
    double seconds;
    double enqueue_s; /* prefill */
    struct lb_hdr *residence, *rtt;
    struct rb_second *series;
    size_t n_series, series_cap;
    double warmup_s; /* 0 = none */
    bool warmup_timed_out;
    struct rb_cost cost;
    struct rb_idle idle;
    struct rb_pickup pickup, open;
};

/* Raised by INT and TERM. */
bool rb_interrupted(void);

/* Where people read: stdout, or stderr when stdout is JSON. */
extern FILE *rb_out;

#endif
