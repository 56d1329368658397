/* bump.c - a policy outside of fragsim: one region, emptied as a whole. */
#include <policies/policy.h>

struct bump {
    frag_size region; /* the parameter */
    frag_addr base;
    frag_size used;
    uint64_t live; /* blocks */
};

static enum frag_err take(struct frag_heap *heap,
                          const struct frag_request *req,
                          struct frag_block *out)
{
    struct bump *p = heap->state;
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);

    if (size > p->region - p->used)
        return FRAG_OOM;
    if (!p->base)
        FRAG_TRY(heap->mem->ops->segment_alloc(heap->mem, p->region, &p->base));
    *out = (struct frag_block){.addr = p->base + p->used, .size = size};
    p->used += size;
    p->live++;
    return FRAG_OK;
}

static void give(struct frag_heap *heap, const struct frag_block *block)
{
    struct bump *p = heap->state;

    (void)block;
    p->used = --p->live ? p->used : 0;
}

static void fini(struct frag_heap *heap)
{
    struct bump *p = heap->state;

    if (p->base)
        heap->mem->ops->segment_free(heap->mem, p->base, p->region);
}

static const struct frag_param params[] = {
    {"region", FRAG_PARAM_SIZE, offsetof(struct bump, region), "64MiB", NULL,
     512, 0x1p40, "bytes of the region", NULL},
    {.name = NULL},
};
static const struct frag_policy bump = {
    "bump",
    "one region, emptied as a whole",
    "fragsim, tests/package/plugin",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct bump),
    .params = params,
    .fini = fini,
    .alloc = take,
    .free = give,
};
FRAG_POLICY_PLUGIN(bump);
