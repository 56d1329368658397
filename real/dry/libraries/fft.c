/* fft.c - a libcufft. The size of a plan's work area is not known. */
enum { DRY_LACKING = 16 }; /* CUFFT_NOT_SUPPORTED */
#include "real/dry/stubs.h"

#include "real/dry/libraries/fft.def"

DRY_EXPORT int cufftCreate(int *plan);

int cufftCreate(int *plan)
{
    static int plans;

    *plan = __atomic_add_fetch(&plans, 1, __ATOMIC_RELAXED);
    return 0;
}
