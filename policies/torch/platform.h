/* platform.h - keeps the rules of a recording's device library
 * (traces/torch_sizes.h) in settings that are chosen for its replay.
 */
#ifndef FRAG_POLICIES_TORCH_PLATFORM_H
#define FRAG_POLICIES_TORCH_PLATFORM_H

/* Returns the settings `chosen`, with the padding and the alignment of the
 * settings `recorded` before them, each unless `recorded` has none or `chosen`
 * sets it. Both are in the grammar of PYTORCH_CUDA_ALLOC_CONF; `recorded` may
 * be NULL. The caller frees the result; NULL if the host has no memory. */
char *torch_platform_keep(const char *recorded, const char *chosen);

#endif
