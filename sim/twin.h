/* twin.h - a device and its simulation, side by side under one policy.
 *
 * A call that takes memory is made to the arena first and, if that serves it,
 * to the device; one that gives back to the device first. So the device keeps
 * to the arena's capacity to the byte, and what each call costs is known twice:
 * as modelled and as measured. Addresses are the device's. A call that needs
 * memory which the device has yet to clear (policies/device/costs.h) is
 * modelled with that wait, as if calls followed each other at once, as they do
 * in a replay.
 *
 * Where the device refuses what the arena served, the answer is the device's
 * and the arena is as it was.
 */
#ifndef FRAG_SIM_TWIN_H
#define FRAG_SIM_TWIN_H

#include "policies/device/backend.h"
#include "policies/device/costs.h"

FRAG_BEGIN_DECLS

/* Of one kind of call; times in ns. */
struct frag_twin_cost {
    uint64_t calls;
    uint64_t bytes; /* that they were about, together */
    frag_time modelled, measured;
};

/* Both are borrowed, fresh, and closed after the twin. `now` is the time spent
 * in the device's calls. NOMEM. */
enum frag_err frag_twin_open(struct frag_backend *device,
                             struct frag_backend *arena,
                             struct frag_backend **out) FRAG_MUST_CHECK;
void frag_twin_close(struct frag_backend *twin); /* NULL is fine */

struct frag_twin_cost frag_twin_cost(const struct frag_backend *twin,
                                     enum frag_driver_call call);

/* Requests that the arena would have served and the device refused. */
uint64_t frag_twin_refusals(const struct frag_backend *twin);

FRAG_END_DECLS

#endif
