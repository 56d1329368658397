/* summary.h - the counters of an allocator at one event of a trace, as
 * torch.cuda.memory_summary() prints them, and the fragmentation at that event,
 * which PyTorch does not print.
 *
 * The allocator is the recorded one or any policy. The recorded one is
 * repeated: the policy torch runs with the recorded settings, memory limit and
 * addresses of segments, from the memory that was held when the recording
 * began. The counters of a recording that begins with the job therefore equal
 * PyTorch's.
 */
#ifndef FRAG_SIM_ANSWERS_SUMMARY_SUMMARY_H
#define FRAG_SIM_ANSWERS_SUMMARY_SUMMARY_H

#include <stdio.h>

#include "policies/torch/torch.h"
#include "sim/experiments/cell.h"
#include "sim/results/json.h"

/* A counter that is not known for the policy. */
#define SUMMARY_UNKNOWN UINT64_MAX

/* The run to summarize. All pointers are borrowed for the call of summary_make.
 */
struct summary_spec {
    const struct frag_trace *trace;
    const struct frag_device_trace *device; /* a device of the trace */
    uint64_t event;                   /* the moment is directly after it */
    const struct frag_params *params; /* the policy; NULL: the recorded
                                         allocator */
    struct frag_bound bound;
    frag_size recorded_total; /* of the recorded allocator's device, in bytes;
                                 0: FRAG_H200_TOTAL */
    const struct cell_settings *settings; /* of a policy */
    /* As in struct frag_replay; may be NULL. */
    frag_progress *progress;
    void *user;
};

/* Fragmentation directly after the event, and from the first event to this one.
 * Ratios are NAN if the divisor is 0. */
struct summary_fragmentation {
    double now;             /* 1 - allocated / reserved */
    double external;        /* 1 - largest free range / free */
    double internal;        /* 1 - requested / allocated */
    double overhead;        /* reserved / requested */
    double so_far;          /* 1 - peak allocated / peak reserved */
    double mean;            /* mean over events of 1 - allocated / reserved */
    double overhead_so_far; /* peak reserved / peak requested */
    double gap;             /* peak reserved / lower bound - 1 */
    frag_size lower_bound;  /* bytes; as in struct frag_summary */
    frag_size free;         /* bytes: reserved - active */
    frag_size largest_free; /* bytes */
    struct frag_breakdown parts; /* of the reserved bytes. The free parts are
                                    relative to the request of the event */
};

enum { SUMMARY_NOTES = 5, SUMMARY_NOTE = 320 };

struct summary {
    uint32_t device;
    uint64_t event, events; /* of the trace */
    const char *policy;     /* name */
    char *params;
    bool is_recorded; /* the recorded allocator */
    bool is_snapshot; /* no event was recorded: only current values are known,
                         those of the moment of the snapshot */
    bool has_pools;   /* the policy has PyTorch's large and small pools */
    bool is_pytorch;  /* the program was recorded by PyTorch, and the policy
                         has its pools: the title is that of PyTorch */
    /* A counter that is not known is SUMMARY_UNKNOWN. Without pools, only
     * FRAG_TORCH_ALL is set. */
    struct frag_torch_counters counters;
    /* The reserved bytes of each pool of the trace, a row of the table of its
     * device; NULL: the policy does not count them, or only one pool occurs. */
    struct frag_torch_pool_count *by_pool;
    const struct frag_trace *trace; /* of the spec, as trace_device */
    const struct frag_device_trace *trace_device;
    struct summary_fragmentation fragmentation;
    size_t note_count;
    char notes[SUMMARY_NOTES][SUMMARY_NOTE]; /* what the numbers leave out, a
                                                sentence each */
};

/* Whether the trace has what the recorded allocator answered, or at least what
 * it held, so that summary_spec.params may be NULL. */
bool summary_has_recorded(const struct frag_device_trace *d);

/* Runs the trace up to the event and fills *out, which the caller passes to
 * summary_close.
 * INVALID if the device has no
 * such event; UNSUPPORTED without params if !summary_has_recorded or if the
 * start of the recording cannot be rebuilt; errors of frag_replay. On error
 * *out is untouched. */
enum frag_err summary_make(const struct summary_spec *spec, struct summary *out,
                           struct frag_error *e) FRAG_MUST_CHECK;

void summary_close(struct summary *s);

/* Prints the text of memory_summary, byte for byte if the allocator is
 * PyTorch's. A policy without pools has no rows of them. An unknown counter is
 * "-". */
void summary_print_counters(const struct summary *s, FILE *out);
/* Prints what each pool reserved, if there are several, in the same width. */
void summary_print_pools(const struct summary *s, FILE *out);
/* Prints the section on fragmentation in the same width, and the notes. */
void summary_print_fragmentation(const struct summary *s, FILE *out);

/* Writes the members of an object with all of that; an unknown number is null.
 */
void summary_json(const struct summary *s, struct frag_json *j);

#endif
