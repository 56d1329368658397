/* question_options.h - the options by which the user asks a question
 * (sim/experiments/question.h), the same in every command that answers one.
 */
#ifndef FRAG_SIM_CLI_QUESTION_OPTIONS_H
#define FRAG_SIM_CLI_QUESTION_OPTIONS_H

#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/experiments/devices.h"
#include "sim/experiments/question.h"
#include "sim/experiments/reading.h"

/* The member `question` of the values of a verb. */
struct question_values {
    struct one_bound bound;
    const char *stats;
    frag_size recorded_limit;
    uint64_t device; /* INPUT_ANY_DEVICE: all */
};

#define QUESTION_DEFAULTS          \
    {                              \
        .device = INPUT_ANY_DEVICE \
    }

/* Rows for the option table of a verb; AT is offsetof of a field in its values.
 */
/* clang-format off */
#define QUESTION_OPTIONS(AT)                                                   \
    {"capacity", 'c', "SIZE", OPTION_SIZE,                                     \
     AT(question.bound.capacity), NULL,                           \
     "memory of the device on which the job shall run, beyond which the "      \
     "driver refuses (default: the memory that the recorded job had: its "     \
     "limit, what the device could give when a request failed, or the memory " \
     "of the device)"},                                                        \
    {"gpu", 0, "NAME", OPTION_TEXT, AT(question.bound.gpu), NULL,                    \
     "instead of it, what a process can have of this GPU: " FRAG_GPU_IDS},     \
    {"process-limit", 0, "SIZE", OPTION_SIZE,                                  \
     AT(question.bound.limit), NULL,                              \
     "instead of it, a memory limit of the process, as PyTorch's "             \
     "set_per_process_memory_fraction sets it, beyond which the allocator "    \
     "refuses before the driver is asked"},                                    \
    RECORDED_LIMIT_OPTION(AT(question.recorded_limit)),                        \
    STATS_OPTION(AT(question.stats)),                                          \
    {"device", 0, "N", OPTION_DEVICE, AT(question.device), NULL,               \
     "number of the device in the trace (default: all)"}
/* clang-format on */

/* What the options ask about a file, and how it is read. Errors of
 * one_bound_read and frag_stats_file_of. */
enum frag_err question_read(const struct question_values *v, const char *path,
                            struct question_asked *asked,
                            struct trace_reading *reading,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* The settings of the replays of an answer. Errors of cell_settings_read. */
enum frag_err question_settings(struct cell_settings *out,
                                struct frag_error *e) FRAG_MUST_CHECK;

#endif
