/* cell.h - one cell of a grid: a device's trace against a policy at a capacity,
 * and the options that say on what kind of device. replay, sweep, fit and tune
 * run their cells here.
 */
#ifndef FRAG_SIM_EXPERIMENTS_CELL_H
#define FRAG_SIM_EXPERIMENTS_CELL_H

#include "policies/device/costs.h"
#include "sim/cli/options.h"
#include "sim/cli/output/inputs.h"
#include "sim/results/results.h"

enum {
    CELL_POINTS = 2000, /* of a series: twice the pixels of a figure */
    CELL_OOMS = 1000,   /* rows of /runs/N/oom */
};

/* What the options below gave: the member `cell` of a verb's values. Zeroed is
 * the default but for the device. */
struct cell_values {
    struct texts policies, capacities;
    const char *costs;
    uint64_t device; /* INPUT_ANY_DEVICE: all */
    frag_size total, limit;
    uint64_t gpu;     /* of the cuda backend */
    unsigned backend; /* index in cell_backends */
    unsigned rule;    /* enum frag_address_rule */
    bool stop_at_oom, check;
};

#define CELL_DEFAULTS              \
    {                              \
        .device = INPUT_ANY_DEVICE \
    }

/* Rows of a verb's options; AT is offsetof the field in its values. */
/* clang-format off */
#define CELL_POLICY_OPTION(AT)                                                 \
    {"policy", 'p', "POLICY",                                                  \
     "NAME or NAME:PARAMS, once for each; torch@recorded takes the settings "  \
     "the trace carries, ./FILE.so[:PARAMS] is a policy of your own "          \
     "(default: torch; see `fragsim policies`)",                               \
     OPTION_LIST, AT(cell.policies), NULL}

#define CELL_GRID_OPTIONS(AT)                                                  \
    CELL_POLICY_OPTION(AT),                                                    \
    {"capacity", 'c', "SIZE,...",                                              \
     "memory of the device: 24GiB, 0.9x of the trace's peak requested, or inf "\
     "(default)",                                                              \
     OPTION_LIST, AT(cell.capacities), NULL}

/* What the device is, and which of a trace's. */
#define CELL_MODEL_OPTIONS(AT)                                                 \
    {"device", 0, "N", "only this device of the trace (default: all)",         \
     OPTION_NUMBER, AT(cell.device), NULL},                                    \
    {"costs", 0, "FILE",                                                       \
     "what driver calls cost, as CSV: call,fixed_ns,ns_per_mib (default: an "  \
     "H200's, measured)",                                                      \
     OPTION_TEXT, AT(cell.costs), NULL},                                       \
    {"total", 0, "SIZE",                                                       \
     "the device's memory as it reports it, from which PyTorch computes its "  \
     "fraction (default: the capacity, or an H200's)",                         \
     OPTION_SIZE, AT(cell.total), NULL},                                       \
    {"limit", 0, "SIZE",                                                       \
     "memory limit inside the recorded allocator, if it had one; helps to tell "\
     "an empty_cache call from a retry",                                       \
     OPTION_SIZE, AT(cell.limit), NULL},                                       \
    {"address-rule", 0, "RULE",                                                \
     "where the device puts segments: driver (default) or hostile, which "     \
     "never uses an address again",                                            \
     OPTION_CHOICE, AT(cell.rule), "driver|hostile"}

#define CELL_RUN_OPTIONS(AT)                                                   \
    {"stop-at-oom", 0, NULL,                                                   \
     "end a run with the first request that cannot be met; otherwise it is "   \
     "skipped with its free, and the run goes on",                             \
     OPTION_SWITCH, AT(cell.stop_at_oom), NULL},                               \
    {"check", 0, NULL,                                                         \
     "prove every answer of the policy: aligned, inside held memory, apart "   \
     "from every live block (slower); with --backend cuda also that blocks "   \
     "keep their contents",                                                    \
     OPTION_SWITCH, AT(cell.check), NULL}

#define CELL_DEVICE_OPTIONS(AT)                                                \
    {"backend", 0, "NAME",                                                     \
     "memory under the policies: arena, which simulates a device (default), "  \
     "or cuda, a GPU of this machine",                                         \
     OPTION_CHOICE, AT(cell.backend), "arena|cuda"},                           \
    {"gpu", 0, "N", "which GPU, for --backend cuda (default: 0)",              \
     OPTION_NUMBER, AT(cell.gpu), NULL},                                       \
    CELL_RUN_OPTIONS(AT),                                                      \
    CELL_MODEL_OPTIONS(AT)
/* clang-format on */

struct cell_settings;

/* Memory for one run, and what it is made of. */
struct cell_memory {
    struct frag_backend *mem;             /* for the policy */
    const struct frag_contents *contents; /* NULL if it has none to check */
    struct frag_backend *arena, *device, *twin; /* parts; NULL if not used */
    struct frag_pattern *pattern;
    struct frag_contents checks;
};

/* Where the memory under a policy comes from; one line a backend in cell.c. */
struct cell_backend {
    const char *name; /* as `--backend` takes it and results say it */
    /* Fresh memory of that capacity; NOMEM, DEVICE. */
    enum frag_err (*open)(const struct cell_settings *s, frag_size capacity,
                          struct cell_memory *out, struct frag_error *e);
    void (*close)(struct cell_memory *m);
};

extern const struct cell_backend cell_backends[];

/* A GPU that keeps to an arena's capacity and is timed call by call, see
 * sim/twin.h: cell_cuda.c. */
enum frag_err cell_cuda_open(const struct cell_settings *s, frag_size capacity,
                             struct cell_memory *out,
                             struct frag_error *e) FRAG_MUST_CHECK;
void cell_cuda_close(struct cell_memory *m);

/* The same for every cell of a grid; read only while cells run. */
struct cell_settings {
    const struct cell_backend *backend;
    struct frag_costs costs;
    frag_size total; /* 0: the capacity, or an H200's */
    unsigned rule;   /* enum frag_address_rule */
    int gpu;
    bool stop_at_oom, check;
    bool timed;      /* false: ns_per_event is NAN, so that equal runs make
                        equal files */
    uint64_t points; /* of the series; 0: none */
    uint64_t ooms;   /* rows of OOMs kept at most */
};

/* From the options, with the costs' file read: IO, CORRUPT. points are 0, ooms
 * CELL_OOMS, timed unless SOURCE_DATE_EPOCH is set. */
enum frag_err cell_settings_read(const struct cell_values *v,
                                 struct cell_settings *out,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* What makes results comparable, as "address_rule=driver,costs=h200,...": two
 * cells with the same trace, policy, capacity and text have the same numbers.
 * The text is to be freed; NULL if there is no memory. */
char *cell_settings_text(const struct cell_settings *s, frag_size limit);

/* Runs one; id says what (device, policy_used, capacity), and gets backend,
 * total and stopped_at_oom. tick and user are frag_replay's progress. Errors as
 * frag_replay; out is to be freed. Nothing is shared with other cells but what
 * is const: threads may run one each. */
enum frag_err cell_run(const struct cell_settings *s,
                       struct frag_run_identity *id, const char *params,
                       bool (*tick)(void *user, uint64_t done, uint64_t total),
                       void *user, struct frag_run *out,
                       struct frag_error *e) FRAG_MUST_CHECK;

/* The same on memory that the caller has opened, and closes. */
enum frag_err
cell_replay(const struct cell_settings *s, const struct cell_memory *m,
            const struct frag_run_identity *id, const char *params,
            bool (*tick)(void *user, uint64_t done, uint64_t total), void *user,
            struct frag_run *out, struct frag_error *e) FRAG_MUST_CHECK;

/* The arena of the settings, which is closed by frag_arena_close. */
enum frag_err cell_arena(const struct cell_settings *s, frag_size capacity,
                         frag_size total, struct frag_backend **out,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
