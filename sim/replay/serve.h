/* serve.h - lets a policy serve a running program, with the measurements of a
 * replay.
 *
 * A replay reads its events from a trace; here, the program makes each event by
 * a call. The same code handles and counts the events. The caller names blocks
 * by their addresses, so a policy that moves blocks cannot serve a program.
 *
 * Not thread-safe: the caller holds a lock around every call.
 */
#ifndef FRAG_SIM_REPLAY_SERVE_H
#define FRAG_SIM_REPLAY_SERVE_H

#include "sim/replay/replay.h"

FRAG_BEGIN_DECLS

struct frag_serve;

struct frag_serve_options {
    const struct frag_policy *policy;
    const char *params;                 /* NULL: all defaults */
    const struct frag_params *prepared; /* as in struct frag_replay; borrowed
                                           for the call of frag_serve_open */
    struct frag_backend *mem;           /* no memory is held on it; borrowed
                                           until frag_serve_close */
    uint64_t max_ooms; /* rows of OOMs to keep; every OOM is counted */
    /* As meter.changed (sim/meter/meter.h), with the first argument `user`. Not
     * called by frag_serve_open and frag_serve_close. */
    void (*changed)(void *user, enum frag_call call, frag_addr addr,
                    frag_size size, frag_addr same);
    void *user;
};

/* Whether the policy can serve a program: OK, or UNSUPPORTED if it moves blocks
 * or needs the future. */
enum frag_err frag_serve_accepts(const struct frag_policy *p,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* Opens a service. UNSUPPORTED as above, or if mem lacks calls that the policy
 * needs; INVALID for bad parameters; NOMEM. On error *out is untouched. */
enum frag_err frag_serve_open(const struct frag_serve_options *options,
                              struct frag_serve **out,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* A live block. */
struct frag_served {
    frag_addr addr;
    frag_size size; /* bytes allocated, at least the requested size */
    uint32_t slot;  /* a small number that no other live block has */
};

/* Allocates a block of at least `size` bytes, size > 0, and writes it to *out.
 * OOM: the failure is counted, and no block is allocated. NOMEM if the tables
 * of the host cannot grow: no block is allocated, and the failure is not
 * counted. After DEVICE, or after NOMEM from the policy, the service can still
 * be closed. */
enum frag_err frag_serve_alloc(struct frag_serve *s, frag_size size,
                               frag_stream stream, frag_time time,
                               struct frag_served *out,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the live block that begins at addr to *out; false if no live block
 * begins there. */
bool frag_serve_find(const struct frag_serve *s, frag_addr addr,
                     struct frag_served *out);

/* Frees the block at addr. INVALID if no live block begins there, or if it was
 * freed before. */
enum frag_err frag_serve_free(struct frag_serve *s, frag_addr addr,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* Starts the free of a block that queued device work still uses. The free ends
 * with frag_serve_complete, called with the ticket. If the policy waits for the
 * device before that, the wait completes all pending frees, and their tickets
 * are invalid from then on. INVALID as above. NOMEM: the block is still live.
 */
enum frag_err frag_serve_free_later(struct frag_serve *s, frag_addr addr,
                                    uint32_t *ticket,
                                    struct frag_error *e) FRAG_MUST_CHECK;
enum frag_err frag_serve_complete(struct frag_serve *s, uint32_t ticket,
                                  struct frag_error *e) FRAG_MUST_CHECK;
/* Whether any ticket is valid, that is, whether any free is pending. */
bool frag_serve_has_pending(const struct frag_serve *s);

/* Whether any memory has been mapped at two addresses at the same time. Then
 * two blocks at different addresses may have used the same memory, one after
 * the other. */
bool frag_serve_has_aliases(const struct frag_serve *s);

/* Sets the capacity (initially that of `mem`) or the limit that the policy
 * reads. Neither is enforced here. */
void frag_serve_bound(struct frag_serve *s, struct frag_bound bound);

/* Returns cached memory to the device, as empty_cache of PyTorch. */
enum frag_err frag_serve_trim(struct frag_serve *s,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* Ends the service and sets *out to its numbers, with the segment rows of this
 * moment. Only frag_serve_device and frag_serve_close may follow; the latter
 * frees the numbers. NOMEM: *out is set, but lacks segment rows. */
enum frag_err frag_serve_sum(struct frag_serve *s,
                             const struct frag_run **out) FRAG_MUST_CHECK;

/* Calls `each` for every map of physical memory that is held, in the order of
 * addresses, and returns its first error. */
enum frag_err frag_serve_each_map(struct frag_serve *s,
                                  enum frag_err (*each)(void *user,
                                                        frag_addr addr,
                                                        frag_size size),
                                  void *user) FRAG_MUST_CHECK;

/* Bytes after the last call, and the peaks so far. */
struct frag_serve_memory {
    frag_size reserved, peak_reserved, peak_allocated;
};
struct frag_serve_memory frag_serve_memory(const struct frag_serve *s);
/* At this moment; `changed` may ask, too. */
frag_size frag_serve_reserved(const struct frag_serve *s);

/* The device trace for a frag_run_identity. After frag_serve_sum, its count is
 * the number of events of the service. */
const struct frag_device_trace *frag_serve_device(const struct frag_serve *s);

/* Closes the service and returns all memory to mem; NULL is allowed. */
void frag_serve_close(struct frag_serve *s);

FRAG_END_DECLS

#endif
