/* pages.c - the tiles of spans and the pages under them: changing the state of
 * a tile, reserving spans, creating, mapping, unmapping and releasing pages. It
 * chooses no place for a block (pages_place.c). See pages.h.
 */
#include "policies/mechanism/pages.h"
#include "traces/grow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- tiles --- */

static frag_addr end_of(const struct page_tile *t)
{
    return t->node.addr + t->node.size;
}

static frag_size round_down(frag_size size, frag_size unit)
{
    return size - size % unit;
}

/* The list for bare or lost tiles. */
static struct page_tile **list_of(struct pages *p, const struct page_tile *t)
{
    return t->state == TILE_BARE ? &p->bare : &p->lost;
}

/* Adds a bare or lost tile to its list, and a bare one to the tree. Such tiles
 * change seldom, so this is no part of its callers. */
static __attribute__((noinline)) void push(struct pages *p, struct page_tile *t)
{
    struct page_tile **list = list_of(p, t);

    if (p->has_lowest && t->state == TILE_BARE)
        holes_insert(&p->lowest, &t->hole);
    t->below = NULL;
    t->above = *list;
    if (*list)
        (*list)->below = t;
    *list = t;
}

static __attribute__((noinline)) void drop(struct pages *p, struct page_tile *t)
{
    if (p->has_lowest && t->state == TILE_BARE)
        holes_remove(&p->lowest, &t->hole);
    if (t->below)
        t->below->above = t->above;
    else
        *list_of(p, t) = t->above;
    if (t->above)
        t->above->below = t->below;
}

static void enlist(struct pages *p, struct page_tile *t)
{
    if (t->state == TILE_HELD)
        free_set_insert(&p->held, &t->node);
    else if (t->state != TILE_USED)
        push(p, t);
}

static void delist(struct pages *p, struct page_tile *t)
{
    if (t->state == TILE_HELD)
        free_set_remove(&p->held, &t->node);
    else if (t->state != TILE_USED)
        drop(p, t);
}

/* Adds a tile with the state of t to the ring, between prev and next. */
static void split_off(struct pages *p, const struct page_tile *t,
                      struct page_tile *prev, struct page_tile *next,
                      frag_addr addr, frag_size size)
{
    struct page_tile *n = nodes_take(&p->nodes);

    *n = (struct page_tile){.node = {.addr = addr, .size = size},
                            .prev = prev,
                            .next = next,
                            .span = t->span,
                            .state = t->state};
    prev->next = n;
    next->prev = n;
    enlist(p, n);
}

/* Merges the neighbour `other` into t if it has the same state; its record is
 * then freed. */
static void absorb(struct pages *p, struct page_tile *t,
                   struct page_tile *other)
{
    if (other->state != t->state)
        return;
    delist(p, other);
    if (other->node.addr < t->node.addr)
        t->node.addr = other->node.addr;
    t->node.size += other->node.size;
    other->prev->next = other->next;
    other->next->prev = other->prev;
    nodes_put(&p->nodes, other);
}

struct page_tile *pages_retag(struct pages *p, struct page_tile *t,
                              frag_addr addr, frag_size size,
                              enum tile_state state)
{
    const frag_addr end = end_of(t);

    assert(!t->is_end && size > 0 && size <= t->node.size);
    assert(addr >= t->node.addr && addr <= end - size);
    delist(p, t);
    if (addr > t->node.addr)
        split_off(p, t, t->prev, t, t->node.addr, addr - t->node.addr);
    if (addr + size < end)
        split_off(p, t, t, t->next, addr + size, end - (addr + size));
    t->node.addr = addr;
    t->node.size = size;
    t->state = (uint8_t)state;
    if (state != TILE_USED) {
        absorb(p, t, t->prev);
        absorb(p, t, t->next);
        enlist(p, t);
    }
    return t;
}

void pages_pend(struct page_tile *t)
{
    assert(t->state == TILE_USED && !t->is_loan);
    if (!t->pending)
        t->span->home->pending++;
    t->pending = true;
}

static void retag_all(struct pages *p, struct page_tile *t,
                      enum tile_state state)
{
    pages_retag(p, t, t->node.addr, t->node.size, state);
}

/* Frees one tile of a block. A tile with a loan has no bytes of its own: it is
 * lost, and the loan in the host page is freed. */
static void free_part(struct pages *p, struct page_tile *t)
{
    struct page_tile *loan = t->loan;

    t->loan = NULL;
    retag_all(p, t, loan ? TILE_LOST : TILE_HELD);
    if (!loan)
        return;
    loan->is_loan = false;
    retag_all(p, loan, TILE_HELD);
}

void pages_free(struct page_tile *t)
{
    struct pages *p = t->span->home;

    assert(t->state == TILE_USED && !t->is_end && !t->is_loan);
    if (t->pending)
        p->pending--;
    t->pending = false;
    while (t) {
        struct page_tile *rest = t->part;

        t->part = NULL;
        free_part(p, t);
        t = rest;
    }
}

void pages_slide(struct pages *p, struct page_tile *hole)
{
    struct page_tile *t = hole->next;

    assert(hole->state == TILE_HELD && t->state == TILE_USED && !t->is_end);
    delist(p, hole);
    t->node.addr = hole->node.addr;
    hole->node.addr += t->node.size;
    t->prev = hole->prev;
    hole->next = t->next;
    t->next = hole;
    hole->prev = t;
    t->prev->next = t;
    hole->next->prev = hole;
    absorb(p, hole, hole->next);
    enlist(p, hole);
}

enum frag_err pages_ready(struct pages *p)
{
    return nodes_reserve(&p->nodes, 2);
}

/* ------------------------------------------------------------- spans --- */

void pages_init(struct pages *p, const struct frag_backend *mem, frag_size unit,
                frag_size span)
{
    p->stock.page = frag_round_up(unit, mem->granularity);
    p->span = frag_round_up(span, p->stock.page);
    p->nodes.size = sizeof(struct page_tile);
}

enum frag_err pages_span(struct frag_heap *heap, struct pages *p,
                         frag_size least)
{
    const frag_size whole = frag_round_up(least, p->stock.page);
    const frag_size size = whole > p->span ? whole : p->span;
    struct page_span *s;
    struct page_tile *t;
    enum frag_err err;

    if (whole > p->span && whole / p->stock.page > PAGES_AT_ONCE)
        return FRAG_OOM;
    FRAG_TRY(nodes_reserve(&p->nodes, 1));
    s = calloc(1, sizeof(*s));
    if (!s)
        return FRAG_NOMEM;
    err = heap->mem->ops->va_reserve(heap->mem, size, &s->addr);
    if (err != FRAG_OK) {
        free(s);
        return err;
    }
    t = nodes_take(&p->nodes);
    *t = (struct page_tile){.node = {.addr = s->addr, .size = size},
                            .prev = &s->ends,
                            .next = &s->ends,
                            .span = s,
                            .state = TILE_BARE};
    s->ends =
        (struct page_tile){.prev = t, .next = t, .span = s, .is_end = true};
    s->size = size;
    s->home = p;
    s->next = p->spans;
    p->spans = s;
    enlist(p, t);
    return FRAG_OK;
}

frag_phys *pages_at(const struct pages *p, struct page_span *s, frag_addr addr)
{
    assert(addr >= s->addr && (addr - s->addr) / p->stock.page < s->phys.known);
    return &s->phys.page[(addr - s->addr) / p->stock.page];
}

static void free_span(struct frag_heap *heap, struct pages *p,
                      struct page_span *s)
{
    const struct frag_backend_ops *ops = heap->mem->ops;
    const uint64_t count = s->phys.known;
    const frag_phys *phys = s->phys.page;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t first = i;

        while (i < count && phys[i])
            i++;
        if (i > first)
            ops->unmap(heap->mem, s->addr + first * p->stock.page,
                       (i - first) * p->stock.page);
        for (; first < i; first++)
            if (phys[first] != FRAG_GUEST)
                ops->phys_release(heap->mem, phys[first], p->stock.page);
    }
    ops->va_free(heap->mem, s->addr, s->size);
    phys_fini(&s->phys);
    free(s);
}

void pages_fini(struct frag_heap *heap, struct pages *p)
{
    while (p->spans) {
        struct page_span *s = p->spans;

        p->spans = s->next;
        free_span(heap, p, s);
    }
    stock_release(heap, &p->stock);
    stock_fini(&p->stock);
    free_set_fini(&p->held);
    nodes_release(&p->nodes);
}

/* ----------------------------------------------------------- filling --- */

/* Maps spare pages, and new ones where they do not suffice, at
 * [addr, addr + size) of a bare tile. */
static enum frag_err map_pages(struct frag_heap *heap, struct pages *p,
                               struct page_tile **tile, frag_addr addr,
                               frag_size size)
{
    struct page_span *s = (*tile)->span;
    enum frag_err err = pages_ready(p);
    frag_size done = 0;

    if (err == FRAG_OK)
        err = phys_reserve(&s->phys, (addr + size - s->addr) / p->stock.page);
    for (; done < size && err == FRAG_OK; done += p->stock.page) {
        const frag_addr at = addr + done;

        err = stock_supply(heap, &p->stock, 1);
        if (err == FRAG_OK)
            err = heap->mem->ops->map(heap->mem, at, p->stock.page,
                                      stock_top(&p->stock).phys);
        if (err != FRAG_OK)
            break;
        *pages_at(p, s, at) = stock_take(&p->stock).phys;
    }
    if (done)
        *tile = pages_retag(p, *tile, addr, done, TILE_HELD);
    return err;
}

enum frag_err pages_fill(struct frag_heap *heap, struct pages *p,
                         struct spot spot, frag_size size,
                         struct page_tile **out)
{
    const frag_addr first =
        spot.tile->span->addr +
        round_down(spot.addr - spot.tile->span->addr, p->stock.page);
    const frag_addr end = spot.addr + size;
    struct page_tile *t = spot.tile;

    assert(t && size > 0);
    while (t->state == TILE_BARE || end_of(t) < end) {
        frag_addr from, to;

        if (t->state == TILE_HELD) {
            t = t->next;
            continue;
        }
        from = t->node.addr > first ? t->node.addr : first;
        to = from + frag_round_up(end - from, p->stock.page);
        if (to > end_of(t))
            to = end_of(t);
        FRAG_TRY(map_pages(heap, p, &t, from, to - from));
    }
    *out = t;
    return FRAG_OK;
}

uint64_t pages_free_count(const struct pages *p)
{
    uint64_t count = p->stock.spare_pages;

    for (const struct free_node *n = free_set_last(&p->held);
         n && n->size >= p->stock.page; n = free_set_before(&p->held, n))
        count += pages_whole(p, (const struct page_tile *)n);
    return count;
}

frag_size pages_partly(const struct pages *p)
{
    frag_size bytes = 0;

    for (const struct free_node *n = free_set_last(&p->held); n;
         n = free_set_before(&p->held, n))
        bytes += n->size -
                 pages_whole(p, (const struct page_tile *)n) * p->stock.page;
    return bytes;
}

/* Whether a block at the spot would overlap the tile. */
static bool is_wanted(const struct page_tile *t, const struct spot *spot,
                      frag_size size)
{
    return t->node.addr < spot->addr + size && spot->addr < end_of(t);
}

struct page_tile *pages_donor(const struct pages *p, const struct spot *spot,
                              frag_size size, uint64_t missing)
{
    struct free_node *n;

    for (n = free_set_fit(&p->held, missing * p->stock.page); n;
         n = free_set_after(&p->held, n))
        if (pages_whole(p, (struct page_tile *)n) >= missing &&
            !is_wanted((struct page_tile *)n, spot, size))
            return (struct page_tile *)n;
    for (n = free_set_last(&p->held); n && n->size >= p->stock.page;
         n = free_set_before(&p->held, n))
        if (pages_whole(p, (struct page_tile *)n) > 0 &&
            !is_wanted((struct page_tile *)n, spot, size))
            return (struct page_tile *)n;
    return NULL;
}

bool pages_strip(struct frag_heap *heap, struct pages *p, struct page_tile *t,
                 uint64_t count)
{
    struct page_span *s = t->span;
    const frag_size size = count * p->stock.page;
    const frag_addr from =
        s->addr + (end_of(t) - s->addr) / p->stock.page * p->stock.page - size;

    assert(t->state == TILE_HELD && count > 0 && count <= pages_whole(p, t));
    if (pages_ready(p) != FRAG_OK ||
        heap->mem->ops->unmap(heap->mem, from, size) != FRAG_OK)
        return false;
    for (frag_addr at = from; at < from + size; at += p->stock.page) {
        stock_add(&p->stock, *pages_at(p, s, at), 1);
        *pages_at(p, s, at) = 0;
    }
    pages_retag(p, t, from, size, TILE_BARE);
    return true;
}

bool pages_strip_all(struct frag_heap *heap, struct pages *p)
{
    bool any = false;

    for (struct page_span *s = p->spans; s; s = s->next)
        for (struct page_tile *t = s->ends.next; t != &s->ends; t = t->next)
            if (t->state == TILE_HELD && pages_whole(p, t) > 0 &&
                pages_strip(heap, p, t, pages_whole(p, t)))
                any = true;
    return any;
}

void pages_reclaim(struct frag_heap *heap, struct pages *p)
{
    for (struct page_tile *t = p->lost, *rest; t; t = rest) {
        const frag_size low = t->node.addr - t->span->addr;
        const frag_addr from =
            t->span->addr + frag_round_up(low, p->stock.page);
        const frag_size size = pages_whole(p, t) * p->stock.page;

        rest = t->above;
        if (!size || pages_ready(p) != FRAG_OK ||
            heap->mem->ops->unmap(heap->mem, from, size) != FRAG_OK)
            continue;
        for (frag_addr at = from; at < from + size; at += p->stock.page)
            *pages_at(p, t->span, at) = 0;
        pages_retag(p, t, from, size, TILE_BARE);
    }
}
