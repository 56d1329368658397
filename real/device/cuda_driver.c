/* cuda_driver.c - opens libcuda.so.1, looks up its functions and calls cuInit,
 * once in a process. */
#include "real/device/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *cu_words(const struct cu_driver *cu, cu_result code, char text[256])
{
    const char *name = NULL, *words = NULL;

    if (cu->cuGetErrorName(code, &name) != CU_SUCCESS || !name)
        name = "unknown error";
    if (cu->cuGetErrorString(code, &words) != CU_SUCCESS || !words)
        words = "the driver has no message for it";
    snprintf(text, 256, "%s (%d), %s", name, code, words);
    return text;
}

static enum frag_err look_up(struct cu_driver *cu, struct frag_error *e)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (!library)
        return frag_fail(e, FRAG_DEVICE,
                         "no CUDA driver on this machine: %s; it is part of "

                         "the GPU's kernel driver and not of CUDA",
                         dlerror());
#define X(name, arguments)                         \
    *(void **)&cu->name = dlsym(library, #name);   \
    if (!cu->name)                                 \
        return frag_fail(e, FRAG_DEVICE,           \
                         "the CUDA driver has no " \
                         "%s; it is too old",      \
                         #name);
    CU_DRIVER(X)
#undef X
    return FRAG_OK;
}

static enum frag_err load(struct cu_driver *cu, struct frag_error *e)
{
    char words[256];
    cu_result code;
    int count = 0;

    FRAG_TRY(look_up(cu, e));
    code = cu->cuInit(0);
    if (code == CU_SUCCESS)
        code = cu->cuDeviceGetCount(&count);
    if (code != CU_SUCCESS)
        return frag_fail(e, FRAG_DEVICE, "the CUDA driver does not start: %s",
                         cu_words(cu, code, words));
    if (count == 0)
        return frag_fail(e, FRAG_DEVICE, "the CUDA driver finds no GPU");
    return FRAG_OK;
}

enum frag_err cu_driver_get(const struct cu_driver **out, struct frag_error *e)
{
    static struct cu_driver driver, loaded;
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&lock);
    if (!driver.cuInit) {
        err = load(&loaded, e);
        if (err == FRAG_OK)
            driver = loaded;
    }
    pthread_mutex_unlock(&lock);
    if (err == FRAG_OK)
        *out = &driver;
    return err;
}
