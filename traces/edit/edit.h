/* edit.h - edits of a trace: what a job would have requested if a part of it
 * were different. A list of edits is read from text and applied in its order;
 * each edit makes a new trace from the one before it.
 *
 * The text of an edit is NAME or NAME:KEY=VALUE,KEY=VALUE. Several edits in one
 * text are separated by semicolons. `fragsim help edits' prints all names and
 * keys, from the tables in kinds.c and edit_keys.c.
 *
 * An edited trace has no recorded answers (segments, addresses), because the
 * recorded allocator did not serve these requests. Times, marks and stacks are
 * kept, and so are the segments at the start if the blocks that were live then
 * are. The path, format, SHA-256 and settings are those of the input, and a
 * note for each edit says what it changed. The memory is that of two traces and
 * 64 bytes for each event.
 */
#ifndef FRAG_TRACES_EDIT_EDIT_H
#define FRAG_TRACES_EDIT_EDIT_H

#include <stdio.h>

#include "traces/trace.h"

FRAG_BEGIN_DECLS

struct frag_edits; /* a list of edits */

/* Reads the edits of `count` texts. The caller frees *out with frag_edits_free.
 * INVALID for a name, key or value that does not exist, with the nearest name;
 * NOMEM. On error *out is unchanged. */
enum frag_err frag_edits_read(const char *const *texts, size_t count,
                              struct frag_edits **out,
                              struct frag_error *e) FRAG_MUST_CHECK;
void frag_edits_free(struct frag_edits *edits); /* NULL is fine */

/* All edits as one text, which frag_edits_read reads to the same list; "" if
 * there are none. */
const char *frag_edits_text(const struct frag_edits *edits);

/* Applies all edits to a trace, which is unchanged. The caller closes *out,
 * which does not depend on it. INVALID if an edit cannot be applied to this
 * trace (it has no steps, times, stacks, or no such stream), if a size would
 * exceed 2^63 - 1 or if the trace would have no event; NOMEM. On error *out is
 * unchanged. */
enum frag_err frag_edits_apply(const struct frag_edits *edits,
                               const struct frag_trace *trace,
                               struct frag_trace **out,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Prints the edits, their keys, units and examples. */
void frag_edits_describe(FILE *out);

FRAG_END_DECLS

#endif
