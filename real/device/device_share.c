/* device_share.c - exports and imports physical memory as file descriptors. */
#define _GNU_SOURCE
#include "real/device/device_share.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "real/device/cuda.h"

/* Headers of the C library from before 2020 lack these numbers. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static enum frag_err refused(const struct cu_driver *cu, const char *call,
                             cu_result code, enum frag_err err,
                             struct frag_error *e)
{
    char words[256];

    return code == CU_SUCCESS
               ? FRAG_OK
               : frag_fail(e, err, "%s: %s", call, cu_words(cu, code, words));
}

/* ---- export ---- */

static enum frag_err export_memory(const struct cu_driver *cu, frag_addr addr,
                                   int *file, struct frag_error *e)
{
    cu_memory memory;
    cu_result code;

    FRAG_TRY(refused(
        cu, "cuMemRetainAllocationHandle",
        cu->cuMemRetainAllocationHandle(&memory, (void *)(uintptr_t)addr),
        FRAG_UNSUPPORTED, e));
    code =
        cu->cuMemExportToShareableHandle(file, memory, CU_FILE_DESCRIPTOR, 0);
    cu->cuMemRelease(memory);
    FRAG_TRY(
        refused(cu, "cuMemExportToShareableHandle", code, FRAG_UNSUPPORTED, e));
    fcntl(*file, F_SETFD, FD_CLOEXEC);
    return FRAG_OK;
}

enum frag_err frag_cuda_export(struct frag_backend *mem, frag_addr addr,
                               int *file, struct frag_error *e)
{
    enum frag_err err = frag_cuda_enter(mem);

    if (err != FRAG_OK)
        return frag_fail(e, err, "%s", frag_cuda_words(mem));
    err = export_memory(frag_cuda_driver(mem), addr, file, e);
    frag_cuda_leave(mem);
    return err;
}

/* ---- import ---- */

/* Copies a file descriptor of another process into this one. */
static enum frag_err copy_file(int process, int theirs, int *ours,
                               struct frag_error *e)
{
    const int pidfd = (int)syscall(SYS_pidfd_open, process, 0);
    int error = errno;

    *ours = -1;
    if (pidfd >= 0) {
        *ours = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
        error = errno;
        close(pidfd);
    }
    return *ours >= 0
               ? FRAG_OK
               : frag_fail(e, FRAG_UNSUPPORTED,
                           "the kernel does not copy file descriptor %d of "
                           "process %d (pidfd_getfd: %s): both processes must "
                           "be of one user and container, and "
                           "kernel.yama.ptrace_scope must be 0",
                           theirs, process, strerror(error));
}

/* Maps one part at the address. The map keeps the memory. */
static enum frag_err map_part(const struct cu_driver *cu, int process,
                              int theirs, frag_addr addr, frag_size size,
                              struct frag_error *e)
{
    cu_memory memory;
    cu_result code;
    int file;

    FRAG_TRY(copy_file(process, theirs, &file, e));
    code = cu->cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)file,
                                              CU_FILE_DESCRIPTOR);
    close(file);
    FRAG_TRY(refused(cu, "cuMemImportFromShareableHandle", code,
                     FRAG_UNSUPPORTED, e));
    code = cu->cuMemMap(addr, size, 0, memory, 0);
    cu->cuMemRelease(memory);
    return refused(cu, "cuMemMap", code, FRAG_UNSUPPORTED, e);
}

/* Maps the parts from addr; *mapped is their size, set on failure too. */
static enum frag_err map_parts(const struct cu_driver *cu,
                               const struct frag_cuda_shared *from,
                               frag_addr addr, frag_size *mapped,
                               struct frag_error *e)
{
    *mapped = 0;
    for (size_t i = 0; i < from->count; i++) {
        FRAG_TRY(map_part(cu, from->process, from->files[i], addr + *mapped,
                          from->sizes[i], e));
        *mapped += from->sizes[i];
    }
    return FRAG_OK;
}

static enum frag_err import_memory(struct frag_backend *mem,
                                   const struct frag_cuda_shared *from,
                                   frag_size size, frag_addr *addr,
                                   struct frag_error *e)
{
    const struct cu_driver *cu = frag_cuda_driver(mem);
    cu_address at;
    frag_size mapped;
    enum frag_err err;

    FRAG_TRY(refused(cu, "cuMemAddressReserve",
                     cu->cuMemAddressReserve(&at, size, 0, 0, 0),
                     FRAG_UNSUPPORTED, e));
    err = map_parts(cu, from, at, &mapped, e);
    if (err == FRAG_OK) {
        err = frag_cuda_grant(mem, at, size);
        if (err != FRAG_OK)
            frag_fail(e, err, "%s", frag_cuda_words(mem));
    }
    if (err == FRAG_OK) {
        *addr = at;
        return FRAG_OK;
    }
    if (mapped)
        cu->cuMemUnmap(at, mapped);
    cu->cuMemAddressFree(at, size);
    return err;
}

enum frag_err frag_cuda_import(struct frag_backend *mem,
                               const struct frag_cuda_shared *from,
                               frag_addr *addr, struct frag_error *e)
{
    frag_size size = 0;
    enum frag_err err = frag_cuda_enter(mem);

    if (err != FRAG_OK)
        return frag_fail(e, err, "%s", frag_cuda_words(mem));
    for (size_t i = 0; i < from->count; i++)
        size += from->sizes[i];
    err = import_memory(mem, from, size, addr, e);
    frag_cuda_leave(mem);
    return err;
}

static enum frag_err forget(const struct cu_driver *cu, frag_addr addr,
                            frag_size size, struct frag_error *e)
{
    FRAG_TRY(refused(cu, "cuCtxSynchronize", cu->cuCtxSynchronize(),
                     FRAG_DEVICE, e));
    FRAG_TRY(
        refused(cu, "cuMemUnmap", cu->cuMemUnmap(addr, size), FRAG_DEVICE, e));
    return refused(cu, "cuMemAddressFree", cu->cuMemAddressFree(addr, size),
                   FRAG_DEVICE, e);
}

enum frag_err frag_cuda_forget(struct frag_backend *mem, frag_addr addr,
                               frag_size size, struct frag_error *e)
{
    enum frag_err err = frag_cuda_enter(mem);

    if (err != FRAG_OK)
        return frag_fail(e, err, "%s", frag_cuda_words(mem));
    err = forget(frag_cuda_driver(mem), addr, size, e);
    frag_cuda_leave(mem);
    return err;
}
