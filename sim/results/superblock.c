/* superblock.c - Jenkins' lookup3 over the superblock of an HDF5 file. */
#include "sim/results/superblock.h"

#include <stdint.h>

/* Offsets in the superblock of versions 2 and 3. */
enum { VERSION = 8, OFFSET_SIZE = 9, CHECKSUM = 44, SUPERBLOCK = 48 };

static uint32_t word(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
           (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint32_t rotate(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

static void mix(uint32_t s[3])
{
    static const unsigned bits[] = {4, 6, 8, 16, 19, 4};

    for (unsigned i = 0; i < 6; i++) {
        const unsigned a = i % 3, b = (i + 1) % 3, c = (i + 2) % 3;

        s[a] -= s[c];
        s[a] ^= rotate(s[c], bits[i]);
        s[c] += s[b];
    }
}

static void finish(uint32_t s[3])
{
    static const unsigned bits[] = {14, 11, 25, 16, 4, 14, 24};

    for (unsigned i = 0; i < 7; i++) {
        const unsigned to = (i + 2) % 3, from = (i + 1) % 3;

        s[to] ^= s[from];
        s[to] -= rotate(s[from], bits[i]);
    }
}

/* The number of bytes is a multiple of 4, and at least 4. */
static uint32_t lookup3(const unsigned char *bytes, size_t count)
{
    uint32_t s[3];

    s[0] = s[1] = s[2] = UINT32_C(0xdeadbeef) + (uint32_t)count;
    for (; count > 12; count -= 12, bytes += 12) {
        for (unsigned i = 0; i < 3; i++)
            s[i] += word(bytes + 4 * (size_t)i);
        mix(s);
    }
    for (unsigned i = 0; 4 * (size_t)i < count; i++)
        s[i] += word(bytes + 4 * (size_t)i);
    finish(s);
    return s[2];
}

void superblock_checksum(unsigned char *image, size_t size)
{
    uint32_t sum;

    if (size < SUPERBLOCK || image[VERSION] < 2 || image[OFFSET_SIZE] != 8)
        return;
    sum = lookup3(image, CHECKSUM);
    for (unsigned i = 0; i < 4; i++)
        image[CHECKSUM + i] = (unsigned char)(sum >> (8 * i));
}
