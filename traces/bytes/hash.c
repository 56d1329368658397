#include "traces/bytes/hash.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

static bool digest(FILE *in, unsigned char out[EVP_MAX_MD_SIZE], unsigned *size)
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    char bytes[1 << 16];
    bool done = hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
    size_t n;

    while (done && (n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        done = EVP_DigestUpdate(hash, bytes, n);
    done = done && EVP_DigestFinal_ex(hash, out, size);
    EVP_MD_CTX_free(hash);
    return done;
}

enum frag_err hash_file(const char *path, char hex[65], struct frag_error *e)
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    FILE *in = fopen(path, "rb");
    unsigned size = 0;
    bool done, read_error;
    int why;

    if (!in)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
    errno = 0;
    done = digest(in, bytes, &size);
    why = errno;
    read_error = ferror(in);
    fclose(in);
    if (read_error)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(why));
    if (!done)
        return frag_fail(e, FRAG_NOMEM, "%s: no memory to read it", path);
    for (unsigned i = 0; i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    return FRAG_OK;
}
