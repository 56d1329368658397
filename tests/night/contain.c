/* contain.c - inputs packed by the containers that fragsim reads. */
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/night/mutate.h"

/* Every packer writes to `out`, which has room for PACKED(size) bytes, and
 * returns the number of bytes. */
#define PACKED(size) ((size) + (size) / 2 + 4096)
typedef size_t packer(const struct bytes *b, unsigned char *out);

static size_t pack_gzip(const struct bytes *b, unsigned char *out)
{
    z_stream z = {.next_in = b->at,
                  .avail_in = (uInt)b->size,
                  .next_out = out,
                  .avail_out = (uInt)PACKED(b->size)};

    if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, 0) != Z_OK)
        return 0;
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return z.total_out;
}

static size_t pack_xz(const struct bytes *b, unsigned char *out)
{
    size_t size = 0;

    (void)!lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, b->at, b->size,
                                   out, &size, PACKED(b->size));
    return size;
}

static size_t pack_zstd(const struct bytes *b, unsigned char *out)
{
    return ZSTD_compress(out, PACKED(b->size), b->at, b->size, 1);
}

static size_t put(unsigned char *out, uint64_t n, size_t size)
{
    memcpy(out, &n, size);
    return size;
}

/* The fields that a local header and a central one share. */
static size_t put_entry(unsigned char *out, const struct bytes *b)
{
    size_t at = put(out, 20, 2) + 2; /* version; no flags */

    at += put(out + at, 0, 6); /* stored; no time */
    at += put(out + at, crc32(0, b->at, (uInt)b->size), 4);
    at += put(out + at, b->size, 4);
    at += put(out + at, b->size, 4);
    return at + put(out + at, strlen("archive/data.pkl"), 4);
}

/* One stored file, as torch.save writes it. */
static size_t pack_zip(const struct bytes *b, unsigned char *out)
{
    static const char name[] = "archive/data.pkl";
    const size_t length = sizeof(name) - 1;
    size_t at, central;

    memset(out, 0, 256);
    at = put(out, 0x04034b50, 4);
    at += put_entry(out + at, b);
    memcpy(out + at, name, length);
    memcpy(out + at + length, b->at, b->size);
    central = at + length + b->size;
    memset(out + central, 0, 256);
    at = central + put(out + central, 0x02014b50, 4);
    at += put(out + at, 20, 2);
    at += put_entry(out + at, b) + 14; /* comment, disk, attributes, offset 0 */
    memcpy(out + at, name, length);
    at += length;
    put(out + at, 0x06054b50, 4);
    put(out + at + 8, 0x00010001, 4);
    put(out + at + 12, at - central, 4);
    put(out + at + 16, central, 4);
    return at + 22;
}

static void pack(struct dice *d, struct bytes *b)
{
    static packer *const packers[] = {pack_gzip, pack_xz, pack_zstd, pack_zip};
    unsigned char *out = malloc(PACKED(b->size));

    if (!out)
        return;
    b->size = packers[roll(d, 4)](b, out);
    free(b->at);
    b->at = out;
}

void contain(struct dice *d, struct bytes *b)
{
    static const unsigned char zeros[8];

    pack(d, b);
    if (roll(d, 8) == 0)
        pack(d, b);
    switch (b->size ? roll(d, 6) : 0) {
    case 1:
        b->size = roll(d, b->size);
        break;
    case 2:
        bytes_splice(b, b->size, b->size, b->at, b->size);
        break;
    case 3:
        bytes_splice(b, b->size, b->size, zeros, roll(d, sizeof(zeros)));
        break;
    case 4:
        mutate(d, b, b, "packed");
        break;
    default:
        break;
    }
}
