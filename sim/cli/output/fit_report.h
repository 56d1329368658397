/* fit_report.h - the output of `fragsim fit`: one row for each policy, as JSON,
 * CSV and a table, and the frontier with one row for each span of capacities.
 * Each output appears complete after the last policy, or not at all.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_FIT_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_FIT_REPORT_H

#include "sim/cli/output/report.h"
#include "sim/experiments/capacity/spans.h"

struct fit_report {
    struct report_texts texts; /* own: the frontier; with it the spans reach up
                                  to the peak reserved without a bound */
    frag_size size;            /* that the needs are compared with, or
                                  FRAG_UNLIMITED */
    size_t misfits;            /* policies that do not fit */
};

/* The device's trace and the policy of a capacity search; borrowed. */
struct fit_subject {
    const char *name; /* of the trace */
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const struct policy_choice *policy;
    const char *params; /* all parameters of the policy */
    const struct cell_settings *settings;
    enum frag_bound_kind kind; /* of the bounds */
};

/* The result of the search for one policy. */
struct fit_found {
    struct frag_capacity_span unlimited;
    struct frag_capacity_span need;   /* as by frag_capacity_need */
    struct frag_capacity_spans spans; /* ascending; they reach at least to the
                                         first span that survives, and if none
                                         survives, the policy fits nowhere */
};

/* Whether each policy fits in `size` follows the table; FRAG_UNLIMITED: nothing
 * does. On IO or NOMEM nothing is left open. */
enum frag_err fit_report_open(struct fit_report *r, const struct call *call,
                              const struct outputs *to, frag_size size,
                              struct frag_error *e) FRAG_MUST_CHECK;
/* Adds one policy, and the notes of its run at the need, or else without a
 * bound, to `notes`. NOMEM. */
enum frag_err fit_report_add(struct fit_report *r, const struct fit_subject *on,
                             const struct fit_found *found,
                             struct cell_note_list *notes,
                             struct frag_error *e) FRAG_MUST_CHECK;
#endif
