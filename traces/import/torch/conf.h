/* conf.h - the settings of a snapshot as one conf string.
 *
 * A snapshot has the last PYTORCH_CUDA_ALLOC_CONF that was parsed and, beside
 * it, the values in force. They differ where a value outlives the string that
 * set it (expandable_segments does, allocator rules 22.3).
 */
#ifndef FRAG_TRACES_IMPORT_TORCH_CONF_H
#define FRAG_TRACES_IMPORT_TORCH_CONF_H

#include "traces/torch_sizes.h"

struct torch_settings {
    uint64_t max_split; /* bytes; UINT64_MAX: no limit */
    double gc_threshold;
    bool expandable;
    bool capture_reuse;                  /* graph_capture_record_stream_reuse */
    uint64_t divisions[TORCH_DIVISIONS]; /* 0: none */
};

struct torch_settings torch_settings_default(void);

/* The conf string that restores s: `conf` itself (may be NULL: none was
 * recorded) if it does, *rebuilt false; or else its other keys and then the
 * values of s. To be freed; NULL if the host has no memory. */
char *torch_settings_conf(const struct torch_settings *s, const char *conf,
                          bool *rebuilt);

#endif
