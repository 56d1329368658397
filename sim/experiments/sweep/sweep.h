/* sweep.h - a grid of cells, run on several threads, finished work kept in a
 * journal.
 *
 * A trace is read by the thread that first needs it and shared, read only, by
 * all cells that use it; it is closed after the last of them. Large files go
 * first. The main thread alone writes the journal: what threads have finished
 * since the last time is added and brought to the disk at once.
 *
 * What the threads share is under one lock. HDF5, which several threads may not
 * enter, has one of its own while traces are opened and closed; the result file
 * is written when all threads have ended.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_H

#include "sim/experiments/cell.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/sweep/grid.h"
#include "sim/experiments/sweep/journal.h"

struct sweep;

struct sweep_counts {
    uint64_t cells;    /* in the traces that could be read */
    uint64_t recalled; /* of them, found in the journal */
    uint64_t done;     /* of them, done now */
    uint64_t events;   /* of those done now */
    uint64_t faults;   /* traces and cells that failed */
};

/* What to run; borrowed for as long as the sweep. */
struct sweep_spec {
    const struct grid *grid;
    struct shard shard;
    const struct cell_settings *settings;
    uint64_t device; /* its number; INPUT_ANY_DEVICE: all of a trace */
    frag_size limit; /* as of struct frag_read_options */
    struct parallel on;
    frag_size memory; /* see budget.h */
    /* Called now and then by the thread in sweep_run, once a cell is done, with
     * the counts so far, but faults. NULL: it is not called. */
    void (*show)(void *user, const struct sweep_counts *so_far);
    void *user;
};

/* Kinds of the journal's records. */
enum { SWEEP_TRACE = 1, SWEEP_RUN };

/* NOMEM. */
enum frag_err sweep_open(const struct sweep_spec *spec, struct sweep **out,
                         struct frag_error *e) FRAG_MUST_CHECK;
void sweep_close(struct sweep *s); /* NULL is fine */

/* A journal_seen: what the journal holds need not be done again. user is the
 * sweep. */
enum frag_err sweep_recall(void *user, const struct journal_entry *entry,
                           struct frag_error *e) FRAG_MUST_CHECK;

/* Runs what is not done. A trace that cannot be read and a cell that fails are
 * kept for sweep_faults, and the rest goes on; what found no memory beside
 * others is tried again alone. CANCELLED; IO if the journal cannot be written,
 * NOMEM, CORRUPT. */
enum frag_err sweep_run(struct sweep *s, struct journal *j,
                        struct frag_error *e) FRAG_MUST_CHECK;

struct sweep_counts sweep_counts(const struct sweep *s);

/* The words of all faults in the order of the grid, a line each, to be freed;
 * NULL if there is none or no memory. *first is the error of the first. */
char *sweep_faults(const struct sweep *s, enum frag_err *first);

/* Takes a finished cell; its error ends the writing. */
typedef enum frag_err sweep_add(void *user, const struct frag_run_identity *id,
                                const struct frag_run *run,
                                struct frag_error *e);

/* Adds every finished cell of the grid, in the order of frag_results_order. */
enum frag_err sweep_write(struct sweep *s, const struct journal *j,
                          sweep_add *add, void *user,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
