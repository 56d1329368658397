/* ask_cudnn.c - stands for the wheel's cuDNN under the stand-in of
 * real/dry/cudnn/. It refuses handles, and heuristics, engines and plans
 * without a device, so a stand-in that forgets one fails. A plan says the JSON
 * and the workspace that the test gave it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    BAD_PARAM = 2000,
    NOT_SUPPORTED = 3000,

    ENGINE = 2,
    HEURISTICS = 4,
    PLAN = 5,
    DEVICE = 38,

    PLAN_HANDLE = 400,
    PLAN_WORKSPACE = 402,
    PLAN_JSON = 405,
    GRAPH_HANDLE = 800,
    DEVICE_JSON = 2702,
};

struct descriptor {
    int kind, is_done;
    char json[4096];
    int64_t length, workspace;
    const struct descriptor *device;
};

struct tensor {
    int type, count, dims[8], strides[8];
};

size_t cudnnGetVersion(void);
const char *cudnnGetErrorString(int status);
int cudnnBackendCreateDescriptor(int kind, struct descriptor **out);
int cudnnBackendDestroyDescriptor(struct descriptor *it);
int cudnnBackendFinalize(struct descriptor *it);
int cudnnBackendSetAttribute(struct descriptor *it, int name, int type,
                             int64_t count, const void *from);
int cudnnBackendGetAttribute(const struct descriptor *it, int name, int type,
                             int64_t room, int64_t *count, void *to);
int cudnnCreateTensorDescriptor(struct tensor **out);
int cudnnSetTensorNdDescriptor(struct tensor *it, int type, int count,
                               const int *dims, const int *strides);
int cudnnGetTensorNdDescriptor(const struct tensor *it, int room, int *type,
                               int *count, int *dims, int *strides);

int cudnnCreateCTCLossDescriptor(int **out);
int cudnnSetCTCLossDescriptor_v9(int *it, int type, int norm, int mode,
                                 int label);
int cudnnGetCTCLossDescriptor_v9(const int *it, int *type, int *norm, int *mode,
                                 int *label);

int cudnnCreateCTCLossDescriptor(int **out)
{
    *out = calloc(1, sizeof(int));
    return SUCCESS;
}

int cudnnSetCTCLossDescriptor_v9(int *it, int type, int norm, int mode,
                                 int label)
{
    (void)type, (void)norm, (void)mode;
    *it = label;
    return SUCCESS;
}

int cudnnGetCTCLossDescriptor_v9(const int *it, int *type, int *norm, int *mode,
                                 int *label)
{
    *type = *norm = *mode = 0;
    *label = *it;
    return SUCCESS;
}

size_t cudnnGetVersion(void)
{
    const char *version = getenv("DRY_CUDNN_VERSION");

    return version ? (size_t)atol(version) : 91900;
}

const char *cudnnGetErrorString(int status)
{
    return status ? "refused" : "success";
}

int cudnnBackendCreateDescriptor(int kind, struct descriptor **out)
{
    *out = calloc(1, sizeof(**out));
    (*out)->kind = kind;
    return SUCCESS;
}

int cudnnBackendDestroyDescriptor(struct descriptor *it)
{
    free(it);
    return SUCCESS;
}

int cudnnBackendFinalize(struct descriptor *it)
{
    if (it->kind == DEVICE
            ? !strstr(it->json, "\"deviceName\":\"NVIDIA H200\"}")
            : (it->kind == ENGINE || it->kind == HEURISTICS ||
               it->kind == PLAN) &&
                  !(it->device && it->device->is_done))
        return NOT_SUPPORTED;
    it->is_done = 1;
    return SUCCESS;
}

int cudnnBackendSetAttribute(struct descriptor *it, int name, int type,
                             int64_t count, const void *from)
{
    static const int devices[] = {
        [ENGINE] = 1307, [HEURISTICS] = 204, [PLAN] = 407};

    (void)type;
    if (name == PLAN_HANDLE || name == GRAPH_HANDLE)
        return BAD_PARAM;
    if (it->kind <= PLAN && name == devices[it->kind])
        it->device = *(struct descriptor *const *)from;
    else if (name == PLAN_WORKSPACE)
        it->workspace = *(const int64_t *)from;
    else if (name == PLAN_JSON || name == DEVICE_JSON) {
        it->length = count;
        memcpy(it->json, from, (size_t)count);
    }
    return SUCCESS;
}

int cudnnBackendGetAttribute(const struct descriptor *it, int name, int type,
                             int64_t room, int64_t *count, void *to)
{
    (void)type;
    if (name == PLAN_WORKSPACE) {
        *count = 1;
        *(int64_t *)to = it->workspace;
    } else if (name == PLAN_JSON) {
        *count = it->length;
        if (room >= it->length)
            memcpy(to, it->json, (size_t)it->length);
    } else
        return BAD_PARAM;
    return SUCCESS;
}

int cudnnCreateTensorDescriptor(struct tensor **out)
{
    *out = calloc(1, sizeof(**out));
    return SUCCESS;
}

int cudnnSetTensorNdDescriptor(struct tensor *it, int type, int count,
                               const int *dims, const int *strides)
{
    it->type = type;
    it->count = count;
    memcpy(it->dims, dims, (size_t)count * sizeof(int));
    memcpy(it->strides, strides, (size_t)count * sizeof(int));
    return SUCCESS;
}

int cudnnGetTensorNdDescriptor(const struct tensor *it, int room, int *type,
                               int *count, int *dims, int *strides)
{
    *type = it->type;
    *count = it->count;
    for (int i = 0; i < it->count && i < room; i++) {
        dims[i] = it->dims[i];
        strides[i] = it->strides[i];
    }
    return SUCCESS;
}
