/* sites.h - the places in a program that allocate: what a reader wants to see
 * of a stack.
 *
 * The site of a stack is its innermost frame in the user's own code. A frame of
 * a library is one whose file is below a folder such as torch/ or
 * site-packages/, or that is not Python. A stack without a frame of the user
 * has its innermost frame as its site, apart from the C++ functions that record
 * the stack.
 */
#ifndef FRAG_SIM_ANSWERS_SITES_H
#define FRAG_SIM_ANSWERS_SITES_H

#include <stdio.h>

#include "traces/trace.h"

/* The site of a stack; NULL for stack 0 and for an empty stack. */
const struct frag_frame *site_of(const struct frag_trace *t, uint32_t stack);

/* The innermost frame, apart from the C++ functions that record the stack; NULL
 * for stack 0 and for an empty stack. */
const struct frag_frame *site_innermost(const struct frag_trace *t,
                                        uint32_t stack);

enum { SITE_TEXT = 256 }; /* enough for every text of a site */

/* Writes "FUNCTION (FILE:LINE)", with the last part of the path, shortened if
 * it is long; "unknown" if the stack has no frame. The text is not printable
 * yet (traces/printable.h). Returns text. */
const char *site_text(const struct frag_trace *t, uint32_t stack,
                      char text[SITE_TEXT]);

/* The same for a frame. */
const char *site_frame_text(const struct frag_trace *t,
                            const struct frag_frame *f, char text[SITE_TEXT]);

/* Writes the stack as flame graphs take it: frames from the outermost to the
 * innermost, separated by semicolons, without a line break. Characters that
 * would break the format (blank, semicolon, control characters) turn into an
 * underscore. */
void site_put_folded(const struct frag_trace *t, uint32_t stack, FILE *out);

#endif
