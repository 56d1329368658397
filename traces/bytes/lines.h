/* lines.h - an input as lines of text; private to the importers.
 *
 * Lines end in LF or CRLF, the last one at the end of the input. A line fits
 * the window of a source.
 */
#ifndef FRAG_TRACES_BYTES_LINES_H
#define FRAG_TRACES_BYTES_LINES_H

#include "traces/bytes/source.h"
#include "traces/trace.h"

/* Gives every line to `each`, without its end, counted from 1, and stops at an
 * error. CORRUPT for a line that is too long, CANCELLED by opts (may be NULL);
 * IO and CORRUPT of the source. */
enum frag_err lines_each(struct frag_source *source,
                         const struct frag_read_options *opts,
                         enum frag_err (*each)(void *user, const char *line,
                                               size_t length, uint64_t number),
                         void *user, struct frag_error *e) FRAG_MUST_CHECK;

#endif
