/* rules.c - what settings do that PyTorch accepts: which have no effect, which
 * are dangerous, and what must be known about the others. One function for each
 * rule.
 *
 * Sources: c10/core/AllocatorConfig and c10/cuda/CUDACachingAllocator of
 * PyTorch 2.11, as read; issues #106660 (garbage_collection_threshold without a
 * limit) and #123548 (max_split_size_mb with expandable segments) of PyTorch.
 * The figures were measured with the torch policy on recordings of training
 * jobs; tests/commands/check_conf.py measures them again.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/conf/conf_parts.h"
#include "traces/torch_sizes.h"

/* Peak reserved with max_split_size_mb, relative to the default settings, on
 * the recording on which it is worst: lstm_varlen, an LSTM with sequences of
 * varying length, with unlimited memory. */
static const struct measured {
    unsigned mib;
    double ratio;
} measured_splits[] = {{64, 5.3}, {128, 5.1}, {256, 4.9}, {512, 3.1}};

enum { SPLITS = sizeof(measured_splits) / sizeof(*measured_splits) };

/* The setting of that name, if PyTorch accepts it; NULL if there is none. */
static const struct conf_item *find(const struct conf_answer *a,
                                    const char *key)
{
    for (size_t i = 0; i < a->item_count; i++)
        if (!strcmp(a->items[i].key, key) && !a->items[i].refused &&
            !a->items[i].overwritten)
            return &a->items[i];
    return NULL;
}

/* The setting, if its value differs from the default. */
static const struct conf_item *find_in_force(const struct conf_answer *a,
                                             const char *key)
{
    const struct conf_item *it = find(a, key);

    return it && it->in_force ? it : NULL;
}

static uint64_t number(const struct conf_item *it)
{
    return strtoull(it->in_force, NULL, 10);
}

static size_t place(const struct conf_answer *a, const struct conf_item *it)
{
    return (size_t)(it - a->items);
}

static bool ignore(struct conf_answer *a, const struct conf_item *it,
                   const char *why)
{
    return conf_say_useless(a, place(a, it), why);
}

/* ---- one rule each; false: no memory for the finding ---- */

static bool overwritten(struct conf_answer *a)
{
    for (size_t i = 0; i < a->item_count; i++)
        if (a->items[i].overwritten && a->items[i].row &&
            !a->items[i].refused &&
            !conf_say(a, CONF_IGNORED, i,
                      "The same setting follows in the text, and the last one "
                      "counts."))
            return false;
    return true;
}

static bool is_ignored_by_driver(const struct conf_item *it)
{
    return it->row && !it->refused && !it->overwritten && !it->row->on_host &&
           it->row->kind != CONF_BACKEND;
}

static bool other_backend(struct conf_answer *a)
{
    const struct conf_item *backend = find(a, "backend");

    a->native = !backend || strcmp(backend->value, "cudaMallocAsync") != 0;
    for (size_t i = 0; !a->native && i < a->item_count; i++)
        if (is_ignored_by_driver(&a->items[i]) &&
            !ignore(a, &a->items[i],
                    "It contradicts backend:cudaMallocAsync: that is the "
                    "driver's allocator, which ignores the settings of "
                    "PyTorch's own."))
            return false;
    return true;
}

static bool collection_without_limit(struct conf_answer *a)
{
    const struct conf_item *gc = find(a, "garbage_collection_threshold");

    if (!gc || !a->native || find_in_force(a, "per_process_memory_fraction"))
        return true;
    return conf_say(a, CONF_IGNORED, place(a, gc),
                    "It has no effect without a memory limit, and PyTorch does "
                    "not say so. Add per_process_memory_fraction (PyTorch 2.10 "
                    "and later), or call "
                    "torch.cuda.set_per_process_memory_fraction with a value "
                    "below 1.");
}

static bool collection_of_expandable(struct conf_answer *a)
{
    const struct conf_item *gc = find(a, "garbage_collection_threshold");

    if (!gc || !a->native || !find_in_force(a, "expandable_segments") ||
        !find_in_force(a, "per_process_memory_fraction"))
        return true;
    return ignore(a, gc,
                  "It contradicts expandable_segments:True: the collection "
                  "frees no memory of expandable segments.");
}

static bool rounding_without_split(struct conf_answer *a)
{
    const struct conf_item *it = find(a, "max_non_split_rounding_mb");

    if (!it || !a->native || find_in_force(a, "max_split_size_mb"))
        return true;
    return ignore(a, it,
                  "It has an effect only together with max_split_size_mb.");
}

static const struct measured *split_like(uint64_t mib)
{
    for (size_t i = 0; i < SPLITS; i++)
        if (mib <= measured_splits[i].mib)
            return &measured_splits[i];
    return NULL;
}

static bool small_split(struct conf_answer *a)
{
    const struct conf_item *it = find_in_force(a, "max_split_size_mb");
    const struct measured *m = it ? split_like(number(it)) : NULL;

    if (!m || !a->native || find_in_force(a, "expandable_segments"))
        return true;
    return conf_say(a, CONF_DANGER, place(a, it),
                    "Free blocks of this size or more wait for a request of "
                    "nearly the same size. In a recorded training job whose "
                    "sizes vary (lstm_varlen), max_split_size_mb:%u reserved "
                    "%.1f times the memory of the default settings. Replay "
                    "your own job before you export it.",
                    m->mib, m->ratio);
}

static bool split_of_expandable(struct conf_answer *a)
{
    const struct conf_item *it = find_in_force(a, "max_split_size_mb");

    if (!it || !a->native || !find_in_force(a, "expandable_segments"))
        return true;
    return conf_say(a, CONF_DANGER, place(a, it),
                    "With expandable_segments:True, merged free space of this "
                    "size or more serves no smaller request, so reserved "
                    "memory grows (PyTorch issue #123548). In a recorded "
                    "training job (gpt2_train), max_split_size_mb:128 reserved "
                    "1.9 times the memory of expandable_segments:True alone. "
                    "Use one of the two.");
}

static bool odd_pages(struct conf_answer *a)
{
    const struct conf_item *large = find_in_force(a, "large_segment_size_mb");

    if (!large || number(large) % 2 == 0 ||
        !find_in_force(a, "expandable_segments"))
        return true;
    return conf_say(a, CONF_DANGER, place(a, large),
                    "With expandable_segments:True it is the size of a page, "
                    "and the driver maps multiples of 2 MiB only. Use an even "
                    "number.");
}

/* PyTorch reads the digits at the start of a number and ignores the rest. */
static bool after_number(struct conf_answer *a)
{
    for (size_t i = 0; i < a->item_count; i++) {
        const struct conf_item *it = &a->items[i];
        const size_t length = strlen(it->key),
                     digits = strspn(it->value, "0123456789");

        if (it->row && !it->refused && length > 3 && digits &&
            !strcmp(it->key + length - 3, "_mb") && it->value[digits] &&
            !conf_say(a, CONF_NOTE, i,
                      "PyTorch reads %.*s and ignores the rest of the value. "
                      "The unit is always MiB.",
                      (int)digits, it->value))
            return false;
    }
    return true;
}

static bool limit_kills(struct conf_answer *a)
{
    const struct conf_item *it =
        find_in_force(a, "per_process_memory_fraction");

    if (!it || !a->native)
        return true;
    return conf_say(a, CONF_DANGER, place(a, it),
                    "The job fails with out of memory at %.4g %% of the "
                    "device's total memory, even if the device has memory "
                    "left.",
                    100 * strtod(it->in_force, NULL));
}

static bool expandable_limits(struct conf_answer *a)
{
    const struct conf_item *it = find_in_force(a, "expandable_segments");

    if (!it || !a->native)
        return true;
    return conf_say(a, CONF_NOTE, place(a, it),
                    "On Windows and WSL PyTorch prints a warning and ignores "
                    "it. Programs that share GPU memory between processes "
                    "(cudaIpcGetMemHandle), and some NCCL and RDMA "
                    "registrations, fail with it.");
}

static bool throws_without_limit(struct conf_answer *a)
{
    const struct conf_item *it = find(a, "throw_on_cudamalloc_oom");

    if (!it || !a->native || strcmp(it->value, "True") != 0 ||
        find_in_force(a, "per_process_memory_fraction"))
        return true;
    return conf_say(a, CONF_NOTE, place(a, it),
                    "It was made for use with per_process_memory_fraction, "
                    "which is not set here.");
}

/* Whether a value of expandable_segments_reserve, or all values of a list, are
 * a reserve. */
static bool are_reserves(const char *value)
{
    struct torch_reserve reserve;
    bool all = true;

    if (*value != '[')
        return torch_reserve_read(value, &reserve);
    while (all && (value = strchr(value, ':')))
        all = torch_reserve_read(++value, &reserve);
    return all;
}

static bool no_reserve(struct conf_answer *a, const char *key)
{
    const struct conf_item *it = find(a, key);

    return !it || are_reserves(it->value) ||
           conf_say(a, CONF_IGNORED, place(a, it),
                    "PyTorch warns of a value that is neither a share above 0 "
                    "nor a number of GiB such as 4G, and uses its default.");
}

static bool reserves(struct conf_answer *a)
{
    return no_reserve(a, "expandable_segments_reserve") &&
           no_reserve(a, "expandable_segments_reserve_by_class");
}

static bool host_only(struct conf_answer *a)
{
    for (size_t i = 0; i < a->item_count; i++) {
        const struct conf_item *it = &a->items[i];

        if (it->row && it->row->on_host && !it->refused && !it->overwritten &&
            !conf_say(a, CONF_NOTE, i,
                      "It concerns pinned memory of the host, and changes "
                      "nothing on the GPU."))
            return false;
    }
    return true;
}

/* ---- roundup_power2_divisions ---- */

/* The least number of divisions above 1, which rounds up most. 0: there is
 * none. */
static uint64_t coarsest(const struct conf_item *it)
{
    const bool is_list = *it->in_force == '[';
    const char *text = it->in_force;
    uint64_t least = 0;

    for (int k = 0; k < TORCH_DIVISIONS; k++) {
        const uint64_t n =
            strtoull(is_list ? strchr(text, ':') + 1 : text, NULL, 10);

        if (n > 1 && (!least || n < least))
            least = n;
        if (is_list)
            text = strchr(text, ':') + 1;
    }
    return least;
}

/* The bytes allocated for a request of 514 MiB with so many divisions. */
static frag_size of_514(uint64_t divisions)
{
    uint64_t all[TORCH_DIVISIONS];

    for (int k = 0; k < TORCH_DIVISIONS; k++)
        all[k] = divisions;
    return torch_round_size(514 * FRAG_MIB, all);
}

static bool rounding_adds(struct conf_answer *a)
{
    const struct conf_item *it = find(a, "roundup_power2_divisions");
    uint64_t n;

    if (!it || !a->native)
        return true;
    if (!it->in_force)
        return conf_say(a, CONF_IGNORED, place(a, it),
                        "One division is no division: sizes are rounded as by "
                        "default. Numbers of 2 and more have an effect.");
    n = coarsest(it);
    return conf_say(a, n <= 2 ? CONF_DANGER : CONF_NOTE, place(a, it),
                    "Requests grow by up to %.3g %%: with %" PRIu64
                    " divisions, one of 514 MiB takes %" PRIu64 " MiB.",
                    100.0 / (double)n, n, of_514(n) / FRAG_MIB);
}

/* Walks over the pairs of a list. *interval is 0 for ">". Returns the text
 * behind the pair; NULL at the end. */
static const char *next_pair(const char *text, uint64_t *interval)
{
    if (*text != '[' && *text != ',')
        return NULL;
    *interval = strtoull(text + 1, NULL, 10);
    return text + 1 + strcspn(text + 1, ",]");
}

enum { LAST_INTERVAL = 1 << (TORCH_DIVISIONS - 1) };

static bool far_intervals(struct conf_answer *a)
{
    const struct conf_item *it = find(a, "roundup_power2_divisions");
    const char *at = it ? it->value : "";
    uint64_t interval;

    while ((at = next_pair(at, &interval)))
        if (interval > LAST_INTERVAL &&
            !conf_say(a, CONF_IGNORED, place(a, it),
                      "The list covers sizes from 1 MiB to 64 GiB; PyTorch "
                      "reads the interval %" PRIu64 " as %d.",
                      interval, LAST_INTERVAL))
            return false;
    return true;
}

static bool gaps_in_list(struct conf_answer *a)
{
    const struct conf_item *it = find_in_force(a, "roundup_power2_divisions");
    const char *at = it ? it->value : "";
    uint64_t interval, last = 0;

    while ((at = next_pair(at, &interval))) {
        interval = interval < LAST_INTERVAL ? interval : LAST_INTERVAL;
        if (last && interval > 2 * last &&
            !conf_say(a, CONF_NOTE, place(a, it),
                      "Sizes from %" PRIu64 " to %" PRIu64
                      " MiB are not rounded: an entry serves its own interval "
                      "only, not those up to the next entry.",
                      2 * last, interval))
            return false;
        last = interval ? interval : last;
    }
    return true;
}

/* The parser before 2.10 began the fill of ">" at the last interval. */
static bool old_fill(struct conf_answer *a)
{
    const struct conf_item *it = find_in_force(a, "roundup_power2_divisions");
    const char *more = it ? strchr(it->value, '>') : NULL;

    if (!more || more == it->value + 1 || a->version >= 10)
        return true;
    return conf_say(a, CONF_NOTE, place(a, it),
                    "PyTorch before 2.10 applies the entry \">\" also to the "
                    "last interval before it.");
}

static bool (*const rules[])(struct conf_answer *a) = {
    overwritten,
    other_backend,
    collection_without_limit,
    collection_of_expandable,
    rounding_without_split,
    small_split,
    split_of_expandable,
    odd_pages,
    after_number,
    limit_kills,
    rounding_adds,
    far_intervals,
    gaps_in_list,
    old_fill,
    expandable_limits,
    throws_without_limit,
    reserves,
    host_only,
};

static int by_item(const void *a, const void *b)
{
    const struct conf_finding *x = a, *y = b;

    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

enum frag_err conf_judge(struct conf_answer *a, struct frag_error *e)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        if (!rules[i](a))
            return frag_no_memory(e, "the findings");
    if (a->finding_count)
        qsort(a->findings, a->finding_count, sizeof(*a->findings), by_item);
    return FRAG_OK;
}
