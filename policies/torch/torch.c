/* torch.c - the torch policy: PyTorch's CUDA caching allocator, exact to the
 * byte.
 *
 * A request is rounded up to a multiple of 512 bytes, or to a fraction of a
 * power of two. It belongs to the small pool (up to 1 MiB) or to the large
 * pool, and gets the smallest free block of its stream that fits; among equal
 * sizes, the one with the lowest address (from PyTorch 2.13 on, the lowest
 * address in the oldest segment; in 2.12, the oldest record). The remainder is
 * split off: in the small pool and in expandable mode if it is at least 512
 * bytes, otherwise only if it is more than 1 MiB. A freed block merges with its
 * free neighbours. If no free block fits, the policy obtains memory from the
 * device (torch_segments.c, expand.c).
 *
 * A private pool keeps its memory until the caller tells that it has ended, and
 * does not split if the caller tells so (struct frag_heard). A request that a
 * pool served for the default pool on OOM (use_on_oom) is a request of that
 * pool, as recorded. Not modelled, because no trace shows them: CUDA IPC, and
 * requests of the default pool while another thread captures a graph.
 *
 * The rules are those of PyTorch 2.1 to 2.15, which differ in the rules of enum
 * torch_rule (versions.h).
 *
 * Source: PyTorch 2.11, c10/cuda/CUDACachingAllocator.cpp, as read and as
 * recorded on an H200.
 */
#include <stdlib.h>

#include "policies/torch/torch_state.h"

static enum frag_err torch_configure(void *state, const char *text,
                                     struct frag_error *e)
{
    struct torch *t = state;

    return torch_conf_parse(&t->conf, text, e);
}

static void torch_describe(const void *state, FILE *out)
{
    const struct torch *t = state;

    torch_conf_describe(&t->conf, out);
}

/* The limit of the parameters. */
static void set_limit(struct frag_heap *heap)
{
    struct torch *t = heap->state;

    t->limit = FRAG_UNLIMITED;
    if (t->conf.memory_fraction < 1) /* else a run holds for every total */
        t->limit = torch_conf_limit(&t->conf, frag_backend_total(heap->mem));
}

static void use_conf(struct frag_heap *heap)
{
    struct torch *t = heap->state;

    t->counts_searches = torch_limit_collected(t, heap->mem) != FRAG_UNLIMITED;
    t->unmaps |= t->conf.expandable_segments;
    for (uint32_t i = 0; i < t->space_count; i++)
        t->spaces[i]->page = torch_page(t, t->spaces[i]->is_small);
}

/* Blocks stay as they are: the settings of a block's request, of its search,
 * its split and the retries after it, are those of the moment of the request.
 * Source: CUDAAllocatorConfig is read anew by each malloc, and
 * setMemoryFraction stores the new limit, in CUDACachingAllocator.cpp of
 * PyTorch 2.6 to 2.15; a setting per_process_memory_fraction is read once, when
 * the allocator of a device is made. */
static enum frag_err torch_set(struct frag_heap *heap,
                               const struct frag_setting *setting)
{
    struct torch *t = heap->state;
    const enum frag_err err = torch_conf_follow(&t->conf, &t->first, setting);

    if (!t->first)
        return err;
    if (!setting)
        set_limit(heap);
    else if (!setting->text)
        t->limit = setting->limit;
    if (t->conf.expandable_segments && !heap->mem->ops->va_reserve)
        return FRAG_UNSUPPORTED;
    use_conf(heap);
    return err;
}

static enum frag_err torch_init(struct frag_heap *heap)
{
    struct torch *t = heap->state;

    if (t->conf.expandable_segments && !heap->mem->ops->va_reserve)
        return FRAG_UNSUPPORTED;
    set_limit(heap);
    t->edge.use = TORCH_USED;
    use_conf(heap);
    t->ranks_segments = !torch_has_earlier(t->conf.version, TORCH_TIE_RECORD);
    t->ranks_blocks = !torch_has_earlier(t->conf.version, TORCH_TIE_ADDRESS) &&
                      !t->ranks_segments;
    return FRAG_OK;
}

static void torch_fini(struct frag_heap *heap)
{
    struct torch *t = heap->state;

    free(t->first);
    torch_segments_fini(heap);
    torch_blocks_fini(heap->state);
}

/* ---- search ---- */

/* The size that a block would have if the hole after it were mapped. The free
 * end of an expandable segment therefore counts as enormous. */
static frag_size expandable_size(const struct torch_block *b)
{
    frag_size size = b->node.size;

    return b->next->use == TORCH_HOLE ? size + b->next->node.size : size;
}

/* Walks up from the best fit while the next block's expandable_size is strictly
 * smaller. This greedy walk need not find the smallest one. */
static struct free_node *walk_expandable(const struct torch_space *space,
                                         struct free_node *n)
{
    for (;;) {
        struct free_node *next = free_set_after(&space->free, n);

        if (!torch_block_of(n)->expandable || !next ||
            expandable_size(torch_block_of(next)) >=
                expandable_size(torch_block_of(n)))
            return n;
        n = next;
    }
}

/* The first ordinary block from `n` on; NULL: there is none. */
static struct free_node *skip_expandable(const struct torch_space *space,
                                         struct free_node *n)
{
    while (n && torch_block_of(n)->expandable)
        n = free_set_after(&space->free, n);
    return n;
}

/* Whether max_split_size refuses a block for a request. */
static bool refuses(const struct torch *t, const struct torch_block *b,
                    frag_size size)
{
    if (t->conf.max_split == FRAG_UNLIMITED ||
        (b->expandable && t->conf.experiments & TORCH_PR_193400))
        return false;
    return size < t->conf.max_split
               ? b->node.size >= t->conf.max_split
               : b->node.size >= size + t->conf.max_non_split_rounding;
}

/* get_free_block: tests one candidate only. If max_split_size refuses it, the
 * search ends without a block. */
static struct torch_block *search(const struct torch *t,
                                  struct torch_space *space, frag_size size)
{
    struct free_node *n;
    unsigned bin;

    if (t->counts_searches)
        ++*space->searches;
    n = free_set_find(&space->free, size, &bin);
    if (n && torch_block_of(n)->expandable) {
        struct free_node *first = n;

        n = t->conf.expandable_segments ? walk_expandable(space, n)
                                        : skip_expandable(space, n);
        bin = n == first ? bin : FREE_BINS;
    }
    if (!n || refuses(t, torch_block_of(n), size))
        return NULL;
    free_set_remove_found(&space->free, n, bin);
    return torch_block_of(n);
}

/* The smallest free block of another stream of the pool that is large enough
 * and a whole ordinary segment; from now on it belongs to `space`. NULL: there
 * is none (TORCH_PR_186232). */
static struct torch_block *
reclaim(const struct torch *t, const struct torch_space *space, frag_size size)
{
    const struct torch_pool *pool = &t->pools[space->pool];
    struct torch_block *best = NULL;

    for (uint32_t i = 0; i < pool->streams; i++) {
        struct torch_space *from = pool->space[space->is_small][i];
        struct free_node *n =
            from && from != space ? free_set_fit(&from->free, size) : NULL;

        while (n && !torch_is_segment(torch_block_of(n)))
            n = free_set_after(&from->free, n);
        if (n && (!best || n->size < best->node.size))
            best = torch_block_of(n);
    }
    if (!best || refuses(t, best, size))
        return NULL;
    free_set_remove(&t->spaces[best->space]->free, &best->node);
    best->space = space->index;
    return best;
}

/* ---- allocation ---- */

static bool should_split(const struct torch *t, const struct torch_space *space,
                         const struct torch_block *b, frag_size size)
{
    frag_size rest = b->node.size - size;

    if (space->whole)
        return false;
    if (space->is_small || t->conf.expandable_segments)
        return rest >= TORCH_MIN_BLOCK;
    return rest > TORCH_SMALL_SIZE && size < t->conf.max_split;
}

/* Updates the inactive_split counters after a free block of a segment was
 * allocated: `rest` is the bytes split off, which are now the block above b. */
static void count_split(struct torch *t, const struct torch_space *space,
                        const struct torch_block *b, frag_size rest)
{
    const struct torch_block *above = rest ? b->next->next : b->next;
    const bool was_split = !torch_is_edge(b->prev) || !torch_is_edge(above);

    if (was_split)
        torch_count_down(t, FRAG_TORCH_INACTIVE_SPLIT_BYTES, space->is_small,
                         b->node.size);
    else if (rest)
        torch_count_up(t, FRAG_TORCH_INACTIVE_SPLIT_BYTES, space->is_small,
                       rest);
    if (was_split && !rest)
        torch_count_down(t, FRAG_TORCH_INACTIVE_SPLIT, space->is_small, 1);
    if (!was_split && rest)
        torch_count_up(t, FRAG_TORCH_INACTIVE_SPLIT, space->is_small, 1);
}

/* Splits off the front of a free block up to the next multiple of conf.align
 * (traces/torch_sizes.h), if the rest has room for the request. The old record
 * is then the front, which stays free. */
static struct torch_block *align_start(struct torch *t,
                                       struct torch_space *space,
                                       struct torch_block *b, frag_size size)
{
    const frag_size past = b->node.addr % t->conf.align;
    const frag_size front = past ? t->conf.align - past : 0;
    struct torch_block *rest;

    if (!front || size < TORCH_ALIGN_LEAST || !b->expandable ||
        !t->conf.expandable_segments || front + size > b->node.size)
        return b;
    rest = torch_split_high(t, b, b->node.size - front);
    torch_add_free(space, b);
    return rest;
}

/* Marks the block as allocated and splits it if should_split. In a split the
 * front is a new record, and the old record is then the remainder. */
static struct torch_block *hand_out(struct torch *t, struct torch_space *space,
                                    struct torch_block *b, frag_size size)
{
    frag_size rest = 0;

    if (should_split(t, space, b, size)) {
        struct torch_block *front = torch_split_low(t, b, size);

        rest = b->node.size;
        torch_add_free(space, b);
        b = front;
    }
    b->use = TORCH_USED;
    if (t->observer && !b->expandable)
        count_split(t, space, b, rest);
    return b;
}

static enum frag_err torch_alloc(struct frag_heap *heap,
                                 const struct frag_request *req,
                                 struct frag_block *out)
{
    struct torch *t = heap->state;
    const frag_size size = torch_conf_round(&t->conf, req->size);
    struct torch_space *space;
    struct torch_block *b;

    FRAG_TRY(torch_space(t, req->pool, size <= TORCH_SMALL_SIZE, req->stream,
                         &space));
    FRAG_TRY(torch_reserve(t));
    b = search(t, space, size);
    if (!b && t->conf.experiments & TORCH_PR_186232)
        b = reclaim(t, space, size);
    if (!b)
        FRAG_TRY(torch_grow(heap, space, size, search, &b));
    if (t->conf.align)
        b = align_start(t, space, b, size);
    b = hand_out(t, space, b, size);
    b->requested = req->size;
    if (t->observer)
        torch_count_handed_out(t, space, b);
    *out = (struct frag_block){b->node.addr, b->node.size, b};
    return FRAG_OK;
}

/* ---- free ---- */

static void torch_free_requested(struct frag_heap *heap,
                                 const struct frag_block *block)
{
    struct torch *t = heap->state;
    struct torch_block *b = block->node;

    if (t->observer)
        torch_count_free_requested(t, t->spaces[b->space], b);
    b->use = TORCH_PENDING;
}

/* Applies the net change as one increase or one decrease, so that the counter
 * shows no transient peak. */
static void count_change(struct torch *t, enum frag_torch_stat stat,
                         bool is_small, frag_size gone, frag_size come)
{
    if (come > gone)
        torch_count_up(t, stat, is_small, come - gone);
    else if (gone > come)
        torch_count_down(t, stat, is_small, gone - come);
}

/* Counts a completed free, after b was merged. */
static void count_completed(struct torch *t, const struct torch_space *space,
                            const struct torch_block *b,
                            struct torch_merged gain)
{
    const frag_size size = b->node.size;

    if (!b->expandable) {
        bool split = torch_is_split(b);

        count_change(t, FRAG_TORCH_INACTIVE_SPLIT, space->is_small, gain.count,
                     split);
        count_change(t, FRAG_TORCH_INACTIVE_SPLIT_BYTES, space->is_small,
                     gain.bytes, split ? size : 0);
    }
    torch_count_down(t, FRAG_TORCH_ACTIVE, space->is_small, 1);
    torch_count_down(t, FRAG_TORCH_ACTIVE_BYTES, space->is_small,
                     size - gain.bytes);
    torch_count_down(t, FRAG_TORCH_REQUESTED_BYTES, space->is_small,
                     b->requested);
}

/* Frees a block. Returns what it gained by merging. */
FREE_STEP struct torch_merged
free_block(struct torch *t, struct torch_space *space, struct torch_block *b)
{
    struct torch_merged gain;

    b->use = TORCH_FREE;
    gain = torch_merge(t, space, b);
    torch_add_free(space, b);
    return gain;
}

/* Frees a block and counts the free. */
static void free_counted(struct torch *t, struct torch_space *space,
                         struct torch_block *b)
{
    if (b->use == TORCH_USED)
        torch_count_free_requested(t, space, b);
    count_completed(t, space, b, free_block(t, space, b));
}

static void torch_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct torch *t = heap->state;
    struct torch_block *b = block->node;
    struct torch_space *space = t->spaces[b->space];

    if (t->observer)
        free_counted(t, space, b);
    else
        free_block(t, space, b);
}

/* ---- adoption of an existing layout ---- */

/* Counts a free block of an adopted segment, which is split if it has other
 * blocks. */
static void count_adopted_free(struct torch *t, const struct torch_space *space,
                               frag_size size)
{
    torch_count_up(t, FRAG_TORCH_INACTIVE_SPLIT, space->is_small, 1);
    torch_count_up(t, FRAG_TORCH_INACTIVE_SPLIT_BYTES, space->is_small, size);
}

/* One block that covers an ordinary segment. */
static void adopt_whole(struct torch *t, const struct torch_space *space,
                        const struct frag_held_segment *held,
                        struct torch_block **out)
{
    struct torch_block *b = torch_new_block(t);

    *b = (struct torch_block){.node = {.addr = held->addr, .size = held->size},
                              .prev = &t->edge,
                              .next = &t->edge,
                              .space = space->index};
    *out = b;
}

static void adopt_block(struct torch *t, struct torch_space *space,
                        struct torch_block *b,
                        const struct frag_held_block *from)
{
    b->requested = from->requested;
    b->use = from->live ? TORCH_USED : TORCH_FREE;
    if (!from->live) {
        torch_add_free(space, b);
        if (t->observer && !b->expandable && torch_is_split(b))
            count_adopted_free(t, space, from->size);
    } else if (t->observer) {
        torch_count_handed_out(t, space, b);
    }
}

static void count_adopted(struct torch *t, const struct frag_held_segment *held)
{
    t->reserved += held->size;
    if (!t->observer)
        return; /* counts only: this run has not allocated it */
    torch_count_reserved(t, held->pool, held->is_small, held->size, true);
    if (!held->is_expandable)
        torch_count_up(t, FRAG_TORCH_SEGMENT, held->is_small, 1);
}

static enum frag_err adopt_segment(struct frag_heap *heap,
                                   const struct frag_held_segment *held,
                                   void ***nodes)
{
    struct torch *t = heap->state;
    struct torch_space *space;
    struct torch_block *rest;

    FRAG_TRY(torch_space(t, held->pool, held->is_small, held->stream, &space));
    FRAG_TRY(torch_reserve(t));
    if (held->is_expandable)
        FRAG_TRY(torch_expand_adopt(t, space, held, &rest));
    else
        adopt_whole(t, space, held, &rest);
    count_adopted(t, held);
    for (size_t i = 0; i < held->block_count; i++) {
        const struct frag_held_block *from = &held->blocks[i];
        struct torch_block *b = rest;

        FRAG_TRY(torch_reserve(t));
        if (i + 1 < held->block_count)
            b = torch_split_low(t, rest, from->size);
        adopt_block(t, space, b, from);
        if (from->live)
            *(*nodes)++ = b;
    }
    return FRAG_OK;
}

static enum frag_err torch_adopt(struct frag_heap *heap,
                                 const struct frag_held_segment *segments,
                                 size_t count, void **nodes)
{
    for (size_t i = 0; i < count; i++)
        FRAG_TRY(adopt_segment(heap, &segments[i], &nodes));
    return FRAG_OK;
}

/* A request that is not rounded has a unit of one byte. */
static frag_size torch_quantum(const void *state)
{
    return torch_conf_keeps_sizes(&((const struct torch *)state)->conf)
               ? 1
               : FRAG_QUANTUM;
}

static const struct frag_param torch_params[] = {
    {.name = "torch_version",
     .init = "2.15",
     .help = "the release of PyTorch whose rules and settings hold, from 2.1 "
             "to 2.15 (default: the release that wrote the trace, if it is "
             "known); torch@2.6:... is short for torch:torch_version:2.6,..."},
    {.name = "expandable_segments",
     .init = "False",
     .help = "one segment grows: memory is mapped at its end (True or False)"},
    {.name = "max_split_size_mb",
     .init = NULL,
     .help =
         "a block of at least this size is not split for a request below it "
         "(MiB)"},
    {.name = "max_non_split_rounding_mb",
     .init = "20",
     .help =
         "a request of at least max_split_size_mb accepts only a block that "
         "is less than this much larger (MiB)"},
    {.name = "roundup_power2_divisions",
     .init = NULL,
     .help = "sizes are rounded up to 1/N of a power of two: N, or a list by "
             "size in MiB such as [256:1,512:2,>:8]"},
    {.name = "garbage_collection_threshold",
     .init = NULL,
     .help = "above this fraction of the memory limit, old free segments are "
             "released before more memory is allocated (above 0, below 1); "
             "no effect without a limit, even on a full device"},
    {.name = "per_process_memory_fraction",
     .init = "1",
     .help = "the memory limit, as a fraction of the device's total (0 to 1); "
             "1: no limit"},
    {.name = "large_segment_size_mb",
     .init = "20",
     .help = "segment size for requests of 1 to 10 MiB, and page size of "
             "expandable segments of the large pool (MiB, above 10)"},
    {.name = "throw_on_cudamalloc_oom",
     .init = "False",
     .help =
         "a request that would exceed the memory of the device fails before "
         "the driver is called and before cached memory is returned (from "
         "2.12; True or False)"},
    {.name = TORCH_RESERVE_KEY,
     .init = NULL,
     .help = "the most addresses of one expandable segment, as a share of the "
             "device's memory or in GiB such as 4G (from 2.15); a larger "
             "request fails"},
    {.name = TORCH_PADDING_KEY,
     .init = "0",
     .help = "bytes added to each request before its size is rounded (0 to "
             "512): 32 in torch_npu for Ascend; a snapshot of torch_npu sets "
             "it by itself; only fragsim has this setting, PyTorch and "
             "torch_npu refuse it"},
    {.name = TORCH_FOLLOWS_KEY,
     .init = "False",
     .help = "the run follows the changes of settings that the trace has, as "
             "torch@recorded does (True or False); only fragsim has this "
             "setting"},
    {.name = TORCH_ALIGN_KEY,
     .init = "0",
     .help = "in expandable segments, blocks of 2 MiB or more start at "
             "multiples of this (KiB, 0 to 16): 16 in torch_npu for Ascend; a "
             "snapshot of torch_npu sets it by itself; PyTorch refuses it"},
    {.name = TORCH_PLATFORM_KEY,
     .init = "cuda",
     .help = "whose allocator it is (cuda, rocm, xpu or npu): that of XPU uses "
             "no setting but expandable_segments; xpu and npu follow the rules "
             "of PyTorch 2.11; a snapshot of XPU sets it by itself; only "
             "fragsim has this setting"},
    {.name = "experiment",
     .init = "none",
     .help = "changes that pull requests to PyTorch propose, joined by +: "
             "pr191302, the pool is searched again after the last release; "
             "pr193400, max_split_size_mb does not hold for blocks of "
             "expandable segments; pr186232, an idle segment of another stream "
             "is used before the device is asked; pr179444, the memory limit "
             "is rounded and not cut (PyTorch itself since 2.13); small_pages, "
             "pages of the large pool's expandable segments have 2 MiB; "
             "mapped_limit, the memory limit counts the pages that a request "
             "maps and not the request; only fragsim has this setting"},
    {.name = NULL},
};

const struct frag_policy frag_policy_torch = {
    .name = "torch",
    .summary =
        "PyTorch's CUDA caching allocator, every setting, exact to the byte",
    .source = "PyTorch 2.1 to 2.15, c10/cuda/CUDACachingAllocator.cpp, as read "
              "and as recorded on an H200",
    .needs = FRAG_OWNS_LIMIT | FRAG_HEARS_POOLS,
    .quantum = FRAG_QUANTUM,
    .quantum_of = torch_quantum,
    .state_size = sizeof(struct torch),
    .params = torch_params,
    .configure = torch_configure,
    .describe = torch_describe,
    .init = torch_init,
    .fini = torch_fini,
    .alloc = torch_alloc,
    .free = torch_free,
    .free_requested = torch_free_requested,
    .trim = torch_release_cached,
    .hear = torch_hear,
    .set = torch_set,
    .adopt = torch_adopt,
    .check = torch_check,
};
