/* track.h - where every block lay, and what was reserved, over one replay.
 *
 * Blocks come from the replay's watch and from the moves that a policy reports,
 * reserved ranges from a backend that stands between the policy and the arena.
 */
#ifndef FRAG_SIM_CLI_FIGURES_TRACK_H
#define FRAG_SIM_CLI_FIGURES_TRACK_H

#include "sim/cli/figures/figure.h"

/* Bytes at an address from one event to another (not included). */
struct span {
    frag_addr addr;
    frag_size size;
    uint64_t from, to;
    uint64_t asked; /* of a block: the event that asked for it */
};

struct spans {
    struct span *items;
    size_t count;
    uint64_t room;
};

struct track {
    struct spans blocks, reserved;
    struct frag_run run; /* its summary and OOMs */
};

/* Replays the trace of v. Errors of frag_replay; then nothing need be freed. A
 * host byte for each event, about. */
enum frag_err track_make(const struct trace_view *v, struct track *out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void track_free(struct track *t);

#endif
