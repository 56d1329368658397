/* operators.h - which operators of PyTorch called the stand-ins. */
#ifndef FRAG_REAL_DRY_OPERATORS_H
#define FRAG_REAL_DRY_OPERATORS_H

#include <stddef.h>

/* Writes the names of the innermost and the outermost operator on the stack of
 * this thread, such as "nonzero"; "" if there is none. */
__attribute__((visibility("default"))) void
frag_dry_operators(char *inner, char *outer, size_t room);

#endif
