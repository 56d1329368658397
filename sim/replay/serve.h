/* serve.h - a policy that serves a running program, measured as in a replay.
 *
 * The events of a replay come from a trace, here they come one by one; what is
 * done at each of them and what is counted is the same code. The caller names
 * blocks by their addresses, so a policy that moves them cannot serve.
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
    const char *params;                 /* NULL: defaults */
    const struct frag_params *prepared; /* as of struct frag_replay; borrowed
                                           while the service is opened */
    struct frag_backend *mem;           /* borrowed; fresh: nothing held yet */
    uint64_t max_ooms;                  /* OOM rows kept (all are counted) */
};

/* UNSUPPORTED if the policy moves blocks or mem lacks what it needs; INVALID
 * for bad params; NOMEM. A policy that needs the future gets none. On error
 * *out is untouched. */
enum frag_err frag_serve_open(const struct frag_serve_options *options,
                              struct frag_serve **out,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* Where a served request lies. */
struct frag_served {
    frag_addr addr;
    frag_size size; /* granted */
};

/* A block of at least size bytes, > 0. OOM is counted and nothing else happens.
 * NOMEM: the same without a count, where the host's tables cannot grow. After
 * DEVICE, or NOMEM of the policy, the heap can still be closed. */
enum frag_err frag_serve_alloc(struct frag_serve *s, frag_size size,
                               frag_stream stream, frag_time time,
                               struct frag_served *out,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* The live block that begins at addr; false if none does. */
bool frag_serve_find(const struct frag_serve *s, frag_addr addr,
                     struct frag_served *out);

/* The block at addr can be handed out again. INVALID if no live block begins
 * there, or if it was freed. */
enum frag_err frag_serve_free(struct frag_serve *s, frag_addr addr,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* The program is done with the block, work that is queued is not: complete()
 * follows with the ticket. Where the policy waits for the device first, all
 * that was pending is completed by that and the tickets are void. INVALID as
 * above, NOMEM. */
enum frag_err frag_serve_free_later(struct frag_serve *s, frag_addr addr,
                                    uint32_t *ticket,
                                    struct frag_error *e) FRAG_MUST_CHECK;
enum frag_err frag_serve_complete(struct frag_serve *s, uint32_t ticket,
                                  struct frag_error *e) FRAG_MUST_CHECK;
/* Whether any ticket is good. */
bool frag_serve_has_pending(const struct frag_serve *s);

/* Whether memory was ever mapped at two addresses at once: then two blocks at
 * different addresses may have had the same memory one after the other. */
bool frag_serve_has_aliases(const struct frag_serve *s);

/* As empty_cache. */
enum frag_err frag_serve_trim(struct frag_serve *s,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* Ends the service: the numbers, with segment rows of now. Only close() may
 * follow, which frees them. NOMEM: without the rows. */
enum frag_err frag_serve_sum(struct frag_serve *s,
                             const struct frag_run **out) FRAG_MUST_CHECK;

/* Bytes now and at most so far. */
struct frag_serve_memory {
    frag_size reserved, peak_reserved, peak_allocated;
};
struct frag_serve_memory frag_serve_memory(const struct frag_serve *s);

/* For a frag_run_identity; its count is the events so far once the service has
 * ended. */
const struct frag_device_trace *frag_serve_device(const struct frag_serve *s);

/* Gives everything back to mem; NULL is fine. */
void frag_serve_close(struct frag_serve *s);

FRAG_END_DECLS

#endif
