/* pinned.h - the pinned host memory of the runtime: which ranges are pinned.
 * Memory that the runtime allocates has no physical pages until the program
 * writes it. Private to real/dry/.
 */
#ifndef FRAG_REAL_DRY_RUNTIME_PINNED_H
#define FRAG_REAL_DRY_RUNTIME_PINNED_H

#include <stdbool.h>
#include <stddef.h>

/* Allocates pinned memory; false if the host has no addresses left. */
bool pinned_new(void **out, size_t size);
/* Registers memory of the program; false if the host has no memory. */
bool pinned_add(void *at, size_t size);
/* Forgets the range that begins there, and gives its memory back if it is the
 * runtime's. False if no range of that kind begins there. */
bool pinned_drop(void *at, bool is_allocated);
bool pinned_has(const void *at);
/* Makes memory that the runtime allocated zero again without touching whole
 * pages. False if [at, at + size) is no such memory; nothing changed then. */
bool pinned_clear(void *at, size_t size);

#endif
