/*
 * base.h - the words that every lade header shares: units, results, errors, bytes
 *
 * Included by <lade/lade.h>; programs rarely include it themselves.
 */
#ifndef LADE_BASE_H
#define LADE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LADE_API          __attribute__((visibility("default")))
#define LADE_CHECKED      __attribute__((warn_unused_result))
#define LADE_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define LADE_MILLISECOND INT64_C(1000000)
#define LADE_SECOND      (1000 * LADE_MILLISECOND)
#define LADE_MINUTE      (60 * LADE_SECOND)
#define LADE_HOUR        (60 * LADE_MINUTE)
#define LADE_DAY         (24 * LADE_HOUR)

/* Outcomes a caller must handle; never failures. The values are stable. */
enum lade_result {
    LADE_DONE = 0,
    LADE_DUPLICATE = 1,   /* a job with this id or unique key is already there */
    LADE_EMPTY = 2,       /* nothing to take or to list */
    LADE_STALE = 3,       /* the lease was lost: someone else owns the job now */
    LADE_FULL = 4,        /* the bound of the queue is reached: nothing was added */
    LADE_PAUSED = 5,      /* the queue is paused */
    LADE_NOT_FOUND = 6,   /* no such job or queue */
    LADE_WRONG_STATE = 7, /* the job is there, but not in a state that allows this */
    LADE_MORE = 8,        /* a bounded step was done and there is more to do: call again */
    LADE_REPLACED = 9,    /* a job that waited under the same unique key is now this one */
    LADE_CONFLICT = 10,   /* the unique key is held, and the caller asked to be told so */
    LADE_TIMEOUT = 11,    /* what was waited for did not come in time */
    LADE_STOPPED = 12,    /* another thread ended the wait */
    LADE_MISSED = 13      /* events were dropped before they were read */
};

/* Failures, returned negated: -LADE_EINVAL. The values are stable. */
enum lade_errno {
    LADE_EINVAL = 4001,  /* an argument breaks a rule; err names the argument and the rule */
    LADE_ETOOBIG = 4002, /* payload, header, result or name over its limit; nothing was written */
    LADE_ENOMEM = 4003,  /* out of memory in this process */
    LADE_EUNAVAILABLE = 4004, /* the store cannot be reached, or not within the deadline */
    LADE_EAUTH = 4005,        /* the store refused the user, password or certificate */
    LADE_EFORMAT = 4006,  /* what is stored is not lade's, is damaged, or is from a newer version */
    LADE_EPROTO = 4007,   /* the server answered what its protocol does not allow */
    LADE_ENOSPACE = 4008, /* the store is out of disk or memory; nothing was written */
    LADE_EBUSY = 4009,    /* another process held the store for longer than the deadline */
    LADE_EACCESS = 4010,  /* the file system or an ACL forbids it */
    LADE_EIO = 4011,      /* the operating system reported an input/output error */
    LADE_ECLOSED = 4012,  /* the handle is closing */
    LADE_EUNSUPPORTED = 4013, /* this build or this server cannot do it; err says what is needed */
    LADE_EFOREIGN = 4014,     /* a key or table of that name exists and is not lade's */
    LADE_ENOSTORE = 4015      /* the file of the store is not there, and it was not to be made */
};

/* The name of a result or failure, "LADE_STALE" or "LADE_EAUTH"; never NULL. `code` may be negated. */
LADE_API const char *lade_result_name(int code);

typedef struct lade_err {
    int code;          /* the negative result, or 0 */
    char text[256];    /* one line, no newline at the end */
    const char *where; /* the operation, "enqueue"; a static string or NULL */
} lade_err;

/* Bytes that the caller owns. {NULL, 0} is the empty string. */
typedef struct lade_bytes {
    const void *data;
    size_t size;
} lade_bytes;

/* A string literal, or any char array, as bytes without its last NUL. */
#ifdef __cplusplus
#    define LADE_STR(s) (lade_bytes{(s), sizeof(s) - 1})
#else
#    define LADE_STR(s) ((lade_bytes){(s), sizeof(s) - 1})
#endif

#ifdef __cplusplus
}
#endif
#endif
