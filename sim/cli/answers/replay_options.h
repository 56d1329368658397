/* replay_options.h - the options of the answers that replay recordings as they
 * are: the policy, the capacity, and how the recording is read. */
#ifndef FRAG_SIM_CLI_ANSWERS_REPLAY_OPTIONS_H
#define FRAG_SIM_CLI_ANSWERS_REPLAY_OPTIONS_H

#include "sim/answers/replayed.h"
#include "sim/cli/options.h"
#include "sim/cli/output/inputs.h"

/* The member `replay` of a verb's values. */
struct replay_values {
    const char *policy; /* NULL: see replayed_policy */
    frag_size capacity; /* 0: not given */
    uint64_t device;    /* INPUT_ANY_DEVICE: all */
    frag_size limit;
    const char *mark;
};

#define REPLAY_DEFAULTS            \
    {                              \
        .device = INPUT_ANY_DEVICE \
    }

/* Rows for a verb's table of options. AT(field) is the offset of the field in
 * the verb's values; CAPACITY is the help of --capacity. */
/* clang-format off */
#define REPLAY_OPTIONS(AT, CAPACITY)                                           \
    {"policy", 'p', "POLICY", OPTION_TEXT, AT(replay.policy), NULL,            \
     "NAME or NAME:PARAMS; see `fragsim policies` (default: torch with the "   \
     "settings that the trace contains, else torch)"},                         \
    {"capacity", 'c', "SIZE", OPTION_SIZE, AT(replay.capacity), NULL,          \
     CAPACITY},                                                                \
    {"device", 0, "N", OPTION_DEVICE, AT(replay.device), NULL,                 \
     "take only this device of the trace (default: all)"},                     \
    RETRY_LIMIT_OPTION(AT(replay.limit)),                                      \
    STEP_MARK_OPTION(AT(replay.mark))
/* clang-format on */

/* The inputs that the values name. */
static inline struct inputs replay_inputs(const struct common *common,
                                          const struct replay_values *v,
                                          struct progress *progress,
                                          struct unread *unread)
{
    return (struct inputs){.paths = &common->args,
                           .device = v->device,
                           .reading = {READING_RECORDED, .limit = v->limit,
                                       .completion.mark = v->mark},
                           .says_notes = !common->quiet,
                           .progress = progress,
                           .unread = unread};
}

/* The capacity; FRAG_UNLIMITED if none was given. */
static inline frag_size replay_capacity(const struct replay_values *v)
{
    return v->capacity ? v->capacity : FRAG_UNLIMITED;
}

#endif
