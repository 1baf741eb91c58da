/*
 * cert.h - certificates for the run of a test
 *
 * Thread safety: none.
 */
#ifndef LADE_TESTS_SUPPORT_CERT_H
#define LADE_TESTS_SUPPORT_CERT_H

#include <stdbool.h>

/* A certificate that signs itself, for 127.0.0.1 and localhost, and its key; openssl's words go to `log`. False: none was made. */
bool ts_cert_make(const char *cert, const char *key, const char *log);

#endif
