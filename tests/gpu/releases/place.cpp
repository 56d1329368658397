// place.cpp - places a block at an address by PyTorch's own allocator, for the
// program `placed` of pool_programs.py. No function of Python does.
#include <c10/cuda/CUDACachingAllocator.h>

extern "C" void *place(size_t size, void *address)
{
    c10::DataPtr block =
        c10::cuda::CUDACachingAllocator::allocateWithAddress(size, address);

    return block.release_context();
}
