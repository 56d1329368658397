/* validate_limit.h - the memory limit of a recorded allocator: as the changes
 * of its settings state it, or as far as its OOMs show it. */
#ifndef FRAG_SIM_VALIDATE_VALIDATE_LIMIT_H
#define FRAG_SIM_VALIDATE_VALIDATE_LIMIT_H

#include "traces/trace.h"

FRAG_BEGIN_DECLS

/* Where a limit comes from. The words are those of the JSON output. */
#define FRAG_LIMIT_SOURCES(X) \
    X(NONE, "none")           \
    X(GIVEN, "given")         \
    X(DEVICE, "device")       \
    X(INFERRED, "inferred")   \
    X(CONTRADICTED, "contradicted")

enum frag_limit_source {
    FRAG_LIMIT_NONE,     /* no request failed: no limit is needed */
    FRAG_LIMIT_GIVEN,    /* the caller, or the recording, stated the limit, or
                            that there is none */
    FRAG_LIMIT_DEVICE,   /* what was reserved at an OOM, plus what could be
                            had of the device then */
    FRAG_LIMIT_INFERRED, /* the device had enough free memory, so the process
                            had a limit: the middle of its possible values */
    FRAG_LIMIT_CONTRADICTED, /* no constant limit explains the OOMs: one request
                                failed although more had been reserved before */
    FRAG_LIMIT_SOURCE_COUNT
};

extern const char *const frag_limit_source_words[FRAG_LIMIT_SOURCE_COUNT];

struct frag_recorded_limit {
    enum frag_limit_source source;
    frag_size limit; /* bytes; FRAG_UNLIMITED for NONE and CONTRADICTED */
    /* The limits in bytes that explain all OOMs and, if possible, all retries;
     * for CONTRADICTED, least is larger than most. */
    frag_size least; /* the peak of the reserved bytes; always set */
    frag_size most;  /* FRAG_UNLIMITED without OOMs */
    /* DEVICE: what was reserved and what the device had free at the OOM. The
     * limit is what was reserved and could be had, or the nearest one from
     * least to most. */
    frag_size held, device_free;
};

/* Finds the limit from the recorded segments and OOMs of a device. An OOM means
 * that the reserved bytes and the segment for the request together are more
 * than the limit; `settings` decide the size of that segment. A retry, which is
 * a request that returned segments before it got memory, means the same. */
struct frag_recorded_limit
frag_recorded_limit(const struct frag_device_trace *d, const char *settings);

/* Writes a sentence about a limit that the snapshot does not record, or "" if
 * there is nothing to say. */
enum { FRAG_LIMIT_TEXT = 640 };
void frag_recorded_limit_note(const struct frag_recorded_limit *l,
                              char text[FRAG_LIMIT_TEXT]);

FRAG_END_DECLS

#endif
