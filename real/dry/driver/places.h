/* places.h - where the driver puts device memory without contents: by the
 * driver's own rule, which the arena models (sim/arena/arena.h). PyTorch
 * decides between equal blocks by their addresses.
 *
 * Each device has a part of the address space of its own, where the driver has
 * one space for all. Private to real/dry/; the caller holds a lock.
 */
#ifndef FRAG_REAL_DRY_DRIVER_PLACES_H
#define FRAG_REAL_DRY_DRIVER_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reserves addresses on device `device` of `count`, for cudaMalloc or as a
 * reservation, so that no other memory of the process gets them. The program
 * ends with a message if they are in use already, or if the host has no memory.
 * `total` is what the device reports as its memory. */
uint64_t place_take(int device, int count, uint64_t total, size_t size,
                    bool is_segment);
/* Gives them back. */
void place_return(int device, uint64_t at, size_t size, bool is_segment);
/* The process made a stream on the device. */
void place_stream(int device, int count, uint64_t total);

#endif
