/* classes.h - size classes: octaves divided into equal parts.
 *
 * An octave (the sizes between two powers of two) has 2^bits classes. The index
 * of a class is its start size in quanta, written as a floating point number
 * with `bits` bits of mantissa; consecutive classes therefore have consecutive
 * indices. Each size below 2^bits quanta is a class of its own. All sizes here
 * are multiples of FRAG_QUANTUM, > 0 and at most 2^63 bytes.
 */
#ifndef FRAG_POLICIES_MECHANISM_CLASSES_H
#define FRAG_POLICIES_MECHANISM_CLASSES_H

#include "policies/policy.h"

enum {
    CLASSES_MAX_BITS = 6,
    CLASSES_LEVELS = 56,      /* octaves up to 2^63 bytes */
    CLASSES_QUANTUM_BITS = 9, /* log2 of FRAG_QUANTUM */
};

_Static_assert(FRAG_QUANTUM == 1 << CLASSES_QUANTUM_BITS, "a quantum is 2^9");

/* Near a size of n quanta, classes start 2^shift quanta apart. */
static inline unsigned class_shift(uint32_t bits, uint64_t n)
{
    return 63 - bits -
           (unsigned)__builtin_clzll(n | (((uint64_t)2 << bits) - 1));
}

/* The last class whose start size is at most *size; sets *size to that start.
 */
static inline uint32_t class_below(uint32_t bits, frag_size *size)
{
    const uint64_t n = *size >> CLASSES_QUANTUM_BITS;
    const unsigned shift = class_shift(bits, n);

    *size = n >> shift << (shift + CLASSES_QUANTUM_BITS);
    return (uint32_t)((shift << bits) + (n >> shift));
}

/* The first class whose start size is at least *size; sets *size to that start.
 */
static inline uint32_t class_above(uint32_t bits, frag_size *size)
{
    const uint64_t n = *size >> CLASSES_QUANTUM_BITS;
    const unsigned shift = class_shift(bits, n);
    const uint64_t up = (n + ((uint64_t)1 << shift) - 1) >> shift;

    *size = up << (shift + CLASSES_QUANTUM_BITS);
    return (uint32_t)((shift << bits) + up);
}

#endif
