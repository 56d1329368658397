/* sweep_parts.h - the types that the files of a sweep share. Private to
 * sim/experiments/sweep/. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_PARTS_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_SWEEP_PARTS_H

#include <pthread.h>

#include "sim/experiments/sweep/sweep.h"
#include "traces/identity.h"

/* What a sweep keeps of a trace: the trace without its events. It is enough to
 * name the cells of the trace and to write their results while the trace itself
 * is closed. */
struct trace_header_device {
    uint32_t device; /* its number */
    uint64_t events;
    uint64_t is_replayed; /* see input_replays; 0 or 1 */
    struct bound_facts facts;
};

struct trace_header {
    char file_sha256[65]; /* of the file as it is on the disk, and of the edits
                             if there are any */
    /* Without its name, path and device. */
    struct frag_trace_identity trace;
    uint32_t device_count;
    struct trace_header_device *devices;
    void *texts; /* storage of the texts of `trace` */
};

/* What a cell has found. */
struct sweep_result {
    struct frag_run run;
    frag_size total; /* of the device */
    char *notes;     /* one a line */
};

/* One cell on one device. */
struct sweep_cell {
    uint32_t device; /* index in the trace */
    uint32_t policy; /* index in the grid */
    struct frag_bound bound;
    const char *capacity;       /* as in struct frag_run_identity */
    bool repeats;               /* as in struct frag_run_identity */
    struct frag_params *params; /* NULL if they are invalid for this trace */
    char *key;                  /* identifies the cell in a chunk */
    const struct sweep_result *result; /* NULL until the cell is done */
    struct sweep_result *own;          /* NULL if a chunk had the result */
    const struct sweep_trace *trace;
    struct sweep_cell *later; /* the next one that no chunk has */
    enum frag_err err;
    char *words; /* the message of err */
};

/* All parameters of the policy, as they appear in the results. */
static inline const char *cell_params(const struct sweep_cell *cell)
{
    return cell->params ? cell->params->text : "";
}

enum sweep_trace_state {
    TRACE_WAITING,
    TRACE_OPENING,
    TRACE_OPEN,
    TRACE_ENDED, /* all its cells are done, or it failed with err */
};

/* A trace of the grid with one of its edits, and its cells. */
struct sweep_trace {
    const char *path;
    const struct grid_edit *edit;
    size_t index;        /* of the trace and its edit, in the grid */
    uint64_t first, end; /* range of its cells in the grid that belong to the
                            shard: first ... end - 1 */
    uint64_t file_bytes;
    frag_size cost; /* upper bound of its memory; of `used` while it is open */
    enum sweep_trace_state state;
    struct frag_trace *opened;  /* NULL while the trace is closed */
    char *name;                 /* of the path */
    struct trace_header header; /* zeroed until the trace was read */
    struct sweep_cell *cells;
    size_t count;   /* of cells */
    size_t next;    /* no thread has started the cells from here */
    size_t running; /* cells */
    enum frag_err err;
    char *words; /* the message of err */
};

/* The next job of a thread. */
struct sweep_job {
    enum { JOB_NONE, JOB_WAIT, JOB_OPEN, JOB_RUN } what;
    struct sweep_trace *trace;
    struct sweep_cell *cell; /* of RUN */
};

/* A finished cell of a chunk, to which all pointers belong. */
struct recalled_run {
    const char *key;
    struct sweep_result result;
};

struct sweep {
    const struct sweep_spec *spec;
    struct sweep_trace *traces; /* in the order of opening */
    size_t trace_count;
    struct recalled_run *runs; /* sorted by key */
    size_t run_count;
    pthread_mutex_t hdf5; /* see sweep.h */
    _Atomic bool stop;    /* no more jobs start, and cells are cancelled */

    pthread_mutex_t lock;    /* protects all fields below, and the traces */
    pthread_cond_t changed;  /* wakes threads that wait for a job */
    pthread_cond_t finished; /* wakes the main thread: threads is 0 */
    struct sweep_counts counts;
    /* The cells in the order of their ends that no chunk has. */
    struct sweep_cell *fresh, **fresh_end;
    size_t fresh_count;
    size_t threads;   /* that have not ended */
    frag_size memory; /* the costs of open traces, if there are several */
    frag_size used;   /* costs of open traces */
};

/* -- sweep_trace.c: a trace and its cells -- */

/* Reads the trace, and makes its cells. The caller does not hold the lock: the
 * fields of the sweep that this function reads do not change. */
enum frag_err sweep_trace_open(struct sweep *s, struct sweep_trace *trace,
                               struct frag_error *e);
/* The next cell that is not done and that no thread has started; NULL if there
 * is none. */
struct sweep_cell *sweep_trace_next(struct sweep_trace *trace);
void sweep_trace_close(struct sweep_trace *trace);
void sweep_trace_free(struct sweep_trace *trace);
void sweep_result_free(struct sweep_result *r); /* NULL is fine */
/* The identity of the cell's run; its texts are borrowed from both. */
struct frag_run_identity sweep_cell_identity(const struct sweep *s,
                                             const struct sweep_trace *trace,
                                             const struct sweep_cell *cell);

/* -- sweep_keep.c -- */

/* Writes a chunk of the cells in `fresh', of which there are some. The caller
 * holds the lock, which is released meanwhile. */
enum frag_err sweep_keep_chunk(struct sweep *s, struct frag_error *e);

/* -- pool.c: the threads -- */

/* Runs every cell that is not done and has no error, on `threads` threads. */
enum frag_err pool_run(struct sweep *s, size_t threads, struct frag_error *e);

#endif
