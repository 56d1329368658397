/* storage.h - what a trace owns: heap arrays and one mapped file. */
#ifndef FRAG_TRACES_STORAGE_H
#define FRAG_TRACES_STORAGE_H

#include "traces/trace.h"

struct storage {
    void **arrays;
    uint64_t count, room;
    void *map; /* NULL: nothing is mapped */
    size_t map_size;
};

/* A trace with nothing in it but its storage, NULL if the host has no memory.
 * frag_trace_close releases it. */
struct frag_trace *storage_trace(const char *path, const char *format);

/* `count` zeroed items that live as long as the trace (at least one, so that
 * NULL always means that the host has no memory). */
void *storage_array(struct frag_trace *t, uint64_t count, size_t item);

/* Gives a heap array to the trace. False if the host has no memory; then the
 * array still is the caller's. */
bool storage_keep(struct frag_trace *t, void *array);

/* A copy of `length` bytes with a terminating 0. */
char *storage_text(struct frag_trace *t, const char *text, size_t length);

#endif
