/* pages.h - blocks in address space whose memory comes and goes by pages.
 *
 * Address space is reserved in spans and costs nothing; physical memory is
 * created in pages of one size and mapped where it is needed. A span is tiled
 * in the order of addresses by tiles that are used, held (free and mapped) or
 * bare (free, whole pages without memory). A page that is mapped nowhere is
 * spare. Which tile a request gets, where pages come from and when they go is
 * the policy's choice.
 *
 * A page of addresses may be the guest of another, the host, and show the
 * host's memory; each used byte of the guest is then used in the host too, by a
 * tile called a loan, and what is not used is lost: free in the host alone. A
 * block whose end lies in a guest page is more than one tile, the block's own
 * and its pieces.
 *
 * Invariants, checked by pages_check:
 *   - the tiles of a span tile it: no gap, no overlap;
 *   - no two neighbours are both held, both bare or both lost;
 *   - bare tiles are whole pages, none of which has memory; every page that a
 *     used or held tile touches has memory;
 *   - the held set is the held tiles;
 *   - a guest page has used and lost tiles only, a host has memory of its own.
 *
 * pages.c has the books, pages_place.c says where a block would go,
 * pages_check.c whether the invariants hold.
 *
 * Nothing here needs malloc but pages_place (which may reserve a span) and
 * pages_create, and pages_ready, which makes sure of records for the rest.
 */
#ifndef FRAG_POLICIES_MECHANISM_PAGES_H
#define FRAG_POLICIES_MECHANISM_PAGES_H

#include "policies/mechanism/free_set.h"
#include "policies/mechanism/nodes.h"
#include "policies/policy.h"

enum tile_state { TILE_USED, TILE_HELD, TILE_BARE, TILE_LOST };

struct page_span;

struct page_tile {
    struct free_node node; /* first: size, addr; links of a held tile */
    struct page_tile *prev,
        *next; /* by address; the span's ends are used tiles */
    struct page_span *span;
    struct page_tile *above,
        *below; /* neighbours in the list of bare or lost ones */
    struct page_tile
        *piece; /* used: the next part of its block, in a guest page */
    struct page_tile *loan; /* used, in a guest page: its bytes in the host */
    void *user;             /* these two are the policy's own */
    uint32_t owner;
    uint8_t state; /* enum tile_state */
    bool is_loan;
    bool is_end;  /* a span's */
    bool pending; /* used, and its free only waits for work */
};

#define FRAG_GUEST UINT64_MAX /* in place of a handle: a host's memory */

struct page_span {
    struct page_span *next;
    struct pages *home;
    frag_addr addr;
    frag_size size;
    struct page_tile ends;
    frag_phys phys[]; /* of each page; 0: bare; FRAG_GUEST */
};

struct pages {
    frag_size unit; /* bytes of a page, a multiple of the granularity */
    frag_size span; /* bytes of address space reserved at once */
    struct page_span *spans;
    struct free_set held;
    struct page_tile *bare, *lost; /* lists in no order that matters */
    struct nodes nodes;            /* of tiles */
    frag_phys *spare;
    uint64_t spare_count, spare_room;
    uint64_t count;   /* pages created and not released */
    uint64_t pending; /* blocks whose free only waits for work */
};

/* What a request would do to memory: where its block would start, and how many
 * pages would have to be mapped for it. */
struct spot {
    struct page_tile *tile; /* the first it touches; NULL: no room */
    frag_addr addr;
    uint64_t pages;
};

/* Sets the two sizes, both rounded up to granules; span at least a page. All
 * else starts zeroed. */
void pages_init(struct pages *p, const struct frag_backend *mem, frag_size unit,
                frag_size span);
void pages_fini(struct frag_heap *heap, struct pages *p);

/* Makes sure of records for one call of pages_retag. NOMEM. */
enum frag_err pages_ready(struct pages *p) FRAG_MUST_CHECK;

/* Gives [addr, addr + size) of a tile a new state and merges it with equal
 * neighbours; what is left of the tile on both sides keeps its state. The
 * caller answers for the memory. Answers the tile, which if it is the whole of
 * a used one that becomes free needs no records. */
struct page_tile *pages_retag(struct pages *p, struct page_tile *t,
                              frag_addr addr, frag_size size,
                              enum tile_state state);

/* The block of a used tile becomes held: in guest pages lost, its loans held.
 */
void pages_free(struct page_tile *t);

/* Makes an end of a block's own tile, or all of it, which then is the tile
 * itself, a piece of the block. Takes a record at most. */
struct page_tile *pages_piece(struct pages *p, struct page_tile *t,
                              frag_addr addr, frag_size size);
/* The client is done with a used tile, queued work is not. */
void pages_pend(struct page_tile *t);

/* The used tile above a held one, `hole`, now lies below it. */
void pages_slide(struct pages *p, struct page_tile *hole);

/* Reserves a span of at least so many bytes, all bare. NOMEM, and what
 * va_reserve answers. */
enum frag_err pages_span(struct frag_heap *heap, struct pages *p,
                         frag_size least) FRAG_MUST_CHECK;

/* The tightest held tile, of equals the lowest; NULL if none is large enough.
 */
static inline struct page_tile *pages_fit(const struct pages *p, frag_size size)
{
    return (struct page_tile *)free_set_fit(&p->held, size);
}

/* Where in a held tile a request of at most its size goes: its low end, or its
 * high end if that leaves more whole pages. */
frag_addr pages_seat(const struct pages *p, const struct page_tile *t,
                     frag_size size);

/* Where a request that no held tile serves needs the fewest pages. Candidates
 * lie against one end of a run of free tiles or of a held tile in it. Of equals
 * the one that leaves held memory in the largest pieces: one that saves a page
 * continues the smallest held tile that does, another the largest. Then the
 * lowest. Reserves a span where there is no room. NOMEM, and what va_reserve
 * answers. */
enum frag_err pages_place(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct spot *out) FRAG_MUST_CHECK;

/* Likewise in addresses that no held tile touches, a bare page apart from those
 * below: what is mapped there is never merged with what was before. The lowest.
 */
enum frag_err pages_apart(struct frag_heap *heap, struct pages *p,
                          frag_size size, struct spot *out) FRAG_MUST_CHECK;

/* The page at an address that has memory. */
frag_phys *pages_at(const struct pages *p, struct page_span *s, frag_addr addr);

/* Maps spare pages, of which there are enough, wherever the spot needs them and
 * answers the held tile that then contains it. On error what was mapped is held
 * and the rest as it was. NOMEM, DEVICE. */
enum frag_err pages_fill(struct frag_heap *heap, struct pages *p,
                         struct spot spot, frag_size size,
                         struct page_tile **out) FRAG_MUST_CHECK;

/* Creates pages until `count` are spare. OOM, DEVICE, NOMEM; those created
 * stay spare. */
enum frag_err pages_create(struct frag_heap *heap, struct pages *p,
                           uint64_t count) FRAG_MUST_CHECK;

/* Whole pages of [from, to), counted from a span's start. */
static inline uint64_t pages_between(const struct pages *p, frag_size from,
                                     frag_size to)
{
    const uint64_t first = (from + p->unit - 1) / p->unit, end = to / p->unit;

    return end > first ? end - first : 0;
}

/* The whole pages of a tile. */
static inline uint64_t pages_whole(const struct pages *p,
                                   const struct page_tile *t)
{
    const frag_size low = t->node.addr - t->span->addr;

    return pages_between(p, low, low + t->node.size);
}

/* Pages that are spare or could be: whole ones of held tiles. */
uint64_t pages_free_count(const struct pages *p);

/* Bytes of held tiles in pages that are used in part. */
frag_size pages_partly(const struct pages *p);

/* Unmaps the highest `count` whole pages of a held tile, which has them, in one
 * call: they become spare. False if the device or the host refuses. */
bool pages_strip(struct frag_heap *heap, struct pages *p, struct page_tile *t,
                 uint64_t count);

/* Likewise all whole pages of all held tiles; true if any. */
bool pages_strip_all(struct frag_heap *heap, struct pages *p);

/* Unmaps the guest pages in which nothing is used any more: they become bare.
 */
void pages_reclaim(struct frag_heap *heap, struct pages *p);

/* Gives spare pages back to the device; true if any. */
bool pages_release(struct frag_heap *heap, struct pages *p);

/* NULL, or what is broken. */
const char *pages_check(const struct pages *p);

/* The parameter row "page"; `state` has the value in `member`. */
#define PAGE_PARAM(state, member)                                           \
    {                                                                       \
        .name = "page", .kind = FRAG_PARAM_SIZE,                            \
        .offset = offsetof(state, member), .init = "2MiB",                  \
        .min = FRAG_QUANTUM, .max = 0x1p40,                                 \
        .help = "bytes of a page, rounded up to the device's granularity; " \
                "larger ones make fewer calls",                             \
    }

/* The parameter row "span"; `state` has the value in `member`. */
#define SPAN_PARAM(state, member)                                            \
    {                                                                        \
        .name = "span", .kind = FRAG_PARAM_SIZE,                             \
        .offset = offsetof(state, member), .init = "64GiB", .min = 0x1p21,   \
        .max = 0x1p44,                                                       \
        .help = "bytes of address space reserved at once; a larger request " \
                "gets its own",                                              \
    }

#endif
