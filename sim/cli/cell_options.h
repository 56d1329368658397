/* cell_options.h - the options that say on what kind of device the cells of a
 * command run, and their way into struct cell_settings. */
#ifndef FRAG_SIM_CLI_CELL_OPTIONS_H
#define FRAG_SIM_CLI_CELL_OPTIONS_H

#include "sim/cli/options.h"
#include "sim/experiments/cell.h"
#include "sim/experiments/devices.h"

/* What the options below gave: the member `cell` of a verb's values. All fields
 * are zero by default, except the device. */
struct cell_values {
    struct texts policies, capacities;
    const char *costs;
    uint64_t device; /* INPUT_ANY_DEVICE: all */
    frag_size total, limit;
    uint64_t gpu;     /* of the cuda backend */
    unsigned backend; /* index of its word in CELL_DEVICE_OPTIONS */
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

/* CONTENTS is what --check proves beside: "" or CELL_CONTENTS. */
#define CELL_RUN_OPTIONS(AT, CONTENTS)                                         \
    {"stop-at-oom", 0, NULL,                                                   \
     "end a run with the first request that cannot be met; otherwise it is "   \
     "skipped with its free, and the run goes on",                             \
     OPTION_SWITCH, AT(cell.stop_at_oom), NULL},                               \
    {"check", 0, NULL,                                                         \
     "prove every answer of the policy: aligned, inside held memory, apart "   \
     "from every live block (slower)" CONTENTS,                                \
     OPTION_SWITCH, AT(cell.check), NULL}

#define CELL_CONTENTS \
    "; with --backend cuda also that blocks keep their contents"

#define CELL_DEVICE_OPTIONS(AT)                                                \
    {"backend", 0, "NAME",                                                     \
     "memory under the policies: arena, which simulates a device (default), "  \
     "or cuda, a GPU of this machine",                                         \
     OPTION_CHOICE, AT(cell.backend), "arena|cuda"},                           \
    {"gpu", 0, "N", "which GPU, for --backend cuda (default: 0)",              \
     OPTION_NUMBER, AT(cell.gpu), NULL},                                       \
    CELL_RUN_OPTIONS(AT, CELL_CONTENTS),                                       \
    CELL_MODEL_OPTIONS(AT)
/* clang-format on */

/* From the options, with the costs' file read: IO, CORRUPT. points are 0, ooms
 * CELL_OOMS, timed unless SOURCE_DATE_EPOCH is set. */
enum frag_err cell_settings_read(const struct cell_values *v,
                                 struct cell_settings *out,
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
