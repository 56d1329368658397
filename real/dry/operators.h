/* operators.h - which operator of PyTorch called the stand-ins. */
#ifndef FRAG_REAL_DRY_OPERATORS_H
#define FRAG_REAL_DRY_OPERATORS_H

#include <stddef.h>

/* Writes the name of the innermost operator on the stack of this thread, such
 * as "nonzero"; "" if there is none. */
__attribute__((visibility("default"))) void frag_dry_operator(char *name,
                                                              size_t room);

#endif
