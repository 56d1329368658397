/* segments.c - allocating a segment, with one retry after unused memory was
 * returned. See segments.h.
 */
#include "policies/mechanism/segments.h"

#include <assert.h>

enum frag_err segment_take(struct frag_heap *heap, frag_size size,
                           bool (*return_free)(struct frag_heap *heap),
                           frag_addr *addr)
{
    struct frag_backend *mem = heap->mem;
    enum frag_err err;

    assert(size > 0);
    err = mem->ops->segment_alloc(mem, size, addr);
    if (err != FRAG_OOM || !return_free(heap))
        return err;
    return mem->ops->segment_alloc(mem, size, addr);
}
