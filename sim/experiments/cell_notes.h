/* cell_notes.h - what is to be said of a cell besides its numbers, and the
 * notes of many cells, each distinct note once. */
#ifndef FRAG_SIM_EXPERIMENTS_CELL_NOTES_H
#define FRAG_SIM_EXPERIMENTS_CELL_NOTES_H

#include "sim/experiments/cell.h"
#include "sim/experiments/release.h"

enum { CELL_NOTES = 8, CELL_PLACE = 192 };

/* The notes of a cell; none names the policy or the bound. */
struct cell_notes {
    char texts[CELL_NOTES][RELEASE_NOTE];
    size_t count;
};

/* The run of a cell. All pointers are borrowed. */
struct cell_result {
    const struct cell_settings *settings;
    const struct policy_choice *policy;
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    struct frag_bound bound;
    const struct frag_summary *summary;
    const char *params; /* of the run */
};

/* Finds the notes that hold for a run:
 *   - those of the PyTorch release (release_note);
 *   - the policy could have adopted the recorded layout (start.h) but did not;
 *   - the run has the recorded settings and enough memory, and its peak
 * reserved memory is not the recorded one;
 *   - the policy assumes what no trace shows (frag_policy.assumes);
 *   - the device gave more memory than the recorded segments hold;
 *   - the bound was inferred;
 *   - the limit of the process is one of requested bytes (cuda_async), and the
 *     run holds more;
 *   - memory is bounded and the stacks name a convolution: PyTorch then goes on
 *     with another algorithm when cuDNN's workspace is refused (aten/src/ATen/
 *     native/cudnn/Conv_v8.cpp; in 23 of 24 runs on a GPU that lived below
 *     their need, paper/pages/live.md).
 * NOMEM. */
enum frag_err cell_notes(const struct cell_result *on, struct cell_notes *out,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* The note on a run of policy torch under a bound that makes PyTorch ignore the
 * threshold of garbage collection in the settings; NULL: none. */
const char *cell_collects_nothing(const char *settings,
                                  struct frag_bound bound);

/* Writes "POLICY, capacity SIZE" or "POLICY, process limit SIZE" to text, and
 * returns text. */
const char *cell_place(const char *policy, struct frag_bound bound,
                       char text[CELL_PLACE]);

#define CELL_NOTE_TRACE UINT32_MAX

/* A note, and the cells that have it. */
struct cell_note {
    char *trace, *text;
    char first[CELL_PLACE]; /* the first cell */
    uint32_t device; /* CELL_NOTE_TRACE: a note about the whole trace, whose
                        text names the device where it is about one */
    uint64_t cells;
};

struct cell_note_list {
    struct cell_note *items;
    size_t count, room;
};

/* Adds a cell of a device to the note of that text. False if the host has no
 * memory. */
bool cell_note_add(struct cell_note_list *list, const char *trace,
                   uint32_t device, const char *text, const char *place);
void cell_note_free(struct cell_note_list *list);

/* The notes of a row: those of its trace, then those of its cell. */
struct row_notes {
    const char **items; /* [count] */
    uint32_t count;
    char *texts; /* storage */
};

/* Finds the notes of a cell, adds them to the list, and makes the notes of its
 * row, which the caller frees, on error too. NOMEM. */
enum frag_err row_notes_make(const struct cell_result *on,
                             struct cell_note_list *list, struct row_notes *out,
                             struct frag_error *e) FRAG_MUST_CHECK;
void row_notes_free(struct row_notes *notes);

enum { CELL_NOTE_TEXT = RELEASE_NOTE + CELL_PLACE + 64 };

/* Writes a note as "device 0: PLACE: TEXT", or with the number of cells if
 * there are several, and returns text. The note of a trace is TEXT. */
const char *cell_note_text(const struct cell_note *n,
                           char text[CELL_NOTE_TEXT]);

/* Writes the array `cell_notes` to the object that is open. */
void cell_note_json(const struct cell_note_list *list, struct frag_json *j);

#endif
