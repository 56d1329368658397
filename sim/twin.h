/* twin.h - a backend that makes every call on a real device and on its
 * simulation (the arena), so that both costs of each call are known.
 *
 * A call that acquires memory goes to the arena first, and to the device only
 * if the arena serves it. A call that returns memory goes to the device first.
 * The device is thus limited to exactly the arena's capacity. The policy sees
 * the addresses of the device.
 *
 * If the device refuses a call that the arena served, the caller receives the
 * device's error, and the twin undoes the call on the arena.
 *
 * The peak of the twin is that of the arena: the device made the same calls,
 * and cannot say how much of it each of them took.
 *
 * The modelled time of a call includes the wait for memory that the device must
 * clear first (policies/device/costs.h). The model assumes that calls follow
 * each other without a pause, as they do in a replay.
 */
#ifndef FRAG_SIM_TWIN_H
#define FRAG_SIM_TWIN_H

#include "policies/device/backend.h"
#include "policies/device/costs.h"

FRAG_BEGIN_DECLS

/* The sums over all calls of one kind. */
struct frag_twin_cost {
    uint64_t calls;
    uint64_t bytes;               /* sum of the sizes of the calls */
    frag_time modelled, measured; /* ns: by the arena, by the device */
};

/* Opens a twin of `device` and `arena`. Both are borrowed, hold no memory, and
 * must be closed after the twin. The clock of the twin (`now`) is the time
 * spent in calls of the device. NOMEM; then *out is untouched. */
enum frag_err frag_twin_open(struct frag_backend *device,
                             struct frag_backend *arena,
                             struct frag_backend **out) FRAG_MUST_CHECK;
void frag_twin_close(struct frag_backend *twin); /* NULL is allowed */

/* The costs of all calls of one kind so far. */
struct frag_twin_cost frag_twin_cost(const struct frag_backend *twin,
                                     enum frag_driver_call call);

/* Number of calls that the arena served and the device refused with OOM. */
uint64_t frag_twin_refusals(const struct frag_backend *twin);

FRAG_END_DECLS

#endif
