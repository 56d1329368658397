/* nvrtc.c - a libnvrtc that compiles nothing: a program that compiles code of
 * its own fails, and says so. */
enum { DRY_LACKING = 11 }; /* NVRTC_ERROR_INTERNAL_ERROR */
#include "real/dry/stubs.h"

#include "real/dry/libraries/nvrtc.def"

DRY_EXPORT int nvrtcVersion(int *major, int *minor);

int nvrtcVersion(int *major, int *minor)
{
    const char *text = getenv("FRAGSIM_DRY_CUDA"); /* such as 13000 */
    const int cuda = text ? atoi(text) : 13000;

    *major = cuda / 1000;
    *minor = cuda % 1000 / 10;
    return 0;
}
