/* moment.h - the blocks that are live at one moment of a trace. */
#ifndef FRAG_SIM_ANSWERS_MOMENT_H
#define FRAG_SIM_ANSWERS_MOMENT_H

#include "traces/trace.h"

/* A block that the program has not freed, or whose free is not complete. A
 * request that failed in the recording (traces/facts.h) is no block. */
struct moment_block {
    uint32_t slot;
    uint64_t event;  /* its ALLOC */
    frag_size bytes; /* as requested */
    frag_stream stream;
    frag_pool pool;
    uint32_t stack; /* of the ALLOC; 0 if no stacks were recorded */
    frag_time time; /* of the ALLOC; 0 if no times were recorded */
    bool pending;   /* the program freed it, and a stream still uses it */
};

struct moment {
    uint64_t event;              /* the last event before the moment */
    struct moment_block *blocks; /* in the order of their ALLOCs */
    uint64_t count;
    frag_size requested; /* bytes of the blocks that are not pending */
    frag_size pending;   /* bytes of those that are */
};

/* Finds the blocks that are live directly after the event. INVALID if the
 * device has no such event; NOMEM. The caller closes *out; on error it need
 * not. */
enum frag_err moment_open(const struct frag_device_trace *d, uint64_t event,
                          struct moment *out,
                          struct frag_error *e) FRAG_MUST_CHECK;
void moment_close(struct moment *m);

/* Reads the text of --at: "peak" (the first event at which most bytes are
 * requested), "oom" (the last request that the recorded allocator could not
 * meet), "end", or the number of an event. INVALID, with what is known; CORRUPT
 * if the device has no events; NOMEM. */
enum frag_err moment_read(const struct frag_trace *t,
                          const struct frag_device_trace *d, const char *text,
                          uint64_t *event,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
