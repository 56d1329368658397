/* parts.h - what the files of a sweep share. Private to sim/experiments/sweep/.
 */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_PARTS_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_PARTS_H

#include <pthread.h>

#include "sim/experiments/sweep/subject.h"
#include "sim/experiments/sweep/sweep.h"

/* One run to do. */
struct sweep_cell {
    uint32_t device; /* index in the trace */
    uint32_t policy; /* index in the grid */
    frag_size capacity;
    struct frag_params *params; /* NULL if they are wrong on this trace */
    char *key;                  /* its name in the journal */
    uint64_t offset;            /* of its record in the journal; 0: not there */
    enum frag_err err;
    char *words; /* of err */
};

/* All parameters as results say them. */
static inline const char *cell_params(const struct sweep_cell *cell)
{
    return cell->params ? cell->params->text : "";
}

enum lane_state {
    LANE_WAITING,
    LANE_OPENING,
    LANE_OPEN,
    LANE_ENDED, /* done, or failed with err */
};

/* A trace and its cells. */
struct lane {
    const char *path;
    size_t index;        /* in the grid */
    uint64_t first, end; /* its cells in the grid that are the shard's */
    uint64_t file_bytes;
    enum lane_state state;
    struct frag_trace *trace;      /* while it is open */
    char *name;                    /* of the path; NULL before it was open */
    const struct subject *subject; /* what the journal knows of it, or found */
    struct subject found;
    struct sweep_cell *cells;
    bool counted;                /* in the sweep's counts */
    size_t count, next, running; /* next: the first that is not given out */
    enum frag_err err;
    char *words; /* of err */
};

/* A record on its way to the journal. */
struct parcel {
    struct parcel *next;
    struct sweep_cell *cell; /* NULL for a trace's */
    void *bytes;
    size_t size;
    uint64_t events;
};

/* What the journal held. */
struct recalled_run {
    char *key;
    uint64_t offset;
};

struct sweep {
    const struct sweep_spec *spec;
    struct lane *lanes; /* the largest file first */
    size_t lane_count;
    struct subject *known; /* traces that the journal knows, by file hash */
    size_t known_count, known_room;
    struct recalled_run *runs; /* by key once sweep_run has begun */
    size_t run_count, run_room;
    struct sweep_counts counts;

    pthread_mutex_t lock; /* of all that follows, and of the lanes */
    pthread_cond_t changed;
    pthread_mutex_t hdf5;
    struct parcel *parcels, **last; /* to the journal */
    size_t parcel_count;
    size_t threads; /* at work */
    frag_size used; /* of the budget */
    size_t running; /* cells */
    bool stop;
};

/* -- sweep_lane.c: a trace and its cells -- */

/* Reads the lane's trace if any of its cells is not done, and makes its cells.
 * Called without the lock; what it needs of the sweep does not change. A record
 * of a trace that the journal does not know is left in *parcel. */
enum frag_err lane_open(struct sweep *s, struct lane *lane,
                        struct parcel **parcel, struct frag_error *e);
void lane_close(struct sweep *s, struct lane *lane);
void lane_free(struct lane *lane);
/* Who the run of a cell was of; borrows from both. */
struct frag_run_identity lane_identity(const struct sweep *s,
                                       const struct lane *lane,
                                       const struct sweep_cell *cell);

/* -- sweep_pool.c: the threads -- */

/* Runs every cell that is not done and has no error, on so many threads. */
enum frag_err pool_run(struct sweep *s, size_t threads, struct journal *j,
                       struct frag_error *e);

#endif
