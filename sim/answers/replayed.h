/* replayed.h - replays a device for an answer, by default as the recorded
 * allocator was set. */
#ifndef FRAG_SIM_ANSWERS_REPLAYED_H
#define FRAG_SIM_ANSWERS_REPLAYED_H

#include "sim/experiments/cell.h"
#include "sim/experiments/devices.h"

struct replay_settings {
    const struct cell_settings *cell;
    const char *policy; /* NULL: see replayed_policy */
    const char *mark;   /* of the steps, as in frag_steps_find */
    /* As in frag_replay; may be NULL. */
    frag_progress *tick;
    void *user;
};

/* The text of the policy: `asked`, or without it "torch@recorded" if the trace
 * has the settings of its allocator, else "torch". */
const char *replayed_policy(const struct frag_trace *t, const char *asked);

/* Replays the device under the bound of recording_bound_for. The caller frees
 * *out with frag_run_free. INVALID if the policy is not one, CORRUPT if the
 * device has no history, and the errors of cell_run; on error *out is
 * untouched. */
enum frag_err replayed_run(const struct replay_settings *s,
                           const struct input *in, frag_size capacity,
                           struct frag_run *out,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* All calls of the driver of a run. */
uint64_t replayed_calls(const struct frag_summary *s);

/* The steps of the recording and how fast the live bytes grow. */
struct replayed_steps {
    uint64_t count;
    int64_t growth; /* bytes a step; 0 if there are fewer than two steps */
};

/* Errors of frag_steps_find. */
enum frag_err replayed_steps(const struct replay_settings *s,
                             const struct input *in, struct replayed_steps *out,
                             struct frag_error *e) FRAG_MUST_CHECK;

#endif
