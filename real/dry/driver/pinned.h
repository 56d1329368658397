/* pinned.h - the pinned host memory of the process: which ranges are pinned, by
 * runtime or driver. Memory that they allocate has no physical pages until the
 * program writes it. For the stand-ins only.
 */
#ifndef FRAG_REAL_DRY_DRIVER_PINNED_H
#define FRAG_REAL_DRY_DRIVER_PINNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* Allocates pinned memory; false if the host has no addresses left. */
bool frag_dry_pinned_new(void **out, size_t size);
/* Registers memory of the program; false if the host has no memory. */
bool frag_dry_pinned_add(void *at, size_t size);
/* Forgets the range that begins there, and gives its memory back if it
 * was allocated so. False if no range of that kind begins there. */
bool frag_dry_pinned_drop(void *at, bool is_allocated);
/* The start and the size of the range around the address; false if it is not
 * pinned. */
bool frag_dry_pinned_range(uint64_t at, uint64_t *start, size_t *size);
/* Makes memory that was allocated pinned zero again without touching whole
 * pages. False if [at, at + size) is no such memory; nothing changed then. */
bool frag_dry_pinned_clear(void *at, size_t size);

#pragma GCC visibility pop

#endif
