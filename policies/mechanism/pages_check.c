/* pages_check.c - checks the invariants of pages.h. Only tests call it.
 */
#include "policies/mechanism/pages.h"

/* The tiles and pages that a walk over all spans has met. */
struct seen {
    const struct pages *p;
    struct met held, bare, lost;
    struct met loans; /* tiles marked as loans */
    struct met lent;  /* tiles that another tile names as its loan */
    uint64_t pages;   /* pages with memory of their own */
    uint64_t pending;
};

static bool is_guest(frag_phys phys)
{
    return phys == FRAG_GUEST;
}

/* ---- the memory under one tile ---- */

/* Checks a page that the tile touches. */
static const char *check_page(const struct page_tile *t, frag_phys phys)
{
    CHECK((t->state == TILE_BARE) == (phys == 0),
          t->state == TILE_BARE ? "a bare page has memory"
                                : "a page without memory is used or held");
    CHECK((t->state == TILE_LOST || t->loan) == is_guest(phys),
          is_guest(phys) ? "a guest page has more than used and lost tiles"
                         : "a lost or lent tile is not in a guest page");
    return NULL;
}

static const char *check_memory(struct seen *seen, const struct page_tile *t)
{
    const struct page_span *s = t->span;
    const frag_size unit = seen->p->stock.page, low = t->node.addr - s->addr;
    const frag_size end = low + t->node.size;

    CHECK(t->state != TILE_BARE || (low % unit == 0 && end % unit == 0),
          "a bare tile is not whole pages");
    for (uint64_t i = low / unit; i * unit < end; i++) {
        const frag_phys phys = phys_of(&s->phys, i);

        CHECK_ALL(check_page(t, phys));
        if (i * unit >= low) /* else the tile below has counted the page */
            seen->pages += phys && !is_guest(phys);
    }
    return NULL;
}

/* ---- one tile ---- */

static const char *check_loan(const struct seen *seen,
                              const struct page_tile *t)
{
    const frag_size unit = seen->p->stock.page;
    const struct page_tile *loan = t->loan;

    CHECK(loan->is_loan && loan->state == TILE_USED,
          "the loan of a tile is not used as one");
    CHECK(loan->node.size == t->node.size,
          "a loan is not as large as its tile");
    CHECK((loan->node.addr - loan->span->addr) % unit ==
              (t->node.addr - t->span->addr) % unit,
          "a loan does not lie where its tile does in the page");
    return NULL;
}

/* Checks the properties that only a used tile may have. */
static const char *check_use(struct seen *seen, const struct page_tile *t)
{
    CHECK(t->state == TILE_USED ||
              (!t->loan && !t->part && !t->is_loan && !t->pending),
          "a free tile has a piece or a loan, is one, or is pending");
    CHECK(!t->part || t->part->state == TILE_USED,
          "a piece of a block is free");
    seen->pending += t->pending;
    if (t->is_loan)
        met_add(&seen->loans, t, NULL);
    if (!t->loan)
        return NULL;
    met_add(&seen->lent, t->loan, NULL);
    return check_loan(seen, t);
}

static const char *check_tile(struct seen *seen, const struct page_tile *t)
{
    CHECK(t->state == TILE_USED || t->prev->is_end ||
              t->prev->state != t->state,
          "two neighbours are both held, both bare or both lost");
    CHECK_ALL(check_use(seen, t));
    CHECK_ALL(check_memory(seen, t));
    if (t->state == TILE_HELD)
        met_add(&seen->held, t, NULL);
    if (t->state == TILE_BARE)
        met_add(&seen->bare, t, NULL);
    if (t->state == TILE_LOST)
        met_add(&seen->lost, t, NULL);
    return NULL;
}

/* ---- all ---- */

static const char *check_span(struct seen *seen, const struct page_span *s)
{
    const struct page_tile *below = &s->ends;
    frag_addr addr = s->addr;

    CHECK(s->home == seen->p, "a span does not know its home");
    CHECK(s->ends.is_end && s->ends.state == TILE_USED,
          "the ends of a span are free");
    for (const struct page_tile *t = below->next; t != &s->ends; t = t->next) {
        CHECK(t->prev == below, "a tile does not know the one below it");
        CHECK(t->span == s && !t->is_end, "a tile does not know its span");
        CHECK(t->node.addr == addr,
              "a tile does not begin where the one below it ends");
        CHECK(t->node.size > 0 && t->node.size <= s->size - (addr - s->addr),
              "a tile is empty or reaches beyond its span");
        CHECK_ALL(check_tile(seen, t));
        addr += t->node.size;
        below = t;
    }
    CHECK(s->ends.prev == below, "a span does not know its last tile");
    CHECK(addr - s->addr == s->size, "the tiles of a span do not fill it");
    return NULL;
}

static const char *check_list(const struct page_tile *first, struct met *met)
{
    const struct page_tile *below = NULL;

    for (const struct page_tile *t = first; t; below = t, t = t->above) {
        CHECK(met_add(met, t, NULL), "a list has more tiles than it should");
        CHECK(t->below == below,
              "a tile does not know its neighbour in a list");
    }
    return NULL;
}

static const char *check_sets(const struct seen *seen)
{
    const struct pages *p = seen->p;
    struct met held = {.most = seen->held.count};
    struct met bare = {.most = seen->bare.count};
    struct met lost = {.most = seen->lost.count};
    struct met low = {.most = seen->bare.count};

    CHECK_ALL(free_set_check(&p->held, NULL, &held));
    CHECK_ALL(check_list(p->bare, &bare));
    CHECK_ALL(check_list(p->lost, &lost));
    CHECK(met_are_equal(&held, &seen->held),
          "the held set is not the held tiles");
    CHECK(met_are_equal(&bare, &seen->bare),
          "the bare list is not the bare tiles");
    CHECK_ALL(holes_check(p->lowest, NULL, &low));
    CHECK(!p->has_lowest || met_are_equal(&low, &seen->bare),
          "the tree of bare tiles is not the bare tiles");
    CHECK(met_are_equal(&lost, &seen->lost),
          "the lost list is not the lost tiles");
    return NULL;
}

const char *pages_check(const struct pages *p)
{
    struct seen seen = {.p = p};

    for (const struct page_span *s = p->spans; s; s = s->next)
        CHECK_ALL(check_span(&seen, s));
    CHECK_ALL(check_sets(&seen));
    CHECK(met_are_equal(&seen.loans, &seen.lent),
          "the loans are not the tiles that are lent");
    CHECK_ALL(stock_check(&p->stock, seen.pages));
    CHECK(seen.pending == p->pending, "`pending` is not the pending blocks");
    return nodes_check(&p->nodes);
}
