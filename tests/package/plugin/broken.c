/* broken.c - bump.c with faults: breaks the contract of a policy in the way
 * that its parameter names. For the tests only. */
#include <policies/policy.h>

#define REGION (64 * FRAG_MIB)

enum fault {
    NONE,
    OVERLAP,    /* each block begins before the end of the block before it */
    MISALIGNED, /* an address is not a multiple of FRAG_ALIGNMENT */
    OUTSIDE,    /* a block lies behind the region */
    SHORT,      /* a block has fewer bytes than were requested */
    EAGER,      /* a region in which no block ever lay is not returned */
    KEEP,       /* trim returns nothing */
    LOSE,       /* fini returns nothing while a block is live */
    CHANGE,     /* every second heap serves more bytes */
    OWNER,      /* an odd owner gets more bytes */
    GIVE_UP,    /* a full region ends the run */
    FAIL,       /* a full region is an error of the device */
    FINE,       /* blocks are multiples of half a quantum */
    INVENT,     /* when the device refuses the region, blocks lie nowhere */
    STATE,      /* its check finds fault with its state */
};

struct broken {
    uint32_t fault; /* the parameter */
    bool is_second, was_used;
    frag_addr base;
    frag_size used;
    uint64_t live; /* blocks */
};

static enum frag_err acquire(struct frag_heap *heap)
{
    struct broken *p = heap->state;

    return p->base ? FRAG_OK
                   : heap->mem->ops->segment_alloc(heap->mem, REGION, &p->base);
}

static void release(struct frag_heap *heap)
{
    struct broken *p = heap->state;

    if (p->base)
        heap->mem->ops->segment_free(heap->mem, p->base, REGION);
    p->base = 0;
}

static enum frag_err init(struct frag_heap *heap)
{
    static int heaps;
    struct broken *p = heap->state;

    p->is_second = ++heaps % 2 == 0;
    return p->fault == EAGER ? acquire(heap) : FRAG_OK;
}

static enum frag_err take(struct frag_heap *heap,
                          const struct frag_request *req,
                          struct frag_block *out)
{
    struct broken *p = heap->state;
    const bool more = (p->fault == CHANGE && p->is_second) ||
                      (p->fault == OWNER && req->owner % 2);
    const frag_size unit = p->fault == FINE ? FRAG_QUANTUM / 2 : FRAG_QUANTUM;
    const frag_size size =
        frag_round_up(req->size, unit) + (more ? FRAG_QUANTUM : 0);
    const bool refused = acquire(heap) != FRAG_OK;

    if (size > REGION - p->used)
        return p->fault == FAIL      ? FRAG_DEVICE
               : p->fault == GIVE_UP ? FRAG_NOMEM
                                     : FRAG_OOM;
    if (refused && p->fault != INVENT)
        return FRAG_OOM;
    *out = (struct frag_block){.addr = p->base + p->used, .size = size};
    if (p->fault == OVERLAP && p->used)
        out->addr -= FRAG_ALIGNMENT;
    if (p->fault == MISALIGNED)
        out->addr += 8;
    if (p->fault == OUTSIDE)
        out->addr += REGION;
    if (p->fault == SHORT)
        out->size -= FRAG_QUANTUM;
    p->used += size;
    p->live++;
    p->was_used = true;
    return FRAG_OK;
}

static void give(struct frag_heap *heap, const struct frag_block *block)
{
    struct broken *p = heap->state;

    (void)block;
    p->used = --p->live ? p->used : 0;
}

static void trim(struct frag_heap *heap)
{
    struct broken *p = heap->state;

    if (!p->live && p->fault != KEEP)
        release(heap);
}

static void fini(struct frag_heap *heap)
{
    struct broken *p = heap->state;

    if ((p->fault == EAGER && !p->was_used) || (p->fault == LOSE && p->live))
        return;
    release(heap);
}

static const char *check(const struct frag_heap *heap)
{
    const struct broken *p = heap->state;

    return p->fault == STATE && p->live > 3 ? "more than three live" : NULL;
}

static const struct frag_param params[] = {
    {"fault", FRAG_PARAM_CHOICE, offsetof(struct broken, fault), "none",
     "none|overlap|misaligned|outside|short|eager|keep|lose|change|owner|"
     "give_up|fail|fine|invent|state",
     0, 0, "the rule that is broken", NULL},
    {.name = NULL},
};
static const struct frag_policy broken = {
    "broken",
    "breaks its contract",
    "fragsim, tests/package/plugin",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct broken),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = take,
    .free = give,
    .trim = trim,
    .check = check,
};
FRAG_POLICY_PLUGIN(broken);
