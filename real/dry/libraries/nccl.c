/* nccl.c - a libnccl whose collectives are work of a stream that does nothing.
 * Each process makes its own communicator; what a rank sends arrives only where
 * its bytes are known (nccl_said.h). To split a communicator the ranks meet, in
 * a file of FRAGSIM_DRY_FOLDER.
 *
 * The memory that NCCL takes of the device was measured on two and four H200s
 * with NCCL 2.28.9 (its multicast off): that of its kernels with the first
 * communicator; of each communicator, whatever its size, when it is made and at
 * its first collective; of the channels to each peer with the first send and
 * the first receive. The number of channels follows NCCL_MAX_NCHANNELS. Where
 * GPUs do not reach each other, a communicator's buffers are on the host
 * (measured with NCCL_P2P_DISABLE=1). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "real/device/gpus.h"
#include "real/dry/control.h"
#include "real/dry/dry_shadow.h"
#include "real/dry/libraries/nccl_said.h"
#include "real/dry/runtime/runtime.h"

enum { DRY_LACKING = 5 }; /* ncclInvalidUsage */
#include "real/dry/stubs.h"

#include "real/dry/libraries/nccl.def"

enum { VERSION = 22809, UNIQUE = 128, LONGEST_WAIT = 300 /* s */ };

struct unique {
    char bytes[UNIQUE]; /* a text */
};

/* Another rank: whether something was sent there and received from there, and
 * how many messages. */
struct peer {
    unsigned sent, received;
};

struct comm {
    int rank, size, device;
    int splits;                           /* number of its splits so far */
    bool collects, broadcasts, has_peers; /* it did so before */
    unsigned collectives;                 /* so far, of those that are said */
    struct peer *peers;                   /* a row for each rank */
    int64_t held;                         /* bytes of the device */
    struct unique id; /* the same in all its ranks, and in no other */
};

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

static bool is_whole(int type)
{
    return type <= 5; /* ncclUint64 */
}

DRY_EXPORT int ncclGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}

DRY_EXPORT const char *ncclGetLastError(const struct comm *c)
{
    (void)c;
    return "";
}

DRY_EXPORT int ncclGetUniqueId(struct unique *id)
{
    static unsigned made;

    memset(id, 0, sizeof(*id));
    snprintf(id->bytes, UNIQUE, "%ld-%u", (long)getpid(),
             __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED));
    return 0;
}

/* ---- memory of the device, in MiB ---- */

enum {
    KERNELS = 286,
    COMM = 484, /* of a communicator, and that of it when it is made */
    COMM_MADE = 140,
    BROADCAST = 4, /* of the first */
    COMM_ON_HOST = 28,
    FIXED = 4, /* of a communicator whose channels are limited: and */
    CHANNEL = 18,
    PEERS = 58, /* of the first send or receive, and for each other rank: */
    SENDS = 64,
    RECEIVES = 320,
};

static bool reaches_peers(void)
{
    return frag_gpu_reaches_peers(frag_dry_gpu());
}

static void hold(struct comm *c, int64_t mib)
{
    c->held += mib << 20;
    frag_dry_hold(c->device, mib << 20);
}

/* MiB of a communicator after its first collective. */
static int64_t comm_size(const struct comm *c)
{
    const char *limit = getenv("NCCL_MAX_NCHANNELS");
    const long channels = limit ? strtol(limit, NULL, 10) : 0;
    const int64_t limited = FIXED + CHANNEL * channels;

    return c->size < 2                      ? 0
           : !reaches_peers()               ? COMM_ON_HOST
           : channels > 0 && limited < COMM ? limited
                                            : COMM;
}

static int64_t made_size(const struct comm *c)
{
    const int64_t all = comm_size(c);

    return all < COMM_MADE ? all : COMM_MADE;
}

static void hold_comm(struct comm *c)
{
    static uint64_t seen; /* a bit for each device with NCCL's kernels */
    const uint64_t bit = UINT64_C(1) << c->device;

    if (c->size < 2)
        return;
    if (!(__atomic_fetch_or(&seen, bit, __ATOMIC_RELAXED) & bit))
        frag_dry_hold(c->device, (int64_t)KERNELS << 20);
    hold(c, made_size(c));
}

/* NVLink multicast was off where NCCL was measured. Source of the 1.5 GiB: the
 * difference between logs of vLLM 0.19 on two H100s, and this stand-in. */
static void note_multicast(const struct comm *c)
{
    const char *on = getenv("NCCL_NVLS_ENABLE");

    if (c->size > 1 && frag_dry_gpu()->major >= 9 && reaches_peers() &&
        !frag_dry_gpu()->is_unified && (!on || strcmp(on, "0") != 0))
        frag_dry_note(DRY_SIZE,
                      "NCCL with NVLink multicast, in its first collective: up "
                      "to 1.5 GiB between GPUs of one NVSwitch; "
                      "NCCL_NVLS_ENABLE=0 needs none");
}

static void collect(struct comm *c)
{
    if (!c->collects) {
        hold(c, comm_size(c) - made_size(c));
        note_multicast(c);
    }
    c->collects = true;
}

/* The channels to another rank, at the first use. */
static struct peer *use_peer(struct comm *c, int peer, int64_t mib)
{
    if (peer == c->rank || !reaches_peers())
        return &c->peers[peer];
    hold(c, mib + (c->has_peers ? 0 : PEERS));
    c->has_peers = true;
    return &c->peers[peer];
}

/* ---- collectives ---- */

DRY_EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type,
                             int op, struct comm *c, cudaStream_t stream)
{
    (void)from, (void)to, (void)count, (void)type, (void)op, (void)stream;
    collect(c);
    frag_dry_launched();
    return 0;
}

DRY_EXPORT int ncclReduceScatter(const void *from, void *to, size_t count,
                                 int type, int op, struct comm *c,
                                 cudaStream_t stream)
{
    return ncclAllReduce(from, to, count, type, op, c, stream);
}

DRY_EXPORT int ncclReduce(const void *from, void *to, size_t count, int type,
                          int op, int root, struct comm *c, cudaStream_t stream)
{
    (void)root;
    return ncclAllReduce(from, to, count, type, op, c, stream);
}

DRY_EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type,
                             struct comm *c, cudaStream_t stream)
{
    const size_t size = count * bytes_of(type);
    const unsigned number = c->collectives++;

    (void)stream;
    collect(c);
    said(c->id.bytes, c->rank, SAID_TO_ALL, number, (uintptr_t)from, size,
         is_whole(type));
    for (int i = 0; i < c->size; i++)
        said_to(c->id.bytes, i, SAID_TO_ALL, number,
                (uintptr_t)to + (size_t)i * size, size);
    return 0;
}

DRY_EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type,
                             int root, struct comm *c, cudaStream_t stream)
{
    const size_t size = count * bytes_of(type);
    const unsigned number = c->collectives++;

    (void)stream;
    collect(c);
    if (!c->broadcasts && c->size > 1)
        hold(c, BROADCAST);
    c->broadcasts = true;
    if (root == c->rank)
        said(c->id.bytes, root, SAID_TO_ALL, number, (uintptr_t)from, size,
             is_whole(type));
    if (root != c->rank || to != from)
        said_to(c->id.bytes, root, SAID_TO_ALL, number, (uintptr_t)to, size);
    return 0;
}

DRY_EXPORT int ncclBcast(void *at, size_t count, int type, int root,
                         struct comm *c, cudaStream_t stream)
{
    return ncclBroadcast(at, at, count, type, root, c, stream);
}

DRY_EXPORT int ncclSend(const void *from, size_t count, int type, int peer,
                        struct comm *c, cudaStream_t stream)
{
    struct peer *p = use_peer(c, peer, c->peers[peer].sent ? 0 : SENDS);

    (void)stream;
    said(c->id.bytes, c->rank, peer, p->sent++, (uintptr_t)from,
         count * bytes_of(type), is_whole(type));
    return 0;
}

DRY_EXPORT int ncclRecv(void *to, size_t count, int type, int peer,
                        struct comm *c, cudaStream_t stream)
{
    struct peer *p = use_peer(c, peer, c->peers[peer].received ? 0 : RECEIVES);

    (void)stream;
    said_to(c->id.bytes, peer, c->rank, p->received++, (uintptr_t)to,
            count * bytes_of(type));
    return 0;
}

DRY_EXPORT int ncclAlltoAll(const void *from, void *to, size_t count, int type,
                            struct comm *c, cudaStream_t stream)
{
    const size_t size = count * bytes_of(type);

    for (int i = 0; i < c->size; i++) {
        ncclSend((const char *)from + (size_t)i * size, count, type, i, c,
                 stream);
        ncclRecv((char *)to + (size_t)i * size, count, type, i, c, stream);
    }
    return 0;
}

DRY_EXPORT int ncclCommDestroy(struct comm *c)
{
    hold(c, -(c->held >> 20));
    free(c->peers);
    free(c);
    return 0;
}

DRY_EXPORT int ncclCommAbort(struct comm *c)
{
    return ncclCommDestroy(c);
}

/* ---- communicators ---- */

static int make(struct comm **out, int size, int rank, int device,
                const struct unique *id)
{
    struct comm *c = malloc(sizeof(*c));
    struct peer *peers = calloc((size_t)size, sizeof(*peers));

    *out = c;
    if (!c || !peers) {
        free(c);
        free(peers);
        return DRY_LACKING;
    }
    *c = (struct comm){.rank = rank,
                       .size = size,
                       .device = device,
                       .peers = peers,
                       .id = *id};
    hold_comm(c);
    return 0;
}

DRY_EXPORT int ncclCommInitRank(struct comm **out, int size, struct unique id,
                                int rank)
{
    int device = 0;

    cudaGetDevice(&device);
    return make(out, size, rank, device, &id);
}

DRY_EXPORT int ncclCommInitRankConfig(struct comm **out, int size,
                                      struct unique id, int rank, void *config)
{
    (void)config;
    return ncclCommInitRank(out, size, id, rank);
}

DRY_EXPORT int ncclCommInitRankScalable(struct comm **out, int size, int rank,
                                        int ids, void *unique, void *config)
{
    (void)ids;
    (void)config;
    return ncclCommInitRank(out, size, *(struct unique *)unique, rank);
}

DRY_EXPORT int ncclCommInitAll(struct comm **out, int count, const int *devices)
{
    struct unique id;
    int code = ncclGetUniqueId(&id);

    for (int i = 0; i < count && !code; i++)
        code = make(&out[i], count, i, devices ? devices[i] : i, &id);
    return code;
}

/* A rank in the file where the ranks of a communicator meet to split it. */
struct meeting {
    int rank, color, key;
};

/* Adds this rank to the file. */
static bool arrive(const char *path, const struct meeting *mine)
{
    const int file =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    const bool done =
        file >= 0 && write(file, mine, sizeof(*mine)) == sizeof(*mine);

    if (file >= 0)
        close(file);
    return done;
}

/* The ranks that are in the file: how many have the colour of this one, and how
 * many of these come before it. Returns how many there are. */
static int look(const char *path, const struct meeting *mine, int *size,
                int *before)
{
    FILE *file = fopen(path, "rb");
    struct meeting other;
    int seen = 0;

    *size = *before = 0;
    for (; file && fread(&other, sizeof(other), 1, file) == 1; seen++) {
        *size += other.color == mine->color;
        *before += other.color == mine->color &&
                   (other.key < mine->key ||
                    (other.key == mine->key && other.rank < mine->rank));
    }
    if (file)
        fclose(file);
    return seen;
}

/* Waits until all `count` ranks are in the file. */
static bool meet(const char *path, int count, const struct meeting *mine,
                 int *size, int *before)
{
    const time_t end = time(NULL) + LONGEST_WAIT;

    if (!arrive(path, mine))
        return false;
    while (look(path, mine, size, before) < count && time(NULL) < end)
        usleep(10000);
    return look(path, mine, size, before) == count;
}

DRY_EXPORT int ncclCommSplit(struct comm *c, int color, int key,
                             struct comm **out, void *config)
{
    const struct meeting mine = {c->rank, color, key};
    const char *folder = getenv("FRAGSIM_DRY_FOLDER");
    struct unique id = {""};
    char path[4096];
    int size, rank;

    (void)config;
    *out = NULL;
    snprintf(path, sizeof(path), "%s/%s.%d.split", folder ? folder : ".",
             c->id.bytes, ++c->splits);
    if (!meet(path, c->size, &mine, &size, &rank)) {
        frag_dry_note(DRY_LACKS, "ncclCommSplit without all ranks");
        return DRY_LACKING;
    }
    if (color < 0) /* NCCL_SPLIT_NOCOLOR */
        return 0;
    snprintf(id.bytes, UNIQUE, "%.80s.%d.%d", c->id.bytes, c->splits, color);
    return make(out, size, rank, c->device, &id);
}

DRY_EXPORT int ncclCommCount(const struct comm *c, int *count)
{
    *count = c->size;
    return 0;
}

DRY_EXPORT int ncclCommCuDevice(const struct comm *c, int *device)
{
    *device = c->device;
    return 0;
}

DRY_EXPORT int ncclCommUserRank(const struct comm *c, int *rank)
{
    *rank = c->rank;
    return 0;
}

DRY_EXPORT int ncclCommGetAsyncError(const struct comm *c, int *code)
{
    (void)c;
    *code = 0;
    return 0;
}

DRY_EXPORT int ncclCommRegister(const struct comm *c, void *at, size_t size,
                                void **out)
{
    (void)c;
    (void)size;
    *out = at;
    return 0;
}

DRY_EXPORT int ncclMemAlloc(void **out, size_t size)
{
    return cudaMalloc(out, size) == cudaSuccess ? 0 : 1;
}

DRY_EXPORT int ncclMemFree(void *at)
{
    return cudaFree(at) == cudaSuccess ? 0 : 1;
}

DRY_EXPORT int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type,
                                        int residence, const struct comm *c)
{
    (void)scalar, (void)type, (void)residence, (void)c;
    *op = 5; /* ncclNumOps, the first number that is free */
    return 0;
}
