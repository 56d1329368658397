/* cell.h - runs one cell of a grid: the trace of a device, a policy, and a
 * bound. replay, sweep, tune and compare run their cells here.
 */
#ifndef FRAG_SIM_EXPERIMENTS_CELL_H
#define FRAG_SIM_EXPERIMENTS_CELL_H

#include "policies/device/costs.h"
#include "sim/experiments/reading.h"
#include "sim/replay/replay.h"
#include "sim/results/results.h"

enum {
    CELL_POINTS = 2000, /* of a series: twice the pixels of a figure */
    CELL_OOMS = 1000,   /* rows of /runs/N/oom */
};

struct cell_settings;

/* Memory for one run. */
struct cell_memory {
    struct frag_backend *mem;             /* for the policy */
    const struct frag_contents *contents; /* NULL: contents are not checked */
    void *parts;                          /* private to the backend */
};

/* Opens and closes the memory from which policies allocate. */
struct cell_backend {
    const char *name; /* as in the results */
    /* Opens unused memory with that bound; NOMEM, DEVICE. */
    enum frag_err (*open)(const struct cell_settings *s,
                          struct frag_bound bound, struct cell_memory *out,
                          struct frag_error *e);
    /* Why the device failed; "" if it did not fail. If it failed, no number of
     * the run is valid. NULL for a backend that cannot fail. */
    const char *(*fault)(const struct cell_memory *m);
    void (*close)(struct cell_memory *m);
};

/* The simulated device. */
extern const struct cell_backend cell_arena_backend;

/* Which runs are checked, event by event: blocks overlap no other block and lie
 * in reserved memory (frag_replay's check). */
enum cell_check {
    CELL_CHECK_PLUGINS, /* those of policies in shared libraries */
    CELL_CHECK_ALL,     /* and the contents of blocks, if the backend has any */
    CELL_CHECK_NONE,
};

/* The settings that all cells of a grid share; read only while cells run. */
struct cell_settings {
    const struct cell_backend *backend;
    struct frag_costs costs;
    frag_size total;   /* memory that the device reports; 0: the capacity, or an
                          H200's memory if the capacity is unlimited */
    unsigned rule;     /* enum frag_address_rule */
    int gpu;           /* number of the GPU; ignored by the arena */
    frag_size quantum; /* bytes to which every policy rounds requests
                          (policy_choices_quantum); 0: each has its own */
    bool stop_at_oom;
    bool from_requests; /* no run adopts the recorded layout (start.h), so that
                           all runs of a comparison begin alike; a GPU cannot
                           adopt a layout */
    enum cell_check check;
    bool timed;      /* false: ns_per_event is NAN, so that equal runs make
                        equal files */
    uint64_t points; /* of the series of memory over events; 0: no series */
    uint64_t ooms;   /* upper bound on the rows of OOMs */
    unsigned need;   /* 0, or 1 + a frag_bound_kind: for runs without a bound, a
                        sweep seeks the least bound of that kind from which on
                        nothing fails (capacity/) */
};

/* Whether an error of a run says nothing about the other cells of a grid: its
 * device or its policy failed. */
static inline bool cell_fails_alone(enum frag_err err)
{
    return err == FRAG_DEVICE || err == FRAG_CONTRACT;
}

/* The settings that make results comparable, as the text
 * "backend=arena,address_rule=driver,costs=h200,...". Two cells with the same
 * trace, policy, bound and text have the same numbers. The text also says how
 * the traces are read. The caller frees the text; NULL if the host has no
 * memory. */
char *cell_settings_text(const struct cell_settings *s,
                         const struct trace_reading *reading);

/* The address rule for the device of a trace: pinned host memory is not counted
 * in the driver's units of 2 MiB. */
unsigned cell_rule(const struct cell_settings *s,
                   const struct frag_device_trace *trace);

/* Whether the ledger checks the runs of this policy. */
bool cell_is_checked(const struct cell_settings *s,
                     const struct frag_policy *policy);

/* Runs a cell on fresh memory, from the recorded layout if the policy and the
 * memory can hold it (start.h), else from the blocks that are live at the start
 * of the trace. *id contains the
 * policy and the bound; cell_run sets its backend, total, stopped_at_oom and
 * checked. tick and user are frag_replay's progress. Errors of frag_replay and
 * of the backend's open; the caller frees *out. Cells share constant data only,
 * so several threads may run one cell each. */
enum frag_err cell_run(const struct cell_settings *s,
                       const struct frag_device_trace *trace,
                       struct frag_run_identity *id,
                       const struct frag_params *params, frag_progress *tick,
                       void *user, struct frag_run *out,
                       struct frag_error *e) FRAG_MUST_CHECK;

/* As cell_run, on memory that the caller opens and closes. The run does not
 * adopt the recorded layout. */
enum frag_err cell_replay(const struct cell_settings *s,
                          const struct cell_memory *m,
                          const struct frag_device_trace *trace,
                          const struct frag_params *params, frag_progress *tick,
                          void *user, struct frag_run *out,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* Opens an arena for the runs of a trace. Segments get their recorded addresses
 * if all of these hold: `repeats` is set (frag_run_identity), the trace has
 * recorded addresses, and the rule is the driver's. cell_close_arena closes it.
 * NOMEM. */
enum frag_err cell_open_arena(const struct cell_settings *s,
                              const struct frag_device_trace *trace,
                              struct frag_bound bound, bool repeats,
                              struct cell_memory *out,
                              struct frag_error *e) FRAG_MUST_CHECK;
void cell_close_arena(struct cell_memory *m);

/* Opens an arena with the costs and the address rule of the settings;
 * frag_arena_close closes it. NOMEM. */
enum frag_err cell_arena(const struct cell_settings *s, struct frag_bound bound,
                         frag_size total, struct frag_backend **out,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
