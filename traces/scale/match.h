/* match.h - matches the requests of two recordings of one program at two batch
 * sizes. Private to traces/scale. */
#ifndef FRAG_TRACES_SCALE_MATCH_H
#define FRAG_TRACES_SCALE_MATCH_H

#include "traces/scale/scale.h"

/* Sets sizes[b], for each block b of the template, to the size of its partner
 * in the other recording; 0 if it has none. INVALID if the recordings are too
 * unlike to be compared; NOMEM. */
enum frag_err scale_match(const struct scale_recording *template,
                          const struct blocks *blocks,
                          const struct scale_recording *other, frag_size *sizes,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
