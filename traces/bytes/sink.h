/* sink.h - a text output that appears whole or not at all: an atomic file, or
 * stdout ("-"), a device or a pipe, each written at the end from memory. */
#ifndef FRAG_TRACES_BYTES_SINK_H
#define FRAG_TRACES_BYTES_SINK_H

#include <stdio.h>

#include "traces/bytes/atomic_file.h"

struct sink {
    const char *path;        /* borrowed */
    struct atomic_file file; /* zeroed if path cannot be renamed over */
    char *text;              /* the bytes so far, if so */
    size_t size;
    FILE *out;
};

/* Whether a path that a user gave (NULL: none) means stdout. */
bool sink_is_stdout(const char *path);

/* IO with the system's words, NOMEM. On error s need not be aborted. */
enum frag_err sink_open(struct sink *s, const char *path,
                        struct frag_error *e) FRAG_MUST_CHECK;
/* IO: the file under path is as it was. Closed either way. */
enum frag_err sink_commit(struct sink *s, struct frag_error *e) FRAG_MUST_CHECK;
void sink_abort(struct sink *s); /* zeroed is fine */

#endif
