/* sha256.c - SHA-256 by libcrypto. No other file uses libcrypto. These
 * functions of OpenSSL 1.1 read no configuration and load no table of
 * algorithms, which takes those of OpenSSL 3 longer than the sum of a small
 * trace. */
#define OPENSSL_API_COMPAT 0x10100000L
#include "traces/bytes/sha256.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/input.h"

bool sha256_open(struct sha256 *sum)
{
    sum->state = malloc(sizeof(SHA256_CTX));
    return sum->state && SHA256_Init(sum->state);
}

bool sha256_add(struct sha256 *sum, const void *bytes, size_t size)
{
    return SHA256_Update(sum->state, bytes, size);
}

bool sha256_hex(struct sha256 *sum, char hex[SHA256_HEX])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];

    if (!SHA256_Final(digest, sum->state))
        return false;
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return true;
}

void sha256_close(struct sha256 *sum)
{
    free(sum->state);
    sum->state = NULL;
}

static bool add_stream(struct sha256 *sum, FILE *in)
{
    char bytes[1 << 16];
    size_t n;

    while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        if (!sha256_add(sum, bytes, n))
            return false;
    return true;
}

enum frag_err sha256_file(const char *path, char hex[SHA256_HEX],
                          struct frag_error *e)
{
    struct sha256 sum;
    bool done, read_error;
    FILE *in;
    int why;

    FRAG_TRY(input_file(path, &in, e));
    errno = 0;
    done = sha256_open(&sum) && add_stream(&sum, in);
    why = errno;
    read_error = ferror(in);
    fclose(in);
    done = done && sha256_hex(&sum, hex);
    sha256_close(&sum);
    if (read_error)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(why));
    if (!done)
        return frag_no_memory(e, "%s", path);
    return FRAG_OK;
}
