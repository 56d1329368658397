/* classes.h - sizes in classes: octaves cut into equal parts.
 *
 * With 2^bits parts an octave, a class is a size in quanta written in floating
 * point with `bits` bits of mantissa; as those are the bits below the leading
 * one, the classes follow one another without a gap. Sizes below 2^bits quanta
 * have a class each. Sizes are whole quanta, > 0 and at most 2^63 bytes.
 */
#ifndef FRAG_POLICIES_MECHANISM_CLASSES_H
#define FRAG_POLICIES_MECHANISM_CLASSES_H

#include "policies/policy.h"

enum {
    CLASSES_MAX_BITS = 6,
    CLASSES_LEVELS = 56, /* octaves up to 2^63 bytes */
    CLASSES_QUANTUM_BITS = 9,
};

_Static_assert(FRAG_QUANTUM == 1 << CLASSES_QUANTUM_BITS, "a quantum is 2^9");

/* Classes begin 2^shift quanta apart around a size of n quanta. */
static inline unsigned class_shift(uint32_t bits, uint64_t n)
{
    return 63 - bits -
           (unsigned)__builtin_clzll(n | (((uint64_t)2 << bits) - 1));
}

/* The last class that begins with at most *size, which becomes its beginning.
 */
static inline uint32_t class_below(uint32_t bits, frag_size *size)
{
    const uint64_t n = *size >> CLASSES_QUANTUM_BITS;
    const unsigned shift = class_shift(bits, n);

    *size = n >> shift << (shift + CLASSES_QUANTUM_BITS);
    return (uint32_t)((shift << bits) + (n >> shift));
}

/* The first class that begins with at least *size, which becomes its beginning.
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
