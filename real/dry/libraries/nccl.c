/* nccl.c - a libnccl whose ranks do not talk: each process makes its own
 * communicator, and a collective is work of a stream that does nothing. Where
 * the bytes that this rank sends are known (shadow.h), ncclAllGather and
 * ncclBroadcast take it that the other ranks send the same: so DDP finds that
 * all ranks have the same model. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/dry/runtime.h"
#include "real/dry/shadow.h"

enum { DRY_LACKING = 5 }; /* ncclInvalidUsage */
#include "real/dry/stubs.h"

#include "real/dry/libraries/nccl.def"

enum { VERSION = 22809, UNIQUE = 128 };

struct comm {
    int rank, size, device;
};

struct unique {
    char bytes[UNIQUE];
};

DRY_EXPORT int ncclAllGather(const void *, void *, size_t, int,
                             const struct comm *, cudaStream_t);
DRY_EXPORT int ncclBroadcast(const void *, void *, size_t, int, int,
                             const struct comm *, cudaStream_t);
DRY_EXPORT int ncclGetVersion(int *version);
DRY_EXPORT const char *ncclGetLastError(const struct comm *c);
DRY_EXPORT int ncclGetUniqueId(struct unique *id);
DRY_EXPORT int ncclCommInitRank(struct comm **, int, struct unique, int);
DRY_EXPORT int ncclCommInitRankConfig(struct comm **, int, struct unique, int,
                                      void *);
DRY_EXPORT int ncclCommInitRankScalable(struct comm **, int, int, int, void *,
                                        void *);
DRY_EXPORT int ncclCommInitAll(struct comm **, int, const int *);
DRY_EXPORT int ncclCommCount(const struct comm *c, int *count);
DRY_EXPORT int ncclCommCuDevice(const struct comm *c, int *device);
DRY_EXPORT int ncclCommUserRank(const struct comm *c, int *rank);
DRY_EXPORT int ncclCommGetAsyncError(const struct comm *c, int *code);
DRY_EXPORT int ncclCommRegister(const struct comm *, void *, size_t, void **);
DRY_EXPORT int ncclMemAlloc(void **out, size_t size);
DRY_EXPORT int ncclMemFree(void *at);
DRY_EXPORT int ncclRedOpCreatePreMulSum(int *op, void *, int, int,
                                        const struct comm *);

/* Of libcudart. */
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaMalloc(void **out, size_t size);
cudaError_t cudaFree(void *at);

/* Bytes of an element, by ncclDataType_t. */
static size_t bytes_of(int type)
{
    static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

    return type >= 0 && (size_t)type < sizeof(bytes) ? bytes[type] : 0;
}

int ncclAllGather(const void *from, void *to, size_t count, int type,
                  const struct comm *c, cudaStream_t stream)
{
    const size_t size = count * bytes_of(type);

    (void)stream;
    for (int i = 0; i < c->size; i++)
        frag_dry_copied((uintptr_t)to + (size_t)i * size, (uintptr_t)from,
                        size);
    return 0;
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
                  const struct comm *c, cudaStream_t stream)
{
    (void)root;
    (void)c;
    (void)stream;
    frag_dry_copied((uintptr_t)to, (uintptr_t)from, count * bytes_of(type));
    return 0;
}

int ncclGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}

const char *ncclGetLastError(const struct comm *c)
{
    (void)c;
    return "";
}

int ncclGetUniqueId(struct unique *id)
{
    memset(id, 0, sizeof(*id));
    snprintf(id->bytes, UNIQUE, "fragsim %ld", (long)getpid());
    return 0;
}

static int make(struct comm **out, int size, int rank, int device)
{
    *out = malloc(sizeof(**out));
    if (!*out)
        return DRY_LACKING;
    **out = (struct comm){rank, size, device};
    return 0;
}

int ncclCommInitRank(struct comm **out, int size, struct unique id, int rank)
{
    int device = 0;

    (void)id;
    cudaGetDevice(&device);
    return make(out, size, rank, device);
}

int ncclCommInitRankConfig(struct comm **out, int size, struct unique id,
                           int rank, void *config)
{
    (void)config;
    return ncclCommInitRank(out, size, id, rank);
}

int ncclCommInitRankScalable(struct comm **out, int size, int rank, int ids,
                             void *unique, void *config)
{
    (void)ids;
    (void)config;
    return ncclCommInitRank(out, size, *(struct unique *)unique, rank);
}

int ncclCommInitAll(struct comm **out, int count, const int *devices)
{
    int code = 0;

    for (int i = 0; i < count && !code; i++)
        code = make(&out[i], count, i, devices ? devices[i] : i);
    return code;
}

int ncclCommCount(const struct comm *c, int *count)
{
    *count = c->size;
    return 0;
}

int ncclCommCuDevice(const struct comm *c, int *device)
{
    *device = c->device;
    return 0;
}

int ncclCommUserRank(const struct comm *c, int *rank)
{
    *rank = c->rank;
    return 0;
}

int ncclCommGetAsyncError(const struct comm *c, int *code)
{
    (void)c;
    *code = 0;
    return 0;
}

int ncclCommRegister(const struct comm *c, void *at, size_t size, void **out)
{
    (void)c;
    (void)size;
    *out = at;
    return 0;
}

int ncclMemAlloc(void **out, size_t size)
{
    return cudaMalloc(out, size) == cudaSuccess ? 0 : 1;
}

int ncclMemFree(void *at)
{
    return cudaFree(at) == cudaSuccess ? 0 : 1;
}

int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence,
                             const struct comm *c)
{
    (void)scalar, (void)type, (void)residence, (void)c;
    *op = 5; /* ncclNumOps, the first number that is free */
    return 0;
}
