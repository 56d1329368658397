/* cell.h - one cell of a grid: a device's trace against a policy at a capacity.
 * replay, sweep, tune and compare run their cells here. */
#ifndef FRAG_SIM_EXPERIMENTS_CELL_H
#define FRAG_SIM_EXPERIMENTS_CELL_H

#include "policies/device/costs.h"
#include "sim/results/results.h"

enum {
    CELL_POINTS = 2000, /* of a series: twice the pixels of a figure */
    CELL_OOMS = 1000,   /* rows of /runs/N/oom */
};

struct cell_settings;

/* Memory for one run. */
struct cell_memory {
    struct frag_backend *mem;             /* for the policy */
    const struct frag_contents *contents; /* NULL if it has none to check */
    void *parts;                          /* private to the backend */
};

/* Where the memory under a policy comes from. */
struct cell_backend {
    const char *name; /* as results say it */
    /* Fresh memory of that capacity; NOMEM, DEVICE. */
    enum frag_err (*open)(const struct cell_settings *s, frag_size capacity,
                          struct cell_memory *out, struct frag_error *e);
    /* How the device failed, "" if it did not: no number of a run on a failed
     * device is to be trusted. NULL for a backend that cannot fail. */
    const char *(*fault)(const struct cell_memory *m);
    void (*close)(struct cell_memory *m);
};

/* Simulates a device. */
extern const struct cell_backend cell_arena_backend;

/* The same for every cell of a grid; read only while cells run. */
struct cell_settings {
    const struct cell_backend *backend;
    struct frag_costs costs;
    frag_size total; /* 0: the capacity, or an H200's */
    unsigned rule;   /* enum frag_address_rule */
    int gpu;         /* of a backend with several devices */
    bool stop_at_oom, check;
    bool timed;      /* false: ns_per_event is NAN, so that equal runs make
                        equal files */
    uint64_t points; /* of the series; 0: none */
    uint64_t ooms;   /* rows of OOMs kept at most */
};

/* What makes results comparable, as "address_rule=driver,costs=h200,...": two
 * cells with the same trace, policy, capacity and text have the same numbers.
 * The text is to be freed; NULL if there is no memory. */
char *cell_settings_text(const struct cell_settings *s, frag_size limit);

/* Runs one on a device's trace; id names it and says the policy and the
 * capacity, and gets backend, total and stopped_at_oom. tick and user are
 * frag_replay's progress. Errors as frag_replay; out is to be freed. Nothing is
 * shared with other cells but what is const: threads may run one each. */
enum frag_err
cell_run(const struct cell_settings *s, const struct frag_device_trace *trace,
         struct frag_run_identity *id, const struct frag_params *params,
         bool (*tick)(void *user, uint64_t done, uint64_t total), void *user,
         struct frag_run *out, struct frag_error *e) FRAG_MUST_CHECK;

/* The same on memory that the caller has opened, and closes. */
enum frag_err
cell_replay(const struct cell_settings *s, const struct cell_memory *m,
            const struct frag_device_trace *trace,
            const struct frag_params *params,
            bool (*tick)(void *user, uint64_t done, uint64_t total), void *user,
            struct frag_run *out, struct frag_error *e) FRAG_MUST_CHECK;

/* The arena of the settings, which is closed by frag_arena_close. */
enum frag_err cell_arena(const struct cell_settings *s, frag_size capacity,
                         frag_size total, struct frag_backend **out,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
