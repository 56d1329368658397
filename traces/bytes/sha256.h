/* sha256.h - computes SHA-256 in hex, of successive bytes or of a whole file.
 * The sum identifies inputs and finished work; it does not prove an origin. */
#ifndef FRAG_TRACES_BYTES_SHA256_H
#define FRAG_TRACES_BYTES_SHA256_H

#include <nettle/sha2.h>

#include "traces/base.h"

enum { SHA256_HEX = 65 }; /* digits and the terminating 0 */

struct sha256 {
    struct sha256_ctx state;
};

/* sha256_begin is called first; sha256_add appends bytes; sha256_hex writes the
 * sum and is called once, last. */
void sha256_begin(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *bytes, size_t size);
void sha256_hex(struct sha256 *sum, char hex[SHA256_HEX]);

/* Computes the sum of a file's bytes, without unpacking them. IO. */
enum frag_err sha256_file(const char *path, char hex[SHA256_HEX],
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
