/* properties.h - the properties and attributes of a GPU, in the layouts of the
 * driver and of the runtime. For the stand-ins only.
 */
#ifndef FRAG_REAL_DRY_DRIVER_PROPERTIES_H
#define FRAG_REAL_DRY_DRIVER_PROPERTIES_H

#include <stdbool.h>
#include <stdint.h>

#include "real/device/gpus.h"

/* Writes the cudaDeviceProp of CUDA 12 (release 0) or 13 (release 1), all but
 * its name and its number (DRY_AT_UUID). */
enum { DRY_NAME = 256, DRY_AT_UUID = DRY_NAME, DRY_UUID = 16 };
void dry_properties(const struct frag_gpu *gpu, int release, int ordinal,
                    uint64_t total, char *out);
/* An attribute, by its number; false if the table lacks it. */
bool dry_attribute(const struct frag_gpu *gpu, int which, int *value);

#endif
