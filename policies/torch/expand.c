/* expand.c - expandable segments: an address range per pool and stream,
 * larger than the device, whose pages are mapped where they are needed.
 */
#include <stdlib.h>

#include "policies/torch/state.h"

/* ---- holes: the unmapped blocks of a space, by address ---- */

static void hole_insert(struct torch_space *space, struct torch_block *b)
{
    struct free_node **link = &space->holes;

    while (*link && (*link)->addr < b->node.addr)
        link = &(*link)->right;
    b->node.right = *link;
    *link = &b->node;
}

/* ---- reservations ---- */

static struct torch_reservation *reservation_of(const struct torch_space *space,
                                                frag_addr addr)
{
    struct torch_reservation *r = space->reservations;

    while (addr < r->addr || addr - r->addr >= r->size)
        r = r->next;
    return r;
}

/* Room for an eighth more than the device holds, whole pages. */
static frag_size reservation_size(const struct frag_heap *heap, frag_size page)
{
    const frag_size total = frag_backend_total(heap->mem);

    return frag_round_up(total + total / 8, page);
}

static enum frag_err reserve(struct frag_heap *heap, struct torch_space *space,
                             struct torch_block **out)
{
    struct torch *t = heap->state;
    const frag_size size = reservation_size(heap, space->page);
    struct torch_reservation *r = calloc(1, sizeof(*r));
    struct torch_block *b;
    enum frag_err err = FRAG_NOMEM;

    if (!r)
        return FRAG_NOMEM;
    r->size = size;
    r->pages = calloc(size / space->page, sizeof(*r->pages));
    if (r->pages)
        err = heap->mem->ops->va_reserve(heap->mem, size, &r->addr);
    if (err != FRAG_OK) {
        free(r->pages);
        free(r);
        return err;
    }
    r->next = space->reservations;
    space->reservations = r;

    b = torch_take_block(t);
    b->node.addr = r->addr;
    b->node.size = size;
    b->space = space->index;
    b->mapped = false;
    b->expandable = true;
    hole_insert(space, b);
    *out = b;
    return FRAG_OK;
}

/* ---- pages ---- */

static void give_page(struct frag_heap *heap, struct torch_reservation *r,
                      frag_size page, frag_size at)
{
    frag_phys *phys = &r->pages[at / page];

    if (heap->mem->ops->phys_release(heap->mem, *phys, page) == FRAG_OK)
        *phys = 0;
}

/* Returns an address range of which nothing is mapped. Memory that could not be
 * released when it was unmapped is offered again first. */
static bool return_range(struct frag_heap *heap, struct torch_reservation *r,
                         frag_size page)
{
    bool empty = true;

    for (frag_size at = 0; at < r->size; at += page) {
        if (r->pages[at / page])
            give_page(heap, r, page, at);
        empty = empty && !r->pages[at / page];
    }
    return empty &&
           heap->mem->ops->va_free(heap->mem, r->addr, r->size) == FRAG_OK;
}

static void forget_reservation(struct torch_space *space,
                               struct torch_reservation *r)
{
    struct torch_reservation **link = &space->reservations;

    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    free(r->pages);
    free(r);
}

static bool unmap_page(struct frag_heap *heap, struct torch_reservation *r,
                       frag_size page, frag_size at)
{
    if (heap->mem->ops->unmap(heap->mem, r->addr + at, page) != FRAG_OK)
        return false;
    give_page(heap, r, page, at);
    return true;
}

/* Memory is created for all of the range before any of it is mapped. */
static enum frag_err map_pages(struct frag_heap *heap,
                               struct torch_reservation *r, frag_size page,
                               frag_size from, frag_size to)
{
    const struct frag_backend_ops *ops = heap->mem->ops;
    frag_size created, mapped = from;
    enum frag_err err = FRAG_OK;

    for (created = from; created < to; created += page) {
        if (r->pages[created / page])
            continue; /* a release that failed left it behind */
        err = ops->phys_create(heap->mem, page, &r->pages[created / page]);
        if (err != FRAG_OK)
            break;
    }
    for (; err == FRAG_OK && mapped < to; mapped += page) {
        err = ops->map(heap->mem, r->addr + mapped, page,
                       r->pages[mapped / page]);
        if (err != FRAG_OK)
            break;
    }
    if (err == FRAG_OK)
        return FRAG_OK;
    for (frag_size at = from; at < created; at += page) {
        if (at < mapped)
            unmap_page(heap, r, page, at);
        else
            give_page(heap, r, page, at);
    }
    return err;
}

/* ---- mapping ---- */

static bool is_available(const struct torch_block *b)
{
    return b && !b->used;
}

/* The lowest place where free and unmapped blocks in a row hold `size`. */
static struct torch_block *find_place(const struct torch_space *space,
                                      frag_size size)
{
    for (struct free_node *n = space->holes; n; n = n->right) {
        struct torch_block *start = torch_block_of(n);
        frag_size sum = 0;

        if (is_available(start->prev))
            start = start->prev;
        for (struct torch_block *b = start; is_available(b); b = b->next) {
            sum += b->node.size;
            if (sum >= size)
                return start;
        }
    }
    return NULL;
}

/* Maps the first bytes of a hole, whole pages, and joins them with the free
 * blocks on both sides. The block that was mapped survives. */
static enum frag_err map_block(struct frag_heap *heap,
                               struct torch_space *space, struct torch_block *b,
                               frag_size bytes)
{
    struct torch *t = heap->state;
    struct torch_reservation *r = reservation_of(space, b->node.addr);
    const frag_addr addr = b->node.addr;
    const frag_size from = addr - r->addr;

    bytes = frag_round_up(bytes, space->page);
    FRAG_TRY(map_pages(heap, r, space->page, from, from + bytes));
    torch_hole_remove(space, b);
    if (bytes < b->node.size) {
        struct torch_block *rest = torch_cut_high(t, b, b->node.size - bytes);

        hole_insert(space, rest);
    }
    b->mapped = true;
    torch_merge(t, b, b->prev);
    torch_merge(t, b, b->next);
    torch_give(t, b);
    t->reserved += bytes;
    if (t->observer)
        torch_count_segment(t, space, FRAG_TORCH_SEGMENT_MAP, addr, bytes);
    return FRAG_OK;
}

static frag_size at_most(frag_size size, frag_size most)
{
    return size < most ? size : most;
}

/* Pieces mapped before one fails stay mapped and free. A device that has more
 * memory than it reports can reach the end of a reservation, which PyTorch, for
 * which there is no such device, runs past. */
enum frag_err torch_expand(struct frag_heap *heap, struct torch_space *space,
                           frag_size size, struct torch_block **out)
{
    struct torch_block *b = find_place(space, size);

    if (!b)
        FRAG_TRY(reserve(heap, space, &b));
    if (!b->mapped)
        FRAG_TRY(map_block(heap, space, b, at_most(size, b->node.size)));
    while (b->node.size < size) {
        struct torch_block *next = b->next;

        if (!next)
            return FRAG_OOM;
        FRAG_TRY(map_block(heap, space, next,
                           at_most(size - b->node.size, next->node.size)));
        b = next; /* it took b over */
    }
    free_set_remove(&space->free, &b->node);
    *out = b;
    return FRAG_OK;
}

/* ---- unmapping ---- */

/* The block becomes the hole [from, to) of its reservation; what it had outside
 * stays free, as new blocks. */
static void make_hole(struct torch *t, struct torch_space *space,
                      struct torch_block *b, frag_addr from, frag_addr to)
{
    const frag_size head = from - b->node.addr;
    const frag_size tail = b->node.addr + b->node.size - to;

    free_set_remove(&space->free, &b->node);
    if (head)
        torch_give(t, torch_cut_low(t, b, head));
    if (tail)
        torch_give(t, torch_cut_high(t, b, tail));
    b->mapped = false;
    torch_merge(t, b, b->prev);
    torch_merge(t, b, b->next);
    hole_insert(space, b);
}

void torch_unmap(struct frag_heap *heap, struct torch_space *space,
                 struct torch_block *b)
{
    struct torch *t = heap->state;
    struct torch_reservation *r = reservation_of(space, b->node.addr);
    const frag_size start = b->node.addr - r->addr;
    const frag_size from = frag_round_up(start, space->page);
    const frag_size end = (start + b->node.size) / space->page * space->page;
    frag_size to = from;

    while (to < end && unmap_page(heap, r, space->page, to))
        to += space->page;
    if (to <= from)
        return;
    t->reserved -= to - from;
    if (t->observer)
        torch_count_segment(t, space, FRAG_TORCH_SEGMENT_UNMAP, r->addr + from,
                            to - from);
    make_hole(t, space, b, r->addr + from, r->addr + to);
    if (!torch_is_split(b) && return_range(heap, r, space->page)) {
        torch_hole_remove(space, b);
        forget_reservation(space, r);
        torch_drop_block(t, b);
    }
}

void torch_expand_fini(struct frag_heap *heap, struct torch_space *space)
{
    while (space->reservations) {
        struct torch_reservation *r = space->reservations;

        for (frag_size at = 0; at < r->size; at += space->page)
            if (r->pages[at / space->page])
                unmap_page(heap, r, space->page, at);
        return_range(heap, r, space->page);
        forget_reservation(space, r);
    }
}
