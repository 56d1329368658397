/* cell_options.h - the options for policies, capacities and the kind of device,
 * which several commands share, and their conversion to struct cell_settings.
 */
#ifndef FRAG_SIM_CLI_CELL_OPTIONS_H
#define FRAG_SIM_CLI_CELL_OPTIONS_H

#include "real/device/gpus.h"
#include "sim/cli/options.h"
#include "sim/experiments/cell.h"
#include "sim/experiments/devices.h"
#include "sim/experiments/reading.h"
#include "traces/nearest.h"

/* The values of the options below: the member `cell` of the values of a verb.
 * All fields are zero by default, except the device. */
struct cell_values {
    struct texts policies, bounds[FRAG_BOUND_KINDS];
    const char *costs;
    uint64_t device; /* INPUT_ANY_DEVICE: all */
    frag_size total, limit;
    uint64_t gpu;     /* number of the GPU, for the cuda backend */
    unsigned backend; /* index of its word in CELL_DEVICE_OPTIONS */
    unsigned rule;    /* enum frag_address_rule */
    bool stop_at_oom, check;
    bool as_recorded;
    uint64_t further; /* 0: the default */
    const char *mark; /* NULL: the best source of steps */
};

#define CELL_DEFAULTS              \
    {                              \
        .device = INPUT_ANY_DEVICE \
    }

/* Rows for the option table of a verb; AT is offsetof of a field in its values.
 */
/* clang-format off */
#define CELL_POLICY_OPTION(AT)                                                 \
    {"policy", 'p', "POLICY", OPTION_LIST, AT(cell.policies), NULL,            \
     "NAME or NAME:PARAMS; repeat the option for more policies. "              \
     "torch@recorded uses the settings of the trace, torch@2.6[:PARAMS] the "  \
     "rules of PyTorch 2.6, ./FILE.so[:PARAMS] is a policy in a shared "       \
     "library (default: torch; see `fragsim policies`)"}

#define CELL_GRID_OPTIONS(AT)                                                  \
    CELL_POLICY_OPTION(AT),                                                    \
    {"capacity", 'c', "SIZE,...", OPTION_LIST,                                 \
     AT(cell.bounds[FRAG_BOUND_CAPACITY]), NULL,                               \
     "memory of the device, beyond which the driver refuses: a size such as "  \
     "24GiB, a share of the trace's peak requested such as 0.9x, or inf "      \
     "(default)"},                                                             \
    CELL_LIMIT_OPTION(AT)

#define ONE_GPU_OPTION(at)                                                     \
    {"gpu", 0, "NAME", OPTION_TEXT, at, NULL,                                  \
     "in place of --capacity: what a process can allocate of this GPU, "       \
     FRAG_GPU_IDS}

/* The one bound of an answer: FIELD is a struct one_bound. */
#define ONE_BOUND_OPTIONS(AT, FIELD)                                           \
    {"capacity", 'c', "SIZE", OPTION_SIZE, AT(FIELD.capacity), NULL,           \
     "memory of the device, beyond which the driver refuses"},                 \
    ONE_GPU_OPTION(AT(FIELD.gpu)),                                             \
    {"process-limit", 0, "SIZE", OPTION_SIZE, AT(FIELD.limit), NULL,           \
     "memory limit of the process, as PyTorch's "                              \
     "set_per_process_memory_fraction sets it"}

#define CELL_LIMIT_OPTION(AT)                                                  \
    {"process-limit", 0, "SIZE,...", OPTION_LIST,                              \
     AT(cell.bounds[FRAG_BOUND_LIMIT]), NULL,                                  \
     "memory limit of the process, as PyTorch's "                              \
     "set_per_process_memory_fraction sets it, beyond which the allocator "    \
     "refuses before the driver is asked, on a device with memory enough; "    \
     "written as a capacity"}

/* The model of the device, and the choice of a device of the trace. */
#define CELL_MODEL_OPTIONS(AT)                                                 \
    {"device", 0, "N", OPTION_DEVICE, AT(cell.device), NULL,                   \
     "run only this device of the trace (default: all)"},                      \
    {"costs", 0, "FILE", OPTION_TEXT, AT(cell.costs), NULL,                    \
     "costs of driver calls: a CSV file call,fixed_ns,ns_per_mib, or the "     \
     "name of a device whose costs were measured, h200 or h100 (default: "     \
     "h200; with compare, the GPU's own where they were measured)"},           \
    {"total", 0, "SIZE", OPTION_TOTAL, AT(cell.total), NULL,                   \
     "memory that the whole device reports; PyTorch derives its memory "       \
     "fraction and the address range of expandable segments from it. If "      \
     "other programs hold a part of the device, the capacity is what they "    \
     "leave (default: the capacity; for inf, an H200's memory)"},              \
    RECORDED_LIMIT_OPTION(AT(cell.limit)),                                        \
    {"as-recorded", 0, NULL, OPTION_SWITCH, AT(cell.as_recorded), NULL,        \
     "take the trace of a job that died as it was recorded; by default it is " \
     "completed: the step in which the job died is finished, and steps like "  \
     "the recorded ones follow"},                                              \
    {"further-steps", 0, "N", OPTION_NUMBER, AT(cell.further), NULL,           \
     "whole steps that follow in a completed trace (default: as many as were " \
     "recorded, but 3 to 32)"},                                                \
    STEP_MARK_OPTION(AT(cell.mark)),                                           \
    {"address-rule", 0, "RULE", OPTION_CHOICE, AT(cell.rule),                  \
     "driver|hostile|exact",                                                   \
     "how the device chooses the addresses of segments and counts their "      \
     "bytes: driver (default), in units of 2 MiB; hostile, which never uses "  \
     "an address again; or exact, the driver's addresses, but a segment uses " \
     "exactly its own bytes"}

/* CONTENTS names what --check verifies in addition: "" or CELL_CONTENTS. */
#define CELL_CHECK_OPTIONS(AT, CONTENTS)                                       \
    {"check", 0, NULL, OPTION_SWITCH, AT(cell.check), NULL,                    \
     "verify every block that the policy allocates: it is aligned, lies "      \
     "inside allocated device memory, and overlaps no live block (slower)"     \
     CONTENTS                                                                  \
     ". A policy in a shared library is always verified in this way"}

#define CELL_RUN_OPTIONS(AT, CONTENTS)                                         \
    {"stop-at-oom", 0, NULL, OPTION_SWITCH, AT(cell.stop_at_oom), NULL,        \
     "end a run at the first request that cannot be met; by default the "      \
     "request and its free are skipped, and the run continues"},               \
    CELL_CHECK_OPTIONS(AT, CONTENTS)

#define CELL_CONTENTS                                                          \
    "; with --backend cuda, also that blocks keep their contents"

#define CELL_DEVICE_OPTIONS(AT)                                                \
    {"backend", 0, "NAME", OPTION_CHOICE, AT(cell.backend), "arena|cuda",      \
     "memory from which the policies allocate: arena, a simulated device "     \
     "(default), or cuda, a GPU of this machine"},                             \
    {"device-number", 0, "N", OPTION_NUMBER, AT(cell.gpu), NULL,                         \
     "number of the GPU for --backend cuda (default: 0)"},                     \
    CELL_RUN_OPTIONS(AT, CELL_CONTENTS),                                       \
    CELL_MODEL_OPTIONS(AT)
/* clang-format on */

/* The values of ONE_BOUND_OPTIONS; 0 and NULL: not given. */
struct one_bound {
    frag_size capacity, limit;
    const char *gpu;
};

static inline bool one_bound_is_given(const struct one_bound *b)
{
    return b->capacity || b->limit || b->gpu;
}

enum { GPU_UNKNOWN = NEAREST_NAMES + 200 };
/* Says in `text`, which it returns, that the table has no GPU of that id, and
 * that the option `memory` takes the size of another one. */
const char *gpu_unknown(const char *id, const char *memory,
                        char text[GPU_UNKNOWN]);

/* The bound that was given, FRAG_NO_BOUND if none was. INVALID if it is more
 * than one, or if there is no such GPU. */
enum frag_err one_bound_read(const struct one_bound *b, struct frag_bound *out,
                             struct frag_error *e) FRAG_MUST_CHECK;

/* Makes the settings from the options, and reads the file of the costs: IO,
 * CORRUPT. INVALID if options contradict each other. points is 0, ooms is
 * CELL_OOMS, and timed is true unless SOURCE_DATE_EPOCH is set. */
enum frag_err cell_settings_read(const struct cell_values *v,
                                 struct cell_settings *out,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* How the commands with CELL_MODEL_OPTIONS read their traces. */
struct trace_reading cell_reading(const struct cell_values *v);

/* Runs a cell on a GPU instead of the simulated device: opens a twin
 * (sim/twin.h), which is the GPU beside an arena of the requested capacity. The
 * twin enforces that capacity to the byte and times each call; cell_memory.mem
 * is the twin. */
extern const struct cell_backend cell_cuda_backend;

#endif
