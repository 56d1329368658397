/* calibrate.h - times what a device's memory calls cost, through its backend.
 *
 * As a replay calls them: of each size several are taken one after another, all
 * held at once, then given back in that order, and between two calls the host
 * does something else, so that its caches are as a program leaves them. A round
 * goes through all calls and sizes, so that what disturbs the machine for a
 * while disturbs one round and not one size.
 *
 * Nothing here is of CUDA: on the arena the arena's own cost model comes out.
 */
#ifndef FRAG_REAL_DEVICE_CALIBRATE_H
#define FRAG_REAL_DEVICE_CALIBRATE_H

#include "policies/device/backend.h"
#include "real/device/timings.h"

struct frag_calibration {
    struct frag_backend *mem; /* borrowed; nothing held */
    frag_size room;           /* bytes to hold at most, >= 2 granules */
    unsigned rounds;          /* >= 1, and one more to warm up */
    /* Called before each round; a true answer ends it with CANCELLED. May be
     * NULL. */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

/* Adds to *out, `about` left alone. NOMEM, CANCELLED, UNSUPPORTED (no virtual
 * memory), or what a call answered, OOM too. On error everything is given back
 * to mem (what does not go at the second try stays), and *out holds what was
 * timed so far. */
enum frag_err frag_calibrate(const struct frag_calibration *c,
                             struct frag_timings *out,
                             struct frag_error *e) FRAG_MUST_CHECK;

/* How slow the machine is just now: what a fixed series of calls takes, timed
 * in the same way after a warm-up, over what the costs say of it. 1 where the
 * costs are of this machine and nothing disturbs it, or where room, the bytes
 * to hold at most, is for none of them. Errors as above, but for CANCELLED; on
 * error *pace is untouched. */
enum frag_err frag_pace(struct frag_backend *mem, frag_size room,
                        const struct frag_costs *costs, double *pace,
                        struct frag_error *e) FRAG_MUST_CHECK;

#endif
