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

/* An alignment minimizes its cost: the sum of the costs of the pairs, and
 * `alone` for each block without a partner. */
struct align_costs {
    /* The cost of making b[k] the partner of a[i]; at least 0. */
    float (*pair)(const void *user, uint32_t i, uint32_t k);
    const void *user; /* passed to pair */
    float alone;
};

/* Sets pair[i], for each i below `na`, to the index of the partner in a
 * sequence of `nb` items, or to UINT32_MAX if item i has none. Partners are in
 * the same order in both sequences. Time and memory are O(na * (difference of
 * the lengths + 512)). INVALID, with both lengths, if that is more than 2^32
 * bytes; NOMEM. */
enum frag_err align_by(const struct align_costs *costs, uint32_t na,
                       uint32_t nb, uint32_t *pair,
                       struct frag_error *e) FRAG_MUST_CHECK;

/* The same for two sequences of blocks. Sets pair[i], for each i below `na`, to
 * the index in b of the partner of a[i], or to UINT32_MAX if it has none. A
 * pair costs more, the more its sizes differ, and if the lives or the streams
 * differ; see align.c. */
enum frag_err align(const struct aligned *a, uint32_t na,
                    const struct aligned *b, uint32_t nb, uint32_t *pair,
                    struct frag_error *e) FRAG_MUST_CHECK;

#endif
