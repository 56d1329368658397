/* results.h - runs to files and back: HDF5, JSON and CSV.
 *
 * One table of columns (columns.c) says each number's name, type,
 * units, long name and formula; the HDF5 tables, the JSON rows, the CSV header
 * and the man page are made from it. hdf5.c, put.c and load.c are the
 * only files of sim/ that know HDF5.
 *
 * The result file: /summary is a table with one row a run; its attributes
 * units, long_name and formula have one text a column. /runs/<n> is run n, with
 * its provenance as attributes and the groups series, oom and segments, a
 * one-dimensional dataset a column, along the dimension scale `event`; a run of
 * a sweep has its attributes only, unless details were asked for. Counts are
 * signed 64-bit numbers and -1 means none (never, unlimited). The root's
 * attribute `complete` is written last. The bytes are a function of the rows
 * and the provenance alone.
 */
#ifndef FRAG_SIM_RESULTS_RESULTS_H
#define FRAG_SIM_RESULTS_RESULTS_H

#include <stdio.h>

#include "sim/replay/replay.h"
#include "sim/results/json.h"
#include "traces/identity.h"

FRAG_BEGIN_DECLS

/* Version of the layout of the file and of the JSON: a reader refuses another
 * number before the point. */
#define FRAG_RESULTS_SCHEMA "1.0"

/* What a run was of; borrowed. */
struct frag_run_identity {
    struct frag_trace_identity trace;
    const char *policy; /* as given, e.g. "torch:expandable_segments:True" */
    const struct frag_policy *policy_used;
    frag_size capacity; /* FRAG_UNLIMITED */
    frag_size total;    /* the device's bytes as reported */
    const char *backend;
    uint64_t seed;
    bool stopped_at_oom;
    bool bare; /* its row and its attributes only: no series, oom, segments */
};

/* The order of runs in a file that many hands made: by trace (name, path, hash,
 * events), device, policy, parameters (resolved), capacity, total, backend,
 * seed and the end at an OOM. 0 if they are runs of the same thing. */
int frag_results_order(const struct frag_run_identity *a, const char *params_a,
                       const struct frag_run_identity *b, const char *params_b);

#define FRAG_NO_TIME ((int64_t)-1)

/* Who made the file; borrowed. started and ended: seconds since the epoch, or
 * FRAG_NO_TIME where equal runs are to make equal files: then the file has no
 * such attribute. */
struct frag_provenance {
    const char *version, *commit, *command;
    int64_t started, ended;
    const char *settings; /* what all runs have in common; NULL: not said */
    const char *missing;  /* what should be in the file and is not, a line each;
                             NULL if nothing */
};

struct frag_results; /* a result file being written */

/* Starts PATH.partial-PID beside PATH; IO if it cannot or if PATH is there and
 * no regular file, NOMEM. p is borrowed
 * until the file is committed or aborted. On error *out is untouched. */
enum frag_err frag_results_open(const char *path,
                                const struct frag_provenance *p,
                                struct frag_results **out,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Adds /runs/<n> and a row of /summary; copies what it needs. The file grows in
 * memory and reaches the disk in commit: a full disk can then not leave HDF5
 * with a file that it cannot close. NOMEM. */
enum frag_err frag_results_add(struct frag_results *r,
                               const struct frag_run_identity *id,
                               const struct frag_run *run,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Writes `complete`, puts the file on the disk and renames it to PATH. IO with
 * the system's words, NOMEM: PATH is as it was. r is closed either way. */
enum frag_err frag_results_commit(struct frag_results *r, int64_t ended,
                                  struct frag_error *e) FRAG_MUST_CHECK;
void frag_results_abort(struct frag_results *r); /* NULL is fine */

/* A run read back. */
struct frag_loaded_run {
    char *trace, *policy, *params, *backend, *trace_sha256;
    char *trace_path, *trace_format, *trace_settings;
    char *policy_name, *policy_source;
    char **trace_notes; /* note_count of them */
    uint64_t note_count, trace_bytes, trace_events;
    uint64_t device;
    frag_size capacity, total;
    uint64_t seed;
    bool stopped_at_oom, bare;
    struct frag_run run;
};

struct frag_loaded {
    char *version, *commit, *command; /* who made the file */
    char *started, *ended;    /* UTC, ISO 8601; "" if the file does not say */
    char *settings, *missing; /* NULL if the file does not say */
    uint64_t count;
    struct frag_loaded_run *runs;
};

/* Reads a result file. IO if it cannot be opened, CORRUPT if it is not a result
 * file, is incomplete, or has a schema that this reader does not know; NOMEM.
 * On error *out is untouched. */
enum frag_err frag_results_load(const char *path, struct frag_loaded *out,
                                struct frag_error *e) FRAG_MUST_CHECK;
void frag_results_unload(struct frag_loaded *loaded);

/* The same rows as text: a JSON object, opened up to its list of results, and
 * CSV. A number that is none is null in JSON and empty in CSV. Errors stay in
 * ferror(out). */
void frag_results_json_open(struct frag_json *j, FILE *out,
                            const struct frag_provenance *p);
void frag_results_json_row(struct frag_json *j,
                           const struct frag_run_identity *id,
                           const struct frag_run *run);
void frag_results_json_close(struct frag_json *j);
void frag_results_csv_header(FILE *out);
void frag_results_csv_row(FILE *out, const struct frag_run_identity *id,
                          const struct frag_run *run);

/* "1.10.8": the HDF5 library at work. Returns text. */
const char *frag_results_library(char text[32]);

FRAG_END_DECLS

#endif
