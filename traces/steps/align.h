/* align.h - pairs two sequences of blocks in their order, so that the blocks of
 * a pair are as alike in size as possible. */
#ifndef FRAG_TRACES_STEPS_ALIGN_H
#define FRAG_TRACES_STEPS_ALIGN_H

#include "traces/trace.h"

/* A block in a sequence. */
struct aligned {
    uint32_t block; /* number that the caller chose */
    frag_stream stream;
    frag_size bytes;
    uint64_t life; /* in events; FRAG_NEVER if it is not known. It does not
                      depend on the shape of the input */
};

/* Sets pair[i], for each i below `na`, to the index in b of the partner of
 * a[i], or to UINT32_MAX if it has none. Partners are in the same order in both
 * sequences. A pair costs more, the more its sizes differ, and if the lives or
 * the streams differ; the sum of all costs is the least (align.c). Time and
 * memory are O(na * (difference of the lengths + 512)). INVALID, with both
 * lengths, if that is more than 2^32 bytes; NOMEM. */
enum frag_err align(const struct aligned *a, uint32_t na,
                    const struct aligned *b, uint32_t nb, uint32_t *pair,
                    struct frag_error *e) FRAG_MUST_CHECK;

#endif
