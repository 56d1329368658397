/* blas_lt.c - a libcublasLt. PyTorch gives each product a workspace of its own
 * allocator, whose size does not depend on the answer of the heuristic. */
#include <string.h>

enum { DRY_LACKING = 15 }; /* CUBLAS_STATUS_NOT_SUPPORTED */
#include "real/dry/stubs.h"

#include "real/dry/libraries/blas_lt.def"

/* cublasLtMatmulHeuristicResult_t */
struct result {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

DRY_EXPORT size_t cublasLtGetVersion(void)
{
    const char *cuda = getenv("FRAGSIM_DRY_CUDA"); /* such as 13000 */

    return (cuda ? (size_t)atol(cuda) / 1000 : 13) * 10000 + 100;
}

/* One algorithm, which needs no workspace. */
DRY_EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation,
                                              void *a, void *b, void *c,
                                              void *d, void *preference,
                                              int wanted, struct result *out,
                                              int *count)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d;
    (void)preference;
    *count = wanted > 0;
    if (wanted > 0)
        *out = (struct result){.waves = 1};
    return 0;
}
