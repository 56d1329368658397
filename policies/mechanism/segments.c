/* segments.c - allocating a segment, with one retry after unused memory was
 * returned, and the list of segments. See segments.h.
 */
#include "policies/mechanism/segments.h"

#include <assert.h>
#include <stdlib.h>

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

enum frag_err segments_add(struct frag_heap *heap, struct segment **list,
                           size_t bytes, frag_size size,
                           bool (*return_free)(struct frag_heap *heap))
{
    struct segment *s = calloc(1, bytes);
    enum frag_err err;

    if (!s)
        return FRAG_NOMEM;
    s->size = size;
    err = segment_take(heap, size, return_free, &s->addr);
    if (err != FRAG_OK) {
        free(s);
        return err;
    }
    s->next = *list;
    *list = s;
    return FRAG_OK;
}

bool segments_return(struct frag_heap *heap, struct segment **list,
                     bool (*is_idle)(const struct segment *s),
                     void (*forget)(struct frag_heap *heap, struct segment *s))
{
    bool any = false;

    while (*list) {
        struct segment *s = *list;

        if (!is_idle(s) || heap->mem->ops->segment_free(heap->mem, s->addr,
                                                        s->size) != FRAG_OK) {
            list = &s->next;
            continue;
        }
        forget(heap, s);
        *list = s->next;
        free(s);
        any = true;
    }
    return any;
}

void segments_fini(struct frag_heap *heap, struct segment **list)
{
    while (*list) {
        struct segment *s = *list;

        heap->mem->ops->segment_free(heap->mem, s->addr, s->size);
        *list = s->next;
        free(s);
    }
}
