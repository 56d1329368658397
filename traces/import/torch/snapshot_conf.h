/* snapshot_conf.h - the allocator settings of a snapshot as one conf string.
 *
 * A snapshot has the last PYTORCH_CUDA_ALLOC_CONF that was parsed and, beside
 * it, the values in force. The two differ where a value outlives the string
 * that set it (expandable_segments does; allocator rules, 22.3).
 */
#ifndef FRAG_TRACES_IMPORT_TORCH_SNAPSHOT_CONF_H
#define FRAG_TRACES_IMPORT_TORCH_SNAPSHOT_CONF_H

#include "traces/torch_sizes.h"

struct torch_settings {
    uint64_t max_split;  /* in bytes; UINT64_MAX: no limit */
    double gc_threshold; /* a share of the memory limit; 0: off */
    uint64_t pinned_round, pinned_cached; /* pinned_max_round_threshold and
                                             pinned_max_cached_size in bytes;
                                             UINT64_MAX: no limit */
    uint64_t large_segment; /* large_segment_size in bytes, of a conf string,
                               which keeps the item too; 0: not set */
    bool expandable;
    bool capture_reuse;                  /* graph_capture_record_stream_reuse */
    uint64_t divisions[TORCH_DIVISIONS]; /* by octave; 0: none */
};

/* The settings without any conf string. */
struct torch_settings torch_settings_default(void);

/* Reads the settings that a conf string sets. False if the host has no memory;
 * then *out is unchanged. */
bool torch_settings_read(const char *conf, struct torch_settings *out);

/* Changes the settings as a text that is passed in mid-run does
 * (policies/torch/torch_conf.h). False if the host has no memory. */
bool torch_settings_change(const char *conf, struct torch_settings *s);

/* Returns a conf string that restores s. If `conf` restores s, the result is a
 * copy of `conf` and *rebuilt is false. If not, the result is the other keys of
 * `conf`, then the values of s, and *rebuilt is true. NULL as `conf` means that
 * no string was recorded. The caller frees the result. Returns NULL if the host
 * has no memory. */
char *torch_settings_conf(const struct torch_settings *s, const char *conf,
                          bool *rebuilt);

#endif
