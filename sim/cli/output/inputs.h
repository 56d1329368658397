/* inputs.h - the traces that a command is given: opened, looked through device
 * by device, closed.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_INPUTS_H
#define FRAG_SIM_CLI_OUTPUT_INPUTS_H

#include "sim/cli/output/progress.h"
#include "traces/trace.h"

/* A device that was asked for, where none was. */
#define INPUT_ANY_DEVICE UINT64_MAX

/* Opens one under the bar, which is gone when it is open. limit and errors are
 * frag_trace_open's. */
enum frag_err input_open(const char *path, frag_size limit,
                         struct progress *progress, struct frag_trace **out,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* Says on stderr what the reader had to assume. */
void input_say_notes(const char *path, const struct frag_trace *t);

/* The device asked for, or the only one; INVALID if there is no such. */
enum frag_err input_device(const struct frag_trace *t, uint64_t wanted,
                           const struct frag_device_trace **out,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* One device of a trace, for as long as it is visited. */
struct input {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *name; /* of the trace, without folders and suffixes */
};

typedef enum frag_err input_visit(void *user, const struct input *in,
                                  struct frag_error *e);

/* Visits the device asked for, or all, in the order of the trace. INVALID if
 * there is no such; the first error of a visit ends it. */
enum frag_err input_each_device(const struct frag_trace *t, const char *name,
                                uint64_t wanted, input_visit *visit, void *user,
                                struct frag_error *e) FRAG_MUST_CHECK;

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
