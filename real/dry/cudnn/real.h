/* real.h - the wheel's own cuDNN, below its stand-in. cuDNN 9.8 and newer
 * document a mode without a device: heuristics and execution plans take a
 * description of a device (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) instead of a
 * handle, and a plan then says its workspace. So the stand-in does not guess
 * what cuDNN would choose: it asks. Private to real/dry/.
 *
 * Where cuDNN is: the file FRAGSIM_DRY_CUDNN, or else nvidia/cudnn/lib beside
 * the folder of PyTorch, as its wheels install it. A cuDNN that cannot be
 * loaded is noted once (dry_notes.h), by its path and the reason.
 */
#ifndef FRAG_REAL_DRY_CUDNN_REAL_H
#define FRAG_REAL_DRY_CUDNN_REAL_H

#include <stdint.h>
#include <string.h>

/* cudnnStatus_t, cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t and
 * cudnnBackendAttributeType_t, as far as they are needed. */
enum {
    CUDNN_SUCCESS = 0,
    CUDNN_NOT_INITIALIZED = 1001,
    CUDNN_BAD_PARAM = 2000,
    CUDNN_NOT_SUPPORTED = 3000,

    CUDNN_ENGINE = 2,
    CUDNN_HEURISTICS = 4,
    CUDNN_PLAN = 5,
    CUDNN_DEVICE = 38,

    CUDNN_HEURISTICS_DEVICE = 204,
    CUDNN_PLAN_HANDLE = 400,
    CUDNN_PLAN_WORKSPACE = 402,
    CUDNN_PLAN_JSON = 405,
    CUDNN_PLAN_DEVICE = 407,
    CUDNN_GRAPH_HANDLE = 800,
    CUDNN_ENGINE_DEVICE = 1307,
    CUDNN_DEVICE_JSON = 2702,

    CUDNN_TYPE_INT64 = 3,
    CUDNN_TYPE_DESCRIPTOR = 15,
    CUDNN_TYPE_CHAR = 24,
};

/* The function of that name in the wheel's cuDNN; NULL if there is none. */
void *frag_cudnn_real(const char *name);

/* Calls the wheel's function of the name and type of `f`, with the arguments in
 * parentheses; `absent` where there is none. */
#define FRAG_CUDNN_REAL(f, absent, arguments) \
    __extension__({                           \
        __typeof__(&f) real_;                 \
        void *at_ = frag_cudnn_real(#f);      \
                                              \
        memcpy(&real_, &at_, sizeof(real_));  \
        at_ ? real_ arguments : (absent);     \
    })

/* The backend's functions. */
struct cudnn_backend {
    int (*create)(int kind, void **out);
    int (*set)(void *it, int name, int type, int64_t count, const void *from);
    int (*get)(void *it, int name, int type, int64_t room, int64_t *count,
               void *to);
    int (*finalize)(void *it);
    void *device; /* the descriptor of the device */
};

/* The wheel's backend; NULL if it cannot be used. */
const struct cudnn_backend *frag_cudnn_backend(void);

#endif
