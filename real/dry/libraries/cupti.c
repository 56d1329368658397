/* cupti.c - a libcupti that records nothing: the profiler sees no kernels. */
enum { DRY_LACKING = 27 }; /* CUPTI_ERROR_NOT_SUPPORTED */
#include "real/dry/stubs.h"

#include "real/dry/libraries/cupti.def"

DRY_EXPORT int cuptiGetResultString(int code, const char **words)
{
    *words = code ? "CUPTI_ERROR_NOT_SUPPORTED" : "CUPTI_SUCCESS";
    return 0;
}

DRY_EXPORT int cuptiGetVersion(uint32_t *version)
{
    *version = 130000; /* of CUDA 13.0 */
    return 0;
}
