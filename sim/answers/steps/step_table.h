/* step_table.h - what each step of a trace needs under a policy.
 *
 * The trace is cut into parts: the events before the first complete step, the
 * complete steps, and the events after the last one. The trace is replayed
 * once, and each part gets the peaks and counts of its own events. The words
 * are those of sim/measures.h.
 */
#ifndef FRAG_SIM_ANSWERS_STEPS_STEP_TABLE_H
#define FRAG_SIM_ANSWERS_STEPS_STEP_TABLE_H

#include "policies/policy.h"
#include "sim/experiments/cell.h"
#include "traces/steps/steps.h"

enum step_part_kind { STEP_BEFORE, STEP_COMPLETE, STEP_AFTER };

extern const char *const step_part_names[]; /* "before", "step", "after" */

struct step_part {
    enum step_part_kind kind;
    uint64_t step;     /* from 1; 0 unless the part is a complete step */
    uint64_t from, to; /* the events from ... to - 1 */
    frag_size live;    /* requested where the part begins */
    frag_size peak_requested, peak_allocated, peak_reserved;
    double fragmentation; /* 1 - peak allocated / peak reserved, of the part */
    uint64_t driver_calls, retries, ooms;
    double seconds; /* from its first event to the first of the next part;
                       NAN if no times were recorded */
};

struct step_table {
    struct frag_bound bound; /* of the replay */
    struct frag_steps steps;
    uint64_t count;          /* of parts; parts without events are left out */
    struct step_part *items; /* in order */
    struct frag_summary summary; /* of the whole run */
};

/* The run to replay; borrowed for the call. */
struct step_spec {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *mark; /* as for frag_steps_find */
    const struct frag_params *policy;
    const struct cell_settings *settings; /* of the arena */
    struct frag_bound bound;
    bool repeats;            /* as in struct frag_run_identity */
    frag_progress *progress; /* or NULL */
    void *user;
};

/* Makes the table. The steps of a job that died are searched before the request
 * of which it died. The caller closes *out. Errors of frag_steps_find and
 * frag_replay; on error *out need not be closed. */
enum frag_err step_table_make(const struct step_spec *spec,
                              struct step_table *out,
                              struct frag_error *e) FRAG_MUST_CHECK;
void step_table_close(struct step_table *t);

#endif
