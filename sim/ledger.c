#include "sim/ledger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/ranges.h"

struct held {
    struct range range; /* first */
    uint64_t group;
};

struct live {
    struct range range;
    frag_size asked;
    bool is_live;
};

struct frag_ledger {
    struct ranges held, live;
    bool faulty;
    char fault[256];
    uint32_t owners;
    struct live by_owner[];
};

struct frag_ledger *frag_ledger_open(uint32_t owners)
{
    struct frag_ledger *l =
        calloc(1, sizeof(*l) + owners * sizeof(l->by_owner[0]));

    if (l)
        l->owners = owners;
    return l;
}

void frag_ledger_close(struct frag_ledger *l)
{
    if (!l)
        return;
    for (struct range *r = ranges_pop(&l->held); r; r = ranges_pop(&l->held))
        free(r);
    free(l);
}

enum frag_err frag_ledger_blame(struct frag_ledger *l, const char *format, ...)
{
    va_list args;

    if (!l->faulty) {
        va_start(args, format);
        vsnprintf(l->fault, sizeof(l->fault), format, args);
        va_end(args);
        l->faulty = true;
    }
    return FRAG_CONTRACT;
}

const char *frag_ledger_fault(const struct frag_ledger *l)
{
    return l->faulty ? l->fault : NULL;
}

enum frag_err frag_ledger_hold(struct frag_ledger *l, frag_addr addr,
                               frag_size size, uint64_t group)
{
    struct held *h;

    if (ranges_overlap(&l->held, addr, size))
        return frag_ledger_blame(
            l, "memory at 0x%" PRIx64 " (%" PRIu64 " bytes) is held twice",
            addr, size);
    h = malloc(sizeof(*h));
    if (!h)
        return FRAG_NOMEM;
    *h = (struct held){{.at = addr, .size = size}, group};
    ranges_add(&l->held, &h->range);
    return l->faulty ? FRAG_CONTRACT : FRAG_OK;
}

enum frag_err frag_ledger_drop(struct frag_ledger *l, frag_addr addr,
                               frag_size size)
{
    const struct range *hit = ranges_overlap(&l->live, addr, size);
    frag_size gone = 0;

    if (hit)
        return frag_ledger_blame(
            l,
            "memory at 0x%" PRIx64 " (%" PRIu64
            " bytes) was given back under the live block at 0x%" PRIx64,
            addr, size, hit->at);
    while (gone < size) {
        struct range *r = ranges_at(&l->held, addr + gone);

        if (!r || r->size > size - gone)
            return frag_ledger_blame(
                l, "memory at 0x%" PRIx64 " was given back but is not held",
                addr + gone);
        gone += r->size;
        ranges_remove(&l->held, r);
        free(r);
    }
    return l->faulty ? FRAG_CONTRACT : FRAG_OK;
}

/* Whether [addr, addr + size) lies in one segment or in maps of one group that
 * touch. */
static bool is_held(const struct frag_ledger *l, frag_addr addr, frag_size size)
{
    const struct range *r = ranges_upto(&l->held, addr);
    uint64_t group = r ? ((const struct held *)r)->group : 0;
    frag_size left = size;

    if (!r || addr - r->at >= r->size)
        return false;
    for (left += addr - r->at; left > r->size;) {
        left -= r->size;
        r = group ? ranges_at(&l->held, r->at + r->size) : NULL;
        if (!r || ((const struct held *)r)->group != group)
            return false;
    }
    return true;
}

/* What is wrong with the block as an answer, NULL if nothing. */
static const char *flaw(const struct frag_ledger *l, frag_size asked,
                        const struct frag_block *block)
{
    if (block->addr % FRAG_ALIGNMENT)
        return "is not aligned to 256 bytes";
    if (block->size < asked)
        return "is smaller than the request";
    if (block->size > UINT64_MAX - block->addr ||
        !is_held(l, block->addr, block->size))
        return "is not inside memory that is held";
    if (ranges_overlap(&l->live, block->addr, block->size))
        return "overlaps a live block";
    return NULL;
}

static enum frag_err accept(struct frag_ledger *l, uint32_t owner,
                            const struct frag_block *block)
{
    struct live *b = &l->by_owner[owner];
    const char *what = flaw(l, b->asked, block);

    if (what)
        return frag_ledger_blame(l,
                                 "block %" PRIu32 " at 0x%" PRIx64 " (%" PRIu64
                                 " bytes for %" PRIu64 ") %s",
                                 owner, block->addr, block->size, b->asked,
                                 what);
    b->range.at = block->addr;
    b->range.size = block->size;
    ranges_add(&l->live, &b->range);
    b->is_live = true;
    return l->faulty ? FRAG_CONTRACT : FRAG_OK;
}

enum frag_err frag_ledger_alloc(struct frag_ledger *l, uint32_t owner,
                                frag_size asked, const struct frag_block *block)
{
    if (owner >= l->owners || l->by_owner[owner].is_live)
        return frag_ledger_blame(l, "block %" PRIu32 " is live already", owner);
    l->by_owner[owner].asked = asked;
    return accept(l, owner, block);
}

enum frag_err frag_ledger_free(struct frag_ledger *l, uint32_t owner,
                               const struct frag_block *block)
{
    struct live *b = owner < l->owners ? &l->by_owner[owner] : NULL;

    if (!b || !b->is_live)
        return frag_ledger_blame(l, "block %" PRIu32 " was freed but not live",
                                 owner);
    ranges_remove(&l->live, &b->range);
    b->is_live = false;
    if (b->range.at != block->addr || b->range.size != block->size)
        return frag_ledger_blame(l,
                                 "block %" PRIu32 " at 0x%" PRIx64
                                 " was freed as 0x%" PRIx64 " (%" PRIu64
                                 " bytes)",
                                 owner, b->range.at, block->addr, block->size);
    return l->faulty ? FRAG_CONTRACT : FRAG_OK;
}

enum frag_err frag_ledger_move(struct frag_ledger *l, uint32_t owner,
                               const struct frag_block *block)
{
    struct live *b = owner < l->owners ? &l->by_owner[owner] : NULL;

    if (!b || !b->is_live)
        return frag_ledger_blame(l, "block %" PRIu32 " was moved but not live",
                                 owner);
    ranges_remove(&l->live, &b->range);
    b->is_live = false;
    return accept(l, owner, block);
}
