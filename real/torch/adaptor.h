/* adaptor.h - fragsim's policies under a running PyTorch program.
 *
 * libfragsim_torch.so exports what torch.cuda.memory.CUDAPluggableAllocator and
 * MemPool call. The policy and all else comes from the environment, read at the
 * first request:
 *
 *   FRAGSIM_POLICY    NAME[:PARAMS], default torch; one that keeps addresses
 *   FRAGSIM_CAPACITY  bytes it may take from each device ("20GiB"), default all
 *   FRAGSIM_OUTPUT    result file, written at exit; %p becomes the process id
 *   FRAGSIM_REPLACE   1: write over it
 *
 * Every call may come from any thread. A stream that gets memory which another
 * one freed is made to wait for that one's work (order.h); a block that
 * record_stream was told of is free when those streams have done what they had
 * queued at its free. A request that is refused while such frees wait is made
 * once more after they are done, and counted as an OOM of the policy all the
 * same. Not for use inside a graph capture: the driver's calls
 * that take memory are not allowed there.
 *
 * Source of the signatures: PyTorch 2.11,
 * torch/csrc/cuda/CUDAPluggableAllocator.h
 */
#ifndef FRAG_REAL_TORCH_ADAPTOR_H
#define FRAG_REAL_TORCH_ADAPTOR_H

#include <stddef.h>
#include <sys/types.h>

typedef struct CUstream_st *frag_torch_stream; /* CUstream, cudaStream_t */

#define FRAG_TORCH_API __attribute__((visibility("default")))

/* Throws PyTorch's own exception (c10::Error) where the request cannot be
 * served, so a program can catch it; "CUDA out of memory" is how it begins
 * where there is no room. Ends the program where that cannot be thrown. */
FRAG_TORCH_API void *frag_torch_alloc(ssize_t size, int device,
                                      frag_torch_stream stream);
FRAG_TORCH_API void frag_torch_free(void *ptr, ssize_t size, int device,
                                    frag_torch_stream stream);
FRAG_TORCH_API void frag_torch_record_stream(void *ptr,
                                             frag_torch_stream stream);
FRAG_TORCH_API void frag_torch_empty_cache(void);

/* Bytes of the device: reserved now, the most so far, the most allocated to
 * blocks so far. 0 if it was not used. */
FRAG_TORCH_API size_t frag_torch_reserved(int device);
FRAG_TORCH_API size_t frag_torch_peak_reserved(int device);
FRAG_TORCH_API size_t frag_torch_peak_allocated(int device);

/* Memory calls of the driver that were made for it so far, and the ns that they
 * took, with the waits of unmaps for the device. */
FRAG_TORCH_API size_t frag_torch_driver_calls(int device);
FRAG_TORCH_API size_t frag_torch_driver_ns(int device);

/* From on = 1 until on = 0, counts the calls of frag_torch_alloc and
 * frag_torch_free that served a block, of all devices, and the ns between their
 * start and end: waits for the lock, the driver's calls and one reading of the
 * clock are in it. What PyTorch does around them is not. Off at first, since it
 * reads the clock twice a call. */
FRAG_TORCH_API void frag_torch_timed(int on);
FRAG_TORCH_API size_t frag_torch_timed_calls(void);
FRAG_TORCH_API size_t frag_torch_timed_ns(void);

#endif
