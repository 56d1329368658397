/* pages.h - blocks in reserved address space whose memory is mapped by pages.
 *
 * Address space is reserved in ranges called spans, which use no memory.
 * Physical memory is created in pages of one size and mapped where blocks need
 * it. Tiles divide a span in the order of addresses. A tile is used, held (free
 * and mapped), bare (free, whole pages without memory) or lost (see below). A
 * page that is mapped nowhere is spare. The policy chooses the tile for a
 * request, where pages come from, and when they are returned.
 *
 * Two pages of addresses may show the same memory. The guest page is then
 * mapped to the memory of the host page. Each used byte of the guest is also
 * used in the host, by a tile called a loan. Bytes of the guest that are not
 * used are lost: they are free in the host only. A block whose end lies in a
 * guest page has several tiles: its own tile, and parts that are linked to it.
 *
 * Invariants, checked by pages_check:
 *   - the tiles of a span fill it without gap or overlap;
 *   - no two neighbours are both held, both bare or both lost;
 *   - bare tiles are whole pages without memory; every page that a used or held
 *     tile touches has memory;
 *   - the held set contains exactly the held tiles;
 *   - a guest page has only used and lost tiles; a host page has memory of its
 *     own.
 *
 * Files: pages.c changes tiles and pages, pages_place.c selects the place of a
 * block, pages_check.c checks the invariants.
 *
 * Only pages_span, pages_place and pages_apart (which may reserve a span),
 * pages_fill and pages_ready allocate host memory.
 * pages_ready reserves the records that the other functions take.
 */
#ifndef FRAG_POLICIES_MECHANISM_PAGES_H
#define FRAG_POLICIES_MECHANISM_PAGES_H

#include "policies/mechanism/holes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/phys_table.h"
#include "policies/mechanism/stock.h"
#include "policies/policy.h"

enum tile_state { TILE_USED, TILE_HELD, TILE_BARE, TILE_LOST };

struct page_span;

struct page_tile {
    union { /* first: size, addr; links while held, or bare and in the tree */
        struct free_node node;
        struct hole hole;
    };
    struct page_tile *prev, *next; /* neighbours in address order; the ends of
                                      the span count as used tiles */
    struct page_span *span;
    struct page_tile *above, *below; /* neighbours in the list of bare or of
                                        lost tiles */
    struct page_tile *part; /* used: the next part of its block, in a guest
                               page */
    struct page_tile *loan; /* used, in a guest page: the tile of the host that
                               has its bytes */
    void *user;             /* the policy's own */
    uint32_t owner;         /* the policy's own */
    uint8_t state;          /* enum tile_state */
    bool is_loan;
    bool is_end;  /* the ends of a span */
    bool pending; /* used; the client has requested the free, queued work still
                     uses the block */
};

#define FRAG_GUEST UINT64_MAX /* handle of a page whose memory is a host's */

/* A reserved range of addresses. */
struct page_span {
    struct page_span *next;
    struct pages *home; /* the struct that owns the span */
    frag_addr addr;
    frag_size size; /* bytes, a multiple of the page size */
    struct page_tile ends;
    struct phys_table phys; /* of each page; 0: no memory; or FRAG_GUEST */
};

struct pages {
    struct stock stock; /* the pages and the spare ones */
    frag_size span;     /* bytes of address space reserved at once */
    struct page_span *spans;
    struct free_set held;
    struct page_tile *bare, *lost; /* lists; their order has no effect */
    bool has_lowest;               /* pages_apart was called */
    struct hole *lowest; /* with has_lowest: the bare tiles, by address */
    struct nodes nodes;  /* records of tiles */
    uint64_t pending;    /* blocks whose tile is pending */
};

/* A place for a block, and the pages to be mapped for it. */
struct spot {
    struct page_tile *tile; /* the first tile it touches; NULL: no place */
    frag_addr addr;
    uint64_t pages; /* missing pages */
};

/* Sets the page size and the span size. `unit` is rounded up to the
 * granularity, `span` to whole pages. All else starts zeroed. */
void pages_init(struct pages *p, const struct frag_backend *mem, frag_size unit,
                frag_size span);
/* Unmaps and releases everything, live blocks included. */
void pages_fini(struct frag_heap *heap, struct pages *p);

/* Reserves the records for one call of pages_retag. NOMEM. */
enum frag_err pages_ready(struct pages *p) FRAG_MUST_CHECK;

/* Sets the state of the range [addr, addr + size) of a tile, and merges a free
 * range with neighbours of the same state. The rest of the tile on both sides
 * keeps its old state. The caller makes sure that memory is mapped as the new
 * state requires. Returns the tile of the range. Takes up to two records; none
 * if the range is a whole used tile that is freed. */
struct page_tile *pages_retag(struct pages *p, struct page_tile *t,
                              frag_addr addr, frag_size size,
                              enum tile_state state);

/* Frees the block of a used tile. Its tiles are held afterwards; those in guest
 * pages are lost, and their loans are held. */
void pages_free(struct page_tile *t);

/* Marks a used tile as pending: the client has requested the free, queued work
 * still uses the block. */
void pages_pend(struct page_tile *t);

/* Exchanges the held tile `hole` with the used tile above it: afterwards the
 * block starts where the hole started. Moves no contents. */
void pages_slide(struct pages *p, struct page_tile *hole);

/* Reserves a span of at least `least` bytes, all bare. Errors are NOMEM, OOM if
 * more than PAGES_AT_ONCE pages are asked for at once, and those of va_reserve;
 * then nothing is reserved. */
enum frag_err pages_span(struct frag_heap *heap, struct pages *p,
                         frag_size least) FRAG_MUST_CHECK;

/* The smallest held tile of at least `size` bytes, among equal sizes the
 * lowest; NULL if there is none. */
static inline struct page_tile *pages_fit(const struct pages *p, frag_size size)
{
    return (struct page_tile *)free_set_fit(&p->held, size);
}

/* The address for a block of `size` bytes in a held tile that is large enough:
 * the low end of the tile, or the high end if that leaves more whole pages
 * free. */
frag_addr pages_addr(const struct pages *p, const struct page_tile *t,
                     frag_size size);

/* The place that needs the fewest missing pages, for a block that no held tile
 * can serve. Candidates touch one end of a run of free tiles, or one end of a
 * held tile in such a run. Among candidates with equally many pages, the choice
 * keeps held memory in large blocks: a candidate that saves a page extends the
 * smallest held tile that saves it, any other candidate extends the largest
 * held tile. Then the lowest address decides. Reserves a new span if there is
 * no room. Errors as pages_span. */
enum frag_err pages_place(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct spot *out) FRAG_MUST_CHECK;

/* The lowest place among bare tiles with a bare page on either side, so that
 * memory mapped there never merges with older tiles. Reserves a new span if
 * there is no room. Errors as pages_span. */
enum frag_err pages_apart(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct spot *out) FRAG_MUST_CHECK;

/* The entry of `phys` for the page at an address of the span; the page has
 * memory, or pages_fill maps it. */
frag_phys *pages_at(const struct pages *p, struct page_span *s, frag_addr addr);

/* Maps spare pages wherever the spot lacks memory; enough pages must be spare.
 * *out is the held tile that then contains the spot. NOMEM, DEVICE; then the
 * pages that were mapped before the error are held, all else is as it was. */
enum frag_err pages_fill(struct frag_heap *heap, struct pages *p,
                         struct spot spot, frag_size size,
                         struct page_tile **out) FRAG_MUST_CHECK;

/* The number of whole pages in [from, to), offsets in a span. */
static inline uint64_t pages_between(const struct pages *p, frag_size from,
                                     frag_size to)
{
    const uint64_t first = (from + p->stock.page - 1) / p->stock.page;
    const uint64_t end = to / p->stock.page;

    return first < end ? end - first : 0;
}

/* The number of whole pages of a tile. */
static inline uint64_t pages_whole(const struct pages *p,
                                   const struct page_tile *t)
{
    const frag_size low = t->node.addr - t->span->addr;

    return pages_between(p, low, low + t->node.size);
}

/* The number of spare pages and of whole pages in held tiles. */
uint64_t pages_free_count(const struct pages *p);

/* Bytes of held tiles outside their whole pages. */
frag_size pages_partly(const struct pages *p);

/* The held tile to unmap pages of for a block of `size` bytes at the spot,
 * which misses `missing` pages: the smallest that has so many whole pages, else
 * the largest that has any. Tiles that the block will lie in are left out.
 * NULL: there is none. */
struct page_tile *pages_donor(const struct pages *p, const struct spot *spot,
                              frag_size size, uint64_t missing);

/* Unmaps the highest `count` whole pages of a held tile in one call; they are
 * spare afterwards. The tile must have that many. False if the device refuses
 * or the host has no memory; then nothing is unmapped. */
bool pages_strip(struct frag_heap *heap, struct pages *p, struct page_tile *t,
                 uint64_t count);

/* The same for all whole pages of all held tiles; true if any was unmapped. */
bool pages_strip_all(struct frag_heap *heap, struct pages *p);

/* Unmaps the guest pages that have no used byte; they are bare afterwards. A
 * page that the device refuses to unmap stays. */
void pages_reclaim(struct frag_heap *heap, struct pages *p);

/* Checks the invariants. Returns NULL or a text that names the fault. */
const char *pages_check(const struct pages *p);

/* The row of the parameter "page"; its value is `member` of struct `state`. */
#define PAGE_PARAM(state, member)                                       \
    FRAG_RANGE_PARAM(SIZE, "page", state, member, "2MiB", FRAG_QUANTUM, \
                     0x1p40,                                            \
                     "bytes of a page, rounded up to the device's "     \
                     "granularity; larger pages need fewer driver calls")

/* The row of the parameter "span"; its value is `member` of struct `state`. */
#define SPAN_PARAM(state, member)                                             \
    FRAG_RANGE_PARAM(                                                         \
        SIZE, "span", state, member, "64GiB", 0x1p21, 0x1p44,                 \
        "bytes of address space reserved at once; a larger request reserves " \
        "its own; one of more than 524288 pages is out of memory, also on a " \
        "device of unlimited capacity")

#endif
