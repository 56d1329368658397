/* torch_platforms.h - the allocators that write snapshots of PyTorch: that of
 * PyTorch for CUDA, and those of other platforms, which follow its rules except
 * for what is said here. The setting "platform" names one of them; it is
 * fragsim's own key, and readers of snapshots set it. Padding and alignment
 * (torch_sizes.h) also show torch_npu.
 */
#ifndef FRAG_TRACES_TORCH_PLATFORMS_H
#define FRAG_TRACES_TORCH_PLATFORMS_H

#include "traces/torch_sizes.h"

#define TORCH_PLATFORM_KEY "platform"

enum torch_platform_id {
    TORCH_CUDA,
    TORCH_ROCM,
    TORCH_XPU,
    TORCH_NPU,
    TORCH_PLATFORMS
};

struct torch_platform {
    const char *key;      /* the value of the setting "platform" */
    const char *name;     /* for a message */
    const char *variable; /* of the environment, for its settings */
    unsigned rules; /* the version of PyTorch 2 whose placement it has in all
                       its releases; 0: that of its own release */
    const char *frames[6]; /* parts of a stack's text that only it has */
    const char *note;      /* what a reader of its snapshots must know */
};

extern const struct torch_platform torch_platforms[TORCH_PLATFORMS];

/* The platform of that key, of `length` characters; TORCH_PLATFORMS: none. */
enum torch_platform_id torch_platform_find(const char *key, size_t length);

/* The platform of settings; TORCH_CUDA if they show no other, or are NULL. */
enum torch_platform_id torch_platform_of(const char *settings);

/* Writes a platform (TORCH_CUDA: none), a padding and an alignment, both in
 * bytes (0: none), as settings. */
enum { TORCH_PLATFORM_TEXT = 64 };
void torch_platform_text(enum torch_platform_id platform, frag_size padding,
                         frag_size align, char text[TORCH_PLATFORM_TEXT]);

/* The environment variable that the allocator with such settings reads. */
static inline const char *torch_variable_of(const char *settings)
{
    return torch_platforms[torch_platform_of(settings)].variable;
}

#endif
