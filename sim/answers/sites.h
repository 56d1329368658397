/* sites.h - the places in a program that allocate: what a reader wants to see
 * of a stack.
 *
 * A place is a Python frame of the user's own code, which the user can change:
 * not one of C++, nor one whose file is below a folder such as torch/ or
 * site-packages/, nor one that starts or imports the code of others. The site
 * of a stack is its innermost place. A stack without a place has another site,
 * which is good to tell groups of blocks apart and no answer to what can be
 * done: its innermost Python frame or, without any, its innermost frame, apart
 * from the C++ functions that record the stack.
 */
#ifndef FRAG_SIM_ANSWERS_SITES_H
#define FRAG_SIM_ANSWERS_SITES_H

#include <stdio.h>

#include "traces/trace.h"

bool site_is_place(const struct frag_trace *t, const struct frag_frame *f);

/* The innermost place of a stack; NULL: it has none. */
const struct frag_frame *site_place(const struct frag_trace *t, uint32_t stack);

/* The site of a stack; NULL for stack 0 and for an empty stack. */
const struct frag_frame *site_of(const struct frag_trace *t, uint32_t stack);

/* The innermost Python frame that is not PyTorch's: of a library that the
 * program calls, or its own. Without one, the innermost frame; NULL for stack 0
 * and for an empty stack. */
const struct frag_frame *site_caller(const struct frag_trace *t,
                                     uint32_t stack);

/* The innermost frame, apart from the C++ functions that record the stack; NULL
 * for stack 0 and for an empty stack. */
const struct frag_frame *site_innermost(const struct frag_trace *t,
                                        uint32_t stack);

/* Whether the code of an optimizer allocated: its state lives as long as the
 * model. */
bool site_is_optimizer(const struct frag_trace *t, uint32_t stack);

/* The Python frames of a stack from the outermost one inwards. */
struct site_walk {
    const struct frag_trace *trace;
    const struct frag_frame *first, *next; /* next: one after the frame */
};

struct site_walk site_walk(const struct frag_trace *t, uint32_t stack);
/* The next frame; NULL: there are no more. */
const struct frag_frame *site_step_in(struct site_walk *w);
/* Whether both are one frame; not if one is NULL. */
bool site_same(const struct frag_frame *a, const struct frag_frame *b);

enum { SITE_TEXT = 256 }; /* enough for every text of a site */

/* Writes the site: "FUNCTION (FILE:LINE)", with the last part of the path,
 * shortened if it is long, or "FILE:LINE" outside of all functions; "unknown"
 * if the stack has no frame. The text is not printable yet
 * (traces/printable.h). Returns text. */
const char *site_text(const struct frag_trace *t, uint32_t stack,
                      char text[SITE_TEXT]);
/* The same of the caller; a library's file has its path in the library. */
const char *site_caller_text(const struct frag_trace *t, uint32_t stack,
                             char text[SITE_TEXT]);
/* The same without the line. */
void site_function_text(const struct frag_trace *t, uint32_t stack,
                        char text[SITE_TEXT]);
/* The same for a frame. */
const char *site_frame_text(const struct frag_trace *t,
                            const struct frag_frame *f, char text[SITE_TEXT]);
/* Writes `before`, which is short, and the place; nothing if the stack has
 * none. Returns text. */
const char *site_place_text(const struct frag_trace *t, uint32_t stack,
                            const char *before, char text[SITE_TEXT]);

/* Writes the stack as flame graphs take it: frames from the outermost to the
 * innermost, separated by semicolons, without a line break. Characters that
 * would break the format (blank, semicolon, control characters) turn into an
 * underscore. */
void site_put_folded(const struct frag_trace *t, uint32_t stack, FILE *out);

#endif
