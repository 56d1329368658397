/* torch_conf.h - PyTorch's settings, read from text and written as text.
 * Private to policies/torch/.
 *
 * The text is that of PYTORCH_CUDA_ALLOC_CONF. traces/torch_sizes.h computes
 * block and segment sizes from the settings.
 *
 * The grammar is that of the release, with its tolerances: white space is
 * dropped, other characters after a number are ignored ("128MB" is 128), and of
 * two equal keys the later one wins. A text that PyTorch refuses is refused
 * here, with the reason; but a key that no release up to TORCH_NEWEST knows is
 * passed over: torch_left_out (versions.h) lists such keys, for the notes of an
 * answer. Two keys are
 * fragsim's own: torch_version names the release whose rules and settings
 * hold, TORCH_NEWEST without it (`torch@2.6:X` is short for
 * `torch:torch_version:2.6,X`), and padding is that of traces/torch_sizes.h.
 * So is platform (traces/torch_platforms.h). The keys of torch_npu are read as
 * it reads them (NPUAllocatorConfig.cpp of Ascend/pytorch, commit
 * 9e73e708ab93).
 *
 * Source: c10/core/AllocatorConfig and c10/cuda/CUDAAllocatorConfig of PyTorch
 * 2.11, as read, and what the parsers of seven releases answer
 * (tests/gpu/releases/keys.csv); the list form of roundup_power2_divisions and
 * both modes of large_segment_size_mb were probed on an H200.
 */
#ifndef FRAG_POLICIES_TORCH_TORCH_CONF_H
#define FRAG_POLICIES_TORCH_TORCH_CONF_H

#include <stdio.h>

#include "policies/policy.h"
#include "policies/torch/versions.h"
#include "traces/torch_platforms.h"

/* The setting "experiment": changes that pull requests to PyTorch propose, on
 * top of the rules of a version. Sum of these. Read on 2026-11-25: the
 * descriptions and, where there was one, the discussion; not the changed code.
 */
enum torch_experiment {
    /* Open, of 2026-07-28. After the release of all cached blocks, which waits
     * for pending frees, the pool is searched before the device is asked for
     * the last time. A second change is announced; it was not readable. */
    TORCH_PR_191302 = 1,
    /* Open, of 2026-08-13. The search does not apply the two rules of
     * max_split_size to blocks of expandable segments; the split did not
     * before. Unclear: whether the block or the setting decides, which differs
     * only if the setting changed while the program ran. Here the block. */
    TORCH_PR_193400 = 2,
    /* Closed, of 2026-06-04, and in no release up to 2.15. Of the rule, only
     * one sentence was readable: an idle whole segment that is cached under
     * another stream is reused, which saves device allocations. Here: if the
     * search fails, and before garbage collection, the smallest such segment of
     * the same pool that fits, unless max_split_size refuses it; it then
     * belongs to the stream of the request. Idle is free: no trace shows
     * whether the device still works on it. Expandable segments do not move. */
    TORCH_PR_186232 = 4,
    /* In PyTorch since 2.13: the later rule of TORCH_FRACTION_CUT. */
    TORCH_PR_179444 = 8,
    /* Proposals of paper/upstream, in no release. Pages of 2 MiB in the
     * expandable segments of the large pool too. */
    TORCH_SMALL_PAGES = 16,
    /* The limit of a process counts the pages that a request of an expandable
     * segment maps, and not its whole size. */
    TORCH_MAPPED_LIMIT = 32,
};

/* All sizes in bytes. */
struct torch_conf {
    enum torch_platform_id platform; /* which settings have an effect */
    unsigned version; /* minor version of PyTorch 2 whose rules hold */
    bool is_named;    /* the text names `version` (torch_version), so keys
                         that it does not have are left out */
    frag_size large_segment; /* segment size for requests of 1 to 10 MiB */
    frag_size max_split;     /* max_split_size_mb; FRAG_UNLIMITED: off */
    frag_size max_non_split_rounding;
    double gc_threshold;    /* fraction of the memory limit; 0: off */
    double memory_fraction; /* fraction of the device's total; 1: no limit */
    frag_size padding;      /* added to each request before it is rounded */
    frag_size align; /* of large expandable blocks: base_addr_aligned_kb; 0:
                        none */
    unsigned experiments;     /* sum of enum torch_experiment */
    frag_size pinned_reserve; /* pinned_reserve_segment_size_mb; 0: none */
    frag_size pinned_cached;  /* pinned_max_cached_size_mb */
    frag_size pinned_round;   /* pinned_max_round_threshold_mb */
    bool expandable_segments;
    bool follows; /* follows_changes: torch_conf_change is for it */
    bool throws;  /* throw_on_cudamalloc_oom */
    struct torch_reserve reserve; /* expandable_segments_reserve */
    bool rounds; /* `divisions` have an effect in this version */
    uint64_t divisions[TORCH_DIVISIONS]; /* roundup_power2_divisions */
};

/* The size of the block that serves a request of n bytes. Before PyTorch 2.4 a
 * request above 512 bytes with one division keeps its size. */
static inline frag_size torch_conf_round(const struct torch_conf *conf,
                                         frag_size n)
{
    n += conf->padding;
    if (!conf->rounds)
        return torch_round_size(n, NULL);
    if (n > TORCH_MIN_BLOCK &&
        torch_has_earlier(conf->version, TORCH_ONE_DIVISION) &&
        torch_divisions_of(n, conf->divisions) == 1)
        return n;
    return torch_round_size(n, conf->divisions);
}

/* Whether torch_conf_round keeps the size of some request. */
static inline bool torch_conf_keeps_sizes(const struct torch_conf *conf)
{
    bool any = false;

    for (int k = 0; k < TORCH_DIVISIONS; k++)
        any |= conf->divisions[k] == 1;
    return any && torch_has_earlier(conf->version, TORCH_ONE_DIVISION);
}

/* The limit of per_process_memory_fraction on a device of `total` bytes. */
static inline frag_size torch_conf_limit(const struct torch_conf *conf,
                                         frag_size total)
{
    const bool cuts = torch_has_earlier(conf->version, TORCH_FRACTION_CUT) &&
                      !(conf->experiments & TORCH_PR_179444);

    if (conf->memory_fraction >= 1)
        return FRAG_UNLIMITED;
    return (frag_size)(conf->memory_fraction * (double)total +
                       (cuts ? 0 : 0.5));
}

/* Sets the defaults, then the settings of the text. INVALID: e has the key and
 * the reason. UNSUPPORTED: the text has backend:cudaMallocAsync, which is
 * another allocator. NOMEM. After an error the contents of conf are undefined.
 */
enum frag_err torch_conf_parse(struct torch_conf *conf, const char *text,
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Changes the settings as PyTorch does in mid-run. Each text first turns off
 * max_split_size_mb, roundup_power2_divisions and garbage_collection_threshold;
 * since TORCH_PARSER also max_non_split_rounding_mb. All other keys keep the
 * values that they have until the text sets them. INVALID as above; then the
 * keys before the error are set. Source: parseArgs of the two files above, of
 * PyTorch 2.6 to 2.15. */
enum frag_err torch_conf_change(struct torch_conf *conf, const char *text,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* What frag_policy.set does with the settings of a policy: nothing unless they
 * follow changes. *first is NULL at first; then the settings before all
 * changes, which the caller frees. A change of the limit changes none. INVALID
 * as above; NOMEM. */
enum frag_err
torch_conf_follow(struct torch_conf *conf, struct torch_conf **first,
                  const struct frag_setting *setting) FRAG_MUST_CHECK;

/* Writes the settings that affect placement, with all values resolved, in the
 * same grammar. */
void torch_conf_describe(const struct torch_conf *conf, FILE *out);

#endif
