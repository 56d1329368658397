/* start.h - whether a run can take over the recorded layout. A recording may
 * begin late, when segments were held already; a run on memory that cannot hold
 * them starts from the live blocks instead, and its summary says so.
 */
#ifndef FRAG_SIM_EXPERIMENTS_START_H
#define FRAG_SIM_EXPERIMENTS_START_H

#include "sim/replay/replay.h"
#include "traces/base.h"

/* Bytes of a bound of that kind that the recorded layout uses; 0 if it is
 * empty.
 */
frag_size start_held(const struct frag_device_trace *trace,
                     enum frag_bound_kind kind);

/* Whether a run with these parameters, which may be NULL, makes segments of the
 * kind that the recorded layout has. A layout of the other kind is no start:
 * without expandable_segments, PyTorch serves nothing from an expandable
 * segment, and with it no job begins with ordinary ones only. */
bool start_has_kind(const struct frag_device_trace *trace,
                    const struct frag_policy *policy, const char *params);

/* Whether frag_replay should try adopt_start under this bound: the policy can
 * adopt a layout, the layout has the kind and fits, and it has every block of
 * the first `initial` events. frag_replay then still returns UNSUPPORTED for a
 * layout that the policy or the memory rejects; the caller repeats the run
 * without adopt_start, on fresh memory. */
bool start_is_adoptable(const struct frag_device_trace *trace,
                        const struct frag_policy *policy, const char *params,
                        struct frag_bound bound);

#endif
