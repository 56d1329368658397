/* lines.h - reads an input line by line, for the importers of text formats.
 *
 * A line ends in LF or CRLF, the last line also at the end of the input. A line
 * must be shorter than FRAG_SOURCE_WINDOW bytes.
 */
#ifndef FRAG_TRACES_BYTES_LINES_H
#define FRAG_TRACES_BYTES_LINES_H

#include "traces/bytes/source.h"
#include "traces/trace.h"

/* Receives a line of `length` bytes, without its end and without a terminating
 * 0; `number` counts from 1. */
typedef enum frag_err lines_line(void *user, const char *line, size_t length,
                                 uint64_t number);

/* Calls `each` for every line of the source. If `each` returns an error, the
 * reading stops with that error. opts may be NULL. CORRUPT for a line that is
 * too long; CANCELLED by opts->progress; IO and CORRUPT from the source. */
enum frag_err lines_each(struct frag_source *source,
                         const struct frag_read_options *opts, lines_line *each,
                         void *user, struct frag_error *e) FRAG_MUST_CHECK;

/* Reports the progress of reading a source. CANCELLED if opts->progress returns
 * true. opts may be NULL. */
enum frag_err lines_tick(struct frag_source *source,
                         const struct frag_read_options *opts,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
