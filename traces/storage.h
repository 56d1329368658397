/* storage.h - the memory that a trace owns: heap arrays and at most one mapped
 * file. frag_trace_close releases all of it. Used inside traces/, and by
 * the handler of SIGBUS. */
#ifndef FRAG_TRACES_STORAGE_H
#define FRAG_TRACES_STORAGE_H

#include "traces/trace.h"

struct storage {
    void **arrays;
    uint64_t count, room; /* of arrays */
    void *map;            /* of storage_map; NULL if no file is mapped */
    size_t map_size;      /* bytes */
};

/* Maps the first `size` bytes of an open file for reading, until storage_unmap.
 * The name is borrowed until then. NULL with errno set. */
void *storage_map(int fd, size_t size, const char *name);
void storage_unmap(void *map, size_t size);

/* The name of the mapped file to which the address belongs; NULL if there is
 * none. A handler of SIGBUS may call it: a page of a file that became shorter
 * cannot be read. */
const char *storage_mapped(const void *address);

/* Creates a trace without devices. The path is copied, the format is borrowed.
 * The caller releases the trace with frag_trace_close. NULL if the host has no
 * memory. */
struct frag_trace *storage_trace(const char *path, const char *format);

/* Allocates `count` zeroed items of `item` bytes each, which the trace owns. At
 * least one item is allocated, so that NULL always means that the host has no
 * memory. */
void *storage_array(struct frag_trace *t, uint64_t count, size_t item);

/* Passes the ownership of a heap array to the trace. False if the host has no
 * memory; then the caller still owns the array. */
bool storage_keep(struct frag_trace *t, void *array);

/* Copies `length` bytes and appends a 0. The trace owns the copy. NULL if the
 * host has no memory. */
char *storage_text(struct frag_trace *t, const char *text, size_t length);

/* Lets each device refer to the settings (frag_recorded) and the strings of the
 * trace. */
void storage_share_settings(struct frag_trace *t);

#endif
