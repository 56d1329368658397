/* heap_calls.c - passes the calls malloc and free of a process to the builder.
 */
#include "traces/import/heap/heap_calls.h"

#include <inttypes.h>

#include "traces/build/build.h"

enum { HEAP = 0 }; /* the number of the only device */

static enum frag_err put(struct heap_calls *c, enum frag_entry_kind kind,
                         uint64_t addr, uint64_t bytes, uint32_t stack)
{
    const struct frag_entry entry = {
        .kind = kind, .stack = stack, .addr = addr, .size = bytes ? bytes : 1};

    return frag_build_entry(c->build, HEAP, &entry, c->line, c->e);
}

enum frag_err calls_begin(struct heap_calls *c)
{
    return frag_build_device(c->build, HEAP, c->e);
}

/* A program that requests 2^63 bytes and more wants the request to fail: no
 * policy can serve it, and a trace cannot hold it. */
static enum frag_err put_failed(struct heap_calls *c, uint64_t bytes,
                                uint32_t stack)
{
    if (!bytes)
        return FRAG_OK;
    if (bytes >> 63) {
        c->absurd++;
        return FRAG_OK;
    }
    return put(c, FRAG_ENTRY_FAILED, 0, bytes, stack);
}

enum frag_err calls_alloc(struct heap_calls *c, uint64_t addr, uint64_t bytes,
                          uint32_t stack)
{
    if (!addr)
        return put_failed(c, bytes, stack);
    if (!c->strict && frag_build_is_live(c->build, HEAP, addr)) {
        c->lost++;
        FRAG_TRY(put(c, FRAG_ENTRY_FREE_COMPLETED, addr, 0, stack));
    }
    return put(c, FRAG_ENTRY_ALLOC, addr, bytes, stack);
}

enum frag_err calls_free(struct heap_calls *c, uint64_t addr, uint32_t stack)
{
    if (!addr)
        return FRAG_OK;
    if (frag_build_is_live(c->build, HEAP, addr))
        return put(c, FRAG_ENTRY_FREE_COMPLETED, addr, 0, stack);
    if (c->strict)
        return frag_fail(c->e, FRAG_CORRUPT,
                         "%s:%" PRIu64 ": expected a free of a block that is "
                         "live, found address 0x%" PRIx64,
                         c->name, c->line, addr);
    c->unknown++;
    return FRAG_OK;
}

enum frag_err calls_end(const struct heap_calls *c)
{
    const struct frag_build_count notes[] = {
        {c->lost, "blocks have no free in the log, although a later block has "
                  "the same address; they are freed where that block begins"},
        {c->unknown,
         "frees are of blocks that were allocated before the log begins; the "
         "log does not state their sizes, so the trace lacks them and its need "
         "is a lower bound"},
        {c->absurd, "failed requests of 2^63 bytes and more are left out, "
                    "because no allocator can serve them"},
    };

    FRAG_TRY(
        frag_build_counts(c->build, notes, sizeof(notes) / sizeof(*notes)));
    if (c->cut)
        FRAG_TRY(frag_build_note(
            c->build, "the last line of the log is cut off and is left out: "
                      "the program ended or started another program while "
                      "it wrote, so the end of the log is missing"));
    return FRAG_OK;
}
