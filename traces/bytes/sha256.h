/* sha256.h - computes SHA-256 in hex, of successive bytes or of a whole file.
 * The sum identifies inputs and finished work; it does not prove an origin. */
#ifndef FRAG_TRACES_BYTES_SHA256_H
#define FRAG_TRACES_BYTES_SHA256_H

#include "traces/base.h"

enum { SHA256_HEX = 65 }; /* digits and the terminating 0 */

struct sha256 {
    void *state; /* of libcrypto; NULL if not open */
};

/* These functions return false if the host has no memory. sha256_add appends
 * bytes; sha256_hex writes the sum and is called once, last. sha256_close must
 * follow every sha256_open, even one that failed. */
bool sha256_open(struct sha256 *sum) FRAG_MUST_CHECK;
bool sha256_add(struct sha256 *sum, const void *bytes,
                size_t size) FRAG_MUST_CHECK;
bool sha256_hex(struct sha256 *sum, char hex[SHA256_HEX]) FRAG_MUST_CHECK;
void sha256_close(struct sha256 *sum); /* may be not open */

/* Computes the sum of a file's bytes, without unpacking them. IO, NOMEM. */
enum frag_err sha256_file(const char *path, char hex[SHA256_HEX],
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
