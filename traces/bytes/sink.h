/* sink.h - a text output that appears complete or not at all. A regular file is
 * written as an atomic file. For stdout ("-"), a device or a pipe, which cannot
 * be renamed, the text is collected in memory and written by sink_commit. */
#ifndef FRAG_TRACES_BYTES_SINK_H
#define FRAG_TRACES_BYTES_SINK_H

#include <stdio.h>

#include "traces/bytes/atomic_file.h"

struct sink {
    const char *path;        /* borrowed */
    struct atomic_file file; /* zeroed if the text is collected in memory */
    char *text;              /* the collected text, NULL for a file */
    size_t size;             /* of text, in bytes */
    FILE *out;               /* the caller writes here */
};

/* Returns whether a path of the user means stdout. NULL is no path: false. */
bool sink_is_stdout(const char *path);

/* IO with the system's message, NOMEM. On error s need not be aborted. If path
 * is NULL, there is no output: `out` is NULL, and sink_commit does nothing. */
enum frag_err sink_open(struct sink *s, const char *path,
                        struct frag_error *e) FRAG_MUST_CHECK;
/* Completes the output and releases s. On IO, a regular file under path is
 * unchanged; s is released all the same. */
enum frag_err sink_commit(struct sink *s, struct frag_error *e) FRAG_MUST_CHECK;
/* Discards the output and releases s, which may be zeroed. */
void sink_abort(struct sink *s);

#endif
