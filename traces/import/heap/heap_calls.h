/* heap_calls.h - the meaning of the calls malloc and free in the log of a
 * process, for the importers of such logs. Private to traces/import/heap/.
 *
 * All threads of a process share one heap, so the trace has one device and one
 * stream. A null pointer is no block: the request failed, or there was nothing
 * to free. A block of 0 bytes counts as 1 byte. A realloc is a free and an
 * alloc; each importer passes them in the order that its log shows.
 */
#ifndef FRAG_TRACES_IMPORT_HEAP_HEAP_CALLS_H
#define FRAG_TRACES_IMPORT_HEAP_HEAP_CALLS_H

#include "traces/importer.h"

extern const struct frag_importer frag_importer_android;
extern const struct frag_importer frag_importer_mtrace;
extern const struct frag_importer frag_importer_heaptrack;

/* The note of these formats: what a replay of such a log cannot answer. */
#define CALLS_NOTE                                                           \
    "these are calls of malloc: policies with a quantum of 512 bytes, such " \
    "as torch, say little about small blocks of a heap, because they round " \
    "each block up to the quantum"

struct heap_calls {
    const char *name; /* of the log, for messages */
    struct frag_build *build;
    struct frag_error *e;
    uint64_t line; /* of the current call */
    bool strict;   /* the log has every call of the process, so an alloc at a
                      live address and a free of an unknown block are errors */

    /* Counts for the notes. */
    uint64_t lost;    /* frees that the log lacks, because the address was
                         allocated again */
    uint64_t unknown; /* frees of blocks whose alloc the log lacks */
    uint64_t absurd;  /* failed requests of 2^63 bytes and more */
    bool cut;         /* the last line of the log has no end */
};

/* Adds the device of the heap. Called once, before the other functions. CORRUPT
 * and NOMEM as frag_build_device. */
enum frag_err calls_begin(struct heap_calls *c);

/* Adds a request. addr 0: it failed. `stack` is from frag_build_stack, 0 if
 * not known. CORRUPT for an address that is live if c->strict; NOMEM. */
enum frag_err calls_alloc(struct heap_calls *c, uint64_t addr, uint64_t bytes,
                          uint32_t stack);

/* Adds a free. addr 0: nothing happens. A free of a block without an alloc is
 * counted and left out, because its size is unknown; it is CORRUPT if
 * c->strict. NOMEM. */
enum frag_err calls_free(struct heap_calls *c, uint64_t addr, uint32_t stack);

/* Adds notes about everything that was counted. NOMEM. */
enum frag_err calls_end(const struct heap_calls *c);

#endif
