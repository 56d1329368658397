/* sha256.c - SHA-256 by nettle, which uses a processor's own instructions for
 * it. */
#include "traces/bytes/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "traces/bytes/input.h"

void sha256_begin(struct sha256 *sum)
{
    sha256_init(&sum->state);
}

void sha256_add(struct sha256 *sum, const void *bytes, size_t size)
{
    sha256_update(&sum->state, size, bytes);
}

void sha256_hex(struct sha256 *sum, char hex[SHA256_HEX])
{
    unsigned char digest[SHA256_DIGEST_SIZE];

    sha256_digest(&sum->state, sizeof(digest), digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

enum frag_err sha256_file(const char *path, char hex[SHA256_HEX],
                          struct frag_error *e)
{
    char bytes[1 << 16];
    struct sha256 sum;
    bool read_error;
    size_t n;
    FILE *in;
    int why;

    FRAG_TRY(input_file(path, &in, e));
    errno = 0;
    sha256_begin(&sum);
    while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        sha256_add(&sum, bytes, n);
    why = errno;
    read_error = ferror(in);
    fclose(in);
    if (read_error)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(why));
    sha256_hex(&sum, hex);
    return FRAG_OK;
}
