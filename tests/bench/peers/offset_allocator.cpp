/* offset_allocator.cpp - drives github.com/sebbbi/OffsetAllocator, whose sizes
 * have 32 bits and are here in units of PEER_UNIT. */
#include "tests/bench/peers/peer.h"

#include <offsetAllocator.hpp>

/* Blocks, live and free; the allocator has a fixed number of them. */
enum { MOST_BLOCKS = 1 << 18 };

void *offset_allocator_open(void)
{
    return new OffsetAllocator::Allocator(PEER_ROOM / PEER_UNIT, MOST_BLOCKS);
}

void offset_allocator_close(void *heap)
{
    delete static_cast<OffsetAllocator::Allocator *>(heap);
}

bool offset_allocator_alloc(void *heap, uint64_t bytes, uint64_t *offset,
                            void **handle)
{
    auto *a = static_cast<OffsetAllocator::Allocator *>(heap);
    const auto got = a->allocate(static_cast<uint32_t>(bytes / PEER_UNIT));

    *offset = static_cast<uint64_t>(got.offset) * PEER_UNIT;
    *handle = reinterpret_cast<void *>(static_cast<uintptr_t>(got.metadata));
    return got.offset != OffsetAllocator::Allocation::NO_SPACE;
}

void offset_allocator_free(void *heap, uint64_t offset, void *handle)
{
    OffsetAllocator::Allocation got;

    got.offset = static_cast<uint32_t>(offset / PEER_UNIT);
    got.metadata = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle));
    static_cast<OffsetAllocator::Allocator *>(heap)->free(got);
}
