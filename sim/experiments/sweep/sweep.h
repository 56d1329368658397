/* sweep.h - runs a grid of cells on several threads, and keeps every finished
 * cell in a journal.
 *
 * A thread takes the next cell of the open traces; if none is left, it opens
 * the next trace, the largest file first, so that the last cells are short. All
 * cells of a trace share it, read only; it is closed after its last cell. A
 * thread adds every cell that it has finished to the journal at once; the main
 * thread brings the entries to the disk ten times a second, and writes all rows
 * at the end.
 *
 * One lock protects everything that the threads share, except for the journal,
 * which has its own. HDF5 may not be used by two threads at once, so a third
 * lock protects the reading of trace files.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_H

#include "sim/experiments/cell.h"
#include "sim/experiments/cell_notes.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/reading.h"
#include "sim/experiments/sweep/grid.h"
#include "sim/experiments/sweep/journal.h"

struct sweep;

/* A cell counts once for each device of its trace that is swept. */
struct sweep_counts {
    uint64_t cells;    /* of all traces that could be read */
    uint64_t recalled; /* cells found in the journal */
    uint64_t done;     /* cells finished by this sweep */
    uint64_t events;   /* of the cells in `done` */
    uint64_t faults;   /* traces and cells that failed */
};

/* Receives a finished cell and its notes; an error ends the calls. */
typedef enum frag_err sweep_add(void *user, const struct frag_run_identity *id,
                                const struct cell_notes *notes,
                                const struct frag_run *run,
                                struct frag_error *e);

/* The cells to run; borrowed while the sweep is open. */
struct sweep_spec {
    const struct grid *grid;
    struct shard shard;
    const struct cell_settings *settings;
    uint64_t device; /* number of the device; INPUT_ANY_DEVICE: all */
    struct trace_reading reading; /* of every trace */
    struct parallel on;
    /* Shows progress; NULL: none. The thread in sweep_run calls it from time
     * to time, once a cell is done. `faults` is not counted yet. */
    void (*show)(void *user, const struct sweep_counts *so_far);
    void *user;
};

/* The kind of the journal's entries: a finished cell. */
enum { SWEEP_RUN = 2 };

/* NOMEM. */
enum frag_err sweep_open(const struct sweep_spec *spec, struct sweep **out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void sweep_close(struct sweep *s); /* NULL is fine */

/* A journal_seen: the sweep does not run the cells again that the journal
 * holds. user is the sweep. */
enum frag_err sweep_recall(void *user, const struct journal_entry *entry,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* Runs all cells that are not done. If a trace cannot be read or a cell fails,
 * sweep_faults reports the error, and the other cells still run. What
 * failed is tried again by a sweep that resumes the journal. CANCELLED; IO if
 * the journal cannot be written; NOMEM; CORRUPT. */
enum frag_err sweep_run(struct sweep *s, struct journal *j,
                        struct frag_error *e) FRAG_MUST_CHECK;

struct sweep_counts sweep_counts(const struct sweep *s);

/* The messages of all errors, one line each, in the order of the grid; the
 * caller frees the text. NULL if there are none, or if the host has no memory.
 * *first is the code of the first error, OK if there is none. */
char *sweep_faults(const struct sweep *s, enum frag_err *first);

/* Calls add for every finished cell, in the order of frag_results_order. */
enum frag_err sweep_write(const struct sweep *s, const struct journal *j,
                          sweep_add *add, void *user,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
