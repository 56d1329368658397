/* parts.h - the types that the files of a sweep share. Private to
 * sim/experiments/sweep/. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_PARTS_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_PARTS_H

#include <pthread.h>

#include "sim/experiments/sweep/entries.h"
#include "sim/experiments/sweep/sweep.h"

/* One cell on one device. */
struct sweep_cell {
    uint32_t device; /* index in the trace */
    uint32_t policy; /* index in the grid */
    struct frag_bound bound;
    bool repeats;               /* as in struct frag_run_identity */
    struct frag_params *params; /* NULL if they are invalid for this trace */
    char *key;                  /* identifies the cell in the journal */
    uint64_t offset; /* of its entry in the journal; 0: it has no entry */
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

/* Cells of one device and policy that no thread has started: next ... end - 1,
 * as indices of the trace's cells. */
struct cell_group {
    size_t next, end;
};

/* A trace of the grid with one of its edits, and its cells. */
struct sweep_trace {
    const char *path;
    const struct grid_edit *edit;
    size_t index;        /* of the trace and its edit, in the grid */
    size_t place;        /* in the order of the results */
    uint64_t first, end; /* range of its cells in the grid that belong to the
                            shard: first ... end - 1 */
    uint64_t file_bytes;
    frag_size opening; /* bytes of the budget while it is being opened */
    bool is_large;     /* the file has more bytes than the share of a thread in
                          the other files */
    enum sweep_trace_state state;
    struct frag_trace *opened;         /* NULL while the trace is closed */
    char *name;                        /* of the path */
    const struct trace_header *header; /* from the journal, or &found */
    struct trace_header found;         /* made from the trace itself */
    struct sweep_cell *cells;
    bool counted;              /* the sweep's counts contain its cells */
    size_t count;              /* of cells */
    struct cell_group *groups; /* see schedule_prepare */
    size_t group_count;
    size_t running; /* cells */
    enum frag_err err;
    char *words; /* the message of err */
};

/* The bytes of an entry of the journal; NULL: there is none. */
struct entry {
    void *bytes;
    size_t size;
};

/* How long the jobs of one kind took that have ended. */
struct pace {
    double seconds; /* of processor time */
    double work;    /* events of cells; bytes of the budget of openings */
    uint64_t started;
};

/* The next job of a thread. */
struct job {
    enum { JOB_NONE, JOB_WAIT, JOB_OPEN, JOB_RUN, JOB_WRITE } what;
    struct sweep_trace *trace;
    struct sweep_cell *cell;
    struct cell_group *group; /* of the cell */
    frag_size cost;           /* bytes of the budget until the job is done; of
                                 WRITE, until the sweep is closed */
    size_t end; /* WRITE: rows of the traces before it are written */
};

/* The rows that are written while cells run: those of order[0 ... written - 1].
 * All cells of the traces before order[ready] are in the journal. */
struct early_rows {
    size_t written, ready;
    frag_size bytes;
    bool are_off;  /* no more rows are written before the end */
    bool are_busy; /* a thread is writing some */
};

/* A finished cell from the journal. */
struct recalled_run {
    char *key;
    uint64_t offset;
};

struct sweep {
    const struct sweep_spec *spec;
    struct sweep_trace *traces; /* in the order of opening */
    struct sweep_trace **order; /* in the order of the results */
    size_t trace_count;
    struct trace_header *known; /* headers in the journal */
    size_t known_count, known_room;
    struct recalled_run *runs; /* sorted by key once sweep_run has begun */
    size_t run_count, run_room;
    struct journal *journal; /* while the threads run */
    pthread_mutex_t putting; /* an entry in the journal */
    pthread_mutex_t hdf5;    /* see sweep.h */
    _Atomic bool stop;       /* no more jobs start, and cells are cancelled */

    pthread_mutex_t lock;    /* protects all fields below, and the traces */
    pthread_cond_t changed;  /* wakes threads that wait for a job */
    pthread_cond_t finished; /* wakes the main thread: threads is 0, or stop */
    struct sweep_counts counts;
    struct early_rows rows;
    enum frag_err err;   /* of the journal, while the threads run */
    struct frag_error e; /* the message of err */
    size_t threads;      /* that have not ended */
    frag_size used;      /* bytes of the budget */
    size_t running;      /* cells */
    struct pace *paces;  /* of the grid's policies */
    struct pace opening; /* of traces */
};

/* -- trace.c: a trace and its cells -- */

/* Makes the cells of the trace, and reads the trace if any of them is not done.
 * The caller does not hold the lock: the fields of the sweep that this function
 * reads do not change. If the journal has no header of this trace, *entry is
 * the entry to write; the caller frees its bytes. */
enum frag_err sweep_trace_open(struct sweep *s, struct sweep_trace *trace,
                               struct entry *entry, struct frag_error *e);
void sweep_trace_close(struct sweep_trace *trace);
void sweep_trace_free(struct sweep_trace *trace);
/* The identity of the cell's run; its texts are borrowed from both. */
struct frag_run_identity sweep_cell_identity(const struct sweep *s,
                                             const struct sweep_trace *trace,
                                             const struct sweep_cell *cell);

/* -- schedule.c: the order of the work; called with the lock held -- */

/* Puts the traces in the order of opening, and fills in s->order. */
void schedule_order(struct sweep *s);
/* Makes the groups of the trace's cells, none of them started. False if the
 * host has no memory. */
bool schedule_prepare(struct sweep_trace *trace);
/* The next job for a thread: rows that can be written, if no other thread
 * writes some; else a cell. It is the longest cell of the open traces if that
 * is long beside what is left, so that the last cells are short. Else it is the
 * longest cell of the trace whose rows come first. The next trace is opened
 * when no cell can start, and early enough that the other threads have cells
 * until it is open. JOB_WAIT if the remaining jobs must wait for running jobs;
 * JOB_NONE if there are none. */
struct job schedule_choose(struct sweep *s);
/* Every job is started; then it is ended, with the processor time that it took.
 * The trace of a cell is still open then. */
void schedule_start(struct sweep *s, const struct job *job);
void schedule_end(struct sweep *s, const struct job *job, double seconds);
/* The trace is open, and no cell of it is running or can start. */
bool schedule_is_over(struct sweep_trace *trace);
/* Finds the traces whose rows can be written; to be called after a trace has
 * ended. */
void schedule_find_rows(struct sweep *s);
/* The end of the traces that have the name and the path of order[from]: rows
 * of these may alternate. */
size_t schedule_unit(const struct sweep *s, size_t from);

/* -- rows.c -- */

/* Passes the cells of order[from ... end - 1] to add, in the order of
 * frag_results_order. */
enum frag_err sweep_write_rows(struct sweep *s, const struct journal *j,
                               size_t from, size_t end, sweep_add *add,
                               void *user, struct frag_error *e);

/* -- pool.c: the threads -- */

/* Runs every cell that is not done and has no error, on `threads` threads. */
enum frag_err pool_run(struct sweep *s, size_t threads, struct journal *j,
                       struct frag_error *e);

#endif
