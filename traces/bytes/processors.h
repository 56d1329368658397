/* processors.h - the number of processors that this process may use. */
#ifndef FRAG_TRACES_BYTES_PROCESSORS_H
#define FRAG_TRACES_BYTES_PROCESSORS_H

#include <stddef.h>

/* At least 1. It follows the affinity of the calling thread (taskset, batch
 * systems), not the number of processors of the machine. */
size_t processors(void);

#endif
