/* blas.c - a libcublas. Its work is done on the device. The workspace of a
 * handle belongs to PyTorch (cublasSetWorkspace), so no size is decided here.
 */
enum { DRY_LACKING = 15 }; /* CUBLAS_STATUS_NOT_SUPPORTED */
#include "real/dry/stubs.h"

#include "real/dry/libraries/blas.def"

/* The beginning of a handle. */
struct blas {
    int math, pointers;
};

DRY_EXPORT int cublasGetMathMode(const struct blas *b, int *mode)
{
    *mode = b->math;
    return 0;
}

DRY_EXPORT int cublasSetMathMode(struct blas *b, int mode)
{
    b->math = mode;
    return 0;
}

DRY_EXPORT int cublasGetPointerMode_v2(const struct blas *b, int *mode)
{
    *mode = b->pointers;
    return 0;
}

DRY_EXPORT int cublasSetPointerMode_v2(struct blas *b, int mode)
{
    b->pointers = mode;
    return 0;
}
