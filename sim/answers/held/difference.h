/* difference.h - what differs between the memory held at two moments, of one
 * trace or of two: which groups of blocks grew, shrank, came and went. */
#ifndef FRAG_SIM_ANSWERS_HELD_DIFFERENCE_H
#define FRAG_SIM_ANSWERS_HELD_DIFFERENCE_H

#include "sim/answers/held/holders.h"

/* A group whose bytes or number of blocks changed. */
struct change {
    const char *key, *name;  /* borrowed from the holders */
    const char *name_before; /* of a site that moved; NULL: as after */
    frag_size before, after; /* bytes; 0: no such group */
    uint64_t blocks_before, blocks_after;
    uint64_t calls; /* a hash of the functions that the site calls */
    double share; /* of the growth of all held bytes: 1 is all of it, and below
                     0 is against it; NAN if the held bytes did not change */
};

struct difference {
    struct change *items; /* largest change first, up or down, then by name */
    uint64_t count;
    uint64_t unchanged; /* groups of both moments that are equal */
    uint64_t moved; /* of these, sites whose line, function or file differs */
};

/* The bytes after minus those before. */
int64_t difference_bytes(frag_size before, frag_size after);

/* The growth relative to `before`: 0.02 is 2 %. INFINITY if `before` is 0 and
 * `after` is not. */
double difference_growth(frag_size before, frag_size after);

/* Compares the groups of two moments by their keys, and sites as moved.h says;
 * both have one grouping. The caller closes *out before the holders. NOMEM;
 * then *out need not be closed.
 */
enum frag_err difference_find(const struct holders *before,
                              const struct holders *after,
                              struct difference *out,
                              struct frag_error *e) FRAG_MUST_CHECK;
void difference_close(struct difference *d);

#endif
