/* sha256.c - SHA-256 by libcrypto. No other file uses libcrypto. */
#include "traces/bytes/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

bool sha256_open(struct sha256 *sum)
{
    sum->state = EVP_MD_CTX_new();
    return sum->state && EVP_DigestInit_ex(sum->state, EVP_sha256(), NULL);
}

bool sha256_add(struct sha256 *sum, const void *bytes, size_t size)
{
    return EVP_DigestUpdate(sum->state, bytes, size);
}

bool sha256_hex(struct sha256 *sum, char hex[SHA256_HEX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;

    if (!EVP_DigestFinal_ex(sum->state, digest, &size))
        return false;
    for (unsigned i = 0; i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return true;
}

void sha256_close(struct sha256 *sum)
{
    EVP_MD_CTX_free(sum->state);
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
    FILE *in = fopen(path, "rb");
    bool done, read_error;
    int why;

    if (!in)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
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
