/* rmm.cpp - RMM's own pool, arenas and bins, on an upstream resource that is a
 * device of lockstep.hpp, against rmm_pool, rmm_arena and rmm_binning. The
 * calls of the CUDA runtime are stand-ins: an event is numbered as its stream,
 * so that RMM searches the streams in the order of their numbers. */
#include "lockstep.hpp"

#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/callback_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <optional>

using any = cuda::mr::any_resource<cuda::mr::device_accessible>;

enum { STREAMS = 4 };

static lockstep::device *current;
static unsigned long long last_stream; /* that RMM asked the number of */

/* Stream 0 is the default stream, as in fragsim. */
static rmm::cuda_stream_view stream_of(unsigned number)
{
    return number ? rmm::cuda_stream_view(
                        reinterpret_cast<cudaStream_t>(uint64_t(16 + number)))
                  : rmm::cuda_stream_view{};
}

/* A call that does what it says and succeeds. */
#define CALL(name, parameters, ...) \
    cudaError_t name parameters     \
    {                               \
        __VA_ARGS__;                \
        return cudaSuccess;         \
    }

extern "C" {
CALL(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id),
     *id = last_stream = reinterpret_cast<uint64_t>(stream))
CALL(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned),
     *event = reinterpret_cast<cudaEvent_t>(last_stream))
CALL(cudaEventRecord, (cudaEvent_t, cudaStream_t))
CALL(cudaEventSynchronize, (cudaEvent_t))
CALL(cudaEventDestroy, (cudaEvent_t))
CALL(cudaStreamWaitEvent, (cudaStream_t, cudaEvent_t, unsigned))
CALL(cudaStreamSynchronize, (cudaStream_t))
CALL(cudaDeviceSynchronize, (), current->wait())
CALL(cudaGetDevice, (int *device), *device = 0)
CALL(cudaSetDevice, (int))
CALL(cudaGetDeviceCount, (int *count), *count = 1)
CALL(cudaMemGetInfo, (size_t * free, size_t *total), *total = current->capacity,
     *free = *total - current->used)
CALL(cudaGetLastError, ())

const char *cudaGetErrorName(cudaError_t)
{
    return "";
}

const char *cudaGetErrorString(cudaError_t)
{
    return "";
}
}

static any upstream(lockstep::device &device)
{
    return rmm::mr::callback_memory_resource(
        [&device](std::size_t size, cuda::stream_ref, void *) -> void * {
            const uint64_t addr = device.allocate(size);

            if (!addr)
                throw rmm::out_of_memory("the device is full");
            return reinterpret_cast<void *>(addr);
        },
        [&device](void *ptr, std::size_t, cuda::stream_ref, void *) {
            device.release(reinterpret_cast<uint64_t>(ptr));
        });
}

/* What a script runs on. RMM allocates its first memory in the constructor, the
 * policies at the first request; the device has room for it. */
struct setting {
    int kind; /* 0: pool, 1: arena, 2: binning */
    uint64_t initial, maximum, size, smallest, largest; /* bytes; 0: none */
};

struct resource : lockstep::other {
    const setting s;
    lockstep::device &device;
    std::optional<any> made;

    resource(const setting &setting, lockstep::device &on)
        : s(setting), device(on)
    {
        current = &device;
    }

    void make()
    {
        if (s.kind == 1) {
            made.emplace(
                rmm::mr::arena_memory_resource(upstream(device), s.size));
            return;
        }
        any pool = rmm::mr::pool_memory_resource(
            upstream(device), s.initial,
            s.maximum ? std::optional<std::size_t>(s.maximum) : std::nullopt);
        if (s.kind == 0) {
            made.emplace(std::move(pool));
            return;
        }
        made.emplace(rmm::mr::binning_memory_resource(
            std::move(pool), int8_t(__builtin_ctzll(s.smallest)),
            int8_t(__builtin_ctzll(s.largest))));
    }

    bool alloc(uint64_t size, unsigned stream, lockstep::place *out) override
    {
        try {
            if (!made)
                make();
            out->addr = reinterpret_cast<uint64_t>(
                made->allocate(stream_of(stream), size));
        } catch (const std::bad_alloc &) {
            return false;
        }
        return true;
    }

    void free(const lockstep::place &block, uint64_t size,
              unsigned stream) override
    {
        made->deallocate(stream_of(stream),
                         reinterpret_cast<void *>(block.addr), size);
    }
};

static std::string text(const char *key, uint64_t value)
{
    return std::string(key) + "=" + std::to_string(value) + ",";
}

/* A multiple of 256, as RMM demands. */
static uint64_t part(lockstep::random &r, uint64_t of)
{
    return lockstep::size_between(r, 256, of) / 256 * 256;
}

int main(int argc, char **argv)
{
    return lockstep::compare(
        argc, argv, [](lockstep::random &r, lockstep::subject &s) {
            static const char *const names[] = {"rmm_pool", "rmm_arena",
                                                "rmm_binning"};
            setting its = {int(lockstep::below(r, 3))};

            s.policy = names[its.kind];
            s.capacity = uint64_t(1) << 30;
            s.streams = 1 + unsigned(lockstep::below(r, STREAMS));
            s.frees_elsewhere = lockstep::below(r, 2);
            s.least = uint64_t(1) << lockstep::below(r, 14);
            s.most = s.capacity >> (3 + lockstep::below(r, 6));
            if (its.kind == 1) {
                its.size = uint64_t(1 + lockstep::below(r, 1023)) << 20;
                s.params = text("size", its.size);
            } else if (lockstep::below(r, 2)) {
                its.initial = part(r, s.capacity / 2);
                s.params = text("initial", its.initial);
            }
            if (its.kind != 1 && lockstep::below(r, 2)) {
                its.maximum = its.initial + part(r, s.capacity / 2) +
                              (its.kind == 2 ? s.capacity / 4 : 0);
                s.params += text("maximum", its.maximum);
            }
#if !RMM_RECLAIMS /* since 26.10 */
            if (its.kind != 1)
                s.params += "reclaim=no,";
#endif
            if (its.kind == 2) {
                its.smallest = uint64_t(1) << (8 + lockstep::below(r, 6));
                its.largest = its.smallest << lockstep::below(r, 5);
                s.params += text("smallest", its.smallest) +
                            text("largest", its.largest);
            }
            s.params = s.params.substr(0, s.params.size() - !s.params.empty());
            return [its](lockstep::device &theirs) {
                return std::unique_ptr<lockstep::other>(
                    new resource(its, theirs));
            };
        });
}
