/* results.h - writes runs to result files (HDF5) and reads them back; writes
 * the same rows as JSON and CSV.
 *
 * One table of columns (columns.c) holds the name, type, units, long name and
 * formula of each number. The HDF5 tables, the JSON rows, the CSV header and
 * the man page are made from that table. In sim/, only hdf5.c, put.c and load.c
 * use HDF5.
 *
 * Layout of a result file:
 *   /summary    a table with one row for each run. Its attributes units,
 *               long_name and formula have one text for each column.
 *   /runs/<n>   run n. Its attributes describe the run and its trace. Its
 *               groups series, oom and segments hold one one-dimensional
 *               dataset for each column, along the dimension scale `event`
 *               (segments have none). A bare run has attributes only; runs of
 *               a sweep are bare unless details were requested.
 *   attributes of the root: what made the file. `complete` is written last.
 *
 * A number is a signed 64-bit number or a double. Only a double can be none,
 * and none is NaN: columns that may have no value (capacity_bytes: unlimited,
 * first_oom_event: no OOM) are doubles. The bytes of the file depend on the
 * rows and the provenance only.
 */
#ifndef FRAG_SIM_RESULTS_RESULTS_H
#define FRAG_SIM_RESULTS_RESULTS_H

#include <stdio.h>

#include "sim/replay/replay.h"
#include "sim/results/json.h"
#include "traces/base.h"
#include "traces/identity.h"

FRAG_BEGIN_DECLS

/* Versions of the layout of the file and of the JSON text. The number after the
 * point grows if something is added. The number before the point grows if a
 * program that reads the earlier layout would read wrong values.
 * CHANGELOG.md names what each number changed. Texts have a fixed length and
 * everything has a checksum, because libhdf5 1.10 crashes or loops on damaged
 * texts of variable length.
 * Before a number is raised, the fragsim of the number so far writes a file to
 * tests/support/earlier, and CHANGELOG.md names the new one.
 * frag_results_load reads files of all earlier versions; in those of version 1,
 * capacity_bytes and first_oom_event are signed numbers and -1 is none. */
#define FRAG_RESULTS_SCHEMA "3.1"
#define FRAG_JSON_SCHEMA    "3.0"

/* The inputs of a run. All texts are borrowed. */
struct frag_run_identity {
    struct frag_trace_identity trace;
    const char *policy; /* as the user wrote it, for example
                           "torch:expandable_segments:True" */
    const struct frag_policy *policy_used;
    struct frag_bound bound;
    const char *capacity; /* as the user wrote it, for example "1.05x"; NULL: it
                             was not written */
    bool repeats;         /* the run repeats the recorded allocator under its
                             recorded bound: its segments get their recorded
                             addresses */
    frag_size total;      /* bytes that the device reports as its size */
    const char *backend;  /* name of the backend, for example "arena" */
    uint64_t seed;
    bool stopped_at_oom; /* the run was set to end at its first OOM */
    bool bare;    /* write the summary row and the attributes only: no series,
                     OOMs or segments */
    bool checked; /* the ledger checked every answer of the policy */
};

/* Compares two runs as strcmp does. The order is that of the runs in a merged
 * file: by trace (name, path, hash, edit, events), device, policy, parameters
 * (resolved), bound, total, backend, seed, stopped_at_oom. 0 if both runs
 * have the same inputs. */
int frag_results_order(const struct frag_run_identity *a, const char *params_a,
                       const struct frag_run_identity *b, const char *params_b);

#define FRAG_NO_TIME ((int64_t)-1)

/* The program that made the file, its command line and its times. All texts are
 * borrowed. */
struct frag_provenance {
    const char *version, *commit, *command;
    /* Seconds since the epoch. FRAG_NO_TIME leaves the attribute out of the
     * file, so that equal runs make equal files. */
    int64_t started, ended;
    const char *settings; /* settings that all runs share; NULL: no attribute */
    const char *missing;  /* what the file lacks, one line for each item;
                             NULL if it lacks nothing. It may change until the
                             commit */
    const char *shards;   /* the parts of sweeps that the file has, one line
                             each: the command of the sweep and " --shard I/N",
                             1/1 for a whole sweep; NULL: no sweep */
};

struct frag_results; /* a result file that is being written */

/* Starts a result file as a partial file, beside PATH. `p` is borrowed until
 * the file is committed or aborted. IO if the partial file cannot be created,
 * or if PATH exists and is not a regular file; NOMEM. On error *out is
 * untouched. */
enum frag_err frag_results_open(const char *path,
                                const struct frag_provenance *p,
                                struct frag_results **out,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Adds the group /runs/<n> and a row of /summary. Both arguments are copied.
 * The file is built in memory and only frag_results_commit writes it to the
 * disk, so a full disk cannot leave HDF5 with a file that it is unable to
 * close. NOMEM; then the file must be aborted. */
enum frag_err frag_results_add(struct frag_results *r,
                               const struct frag_run_identity *id,
                               const struct frag_run *run,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the summary and the attribute `complete`, writes the file to the disk
 * and renames it to PATH. `ended` is the time in seconds since the epoch, or
 * FRAG_NO_TIME. IO with the system's error text, NOMEM; on error PATH is
 * unchanged. r is closed in every case. */
enum frag_err frag_results_commit(struct frag_results *r, int64_t ended,
                                  struct frag_error *e) FRAG_MUST_CHECK;
/* Closes r and removes the partial file; NULL is allowed. */
void frag_results_abort(struct frag_results *r);

/* A run that was read from a file. All memory belongs to frag_loaded. */
struct frag_loaded_run {
    struct frag_run_identity id; /* edit: "" if there were none, and in files
                                    before 2.1; capacity: "" in files before
                                    3.1; checked: false if the file does not
                                    say so */
    struct frag_policy
        policy_used; /* id.policy_used: its name and its source */
    struct frag_run run;
};

struct frag_loaded {
    char *schema; /* the schema_version of the file, such as "2.3" */
    char *version, *commit, *command; /* of the program that made the file */
    char *started, *ended; /* UTC, ISO 8601; "" if the file has no time */
    char *settings, *missing, *shards; /* NULL if the file has no such
                                          attribute */
    uint64_t count;
    struct frag_loaded_run *runs; /* [count] */
};

/* Returns whether the file at `path` is a result file; false if it cannot be
 * opened. */
bool frag_results_is(const char *path);

/* Reads a result file into *out, which frag_results_unload frees. IO if the
 * file cannot be opened, CORRUPT if it is not a result file, is incomplete, has
 * a schema version that this reader does not support, or has a number that
 * cannot be one; NOMEM. On error *out is untouched. */
enum frag_err frag_results_load(const char *path, struct frag_loaded *out,
                                struct frag_error *e) FRAG_MUST_CHECK;
void frag_results_unload(struct frag_loaded *loaded);

/* Opens the object of an answer and its array `results`. The caller checks
 * ferror(out) for write errors. */
void frag_results_json_open(struct frag_json *j, FILE *out,
                            const struct frag_provenance *p);

/* Writes the version of the HDF5 library that is in use, for example "1.10.8",
 * to text and returns text. */
const char *frag_results_library(char text[32]);

FRAG_END_DECLS

#endif
