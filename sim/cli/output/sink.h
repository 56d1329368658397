/* sink.h - a text output that appears whole or not at all: a file, written
 * beside and renamed, or stdout ("-"), written at the end. */
#ifndef FRAG_SIM_CLI_OUTPUT_SINK_H
#define FRAG_SIM_CLI_OUTPUT_SINK_H

#include <stdio.h>

#include "traces/base.h"

struct sink {
    const char *path; /* borrowed */
    char *partial;    /* NULL for what is no regular file */
    char *text;       /* what was written so far, for those */
    size_t size;
    FILE *out;
};

/* Whether a path that a user gave (NULL: none) means stdout. */
bool sink_is_stdout(const char *path);

/* IO with the system's words, NOMEM. On error s need not be aborted. */
enum frag_err sink_open(struct sink *s, const char *path,
                        struct frag_error *e) FRAG_MUST_CHECK;
/* IO: what was under path is as it was. Closed either way. */
enum frag_err sink_commit(struct sink *s, struct frag_error *e) FRAG_MUST_CHECK;
void sink_abort(struct sink *s); /* zeroed is fine */

#endif
