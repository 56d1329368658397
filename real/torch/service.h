/* service.h - the policy under a PyTorch program, for both ways into PyTorch:
 * the functions of adaptor.h, and the class of allocator.cpp. This header needs
 * no other header of fragsim and is valid C++, since allocator.cpp is compiled
 * beside the installed PyTorch.
 *
 * Addresses and sizes are in bytes. Every function may be called from any
 * thread. `words` has room for FRAG_TORCH_WORDS characters and receives a
 * message if the answer is OOM or FAILED. The first call reads the environment
 * (adaptor.h) and fails if a setting is wrong; the first call for a device
 * opens it.
 */
#ifndef FRAG_REAL_TORCH_SERVICE_H
#define FRAG_REAL_TORCH_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FRAG_TORCH_API __attribute__((visibility("default")))

typedef struct CUstream_st *frag_torch_stream; /* CUstream, cudaStream_t */

enum { FRAG_TORCH_WORDS = 1024, FRAG_TORCH_DEVICES = 64 };

enum frag_torch_answer {
    FRAG_TORCH_OK,
    FRAG_TORCH_WAITS, /* of a free: other streams still use the block */
    FRAG_TORCH_OOM,   /* a normal outcome: nothing has changed */
    FRAG_TORCH_FAILED /* `words` has the reason. After a failure of the device
                         the program cannot continue */
};

struct frag_service_block {
    uint64_t addr, size; /* size: allocated, at least as requested */
};

/* Allocates a block of size > 0 bytes for work on `stream`. */
FRAG_TORCH_API enum frag_torch_answer
frag_torch_serve(int device, size_t size, frag_torch_stream stream,
                 struct frag_service_block *out, char *words);
/* Frees a block that was allocated for `stream`. */
FRAG_TORCH_API enum frag_torch_answer frag_torch_end(int device, uint64_t addr,
                                                     frag_torch_stream stream,
                                                     char *words);
/* Notes that `stream` uses the block too; does nothing if no block of the
 * device begins at addr. */
FRAG_TORCH_API enum frag_torch_answer frag_torch_use(int device, uint64_t addr,
                                                     frag_torch_stream stream,
                                                     char *words);
/* Returns cached memory of one device, if it is open, to the driver. */
FRAG_TORCH_API enum frag_torch_answer frag_torch_trim(int device, char *words);
/* Lets `peer` access all memory of `device` that is mapped now or later.
 * Segments need nothing: cudaDeviceEnablePeerAccess covers them. */
FRAG_TORCH_API enum frag_torch_answer frag_torch_peer(int device, int peer,
                                                      char *words);
/* Sets the most bytes that the policy may hold on a device, besides
 * FRAGSIM_CAPACITY. Memory that it holds already stays. Does not open the
 * device. */
FRAG_TORCH_API enum frag_torch_answer
frag_torch_limit(int device, uint64_t bytes, char *words);
/* Stores a new file descriptor of the physical memory of the map at addr, with
 * which another process can map it. The caller closes it. */
FRAG_TORCH_API enum frag_torch_answer
frag_torch_export(int device, uint64_t addr, int *file, char *words);
/* Maps `count` maps of another process one after the other and stores the
 * address: their sizes, and file descriptors of the process `sender`. */
FRAG_TORCH_API enum frag_torch_answer
frag_torch_import(int device, int sender, const uint64_t *sizes,
                  const int *files, size_t count, uint64_t *addr, char *words);
/* Unmaps what frag_torch_import mapped, `size` bytes in all. */
FRAG_TORCH_API enum frag_torch_answer
frag_torch_forget(int device, uint64_t addr, uint64_t size, char *words);
/* The program passed this text to the settings of PyTorch's own allocator: the
 * results have a note of it. */
FRAG_TORCH_API void frag_torch_changed(const char *text);
/* FRAGSIM_POLICY as it was read, or its default; NULL with a message if a
 * setting is wrong. */
FRAG_TORCH_API const char *frag_torch_policy(char *words);

/* Bytes of the device: reserved now, the most reserved so far, and the most
 * allocated to blocks so far. 0 if the program did not use the device. */
FRAG_TORCH_API size_t frag_torch_reserved(int device);
FRAG_TORCH_API size_t frag_torch_peak_reserved(int device);
FRAG_TORCH_API size_t frag_torch_peak_allocated(int device);

/* The number of the driver's memory calls that were made for the device so far,
 * and the time that they took, in ns. The time includes the waits of unmaps for
 * the device. */
FRAG_TORCH_API size_t frag_torch_driver_calls(int device);
FRAG_TORCH_API size_t frag_torch_driver_ns(int device);

/* Writes the result file, as the end of the process does. For a process that
 * ends by _exit, as those do that multiprocessing forks. Does nothing if that
 * was done, or if this process used no device. */
FRAG_TORCH_API void frag_torch_finish(void);

enum frag_torch_change {
    FRAG_TORCH_SEGMENT, /* a segment was allocated */
    FRAG_TORCH_SEGMENT_FREED,
    FRAG_TORCH_MAP, /* physical memory was mapped */
    FRAG_TORCH_UNMAP
};

/* Called during the calls above, under the lock of the service: the functions
 * must not call the service. They see all devices that are opened later. */
struct frag_torch_listener {
    /* A free that waited for other streams is complete. */
    void (*freed)(int device, uint64_t addr);
    /* The policy changed which addresses it holds. An UNMAP may cover several
     * adjacent maps. `same` is the address of the first map of the memory if a
     * MAP is a further one, else 0; the memory is then used at only one of the
     * two addresses, byte by byte. */
    void (*changed)(int device, enum frag_torch_change change, uint64_t addr,
                    uint64_t size, uint64_t same);
    /* The policy holds this many bytes of the device now. */
    void (*reserved)(int device, uint64_t bytes);
};
FRAG_TORCH_API void
frag_torch_listen(const struct frag_torch_listener *listener);

#ifdef __cplusplus
}
#endif

#endif
