/* padding.h - keeps the padding of a recording (traces/torch_sizes.h) in
 * settings that are chosen for its replay.
 */
#ifndef FRAG_POLICIES_TORCH_PADDING_H
#define FRAG_POLICIES_TORCH_PADDING_H

/* Returns the settings `chosen` with the padding of the settings `recorded`
 * before them; without it if `recorded` has none or `chosen` sets another. Both
 * are in the grammar of PYTORCH_CUDA_ALLOC_CONF; `recorded` may be NULL. The
 * caller frees the result; NULL if the host has no memory. */
char *torch_padding_keep(const char *recorded, const char *chosen);

#endif
