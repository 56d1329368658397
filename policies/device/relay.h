/* relay.h - a backend whose calls all pass through one function of its owner,
 * for backends that stand in front of another one.
 */
#ifndef FRAG_POLICIES_DEVICE_RELAY_H
#define FRAG_POLICIES_DEVICE_RELAY_H

#include "policies/device/backend.h"
#include "policies/device/costs.h"

/* A call of struct frag_backend_ops. */
struct frag_relayed {
    enum frag_driver_call call; /* no small one */
    uint64_t at; /* address or handle: the answer of va_reserve, phys_create and
                    segment_alloc; the destination of copy */
    frag_size size;
    uint64_t with;      /* the handle of map, the source of copy */
    frag_stream stream; /* of copy */
};

struct frag_relay {
    struct frag_backend base;
    struct frag_backend *under; /* NULL: the owner serves the calls */
    enum frag_err (*serve)(struct frag_relay *r, struct frag_relayed *c);
    struct frag_backend_ops ops; /* of base; the owner may change it */
};

/* Opens a relay in front of `under`, with its properties, and without the calls
 * that it lacks. If `under` is NULL, the owner sets base and ops.now. */
void frag_relay_open(struct frag_relay *r, struct frag_backend *under,
                     enum frag_err (*serve)(struct frag_relay *r,
                                            struct frag_relayed *c));

/* Makes the call on a backend. */
enum frag_err frag_relay_pass(struct frag_backend *mem, struct frag_relayed *c);

/* Makes the call that takes a successful one back: an acquiring one, or map. */
enum frag_err frag_relay_undo(struct frag_backend *mem,
                              const struct frag_relayed *c);

#endif
