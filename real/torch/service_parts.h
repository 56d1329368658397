/* service_parts.h - the numbers of a device for adaptor.c. Private to
 * real/torch/. */
#ifndef FRAG_REAL_TORCH_SERVICE_PARTS_H
#define FRAG_REAL_TORCH_SERVICE_PARTS_H

#include "real/torch/service_device.h"

struct numbers {
    struct frag_serve_memory memory;
    struct device_calls calls;
};

/* All 0 if the program did not use the device. */
struct numbers numbers_of(int device);

#endif
