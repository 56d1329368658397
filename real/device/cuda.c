/* cuda.c - the CUDA backend: one driver call for each operation, made in the
 * device's primary context. It checks alignment and keeps no list of the memory
 * that it allocates. */
#include "real/device/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policies/device/relay.h"

struct cuda {
    union { /* base is that of the relay */
        struct frag_relay relay;
        struct frag_backend base;
    };
    const struct cu_driver *cu;
    cu_device device;
    cu_context context;
    struct cu_memory_prop memory;
    struct cu_access access[FRAG_CUDA_PEERS]; /* of each map: this device's
                                                 first, then its peers' */
    size_t access_count;
    char words[320];
};

static struct cuda *cuda_of(const struct frag_backend *mem)
{
    return (struct cuda *)(uintptr_t)mem;
}

/* ---- the context, and the driver's errors ---- */

enum frag_err frag_cuda_answer(struct frag_backend *mem, const char *call,
                               cu_result code)
{
    struct cuda *c = cuda_of(mem);
    char text[256];

    if (code == CU_SUCCESS)
        return FRAG_OK;
    if (code == CU_OUT_OF_MEMORY)
        return FRAG_OOM;
    if (!c->words[0])
        snprintf(c->words, sizeof(c->words), "%.*s: %s",
                 (int)strcspn(call, "("), call, cu_words(c->cu, code, text));
    return FRAG_DEVICE;
}

enum frag_err frag_cuda_enter(struct frag_backend *mem)
{
    struct cuda *c = cuda_of(mem);

    return frag_cuda_answer(mem, "cuCtxPushCurrent",
                            c->cu->cuCtxPushCurrent_v2(c->context));
}

void frag_cuda_leave(struct frag_backend *mem)
{
    cu_context mine;

    cuda_of(mem)->cu->cuCtxPopCurrent_v2(&mine);
}

/* Makes one driver call inside the context and stores its result, as an enum
 * frag_err, in err. */
#define CALL(c, err, call)                                    \
    do {                                                      \
        err = frag_cuda_enter(&(c)->base);                    \
        if (err == FRAG_OK) {                                 \
            cu_result code_ = (c)->cu->call;                  \
                                                              \
            frag_cuda_leave(&(c)->base);                      \
            err = frag_cuda_answer(&(c)->base, #call, code_); \
        }                                                     \
    } while (0)

/* ---- peers ---- */

enum frag_err frag_cuda_grant(struct frag_backend *mem, frag_addr addr,
                              frag_size size)
{
    struct cuda *c = cuda_of(mem);
    enum frag_err err;

    CALL(c, err, cuMemSetAccess(addr, size, c->access, c->access_count));
    return err;
}

enum frag_err frag_cuda_add_peer(struct frag_backend *mem, int ordinal)
{
    struct cuda *c = cuda_of(mem);
    struct cu_access peer = c->access[0];
    enum frag_err err;
    cu_device device;

    CALL(c, err, cuDeviceGet(&device, ordinal));
    FRAG_TRY(err);
    peer.location.id = device;
    for (size_t i = 0; i < c->access_count; i++)
        if (c->access[i].location.id == device)
            return FRAG_OK;
    if (c->access_count == FRAG_CUDA_PEERS)
        return FRAG_INVALID;
    c->access[c->access_count++] = peer;
    return FRAG_OK;
}

/* Whether the program lets the device `peer` access this one. The driver
 * answers this only by refusing to enable the access again; access that this
 * question enables is disabled at once. A device without a context has no
 * access. */
static bool is_peer(const struct cuda *c, cu_device peer)
{
    enum { PEER_ACCESS_ALREADY_ENABLED = 704 };
    cu_result code = CU_SUCCESS;
    cu_context context, same;
    unsigned flags;
    int active = 0;

    if (c->cu->cuDevicePrimaryCtxGetState(peer, &flags, &active) !=
            CU_SUCCESS ||
        !active ||
        c->cu->cuDevicePrimaryCtxRetain(&context, peer) != CU_SUCCESS)
        return false;
    if (c->cu->cuCtxPushCurrent_v2(context) == CU_SUCCESS) {
        code = c->cu->cuCtxEnablePeerAccess(c->context, 0);
        if (code == CU_SUCCESS)
            c->cu->cuCtxDisablePeerAccess(c->context);
        c->cu->cuCtxPopCurrent_v2(&same);
    }
    c->cu->cuDevicePrimaryCtxRelease_v2(peer);
    return code == PEER_ACCESS_ALREADY_ENABLED;
}

static enum frag_err find_peers(struct cuda *c)
{
    cu_device peer;
    int count = 0;

    if (c->cu->cuDeviceGetCount(&count) != CU_SUCCESS)
        return FRAG_OK;
    for (int i = 0; i < count; i++)
        if (c->cu->cuDeviceGet(&peer, i) == CU_SUCCESS && peer != c->device &&
            is_peer(c, peer))
            FRAG_TRY(frag_cuda_add_peer(&c->base, i));
    return FRAG_OK;
}

/* ---- calls ---- */

static enum frag_err map(struct cuda *c, const struct frag_relayed *r)
{
    enum frag_err err, undone;

    CALL(c, err, cuMemMap(r->at, r->size, 0, r->with, 0));
    FRAG_TRY(err);
    err = frag_cuda_grant(&c->base, r->at, r->size);
    if (err != FRAG_OK) {
        CALL(c, undone, cuMemUnmap(r->at, r->size));
        (void)undone;
    }
    return err;
}

static bool aligned(const struct cuda *c, const struct frag_relayed *r)
{
    return r->size > 0 && r->at % c->base.granularity == 0 &&
           r->size % c->base.granularity == 0;
}

/* Whether the call keeps the rule of policies/device/backend.h, as far as that
 * shows without a list of the memory. */
static bool keeps_rule(const struct cuda *c, const struct frag_relayed *r)
{
    switch (r->call) {
    case FRAG_DRIVER_SEGMENT_ALLOC:
        return r->size > 0;
    case FRAG_DRIVER_VA_RESERVE:
    case FRAG_DRIVER_PHYS_CREATE:
    case FRAG_DRIVER_MAP:
    case FRAG_DRIVER_UNMAP:
        return aligned(c, r);
    default:
        return true;
    }
}

static enum frag_err serve(struct frag_relay *relay, struct frag_relayed *r)
{
    struct cuda *c = (struct cuda *)relay;
    cu_address at = 0;
    cu_memory memory = 0;
    enum frag_err err = FRAG_OK;

    if (!keeps_rule(c, r))
        return FRAG_INVALID;
    switch (r->call) {
    case FRAG_DRIVER_SEGMENT_ALLOC:
        CALL(c, err, cuMemAlloc_v2(&at, r->size));
        r->at = at;
        break;
    case FRAG_DRIVER_SEGMENT_FREE:
        CALL(c, err, cuMemFree_v2(r->at));
        break;
    case FRAG_DRIVER_VA_RESERVE:
        CALL(c, err, cuMemAddressReserve(&at, r->size, 0, 0, 0));
        r->at = at;
        break;
    case FRAG_DRIVER_VA_FREE:
        CALL(c, err, cuMemAddressFree(r->at, r->size));
        break;
    case FRAG_DRIVER_PHYS_CREATE:
        CALL(c, err, cuMemCreate(&memory, r->size, &c->memory, 0));
        r->at = memory;
        break;
    case FRAG_DRIVER_PHYS_RELEASE:
        CALL(c, err, cuMemRelease(r->at));
        break;
    case FRAG_DRIVER_MAP:
        return map(c, r);
    case FRAG_DRIVER_UNMAP:
        if (c->base.busy)
            CALL(c, err, cuCtxSynchronize());
        FRAG_TRY(err);
        CALL(c, err, cuMemUnmap(r->at, r->size));
        break;
    case FRAG_DRIVER_COPY:
        CALL(c, err, cuMemcpyDtoDAsync_v2(r->at, r->with, r->size, NULL));
        break;
    default:
        CALL(c, err, cuCtxSynchronize());
    }
    return err;
}

static frag_time now(struct frag_backend *mem)
{
    struct timespec t;

    (void)mem;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (frag_time)t.tv_sec * 1000000000 + (frag_time)t.tv_nsec;
}

/* ---- open and close ---- */

static void describe_memory(struct cuda *c, int ordinal)
{
    const struct cu_location here = {CU_ON_DEVICE, ordinal};

    c->memory = (struct cu_memory_prop){.type = CU_PINNED, .location = here};
    c->access[0] = (struct cu_access){here, CU_READ_AND_WRITE};
    c->access_count = 1;
}

static cu_result find_device(struct cuda *c,
                             const struct frag_cuda_options *options)
{
    size_t total = 0, granularity = 0;
    int files = 0;
    cu_result code = c->cu->cuDeviceGet(&c->device, options->ordinal);

    describe_memory(c, options->ordinal);
    if (code == CU_SUCCESS && options->shared)
        code = c->cu->cuDeviceGetAttribute(&files, CU_HAS_FILE_DESCRIPTORS,
                                           c->device);
    c->memory.handle_types = files ? CU_FILE_DESCRIPTOR : 0;
    if (code == CU_SUCCESS)
        code = c->cu->cuDeviceTotalMem_v2(&total, c->device);
    if (code == CU_SUCCESS)
        code = c->cu->cuMemGetAllocationGranularity(&granularity, &c->memory,
                                                    CU_MINIMUM);
    if (code == CU_SUCCESS)
        code = c->cu->cuDevicePrimaryCtxRetain(&c->context, c->device);
    frag_relay_open(&c->relay, NULL, serve);
    c->relay.ops.name = "cuda";
    c->relay.ops.now = now;
    c->base = (struct frag_backend){.ops = &c->relay.ops,
                                    .capacity = FRAG_UNLIMITED,
                                    .total = total,
                                    .granularity = granularity};
    return code;
}

enum frag_err frag_cuda_open(const struct frag_cuda_options *options,
                             struct frag_backend **out, struct frag_error *e)
{
    struct cuda *c = calloc(1, sizeof(*c));
    enum frag_err err = c ? cu_driver_get(&c->cu, e) : FRAG_NOMEM;
    char words[256];
    cu_result code;

    if (err != FRAG_OK) {
        free(c);
        return err;
    }
    code = find_device(c, options);
    c->base.busy = options->busy;
    if (code != CU_SUCCESS) {
        err = frag_fail(e, FRAG_DEVICE, "GPU %d cannot be used: %s",
                        options->ordinal, cu_words(c->cu, code, words));
        free(c);
        return err;
    }
    if (options->busy && find_peers(c) != FRAG_OK) {
        err = frag_fail(e, FRAG_DEVICE, "the peers of GPU %d are unknown: %s",
                        options->ordinal, c->words);
        frag_cuda_close(&c->base);
        return err;
    }
    *out = &c->base;
    return FRAG_OK;
}

void frag_cuda_close(struct frag_backend *mem)
{
    struct cuda *c = cuda_of(mem);

    if (!c)
        return;
    c->cu->cuDevicePrimaryCtxRelease_v2(c->device);
    free(c);
}

const char *frag_cuda_words(const struct frag_backend *mem)
{
    return cuda_of(mem)->words;
}

const struct cu_driver *frag_cuda_driver(const struct frag_backend *mem)
{
    return cuda_of(mem)->cu;
}

enum frag_err frag_cuda_free_bytes(struct frag_backend *mem, frag_size *bytes)
{
    struct cuda *c = cuda_of(mem);
    size_t left = 0, total = 0;
    enum frag_err err;

    CALL(c, err, cuMemGetInfo_v2(&left, &total));
    if (err == FRAG_OK)
        *bytes = left;
    return err;
}

/* The version of the kernel's part of the driver, from a line such as "NVRM
 * version: NVIDIA UNIX ... 580.159.04". Empty if there is none. */
static void kernel_driver(char version[32])
{
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    char line[256] = "", word[32];

    *version = '\0';
    if (file && !fgets(line, sizeof(line), file))
        *line = '\0';
    if (file)
        fclose(file);
    for (char *at = line; sscanf(at, "%31s", word) == 1;
         at += strspn(at, " \t\n") + strlen(word))
        if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.')) {
            strcpy(version, word);
            return;
        }
}

void frag_cuda_describe(const struct frag_backend *mem,
                        char text[FRAG_CUDA_NAME])
{
    const struct cuda *c = cuda_of(mem);
    char name[96] = "a GPU", kernel[32];
    int api = 0;

    c->cu->cuDeviceGetName(name, sizeof(name), c->device);
    c->cu->cuDriverGetVersion(&api);
    kernel_driver(kernel);
    snprintf(text, FRAG_CUDA_NAME, "%s, CUDA driver API %d.%d%s%s", name,
             api / 1000, api % 1000 / 10, *kernel ? ", driver " : "", kernel);
}
