/* allocators.h - the allocators of a program with several, which form trees: a
 * memory resource is a device of the trace, and an allocator with memory of its
 * own is a pool of the device. Private to traces/import/.
 */
#ifndef FRAG_TRACES_IMPORT_ALLOCATORS_H
#define FRAG_TRACES_IMPORT_ALLOCATORS_H

#include "traces/base.h"
#include "traces/live.h"

struct frag_build; /* see traces/build/build.h */

struct allocator {
    uint32_t device;
    uint32_t pool;   /* 0: the default pool, which is the resource itself */
    uint32_t owner;  /* index of the allocator whose memory it uses; its own if
                        it has memory of its own */
    uint32_t string; /* its name, from frag_build_string */
    uint64_t requests; /* of those that it owns the memory of */
    char name[40];     /* a longer one is cut */
};

/* A zeroed struct is an empty table. */
struct allocators {
    struct allocator *items;
    uint64_t count, room;
    uint32_t devices, pools;
    struct live refs;  /* index of an allocator by its reference */
    struct live names; /* and by its string */
};

void allocators_fini(struct allocators *t);

/* These return the index of the allocator with a reference or a name, the
 * latest one if several had it; UINT32_MAX if there is none. */
uint32_t allocators_find(const struct allocators *t, uint64_t ref);
uint32_t allocators_named(const struct allocators *t, uint32_t string);

/* Adds a memory resource, or an allocator over the one with the index `parent`.
 * `string` is the name, which is `name` too. NOMEM. */
enum frag_err allocators_add_resource(struct allocators *t, uint64_t ref,
                                      uint32_t string, const char *name);
enum frag_err allocators_add(struct allocators *t, uint64_t ref,
                             uint32_t string, const char *name, uint32_t parent,
                             bool owns_memory);

/* Adds a note for each device with requests, which names the device and its
 * pools. NOMEM. */
enum frag_err allocators_note(const struct allocators *t,
                              struct frag_build *build);

#endif
