/* vma_virtual.cpp - drives a virtual block of the Vulkan Memory Allocator,
 * which needs the headers of Vulkan and neither its loader nor a device. */
#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS  0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <vk_mem_alloc.h>

#include "tests/bench/peers/peer.h"

void *vma_virtual_open(void)
{
    VmaVirtualBlockCreateInfo info = {};
    VmaVirtualBlock block = nullptr;

    info.size = PEER_ROOM;
    return vmaCreateVirtualBlock(&info, &block) == VK_SUCCESS ? block : nullptr;
}

void vma_virtual_close(void *heap)
{
    auto block = static_cast<VmaVirtualBlock>(heap);

    vmaClearVirtualBlock(block);
    vmaDestroyVirtualBlock(block);
}

bool vma_virtual_alloc(void *heap, uint64_t bytes, uint64_t *offset,
                       void **handle)
{
    VmaVirtualAllocationCreateInfo info = {};
    VmaVirtualAllocation got = nullptr;

    info.size = bytes;
    if (vmaVirtualAllocate(static_cast<VmaVirtualBlock>(heap), &info, &got,
                           offset) != VK_SUCCESS)
        return false;
    *handle = got;
    return true;
}

void vma_virtual_free(void *heap, uint64_t offset, void *handle)
{
    (void)offset;
    vmaVirtualFree(static_cast<VmaVirtualBlock>(heap),
                   static_cast<VmaVirtualAllocation>(handle));
}
