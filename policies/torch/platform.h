/* platform.h - settings for the replay of a recording: with the rules of its
 * device library (traces/torch_sizes.h), and with its memory limit.
 */
#ifndef FRAG_POLICIES_TORCH_PLATFORM_H
#define FRAG_POLICIES_TORCH_PLATFORM_H

#include "traces/base.h"

/* Returns the settings `chosen`, with the padding and the alignment of the
 * settings `recorded` before them, each unless `recorded` has none or `chosen`
 * sets it. Both are in the grammar of PYTORCH_CUDA_ALLOC_CONF; `recorded` may
 * be NULL. The caller frees the result; NULL if the host has no memory. */
char *torch_platform_keep(const char *recorded, const char *chosen);

/* Returns the settings, which may be NULL, with the limit as a fraction of the
 * device's total behind them, unless it is FRAG_UNLIMITED. The caller frees the
 * result; NULL if the host has no memory. */
char *torch_settings_limited(const char *settings, frag_size limit,
                             frag_size total);

#endif
