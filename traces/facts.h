/* facts.h - what can be said of a device's trace without replaying it. */
#ifndef FRAG_TRACES_FACTS_H
#define FRAG_TRACES_FACTS_H

#include "traces/trace.h"

struct facts {
    uint64_t ops[FRAG_OP_COUNT];
    uint64_t actions[FRAG_ACTION_COUNT];
    frag_size peak_requested; /* bytes asked for by live blocks, at most */
    uint64_t peak_live;       /* blocks */
    frag_size peak_reserved;  /* of the recorded allocator; FRAG_UNLIMITED if
                                 it was not recorded */
    frag_time duration;       /* ns from the first event to the last; 0 if no
                                 times were recorded */
};

/* NOMEM. O(events), memory of 8 bytes a slot. */
enum frag_err facts_gather(const struct frag_device_trace *d,
                           struct facts *out) FRAG_MUST_CHECK;

#endif
