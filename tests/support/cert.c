/* cert.c - see cert.h */
#include "support/cert.h"

#include <stddef.h>
#include <stdint.h>

#include "support/proc.h"

#define WAIT (INT64_C(60) * 1000 * 1000 * 1000)

bool ts_cert_make(const char *cert, const char *key, const char *log)
{
    struct ts_proc p;
    const char *const argv[] = {"openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:prime256v1",
                                "-nodes",
                                "-days",
                                "2",
                                "-subj",
                                "/CN=lade test",
                                "-addext",
                                "subjectAltName=IP:127.0.0.1,DNS:localhost",
                                "-keyout",
                                key,
                                "-out",
                                cert,
                                NULL};
    return ts_proc_start(&p, argv, NULL, log) && ts_proc_wait(&p, WAIT) && ts_proc_code(&p) == 0;
}
