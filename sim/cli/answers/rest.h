/* rest.h - the rest of a job whose recording ends where it died: its program
 * runs without a GPU (`fragsim dry`) to its end, and its trace there takes the
 * place of the guessed one. Private to sim/cli/answers/.
 */
#ifndef FRAG_SIM_CLI_ANSWERS_REST_H
#define FRAG_SIM_CLI_ANSWERS_REST_H

#include "sim/cli/output/progress.h"
#include "traces/trace.h"

/* The program to run; borrowed. */
struct rest_spec {
    const char *program; /* a command line for the shell */
    const char *gpu;     /* as for `fragsim dry'; NULL: its default */
    const char *page;    /* the trace is written beside this file */
    bool force;          /* an existing trace is overwritten */
    struct progress *progress;
};

struct rest {
    char *path;      /* of the trace, which is kept; NULL: there is none */
    char alike[512]; /* whether it begins as the recording does: a sentence */
};

/* Runs the program and compares its requests with those of the recording, up to
 * its death. INVALID if the recording did not die, the program failed, or more
 * than one of its processes used a GPU; errors of child_run and reading_open.
 * The caller frees out->path, on error too. */
enum frag_err rest_run(const struct rest_spec *spec,
                       const struct frag_trace *recording, struct rest *out,
                       struct frag_error *e) FRAG_MUST_CHECK;

#endif
