/* operators.h - which operators of PyTorch called the stand-ins, and a function
 * of PyTorch that would otherwise tell them from a GPU. */
#ifndef FRAG_REAL_DRY_OPERATORS_H
#define FRAG_REAL_DRY_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the names of the innermost and the outermost operator on the stack of
 * this thread, such as "nonzero"; "" if there is none. */
__attribute__((visibility("default"))) void
frag_dry_operators(char *inner, char *outer, size_t room);

/* How many of the modes (torch.utils._python_dispatch) of this thread are not
 * the program's own. */
__attribute__((visibility("default"))) void frag_dry_own_modes(int count);
/* c10::impl::dispatch_mode_enabled: PyTorch asks it whether it may add in
 * place, as linear and attention do. True if the program has a mode of its
 * own. */
__attribute__((visibility("default"))) bool
_ZN3c104impl21dispatch_mode_enabledEv(void);

#endif
