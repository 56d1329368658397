/* sha256.h - SHA-256 in hex, of bytes as they come or of a whole file. It is
 * what an input and finished work are recognized by, not a proof of origin. */
#ifndef FRAG_TRACES_BYTES_SHA256_H
#define FRAG_TRACES_BYTES_SHA256_H

#include "traces/base.h"

enum { SHA256_HEX = 65 }; /* with the NUL */

struct sha256 {
    void *state; /* of the library; NULL: not open */
};

/* Each is false if the host has no memory. Every open is followed by a
 * close. */
bool sha256_open(struct sha256 *sum) FRAG_MUST_CHECK;
bool sha256_add(struct sha256 *sum, const void *bytes,
                size_t size) FRAG_MUST_CHECK;
bool sha256_hex(struct sha256 *sum, char hex[SHA256_HEX]) FRAG_MUST_CHECK;
void sha256_close(struct sha256 *sum); /* one that is not open is fine */

/* Of the file's bytes as they are on the disk. IO, NOMEM. */
enum frag_err sha256_file(const char *path, char hex[SHA256_HEX],
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
