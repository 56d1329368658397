/* adaptor.h - runs fragsim's policies under a PyTorch program.
 *
 * libfragsim_torch.so exports the functions that
 * torch.cuda.memory.CUDAPluggableAllocator and MemPool call. The policy and all
 * other settings come from the environment, which is read at the first request:
 *
 *   FRAGSIM_POLICY    NAME[:PARAMS], default torch; it must not move blocks
 *   FRAGSIM_CAPACITY  bytes it may reserve on each device ("20GiB"), default
 *                     all
 *   FRAGSIM_OUTPUT    result file, written at exit; %p is the process id
 *   FRAGSIM_REPLACE   1: overwrite an existing result file
 *   FRAGSIM_STARTED   set by `fragsim run`: when the run began, in seconds. A
 *                     process does not overwrite a result file that is newer:
 *                     another process of the run wrote it
 *   FRAGSIM_TORCH_RELEASE  set by fragsim_torch.use(): the release of the
 *                     PyTorch that runs, such as 2.11, whose rules policy torch
 *                     follows unless its settings name another
 *   FRAGSIM_UNUSED    set by `fragsim run`: a file that the first process on
 *                     the policy removes
 *
 * Every function may be called from any thread. If a stream gets memory that
 * another stream freed, it waits for the work of that other stream first
 * (service_order.h). A block that record_stream names is free only when the
 * named streams have finished the work that they had queued at its free. If a
 * request fails while such frees wait, it is made once more after they are
 * done; it still counts as an OOM of the policy. The library cannot serve a
 * graph capture, since the driver does not allow its allocation calls there.
 *
 * Source of the signatures: PyTorch 2.11,
 * torch/csrc/cuda/CUDAPluggableAllocator.h
 */
#ifndef FRAG_REAL_TORCH_ADAPTOR_H
#define FRAG_REAL_TORCH_ADAPTOR_H

#include <stddef.h>
#include <sys/types.h>

#include "real/torch/service.h"

/* Throws PyTorch's own exception (c10::Error) if the request cannot be served,
 * so a program can catch it. The message begins with "CUDA out of memory" if
 * the device has no room. Ends the program if the exception cannot be
 * thrown. */
FRAG_TORCH_API void *frag_torch_alloc(ssize_t size, int device,
                                      frag_torch_stream stream);
FRAG_TORCH_API void frag_torch_free(void *ptr, ssize_t size, int device,
                                    frag_torch_stream stream);
FRAG_TORCH_API void frag_torch_record_stream(void *ptr,
                                             frag_torch_stream stream);
FRAG_TORCH_API void frag_torch_empty_cache(void);

#endif
