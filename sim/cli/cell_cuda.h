/* cell_cuda.h - runs a cell on a GPU instead of the simulated device. The
 * backend opens a twin (sim/twin.h): the GPU beside an arena of the requested
 * capacity. The twin enforces that capacity to the byte and times each call;
 * cell_memory.mem is the twin. */
#ifndef FRAG_SIM_CLI_CELL_CUDA_H
#define FRAG_SIM_CLI_CELL_CUDA_H

#include "sim/experiments/cell.h"

extern const struct cell_backend cell_cuda_backend;

#endif
