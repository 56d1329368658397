/* executables.h - the memory of the device that the executable of a graph
 * takes.
 *
 * Measured on an H200 (driver 580.159.04) with graphs of 5 to 4,000 launches,
 * one to 200 of them: 2.6 KiB a launch of an elementwise kernel, 4 to 8 KiB
 * where products are among them, and 70 to 100 KiB a graph. The larger ones are
 * taken: what a kernel needs for its parameters is not known here.
 */
#ifndef FRAG_REAL_DRY_RUNTIME_EXECUTABLES_H
#define FRAG_REAL_DRY_RUNTIME_EXECUTABLES_H

#include <stdint.h>

/* A capture begins. */
void graph_begin(void);
/* It ended on the device, and the graph has this number. */
void graph_end(uint64_t number, int device);
/* The graph was made executable, or that was destroyed. */
void graph_take(uint64_t number);
void graph_return(uint64_t number);

#endif
