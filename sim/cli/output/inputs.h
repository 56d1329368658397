/* inputs.h - the traces that a command is given: opened under a bar, visited
 * device by device (sim/experiments/devices.h), closed. */
#ifndef FRAG_SIM_CLI_OUTPUT_INPUTS_H
#define FRAG_SIM_CLI_OUTPUT_INPUTS_H

#include "sim/cli/output/progress.h"
#include "sim/experiments/devices.h"
#include "traces/trace.h"

/* Opens one under the bar, which is gone when it is open. limit and errors are
 * frag_trace_open's. */
enum frag_err input_open(const char *path, frag_size limit,
                         struct progress *progress, struct frag_trace **out,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* Says on stderr what the reader had to assume. */
void input_say_notes(const char *path, const struct frag_trace *t);

/* What to visit of which files. */
struct inputs {
    const struct texts *paths;
    uint64_t device; /* INPUT_ANY_DEVICE: all */
    frag_size limit;
    bool says_notes;
    struct progress *progress;
};

/* The same over all files in turn; each is closed before the next is opened. */
enum frag_err inputs_each(const struct inputs *in, input_visit *visit,
                          void *user, struct frag_error *e) FRAG_MUST_CHECK;

#endif
