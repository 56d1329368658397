/* results.h - runs to files: HDF5, JSON, CSV and a table for people.
 *
 * One table of columns (results.c) says each number's name, type, units, long
 * name and formula; the HDF5 /summary, the JSON rows, the CSV header and the
 * man page are made from it. results.c is the only file of sim/ that knows
 * HDF5.
 */
#ifndef FRAG_RESULTS_H
#define FRAG_RESULTS_H

#include <stdio.h>

#include "sim/replay.h"

/* What a run was of; borrowed. */
struct frag_run_identity {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const char *trace_name; /* file name without folders and suffixes */
    const char *policy; /* as given, e.g. "torch:expandable_segments:True" */
    const struct frag_policy *policy_used;
    frag_size capacity; /* FRAG_UNLIMITED */
    frag_size total;    /* the device's bytes as reported */
    const char *backend;
    uint64_t seed;
    bool stopped_at_oom;
};

/* Who made the file; borrowed. started and ended: seconds since the epoch. */
struct frag_provenance {
    const char *version, *commit, *command;
    int64_t started, ended;
};

struct frag_results; /* a result file being written */

/* Starts PATH beside itself (PATH.partial-PID); IO if it cannot. */
enum frag_err frag_results_open(const char *path,
                                const struct frag_provenance *p,
                                struct frag_results **out,
                                struct frag_error *e) FRAG_MUST_CHECK;
/* Adds /runs/<n> and a row of /summary. */
enum frag_err frag_results_add(struct frag_results *r,
                               const struct frag_run_identity *id,
                               const struct frag_run *run,
                               struct frag_error *e) FRAG_MUST_CHECK;
/* Writes `complete`, flushes and renames. IO: the file under PATH is as it was.
 * r is closed either way. */
enum frag_err frag_results_commit(struct frag_results *r, int64_t ended,
                                  struct frag_error *e) FRAG_MUST_CHECK;
void frag_results_abort(struct frag_results *r); /* NULL is fine */

/* The same rows as text. `first` opens the object or writes the header. */
void frag_results_json_open(FILE *out, const struct frag_provenance *p);
void frag_results_json_row(FILE *out, bool first,
                           const struct frag_run_identity *id,
                           const struct frag_run *run);
void frag_results_json_close(FILE *out);
void frag_results_csv_header(FILE *out);
void frag_results_csv_row(FILE *out, const struct frag_run_identity *id,
                          const struct frag_run *run);

#endif
