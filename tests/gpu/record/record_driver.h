/* record_driver.h - declarations shared by the files of the stand-in for
 * libcuda.so.1. record_driver.c has blocks, contexts and function lookup;
 * record_driver_streams.c has allocation in stream order and captures;
 * record_driver_graphs.c has graphs; record_driver_memory.c has arrays, virtual
 * memory and imported memory; record_driver_host.c has pinned memory of the
 * host. The library exports none of these names.
 *
 * All functions are called with the lock held and return a result of the
 * driver.
 */
#ifndef FRAG_TESTS_RECORD_RECORD_DRIVER_H
#define FRAG_TESTS_RECORD_RECORD_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long u64;

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_CONTEXT = 201,
    NOT_FOUND = 500,
    CONTEXT_DESTROYED = 709,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901
};
enum { BLOCKS = 1 << 14, DEVICES = 2, CONTEXTS = 1 << 10, PAGE = 2 << 20 };

struct props {
    int type, handle_types, location_type, location_id;
};

#pragma GCC visibility push(hidden)

extern u64 next_address, left[DEVICES];
extern pthread_mutex_t lock;

/* A context's handle is its row; the first are the devices' primary ones. */
extern struct context {
    int device, retained;
    bool is_there, is_green; /* green: a view of the device's primary context */
} contexts[CONTEXTS];
extern __thread int current; /* 0: none */

/* A block of the device; context 0: it outlives contexts. */
int take(u64 *out, u64 size, int device, int context);

/* The device of the thread's context. */
int take_here(u64 *out, u64 size);

int give(u64 at);

/* Returns an address without memory. */
int take_address(u64 *out, u64 size);

/* A new graph, and a node of it that allocates. Without is_open, the graph also
 * frees the memory. A graph of NULL has no memory. */
struct graph;
struct graph *new_graph(void);
int add_node(struct graph *graph, u64 *out, u64 size, int device, bool is_open);

/* Whether the address is live memory of a graph; frees it. */
bool free_node(u64 at);

/* Ends the capture that runs, unless the thread's mode is relaxed. */
void spoil_capture(void);

/* Ends all pinned memory of the host that the context made. */
void end_host(int context);

/* Drops a reference to the device's primary context. */
int release_context(int device);
int retain_context(void **out, int device);

/* A block of no bytes, which is freed like any other. */
int show_block(u64 *out);

#pragma GCC visibility pop

#define LOCKED(call)                 \
    do {                             \
        int result_;                 \
                                     \
        pthread_mutex_lock(&lock);   \
        result_ = (call);            \
        pthread_mutex_unlock(&lock); \
        return result_;              \
    } while (0)

#endif
