/* step_options.h - what the commands about the steps of a trace share: their
 * options, the policy that they replay, and their output. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_STEP_OPTIONS_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_STEP_OPTIONS_H

#include "sim/answers/steps/step_table.h"
#include "sim/cli/answers/text/ranks_text.h"
#include "sim/cli/answers/text/shown.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/gnuplot/drawing.h"
#include "sim/cli/output/inputs.h"
#include "sim/experiments/recording.h"

/* The values of the options. */
struct step_values {
    struct common common;
    struct cell_values cell; /* device, limit, mark */
    const char *policy;      /* NULL: torch, with the recorded settings */
    struct one_bound bound;  /* without a limit; not given: as recorded */
    const char *json;
    struct drawing drawing; /* out: NULL: none */
    bool force, fail;
};

#define STEP_DEFAULTS         \
    {                         \
        .cell = CELL_DEFAULTS \
    }

/* Rows for the table of options of a verb whose values are struct step_values.
 */
/* clang-format off */
#define STEP_AT(field) offsetof(struct step_values, field)
#define STEP_OPTIONS(CAPACITY, PICTURE)                                        \
    STEP_MARK_OPTION(STEP_AT(cell.mark)),                                      \
    {"policy", 'p', "POLICY", OPTION_TEXT, STEP_AT(policy), NULL,              \
     "the policy that replays the trace: NAME, NAME:PARAMS, torch@recorded "   \
     "or ./FILE.so (default: torch with the settings of the trace)"},          \
    {"capacity", 'c', "SIZE", OPTION_SIZE, STEP_AT(bound.capacity), NULL, CAPACITY}, \
    {"json", 0, "FILE", OPTION_TEXT, STEP_AT(json), NULL,                      \
     "the same as JSON; - is stdout"},                                         \
    {"output", 'o', "FILE", OPTION_TEXT, STEP_AT(drawing.out), NULL,           \
     "draw " PICTURE ": .svg, .png or .pdf"},                                  \
    DRAWING_KEEP_OPTION(STEP_AT(drawing)),                                     \
    FORCE_OPTION(STEP_AT(force)),                                              \
    {"device", 0, "N", OPTION_DEVICE, STEP_AT(cell.device), NULL,              \
     "only this device of the trace (default: all)"},                          \
    RECORDED_LIMIT_OPTION(STEP_AT(cell.limit))
/* clang-format on */

struct step_command;

/* Answers for one device. */
typedef enum frag_err step_answer(struct step_command *c,
                                  const struct input *in, struct frag_error *e);

/* A running command. */
struct step_command {
    const struct call *call;
    const struct step_values *values;
    struct cell_settings settings;
    frag_size capacity; /* 0: as recorded */
    struct progress *progress;
    struct unread unread;
    FILE *out;
    struct frag_json *json; /* NULL: as text */
    bool color;
    size_t shown;       /* devices */
    struct ranks ranks; /* that the answers added; owned */
    bool fails;         /* the exit code is EXIT_NO */
    step_answer *answer;
};

/* Runs the command for all traces and devices, and writes the ranks below the
 * answers, if these added any; returns the exit code. */
int step_command_run(const struct call *call, const struct step_values *values,
                     step_answer *answer);

/* Answers for one device at that capacity; 0: as recorded. */
enum frag_err step_command_show(const struct shown *on, frag_size capacity,
                                step_answer *answer,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Makes the table of a device's steps under the policy of the options and the
 * bound of recording_bound_for. *policy
 * is the text that names it; it lives as long as the options. Errors of
 * step_table_make and of the choice of the policy. */
enum frag_err step_command_table(struct step_command *c, const struct input *in,
                                 frag_size capacity, struct step_table *out,
                                 const char **policy,
                                 struct frag_error *e) FRAG_MUST_CHECK;

/* "marks Optimizer.step", "period of the events" or "none". */
void step_source_put(FILE *out, const struct frag_steps *s);
/* The members steps_source, mark, likeness and num_steps of an open object. */
void step_source_json(struct frag_json *j, const struct frag_steps *s);

#endif
