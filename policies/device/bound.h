/* bound.h - what bounds the memory of a run: the device, or the process. */
#ifndef FRAG_POLICIES_DEVICE_BOUND_H
#define FRAG_POLICIES_DEVICE_BOUND_H

#include "traces/base.h"

FRAG_BEGIN_DECLS

/* A full device refuses in the driver, which counts memory in units of 2 MiB. A
 * limit of the process (set_per_process_memory_fraction of PyTorch) refuses in
 * the allocator, before the driver is asked, and counts the bytes that the
 * allocator requests. At equal bytes the two give different runs. */
enum frag_bound_kind {
    FRAG_BOUND_CAPACITY, /* of the device */
    FRAG_BOUND_LIMIT,    /* of the process; the device has memory enough */
    FRAG_BOUND_KINDS
};

/* "capacity", "process limit" */
extern const char *const frag_bound_words[FRAG_BOUND_KINDS];

struct frag_bound {
    frag_size bytes; /* FRAG_UNLIMITED: no bound */
    enum frag_bound_kind kind;
};

#define FRAG_NO_BOUND frag_capacity_bound(FRAG_UNLIMITED)

/* The bound of a device of that capacity. */
static inline struct frag_bound frag_capacity_bound(frag_size bytes)
{
    return (struct frag_bound){bytes, FRAG_BOUND_CAPACITY};
}

/* The bytes of the bound if it is of that kind, else FRAG_UNLIMITED. */
static inline frag_size frag_bound_of(struct frag_bound b,
                                      enum frag_bound_kind kind)
{
    return b.kind == kind ? b.bytes : FRAG_UNLIMITED;
}

/* Orders bounds by bytes, then by kind; no bound comes last. The result is that
 * of strcmp. Two bounds of FRAG_UNLIMITED bytes are equal. */
int frag_bound_order(struct frag_bound a, struct frag_bound b);

enum { FRAG_BOUND_TEXT = FRAG_SIZE_TEXT + 16 };

/* Writes "24 GiB", "process limit 24 GiB" or "unlimited" to text, and returns
 * text. */
const char *frag_bound_format(struct frag_bound b, char text[FRAG_BOUND_TEXT]);

FRAG_END_DECLS

#endif
