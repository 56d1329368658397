/* platform.h - settings for the replay of a recording: with the rules of its
 * device library (traces/torch_sizes.h).
 */
#ifndef FRAG_POLICIES_TORCH_PLATFORM_H
#define FRAG_POLICIES_TORCH_PLATFORM_H

#include "traces/base.h"

/* Returns the settings `chosen`, with the platform, padding and alignment of
 * the settings `recorded` before them, each unless `recorded` has none or
 * `chosen` sets it. Both are in the grammar of PYTORCH_CUDA_ALLOC_CONF;
 * `recorded` may be NULL. The caller frees the result; NULL if the host has no
 * memory. */
char *torch_platform_keep(const char *recorded, const char *chosen);

/* The version that the setting torch_version names, also as text; TORCH_NEVER
 * and
 * "": none. */
enum { TORCH_VERSION_TEXT = 16 };
unsigned torch_version_named(const char *settings,
                             char text[TORCH_VERSION_TEXT]);

/* The version of PyTorch 2 whose rules hold for a recording with these settings
 * and these releases (frag_trace.releases), which may be NULL: the one that the
 * settings name, as those of snapshots that fragsim wrote do; else, of those
 * that may have written it the newest that the torch policy models, and none
 * that lacks a recorded setting. A platform may have one for all its releases
 * (traces/torch_platforms.h). Returns text, such as "2.11". */
const char *torch_version_text(const char *settings, const char *releases,
                               char text[TORCH_VERSION_TEXT]);

/* torch_platform_keep, with torch_version before it unless `chosen` sets it: a
 * replay follows the release that wrote the recording. */
char *torch_settings_for(const char *recorded, const char *releases,
                         const char *chosen);

#endif
