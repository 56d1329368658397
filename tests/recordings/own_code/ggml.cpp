/* ggml.cpp - ggml's own ggml_cuda_pool_leg, with stand-ins for the calls that
 * it makes, against ggml_pool. check_own_code.py writes pool_leg.inc, which is
 * that struct, copied from ggml-cuda.cu. */
#include "lockstep.hpp"

static lockstep::device *current;

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };

static cudaError_t ggml_cuda_device_malloc(void **ptr, size_t size, int)
{
    *ptr = reinterpret_cast<void *>(current->allocate(size));
    return *ptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t cudaFree(void *ptr)
{
    current->release(reinterpret_cast<uint64_t>(ptr));
    return cudaSuccess;
}

static cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

static cudaError_t cudaDeviceSynchronize()
{
    current->wait();
    return cudaSuccess;
}

static void ggml_cuda_set_device(int)
{
}

/* Where ggml aborts, the program of the script goes on. */
#define CUDA_CHECK(call)     \
    do {                     \
        if (call)            \
            throw refused{}; \
    } while (0)
#define GGML_ASSERT(claim)
#define GGML_LOG_DEBUG(...) ((void)cached_bytes_of(__VA_ARGS__))
#define GGML_CUDA_NAME      "CUDA"

struct refused {
};

template <typename... Any> static int cached_bytes_of(const Any &...)
{
    return 0;
}

struct ggml_cuda_pool {
    virtual ~ggml_cuda_pool() = default;
    virtual void *alloc(size_t size, size_t *actual_size) = 0;
    virtual void free(void *ptr, size_t size) = 0;
};

#include "pool_leg.inc"

struct pools : lockstep::other {
    std::map<unsigned, ggml_cuda_pool_leg> by_stream;

    bool alloc(uint64_t size, unsigned stream, lockstep::place *out) override
    {
        auto &pool = by_stream.try_emplace(stream, 0).first->second;
        size_t actual;

        try {
            out->addr = reinterpret_cast<uint64_t>(pool.alloc(size, &actual));
        } catch (const refused &) {
            return false;
        }
        out->size = actual;
        return true;
    }

    void free(const lockstep::place &block, uint64_t, unsigned stream) override
    {
        by_stream.at(stream).free(reinterpret_cast<void *>(block.addr),
                                  block.size);
    }
};

int main(int argc, char **argv)
{
    return lockstep::compare(
        argc, argv, [](lockstep::random &r, lockstep::subject &s) {
            /* One script in 32 overflows the slots; two have buffers that
             * exceed a request by 64 GiB. */
            const uint64_t kind = lockstep::below(r, 32);

            s.policy = "ggml_pool";
            s.streams = kind ? 1 + unsigned(lockstep::below(r, 3)) : 1;
            s.capacity = uint64_t(1) << (kind == 1 || kind == 2 ? 39 : 30);
            s.most = kind ? s.capacity >> (2 + lockstep::below(r, 4)) : 4096;
            s.least = kind < 3 ? 1 : uint64_t(1) << lockstep::below(r, 16);
            s.tides = !kind;
            s.steps = kind ? 400 : 1600;
            return [](lockstep::device &theirs) {
                current = &theirs;
                return std::unique_ptr<lockstep::other>(new pools);
            };
        });
}
