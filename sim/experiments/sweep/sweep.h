/* sweep.h - runs a grid of cells on several threads, and keeps finished cells
 * in chunks.
 *
 * A thread takes the next cell of the open traces; if none is left, it opens
 * the next trace, the largest file first, so that the last cells are short. All
 * cells of a trace share it, read only; it is closed after its last cell. The
 * results of all cells stay in memory; the main thread writes those that no
 * chunk has to a new one (chunks.h), and all rows at the end.
 *
 * One lock protects everything that the threads share. HDF5 may not be used by
 * two threads at once, so a second lock protects the reading of trace files and
 * the writing of chunks.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_H

#include "sim/experiments/cell.h"
#include "sim/experiments/cell_notes.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/reading.h"
#include "sim/experiments/sweep/chunks.h"
#include "sim/experiments/sweep/grid.h"

struct sweep;

/* A cell counts once for each device of its trace that is swept. */
struct sweep_counts {
    uint64_t cells;    /* of all traces that could be read */
    uint64_t recalled; /* cells found in chunks */
    uint64_t done;     /* cells finished by this sweep */
    uint64_t kept;     /* those of `done` that this sweep wrote to chunks */
    uint64_t events;   /* of the cells in `done` */
    uint64_t faults;   /* traces and cells that failed */
};

/* Receives a finished cell and its notes, one a line; an error ends the calls.
 */
typedef enum frag_err sweep_add(void *user, const struct frag_run_identity *id,
                                const char *notes, const struct frag_run *run,
                                struct frag_error *e);

/* The cells to run; borrowed while the sweep is open. */
struct sweep_spec {
    const struct grid *grid;
    struct shard shard;
    const struct cell_settings *settings;
    /* The sweep does not run the cells that it holds. */
    struct chunks *chunks;
    uint64_t device; /* number of the device; INPUT_ANY_DEVICE: all */
    struct trace_reading reading; /* of every trace */
    struct parallel on;
    /* Shows progress; NULL: none. The thread in sweep_run calls it from time
     * to time, once a cell is done. `faults` is not counted yet. */
    void (*show)(void *user, const struct sweep_counts *so_far);
    void *user;
};

/* NOMEM. */
enum frag_err sweep_open(const struct sweep_spec *spec, struct sweep **out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void sweep_close(struct sweep *s); /* NULL is fine */

/* Runs all cells that are not done. If a trace cannot be read or a cell fails,
 * sweep_faults reports the error, and the other cells still run. What
 * failed is tried again by a sweep that resumes this one. CANCELLED; IO if a
 * chunk cannot be written; NOMEM. */
enum frag_err sweep_run(struct sweep *s, struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the finished cells that no chunk has to chunks: for a sweep that will
 * be resumed. IO, NOMEM. */
enum frag_err sweep_keep(struct sweep *s, struct frag_error *e) FRAG_MUST_CHECK;

struct sweep_counts sweep_counts(const struct sweep *s);

/* The messages of all errors, one line each, in the order of the grid; the
 * caller frees the text. NULL if there are none, or if the host has no memory.
 * *first is the code of the first error, OK if there is none. */
char *sweep_faults(const struct sweep *s, enum frag_err *first);

/* Calls add for every finished cell, in the order of frag_results_order. */
enum frag_err sweep_write(const struct sweep *s, sweep_add *add, void *user,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
