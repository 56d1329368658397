/* mutate.h - changes an input in the units of its own format: the tokens and
 * lines of a text, the opcodes and values of a pickle, the fields and calls of
 * a recorder's log, the objects of an HDF5 file, the bytes of anything; and
 * packs it as a container. The same dice make the same bytes.
 */
#ifndef FRAG_TESTS_NIGHT_MUTATE_H
#define FRAG_TESTS_NIGHT_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INPUT_MOST = 1 << 18 }; /* bytes of a changed input */

struct dice {
    uint64_t state; /* not 0 */
};

/* Below `below`, which is at least 1. */
uint64_t roll(struct dice *d, uint64_t below);

struct bytes {
    unsigned char *at; /* to be freed */
    size_t size;
};

/* A unit, and the tree that begins at it: the line of a first token, what a
 * bracket holds, the whole value of an opcode. */
struct unit {
    size_t at, size; /* bytes */
    size_t end;      /* the first unit behind the tree */
};

struct units {
    struct unit *unit; /* to be freed */
    size_t count;
};

/* Splits by the format that `format`, a folder of seeds, has. No unit if the
 * host has no memory. */
struct units units_split(const struct bytes *b, const char *format);

/* Replaces `b` by a changed copy; parts may come from `donor`. */
void mutate(struct dice *d, struct bytes *b, const struct bytes *donor,
            const char *format);

/* Packs `b` with gzip, xz, zstd or as a zip archive; some containers are cut,
 * joined, nested or damaged. */
void contain(struct dice *d, struct bytes *b);

/* Replaces the bytes from `from` to `to` by others. False, and no change, if
 * the host has no memory. */
bool bytes_splice(struct bytes *b, size_t from, size_t to, const void *in,
                  size_t size);

/* One of `texts`, between which | stands, and its size. */
const char *any_text(struct dice *d, const char *texts, size_t *size);

extern const char odd_numbers[], odd_texts[]; /* such texts */

#endif
