/* peer_policies.c - makes a policy of every peer. The policy holds one segment,
 * in which the peer's offsets are. */
#include "tests/bench/peers/peer_policies.h"
#include "tests/bench/peers/peer.h"

struct peer {
    void *heap;
    frag_addr start;
};

#define PEER(NAME)                                                           \
    static enum frag_err NAME##_init(struct frag_heap *heap)                 \
    {                                                                        \
        struct peer *p = heap->state;                                        \
                                                                             \
        FRAG_TRY(                                                            \
            heap->mem->ops->segment_alloc(heap->mem, PEER_ROOM, &p->start)); \
        p->heap = NAME##_open();                                             \
        return p->heap ? FRAG_OK : FRAG_NOMEM;                               \
    }                                                                        \
                                                                             \
    static void NAME##_fini(struct frag_heap *heap)                          \
    {                                                                        \
        struct peer *p = heap->state;                                        \
                                                                             \
        NAME##_close(p->heap);                                               \
    }                                                                        \
                                                                             \
    static enum frag_err NAME##_serve(struct frag_heap *heap,                \
                                      const struct frag_request *req,        \
                                      struct frag_block *out)                \
    {                                                                        \
        struct peer *p = heap->state;                                        \
        frag_size size =                                                     \
            (req->size + PEER_UNIT - 1) & ~(frag_size)(PEER_UNIT - 1);       \
        uint64_t offset;                                                     \
                                                                             \
        if (!NAME##_alloc(p->heap, size, &offset, &out->node))               \
            return FRAG_OOM;                                                 \
        out->addr = p->start + offset;                                       \
        out->size = size;                                                    \
        return FRAG_OK;                                                      \
    }                                                                        \
                                                                             \
    static void NAME##_drop(struct frag_heap *heap,                          \
                            const struct frag_block *block)                  \
    {                                                                        \
        struct peer *p = heap->state;                                        \
                                                                             \
        NAME##_free(p->heap, block->addr - p->start, block->node);           \
    }                                                                        \
                                                                             \
    static const struct frag_policy NAME##_policy = {                        \
        .name = #NAME,                                                       \
        .summary = "an allocator of another project",                        \
        .source = "tests/bench/peers",                                       \
        .state_size = sizeof(struct peer),                                   \
        .init = NAME##_init,                                                 \
        .fini = NAME##_fini,                                                 \
        .alloc = NAME##_serve,                                               \
        .free = NAME##_drop,                                                 \
    };
#include "tests/bench/peers/peer_list.h"
#undef PEER

const struct frag_policy *const peer_policies[] = {
#define PEER(NAME) &NAME##_policy,
#include "tests/bench/peers/peer_list.h"
#undef PEER
    NULL,
};
