/* expand.c - expandable segments of the torch policy.
 *
 * An expandable segment is a reserved address range of one pool and stream. It
 * is larger than the device, and its pages are mapped only where blocks need
 * them.
 */
#include <stdlib.h>

#include "policies/torch/torch_state.h"

/* ---- holes: the list of the unmapped blocks of a space, by address ---- */

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

static struct torch_reservation *new_reservation(frag_size size, frag_size page)
{
    struct torch_reservation *r = calloc(1, sizeof(*r));

    if (r) {
        r->size = size;
        r->page = page;
    }
    return r;
}

/* Adds a reservation to its space, and returns its only block, a hole. */
static struct torch_block *add_reservation(struct torch *t,
                                           struct torch_space *space,
                                           struct torch_reservation *r)
{
    struct torch_block *b = torch_new_block(t);

    r->next = space->reservations;
    space->reservations = r;
    *b = (struct torch_block){.node = {.addr = r->addr, .size = r->size},
                              .prev = &t->edge,
                              .next = &t->edge,
                              .space = space->index,
                              .use = TORCH_HOLE,
                              .expandable = true};
    hole_insert(space, b);
    return b;
}

/* The driver refuses pages that are no multiple of 2 MiB, which the settings
 * allow; PyTorch ends with the driver's error then. */
static enum frag_err of_driver(enum frag_err err)
{
    return err == FRAG_INVALID ? FRAG_DEVICE : err;
}

/* OOM: no reservation is as large as the request. */
static enum frag_err reserve(struct frag_heap *heap, struct torch_space *space,
                             frag_size least, struct torch_block **out)
{
    struct torch *t = heap->state;
    const frag_size size = torch_reservation_size(
        t->conf.reserve, frag_backend_total(heap->mem), space->page);
    struct torch_reservation *r;
    enum frag_err err;

    if (t->conf.reserve.value > 0 && size < least)
        return FRAG_OOM;
    r = new_reservation(size, space->page);
    if (!r)
        return FRAG_NOMEM;
    err = heap->mem->ops->va_reserve(heap->mem, size, &r->addr);
    if (err != FRAG_OK) {
        free(r);
        return of_driver(err);
    }
    *out = add_reservation(t, space, r);
    return FRAG_OK;
}

/* ---- pages ---- */

/* Releases the memory of a page that is not mapped; if the device refuses, the
 * handle is kept until the next map or release of the page. */
static void release_page(struct frag_heap *heap, struct torch_reservation *r,
                         frag_size at)
{
    frag_phys *phys = &r->pages.page[at / r->page];

    if (*phys == TORCH_HELD ||
        heap->mem->ops->phys_release(heap->mem, *phys, r->page) == FRAG_OK)
        *phys = 0;
    else
        r->refused = true;
}

/* Releases what is left of the pages [from, to), of which none is mapped. False
 * if the device refuses. */
static bool release_rest(struct frag_heap *heap, struct torch_reservation *r,
                         frag_size from, frag_size to)
{
    bool empty = true;

    for (uint64_t i = from / r->page; i < to / r->page && i < r->pages.known;
         i++) {
        if (r->pages.page[i])
            release_page(heap, r, i * r->page);
        empty = empty && !r->pages.page[i];
    }
    return empty;
}

/* Frees the address range of a reservation in which nothing is mapped. First
 * tries again to release memory whose release failed after its unmap. False if
 * the device refuses. */
static bool return_range(struct frag_heap *heap, struct torch_reservation *r)
{
    if (release_rest(heap, r, 0, r->size) &&
        heap->mem->ops->va_free(heap->mem, r->addr, r->size) == FRAG_OK)
        return true;
    r->refused = true;
    return false;
}

static void forget_reservation(struct torch_space *space,
                               struct torch_reservation *r)
{
    struct torch_reservation **link = &space->reservations;

    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    phys_fini(&r->pages);
    free(r);
}

static bool unmap_page(struct frag_heap *heap, struct torch_reservation *r,
                       frag_size at)
{
    if (heap->mem->ops->unmap(heap->mem, r->addr + at, r->page) != FRAG_OK)
        return false;
    release_page(heap, r, at);
    return true;
}

/* Creates memory for the whole range [from, to), then maps it. After a failure
 * nothing of the range is mapped. */
static enum frag_err map_pages(struct frag_heap *heap,
                               struct torch_reservation *r, frag_size from,
                               frag_size to)
{
    const struct frag_backend_ops *ops = heap->mem->ops;
    const frag_size page = r->page;
    frag_size created, mapped = from;
    enum frag_err err = phys_reserve(&r->pages, to / page);
    frag_phys *pages = r->pages.page;

    if (err != FRAG_OK)
        return err;
    for (created = from; created < to; created += page) {
        if (pages[created / page])
            continue; /* kept from a release that failed */
        err = of_driver(
            ops->phys_create(heap->mem, page, &pages[created / page]));
        if (err != FRAG_OK)
            break;
    }
    for (; err == FRAG_OK && mapped < to; mapped += page) {
        err = ops->map(heap->mem, r->addr + mapped, page, pages[mapped / page]);
        if (err != FRAG_OK)
            break;
    }
    if (err == FRAG_OK)
        return FRAG_OK;
    for (frag_size at = from; at < created; at += page) {
        if (at < mapped)
            unmap_page(heap, r, at);
        else
            release_page(heap, r, at);
    }
    return err;
}

/* ---- mapping ---- */

/* find_expandable_block: the first block of the lowest run of adjacent free and
 * unmapped blocks with at least `size` bytes in total. NULL: there is none. */
static struct torch_block *find_place(const struct torch_space *space,
                                      frag_size size)
{
    for (struct free_node *n = space->holes; n; n = n->right) {
        struct torch_block *start = torch_block_of(n);
        frag_size sum = 0;

        if (!torch_is_used(start->prev))
            start = start->prev;
        for (struct torch_block *b = start; !torch_is_used(b); b = b->next) {
            sum += b->node.size;
            if (sum >= size)
                return start;
        }
    }
    return NULL;
}

/* map_block: maps the first `bytes` bytes of a hole, rounded up to whole pages,
 * and merges them with the free blocks on both sides. The record of the mapped
 * block survives the merges. */
static enum frag_err map_block(struct frag_heap *heap,
                               struct torch_space *space, struct torch_block *b,
                               frag_size bytes)
{
    struct torch *t = heap->state;
    struct torch_reservation *r = reservation_of(space, b->node.addr);
    const frag_addr addr = b->node.addr;
    const frag_size from = addr - r->addr;

    bytes = frag_round_up(bytes, r->page);
    if (t->conf.experiments & TORCH_MAPPED_LIMIT &&
        torch_exceeds_limit(t, heap->mem, bytes))
        return FRAG_OOM;
    FRAG_TRY(map_pages(heap, r, from, from + bytes));
    torch_hole_remove(space, b);
    if (bytes < b->node.size) {
        struct torch_block *rest = torch_split_high(t, b, b->node.size - bytes);

        hole_insert(space, rest);
    }
    b->use = TORCH_FREE;
    torch_merge(t, space, b);
    torch_add_free(space, b);
    t->reserved += bytes;
    if (t->observer)
        torch_count_segment(t, space, FRAG_TORCH_SEGMENT_MAP, addr, bytes);
    return FRAG_OK;
}

static frag_size at_most(frag_size size, frag_size most)
{
    return size < most ? size : most;
}

/* try_allocate_expandable_block: what was mapped before a failure stays mapped
 * and free. A device that has more memory than it reports can fill a whole
 * reservation; then b->next is the edge, and the request is out of memory. No
 * device of PyTorch is like that, so PyTorch has no such test. */
enum frag_err torch_expand(struct frag_heap *heap, struct torch_space *space,
                           frag_size size, struct torch_block **out)
{
    struct torch_block *b = find_place(space, size);

    if (!b)
        FRAG_TRY(reserve(heap, space, size, &b));
    if (b->use == TORCH_HOLE)
        FRAG_TRY(map_block(heap, space, b, at_most(size, b->node.size)));
    while (b->node.size < size) {
        struct torch_block *next = b->next;

        if (torch_is_edge(next))
            return FRAG_OOM;
        FRAG_TRY(map_block(heap, space, next,
                           at_most(size - b->node.size, next->node.size)));
        b = next; /* map_block merged b into next */
    }
    free_set_remove(&space->free, &b->node);
    *out = b;
    return FRAG_OK;
}

/* ---- unmapping ---- */

/* Turns the block into the hole [from, to) of its reservation. The bytes of the
 * block before and after the hole stay free, as new blocks. */
static void make_hole(struct torch *t, struct torch_space *space,
                      struct torch_block *b, frag_addr from, frag_addr to)
{
    const frag_size head = from - b->node.addr;
    const frag_size tail = b->node.addr + b->node.size - to;

    free_set_remove(&space->free, &b->node);
    if (head)
        torch_add_free(space, torch_split_low(t, b, head));
    if (tail)
        torch_add_free(space, torch_split_high(t, b, tail));
    b->use = TORCH_HOLE;
    torch_merge(t, space, b);
    hole_insert(space, b);
}

/* Returns a reservation in which nothing is mapped; b is its only block. */
static void drop_reservation(struct frag_heap *heap, struct torch_space *space,
                             struct torch_reservation *r, struct torch_block *b)
{
    if (!return_range(heap, r))
        return;
    torch_hole_remove(space, b);
    forget_reservation(space, r);
    torch_drop_block(heap->state, b);
}

/* Repeats the releases in the holes of one reservation. */
static void repeat_in(struct frag_heap *heap, struct torch_space *space,
                      struct torch_reservation *r)
{
    struct free_node *n = space->holes;

    r->refused = false;
    while (n) {
        struct torch_block *b = torch_block_of(n);
        const frag_size from = b->node.addr - r->addr;

        n = n->right;
        if (b->node.addr < r->addr || from >= r->size)
            continue;
        if (!torch_is_split(b)) {
            drop_reservation(heap, space, r, b);
            return;
        }
        (void)release_rest(heap, r, from, from + b->node.size);
    }
}

void torch_repeat_releases(struct frag_heap *heap, struct torch_space *space)
{
    struct torch_reservation *r = space->reservations;

    while (r) {
        struct torch_reservation *next = r->next;

        if (r->refused)
            repeat_in(heap, space, r);
        r = next;
    }
}

void torch_unmap(struct frag_heap *heap, struct torch_space *space,
                 struct torch_block *b)
{
    struct torch *t = heap->state;
    struct torch_reservation *r = reservation_of(space, b->node.addr);
    const frag_size start = b->node.addr - r->addr;
    const frag_size from = frag_round_up(start, r->page);
    const frag_size end = (start + b->node.size) / r->page * r->page;
    frag_size to = from;

    while (to < end && unmap_page(heap, r, to))
        to += r->page;
    if (to <= from)
        return;
    t->reserved -= to - from;
    if (t->observer)
        torch_count_segment(t, space, FRAG_TORCH_SEGMENT_UNMAP, r->addr + from,
                            to - from);
    make_hole(t, space, b, r->addr + from, r->addr + to);
    if (!torch_is_split(b))
        drop_reservation(heap, space, r, b);
}

void torch_expand_fini(struct frag_heap *heap, struct torch_space *space)
{
    while (space->reservations) {
        struct torch_reservation *r = space->reservations;

        for (uint64_t i = 0; i < r->pages.known; i++)
            if (r->pages.page[i])
                unmap_page(heap, r, i * r->page);
        return_range(heap, r);
        forget_reservation(space, r);
    }
}

/* ---- adoption ---- */

static bool fits_pages(const struct torch_space *space,
                       const struct frag_held_segment *held)
{
    const frag_size from = held->addr - held->reservation;

    return held->addr >= held->reservation && held->reservation_size &&
           held->reservation_size % space->page == 0 &&
           from % space->page == 0 && held->size % space->page == 0 &&
           from < held->reservation_size &&
           held->size <= held->reservation_size - from;
}

static enum frag_err adopt_reservation(struct torch *t,
                                       struct torch_space *space,
                                       const struct frag_held_segment *held,
                                       struct torch_reservation **out)
{
    struct torch_reservation *r = space->reservations;

    while (r && r->addr != held->reservation)
        r = r->next;
    if (!r) {
        r = new_reservation(held->reservation_size, space->page);
        if (!r)
            return FRAG_NOMEM;
        r->addr = held->reservation;
        add_reservation(t, space, r)->requested = UINT64_MAX;
    }
    *out = r;
    return FRAG_OK;
}

static struct torch_block *hole_at(const struct torch_space *space,
                                   frag_addr addr)
{
    struct free_node *n = space->holes;

    while (n && addr - n->addr >= n->size)
        n = n->right;
    return n ? torch_block_of(n) : NULL;
}

/* Earlier mappings of the hole are not known. */
static void adopt_hole(struct torch_space *space, struct torch_block *b)
{
    b->requested = UINT64_MAX;
    hole_insert(space, b);
}

enum frag_err torch_expand_adopt(struct torch *t, struct torch_space *space,
                                 const struct frag_held_segment *held,
                                 struct torch_block **out)
{
    struct torch_reservation *r;
    struct torch_block *b;
    frag_size head, tail;

    if (!fits_pages(space, held))
        return FRAG_UNSUPPORTED;
    t->unmaps = true;
    FRAG_TRY(adopt_reservation(t, space, held, &r));
    FRAG_TRY(phys_reserve(&r->pages,
                          (held->addr - r->addr + held->size) / space->page));
    b = hole_at(space, held->addr);
    head = b ? held->addr - b->node.addr : 0;
    if (!b || b->node.size - head < held->size)
        return FRAG_UNSUPPORTED;
    tail = b->node.size - head - held->size;
    torch_hole_remove(space, b);
    if (head)
        adopt_hole(space, torch_split_low(t, b, head));
    if (tail)
        adopt_hole(space, torch_split_high(t, b, tail));
    b->use = TORCH_FREE;
    for (frag_size at = 0; at < held->size; at += space->page)
        r->pages.page[(held->addr - r->addr + at) / space->page] = TORCH_HELD;
    *out = b;
    return FRAG_OK;
}
