/* cell_cuda.h - the backend of a cell that is a GPU: one that keeps to an
 * arena's capacity and is timed call by call (sim/twin.h). Its memory's `mem`
 * is that twin. */
#ifndef FRAG_SIM_CLI_CELL_CUDA_H
#define FRAG_SIM_CLI_CELL_CUDA_H

#include "sim/experiments/cell.h"

extern const struct cell_backend cell_cuda_backend;

#endif
