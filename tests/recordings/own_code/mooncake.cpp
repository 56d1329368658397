/* mooncake.cpp - Mooncake's own OffsetAllocator, which places objects in the
 * segments of its store, against tlsf with 8 lists per octave. A segment of
 * 0.94 to 1 TiB has units of 512 bytes, the quantum of tlsf. check_own_code.py
 * writes stand-ins for glog and for its header utils.h. */
#include "lockstep.hpp"
#include "offset_allocator/offset_allocator.h"

namespace offset = mooncake::offset_allocator;

struct segment : lockstep::other {
    std::shared_ptr<offset::OffsetAllocator> allocator;
    std::map<uint64_t, offset::OffsetAllocationHandle> handles;

    segment(uint64_t base, uint64_t size)
        : allocator(offset::OffsetAllocator::create(base, size, 16, 4096))
    {
    }

    bool alloc(uint64_t size, unsigned, lockstep::place *out) override
    {
        auto handle = allocator->allocate(size);

        if (!handle)
            return false;
        *out = {handle->address(), allocator->normalizedAllocationSize(size)};
        handles.emplace(out->addr, std::move(*handle));
        return true;
    }

    void free(const lockstep::place &block, uint64_t, unsigned) override
    {
        handles.erase(block.addr);
    }
};

int main(int argc, char **argv)
{
    return lockstep::compare(
        argc, argv, [](lockstep::random &r, lockstep::subject &s) {
            const uint64_t least = (uint64_t(240) << 32) + 1;

            s.policy = "tlsf";
            s.capacity =
                least + lockstep::below(r, (uint64_t(1) << 40) - least);
            s.capacity = s.capacity / 512 * 512;
            s.params = "second_levels=8,segment=" + std::to_string(s.capacity);
            s.least = uint64_t(1) << lockstep::below(r, 34);
            s.most = s.capacity >> lockstep::below(r, 7);
            s.has_device = false;
            return [](lockstep::device &theirs) {
                return std::unique_ptr<lockstep::other>(
                    new segment(theirs.next, theirs.capacity));
            };
        });
}
