/* nvrtc.c - a libnvrtc that compiles nothing, and says that it did: kernels do
 * nothing. cuDNN compiles its attention with it. */
#include <string.h>

enum { DRY_LACKING = 11 }; /* NVRTC_ERROR_INTERNAL_ERROR */
#include "real/dry/stubs.h"

#include "real/dry/libraries/nvrtc.def"

enum { CODE = 64 }; /* bytes of a compiled program, all zero */

#define CODE_OF(name)                                      \
    DRY_EXPORT int nvrtcGet##name##Size(void *, size_t *); \
    DRY_EXPORT int nvrtcGet##name(void *, char *);         \
    int nvrtcGet##name##Size(void *program, size_t *size)  \
    {                                                      \
        (void)program;                                     \
        *size = CODE;                                      \
        return 0;                                          \
    }                                                      \
    int nvrtcGet##name(void *program, char *code)          \
    {                                                      \
        (void)program;                                     \
        memset(code, 0, CODE);                             \
        return 0;                                          \
    }
CODE_OF(CUBIN)
CODE_OF(PTX)

DRY_EXPORT int nvrtcDestroyProgram(void **program)
{
    free(*program);
    *program = NULL;
    return 0;
}

DRY_EXPORT int nvrtcGetProgramLogSize(void *program, size_t *size)
{
    (void)program;
    *size = 1;
    return 0;
}

DRY_EXPORT int nvrtcGetProgramLog(void *program, char *text)
{
    (void)program;
    *text = 0;
    return 0;
}

DRY_EXPORT int nvrtcVersion(int *major, int *minor)
{
    const char *text = getenv("FRAGSIM_DRY_CUDA"); /* such as 13000 */
    const int cuda = text ? atoi(text) : 13000;

    *major = cuda / 1000;
    *minor = cuda % 1000 / 10;
    return 0;
}
