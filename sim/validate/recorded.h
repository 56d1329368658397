/* recorded.h - the device and the parameters with which the policy torch
 * repeats what a recorded allocator did. */
#ifndef FRAG_SIM_VALIDATE_RECORDED_H
#define FRAG_SIM_VALIDATE_RECORDED_H

#include "sim/arena/arena.h"
#include "sim/validate/validate.h"

FRAG_BEGIN_DECLS

struct frag_recorded_setup {
    struct frag_arena_options arena; /* its bases and sizes belong to the
                                        setup, as the params do */
    char *params;                    /* of the policy torch */
};

/* The arena of a recorded device: its segments and reservations get their
 * recorded addresses. `total` is that of the device, in bytes; 0: what fits
 * between the recorded reservations, at most FRAG_H200_TOTAL.
 * frag_anchors_free frees the arrays of *out. NOMEM; then *out is untouched. */
enum frag_err frag_recorded_arena(const struct frag_device_trace *d,
                                  frag_size total,
                                  struct frag_arena_options *out,
                                  struct frag_error *e) FRAG_MUST_CHECK;
void frag_anchors_free(struct frag_arena_options *arena);

/* Fills *out from the settings, the limit, the total and the addresses of the
 * recording; frag_recorded_setup_free frees it. Without recorded segments, the
 * arena's rule determines all addresses. NOMEM; then *out is untouched. */
enum frag_err frag_recorded_setup(const struct frag_validate *spec,
                                  struct frag_recorded_setup *out,
                                  struct frag_error *e) FRAG_MUST_CHECK;
void frag_recorded_setup_free(struct frag_recorded_setup *s);

FRAG_END_DECLS

#endif
