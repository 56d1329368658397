/* inputs.h - opens the traces that the user named, one after the other, with a
 * progress bar, and visits their devices (sim/experiments/devices.h). */
#ifndef FRAG_SIM_CLI_OUTPUT_INPUTS_H
#define FRAG_SIM_CLI_OUTPUT_INPUTS_H

#include "sim/cli/cli.h"
#include "sim/cli/output/progress.h"
#include "sim/experiments/cell_notes.h"
#include "sim/experiments/devices.h"
#include "sim/experiments/reading.h"
#include "traces/trace.h"

/* Finds a wrong name before anything is read. INVALID if no file has that name
 * but a policy has, or it is a size or a pattern; IO if no file has it. */
enum frag_err input_check_name(const char *path,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Opens one trace with a progress bar, which is cleared afterwards. Errors of
 * input_check_name and reading_open. */
enum frag_err input_open(const char *path, const struct trace_reading *reading,
                         struct progress *progress, struct frag_trace **out,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* Prints how a figure of the device starts (export_start_note) to stderr. */
void input_say_start(const char *path, const struct frag_device_trace *d);
/* Prints the trace's notes, the assumptions of its reader, to stderr. */
void input_say_notes(const char *path, const struct frag_trace *t);

/* Prints the notes of cells to stderr, each distinct one once. */
void input_say_cells(const struct cell_note_list *notes);

/* The traces of a command that cannot be used. A command with several traces
 * reports each of them when it finds it, answers for the others, and ends with
 * the exit code of the first error. */
struct unread {
    const struct call *call;
    const struct texts *paths;
    size_t count;
    enum frag_err first; /* the first error; FRAG_OK: none */
};

/* For the arguments of a command; nothing is wrong yet. */
static inline struct unread unread_of(const struct call *call,
                                      const struct common *common)
{
    return (struct unread){.call = call, .paths = &common->args};
}

/* After the error of a trace: FRAG_OK if it was reported and the command goes
 * on with another trace. Else returns it: it is not one of a file (CORRUPT,
 * IO), or the file is the only one. */
enum frag_err unread_add(struct unread *u, enum frag_err err,
                         const struct frag_error *e) FRAG_MUST_CHECK;
/* Calls `visit` for the files in order. All names are checked before the first
 * visit, since reading may take long: files that are missing are reported and
 * left out; INVALID if a name has another meaning. The first error if none of
 * the files could be used. */
enum frag_err unread_each(struct unread *u,
                          enum frag_err (*visit)(void *user, const char *path,
                                                 struct frag_error *e),
                          void *user, struct frag_error *e) FRAG_MUST_CHECK;
/* The exit code of a command that otherwise ends with `code`. */
int unread_exit(const struct unread *u, int code);

/* The files, and the devices that are visited in each of them. */
struct inputs {
    const struct texts *paths;
    uint64_t device; /* INPUT_ANY_DEVICE: all */
    struct trace_reading reading;
    bool says_notes; /* print the notes of each trace */
    struct progress *progress;
    struct unread *unread; /* NULL: the first error ends the visits */
};

/* Calls `visit` for the devices of all files in order. All names are checked
 * before the first file is opened; each file is closed before the next is
 * opened. A file that cannot be read, or for which a visit returns CORRUPT, is
 * one for `unread`. Errors of input_open and input_each_device, NOMEM. */
enum frag_err inputs_each(const struct inputs *in, input_visit *visit,
                          void *user, struct frag_error *e) FRAG_MUST_CHECK;

#endif
