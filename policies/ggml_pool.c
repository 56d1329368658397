/* ggml_pool.c - the pool of temporary buffers of ggml's CUDA backend, as in
 * llama.cpp on devices without virtual memory calls.
 *
 * Each stream of each pool has an array of 256 slots for free buffers, a buffer
 * being one segment. A request uses the free buffer that exceeds its size by
 * least, if by less than 64 GiB, and the whole of it: a buffer is never split
 * or coalesced. Of buffers of equal size, the one in the lowest slot is used. A
 * freed buffer goes to the lowest empty slot. If there is none, its segment is
 * returned to the device.
 *
 * Growth: a request that no buffer can serve causes a segment of 1.05 times its
 * size, rounded up to 256 bytes. If the device refuses it, the policy waits
 * until the device is idle, returns the free buffers of this stream and pool,
 * not those of others, and requests the segment again.
 *
 * ggml has no call that empties the pools; trim returns all free buffers. Where
 * ggml aborts because the device refuses a free, the buffer stays in its slot,
 * or in a list if it had none, and the next return tries to free it again. The
 * other pool of ggml, with virtual memory, is not modelled: it is a stack, and
 * frees in another order than the reverse abort the program.
 *
 * Source: ggml-org/ggml d99724f, src/ggml-cuda/ggml-cuda.cu,
 * ggml_cuda_pool_leg.
 */
#include "policies/mechanism/lanes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/ring.h"

enum {
    SLOTS = 256,
    UNIT = 256, /* bytes; sizes of buffers are multiples of it */
};

static const frag_size EXCESS = (frag_size)1 << 36; /* bytes */
static const double LOOK_AHEAD = 1.05;

struct ggml_buffer {
    struct ring link; /* of the live or of the refused buffers */
    struct ggml_slots *home;
    frag_addr addr;
    frag_size size; /* bytes */
};

struct ggml_slots {
    struct lane lane;
    struct ggml_buffer *slot[SLOTS]; /* NULL: empty */
};

struct ggml_pool {
    struct nodes nodes;
    struct lanes lanes; /* the slots */
    struct ring live;
    struct ring refused; /* free buffers without a slot */
};

static enum frag_err init(struct frag_heap *heap)
{
    struct ggml_pool *p = heap->state;

    p->nodes.size = sizeof(struct ggml_buffer);
    ring_init(&p->live);
    ring_init(&p->refused);
    return FRAG_OK;
}

/* Returns a buffer that is in no list; false: the device refused it. */
static bool return_buffer(struct frag_heap *heap, struct ggml_buffer *b)
{
    struct ggml_pool *p = heap->state;

    if (heap->mem->ops->segment_free(heap->mem, b->addr, b->size) != FRAG_OK)
        return false;
    nodes_put(&p->nodes, b);
    return true;
}

static void clear_slots(struct frag_heap *heap, struct ggml_slots *s)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (s->slot[i] && return_buffer(heap, s->slot[i]))
            s->slot[i] = NULL;
}

/* Returns the buffers without a slot of one home; NULL: of all. */
static void clear_refused(struct frag_heap *heap, const struct ggml_slots *home)
{
    struct ggml_pool *p = heap->state;
    struct ring *r = p->refused.next, *next;

    for (; r != &p->refused; r = next) {
        struct ggml_buffer *b = (struct ggml_buffer *)r;

        next = r->next;
        if (home && b->home != home)
            continue;
        ring_drop(r);
        if (!return_buffer(heap, b))
            ring_push(&p->refused, r);
    }
}

/* Empties the slot of the buffer that exceeds `size` by least; NULL: there is
 * none. */
static struct ggml_buffer *take_buffer(struct ggml_slots *s, frag_size size)
{
    struct ggml_buffer **best = NULL, *b;
    frag_size least = EXCESS;

    for (size_t i = 0; i < SLOTS && least; i++) {
        b = s->slot[i];
        if (b && b->size >= size && b->size - size < least) {
            least = b->size - size;
            best = &s->slot[i];
        }
    }
    if (!best)
        return NULL;
    b = *best;
    *best = NULL;
    return b;
}

static enum frag_err grow(struct frag_heap *heap, struct ggml_slots *s,
                          frag_size size, struct ggml_buffer **out)
{
    struct ggml_pool *p = heap->state;
    const frag_size ahead =
        frag_round_up((frag_size)(LOOK_AHEAD * (double)size), UNIT);
    frag_addr addr;
    enum frag_err err;

    err = heap->mem->ops->segment_alloc(heap->mem, ahead, &addr);
    if (err == FRAG_OOM) {
        FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
        clear_slots(heap, s);
        clear_refused(heap, s);
        err = heap->mem->ops->segment_alloc(heap->mem, ahead, &addr);
    }
    FRAG_TRY(err);
    *out = nodes_take(&p->nodes);
    **out = (struct ggml_buffer){.home = s, .addr = addr, .size = ahead};
    return FRAG_OK;
}

static enum frag_err ggml_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    struct ggml_pool *p = heap->state;
    struct ggml_slots *s =
        lanes_get(&p->lanes, req->pool, req->stream, sizeof(*s));
    struct ggml_buffer *b;

    if (!s)
        return FRAG_NOMEM;
    FRAG_TRY(nodes_reserve(&p->nodes, 1));
    b = take_buffer(s, req->size);
    if (!b)
        FRAG_TRY(grow(heap, s, req->size, &b));
    ring_push(&p->live, &b->link);
    *out = (struct frag_block){b->addr, b->size, b};
    return FRAG_OK;
}

static void ggml_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct ggml_pool *p = heap->state;
    struct ggml_buffer *b = block->node;
    struct ggml_buffer **slot = b->home->slot, **const end = slot + SLOTS;

    ring_drop(&b->link);
    while (slot < end && *slot)
        slot++;
    if (slot < end)
        *slot = b;
    else if (!return_buffer(heap, b))
        ring_push(&p->refused, &b->link);
}

static void ggml_trim(struct frag_heap *heap)
{
    struct ggml_pool *p = heap->state;

    for (struct lane *s = p->lanes.first; s; s = s->next)
        clear_slots(heap, (struct ggml_slots *)s);
    clear_refused(heap, NULL);
}

static void fini(struct frag_heap *heap)
{
    struct ggml_pool *p = heap->state;

    while (!ring_is_empty(&p->live)) {
        const struct frag_block block = {.node = p->live.next};

        ggml_free(heap, &block);
    }
    ggml_trim(heap);
    lanes_fini(&p->lanes);
    nodes_release(&p->nodes);
}

static bool is_buffer(const struct ggml_buffer *b, const struct ggml_slots *s)
{
    return b->size && b->size % UNIT == 0 && b->home == s;
}

static const char *ggml_check(const struct frag_heap *heap)
{
    const struct ggml_pool *p = heap->state;

    for (const struct lane *l = p->lanes.first; l; l = l->next) {
        const struct ggml_slots *s = (const struct ggml_slots *)l;

        for (size_t i = 0; i < SLOTS; i++)
            CHECK(!s->slot[i] || is_buffer(s->slot[i], s),
                  "a slot has a buffer of other slots or of a wrong size");
    }
    for (const struct ring *b = p->live.next; b != &p->live; b = b->next)
        CHECK(b->next->prev == b, "the list of live buffers is broken");
    return nodes_check(&p->nodes);
}

const struct frag_policy frag_policy_ggml_pool = {
    .name = "ggml_pool",
    .summary = "ggml and llama.cpp: whole buffers in 256 slots, 5 % ahead",
    .source = "ggml-org/ggml d99724f, ggml-cuda.cu, ggml_cuda_pool_leg",
    .quantum = UNIT,
    .state_size = sizeof(struct ggml_pool),
    .init = init,
    .fini = fini,
    .alloc = ggml_alloc,
    .free = ggml_free,
    .trim = ggml_trim,
    .check = ggml_check,
};
