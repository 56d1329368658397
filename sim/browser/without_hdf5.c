/* without_hdf5.c - in place of traces/file/ and the HDF5 part of sim/results/,
 * in a build without HDF5: a trace file is recognized and refused, and no file
 * of either kind is written. Results are printed as JSON and CSV as ever. */
#include <stdio.h>
#include <string.h>

#include "sim/results/results.h"
#include "traces/file/trace_file.h"

static enum frag_err refuse(const char *path, struct frag_error *e)
{
    return frag_fail(e, FRAG_UNSUPPORTED,
                     "%s: this build of fragsim is without HDF5, the format of "
                     "trace and result files; use the command line",
                     path);
}

/* ---- trace files ---- */

const char *const trace_file_format = "hdf5";

bool trace_file_is(const unsigned char *bytes, size_t count)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";

    return count >= sizeof(signature) - 1 &&
           !memcmp(bytes, signature, sizeof(signature) - 1);
}

enum frag_err trace_file_read(const char *path, struct frag_trace **out,
                              struct frag_error *e)
{
    (void)out;
    return refuse(path, e);
}

enum frag_err frag_trace_write(const struct frag_trace *trace, const char *path,
                               struct frag_error *e)
{
    (void)trace;
    return refuse(path, e);
}

/* ---- result files ---- */

enum frag_err frag_results_open(const char *path,
                                const struct frag_provenance *p,
                                struct frag_results **out, struct frag_error *e)
{
    (void)p;
    (void)out;
    return refuse(path, e);
}

/* No file is open, so these three are not called with one. */
enum frag_err frag_results_add(struct frag_results *r,
                               const struct frag_run_identity *id,
                               const struct frag_run *run, struct frag_error *e)
{
    (void)r;
    (void)run;
    return refuse(id->trace.path, e);
}

enum frag_err frag_results_commit(struct frag_results *r, int64_t ended,
                                  struct frag_error *e)
{
    (void)r;
    (void)ended;
    return refuse("results", e);
}

void frag_results_abort(struct frag_results *r)
{
    (void)r;
}

bool frag_results_is(const char *path)
{
    unsigned char bytes[8];
    FILE *file = fopen(path, "rbe");
    size_t count = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

    if (file)
        fclose(file);
    return trace_file_is(bytes, count);
}

enum frag_err frag_results_load(const char *path, struct frag_loaded *out,
                                struct frag_error *e)
{
    (void)out;
    return refuse(path, e);
}

void frag_results_unload(struct frag_loaded *loaded)
{
    (void)loaded;
}

const char *frag_results_library(char text[32])
{
    return strcpy(text, "none");
}
