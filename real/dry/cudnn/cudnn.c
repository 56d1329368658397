/* cudnn.c - a libcudnn that has no device. Descriptors, heuristics and plans
 * are those of the wheel's own cuDNN (real.h): where PyTorch sets a
 * handle, the description of a device is set instead. What runs on the device
 * does nothing. The spaces that cuDNN says only to a handle are those of
 * spaces.c. */
#include "real/dry/cudnn/real.h"

#include <stdatomic.h>

enum { DRY_LACKING = CUDNN_NOT_SUPPORTED };
#include "real/dry/cudnn/split.h"
#include "real/dry/stubs.h"

/* ---- functions that the wheel's cuDNN answers ---- */

#define PARAMETERS_1 intptr_t a1
#define PARAMETERS_2 PARAMETERS_1, intptr_t a2
#define PARAMETERS_4 PARAMETERS_2, intptr_t a3, intptr_t a4
#define PARAMETERS_5 PARAMETERS_4, intptr_t a5
#define PARAMETERS_6 PARAMETERS_5, intptr_t a6
#define PARAMETERS_8 PARAMETERS_6, intptr_t a7, intptr_t a8
#define PARAMETERS_9 PARAMETERS_8, intptr_t a9
#define ARGUMENTS_1  a1
#define ARGUMENTS_2  ARGUMENTS_1, a2
#define ARGUMENTS_4  ARGUMENTS_2, a3, a4
#define ARGUMENTS_5  ARGUMENTS_4, a5
#define ARGUMENTS_6  ARGUMENTS_5, a6
#define ARGUMENTS_8  ARGUMENTS_6, a7, a8
#define ARGUMENTS_9  ARGUMENTS_8, a9

#define PASS(f, n)                                                         \
    DRY_EXPORT int f(PARAMETERS_##n);                                      \
    int f(PARAMETERS_##n)                                                  \
    {                                                                      \
        return FRAG_CUDNN_REAL(f, CUDNN_NOT_INITIALIZED, (ARGUMENTS_##n)); \
    }

#include "real/dry/cudnn/cudnn.def"

/* ---- the handle ---- */

struct handle {
    void *stream;
};

DRY_EXPORT int cudnnCreate(struct handle **out)
{
    *out = frag_cudnn_backend() ? calloc(1, sizeof(**out)) : NULL;
    return *out ? CUDNN_SUCCESS : CUDNN_NOT_INITIALIZED;
}

DRY_EXPORT int cudnnDestroy(struct handle *it)
{
    free(it);
    return CUDNN_SUCCESS;
}

DRY_EXPORT int cudnnSetStream(struct handle *it, void *stream)
{
    it->stream = stream;
    return CUDNN_SUCCESS;
}

DRY_EXPORT int cudnnGetStream(const struct handle *it, void **stream)
{
    *stream = it->stream;
    return CUDNN_SUCCESS;
}

/* ---- the library ---- */

/* 0 where there is no cuDNN. */
DRY_EXPORT size_t cudnnGetVersion(void)
{
    return FRAG_CUDNN_REAL(cudnnGetVersion, 0, ());
}

DRY_EXPORT size_t cudnnGetCudartVersion(void)
{
    return FRAG_CUDNN_REAL(cudnnGetCudartVersion, 0, ());
}

DRY_EXPORT const char *cudnnGetErrorString(int status)
{
    return FRAG_CUDNN_REAL(cudnnGetErrorString,
                           "the stand-in of fragsim has no cuDNN to ask",
                           (status));
}

DRY_EXPORT void cudnnGetLastErrorString(char *text, size_t room)
{
    void (*real)(char *, size_t);
    void *at = frag_cudnn_real("cudnnGetLastErrorString");

    if (room)
        *text = 0;
    memcpy(&real, &at, sizeof(real));
    if (at)
        real(text, room);
}

DRY_EXPORT int cudnnSetActivationDescriptor(void *it, int mode, int nan,
                                            double most)
{
    return FRAG_CUDNN_REAL(cudnnSetActivationDescriptor, CUDNN_NOT_INITIALIZED,
                           (it, mode, nan, most));
}

/* ---- the backend ---- */

/* Descriptors that choose or describe kernels get the device at once. */
DRY_EXPORT int cudnnBackendCreateDescriptor(int kind, void **out)
{
    const struct cudnn_backend *real = frag_cudnn_backend();
    const int device = kind == CUDNN_HEURISTICS ? CUDNN_HEURISTICS_DEVICE
                       : kind == CUDNN_PLAN     ? CUDNN_PLAN_DEVICE
                       : kind == CUDNN_ENGINE   ? CUDNN_ENGINE_DEVICE
                                                : 0;
    int result = real ? real->create(kind, out) : CUDNN_NOT_INITIALIZED;

    if (result == CUDNN_SUCCESS && device)
        result =
            real->set(*out, device, CUDNN_TYPE_DESCRIPTOR, 1, &real->device);
    return result;
}

/* The handle is ours, and means nothing to the wheel's cuDNN. */
DRY_EXPORT int cudnnBackendSetAttribute(void *it, int name, int type,
                                        int64_t count, const void *from)
{
    const struct cudnn_backend *real = frag_cudnn_backend();

    if (!real)
        return CUDNN_NOT_INITIALIZED;
    if (name == CUDNN_GRAPH_HANDLE || name == CUDNN_PLAN_HANDLE)
        return CUDNN_SUCCESS;
    return real->set(it, name, type, count, from);
}

static void note(enum cudnn_judged how)
{
    static const char *const names[] = {
        [CUDNN_GUESSED] = "cuDNN's workspace of a 1x1 convolution by cuBLASLt "
                          "(0 or 512 bytes)",
        [CUDNN_UNKNOWN] = "cuDNN's workspace of a convolution that was not "
                          "measured (up to 17 MB more)",
    };

    if (how >= CUDNN_GUESSED)
        frag_dry_note(DRY_SIZE, names[how]);
}

/* The plan that was asked last and has not run. With
 * torch.backends.cudnn.benchmark, PyTorch makes all plans before it runs one.
 */
static void *_Atomic waiting;

DRY_EXPORT int cudnnBackendExecute(void *handle, void *plan, void *pack)
{
    (void)handle, (void)plan, (void)pack;
    waiting = NULL;
    frag_dry_launched();
    return CUDNN_SUCCESS;
}

static void note_choice(void *plan)
{
    void *before = atomic_exchange(&waiting, plan);

    if (before && before != plan)
        frag_dry_note(DRY_GUESS, "the fastest plan of cuDNN, which "
                                 "torch.backends.cudnn.benchmark looks for");
}

/* Makes the workspace of a plan that of the GPU. */
static void correct(const struct cudnn_backend *real, void *plan,
                    int64_t *workspace)
{
    struct cudnn_plan read;
    int64_t size = 0;
    char *json;

    if (real->get(plan, CUDNN_PLAN_JSON, CUDNN_TYPE_CHAR, 0, &size, NULL) ||
        size < 1)
        return;
    json = calloc(1, (size_t)size + 1);
    if (json &&
        !real->get(plan, CUDNN_PLAN_JSON, CUDNN_TYPE_CHAR, size, &size, json) &&
        frag_cudnn_plan_read(json, &read)) {
        note(frag_cudnn_split(&read, workspace));
        note(frag_cudnn_product(&read, workspace));
    }
    free(json);
}

DRY_EXPORT int cudnnBackendGetAttribute(void *it, int name, int type,
                                        int64_t room, int64_t *count, void *to)
{
    const struct cudnn_backend *real = frag_cudnn_backend();
    int result = real ? real->get(it, name, type, room, count, to)
                      : CUDNN_NOT_INITIALIZED;

    if (result == CUDNN_SUCCESS && name == CUDNN_PLAN_WORKSPACE && to &&
        room > 0) {
        note_choice(it);
        correct(real, it, to);
    }
    return result;
}
