/* figure_track.h - the history of one replay: the addresses of every block and
 * of all reserved ranges, over events, as sim/export/tap.h reports them.
 */
#ifndef FRAG_SIM_CLI_FIGURES_FIGURE_TRACK_H
#define FRAG_SIM_CLI_FIGURES_FIGURE_TRACK_H

#include "sim/cli/output/progress.h"
#include "sim/experiments/choices.h"
#include "sim/replay/replay.h"

/* A device of a trace, and the policy that replays it; borrowed. */
struct trace_view {
    const struct frag_trace *trace; /* of the device */
    const struct frag_device_trace *device;
    const char *name; /* of the trace */
    const struct policy_choice *policy;
    const struct frag_params *params; /* of the policy */
    struct frag_bound bound;
    struct progress *progress;
};

/* A block or a reserved range over time: it exists from event `from` to event
 * `to` (not included). */
struct span {
    frag_addr addr;
    frag_size size;
    uint64_t from, to;
    uint64_t asked; /* of a block: the event of its request */
};

struct spans {
    struct span *items;
    size_t count;
    uint64_t room;
};

struct figure_track {
    struct spans blocks, reserved;
    frag_size *held;     /* [events]: bytes reserved after each event */
    struct frag_run run; /* summary and OOMs of the replay */
};

/* Replays the trace of v. Errors of frag_replay; then nothing need be freed.
 * Host memory: about 8 bytes for each event and 40 for each span. */
enum frag_err track_make(const struct trace_view *v, struct figure_track *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void track_free(struct figure_track *t);

#endif
