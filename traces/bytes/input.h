/* input.h - opens the files that a user names, for reading: traces, rules,
 * costs, grids. A pipe works as a file does, but a pipe that no program writes
 * does not stop the caller for ever.
 */
#ifndef FRAG_TRACES_BYTES_INPUT_H
#define FRAG_TRACES_BYTES_INPUT_H

#include <stdio.h>

#include "traces/base.h"

enum { INPUT_WAIT = 10 }; /* seconds that a named pipe may lack a writer */

/* Opens the file; the caller closes *fd. IO with the system's message, also for
 * a folder, and if a named pipe has no writer within INPUT_WAIT seconds or a
 * signal arrives before it has one. Later, a read() waits for a writer as long
 * as it is silent. */
enum frag_err input_fd(const char *path, int *fd,
                       struct frag_error *e) FRAG_MUST_CHECK;
/* The same as a stream, which the caller closes. IO, NOMEM. */
enum frag_err input_file(const char *path, FILE **in,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
