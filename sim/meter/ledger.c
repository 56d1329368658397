/* ledger.c - the ledger: ordered sets of held ranges, live blocks and physical
 * memories, and the checks over them. It calls no policy and no backend. */
#include "sim/meter/ledger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/ranges.h"

/* A range of held memory: a segment or a map. */
struct held {
    struct range range;         /* must be the first member */
    uint64_t group;             /* the reservation of a map; 0: a segment */
    struct memory *memory;      /* the memory of a map; NULL: a segment */
    struct held *newer, *older; /* the list of all maps of that memory */
};

/* Physical memory that is mapped. */
struct memory {
    struct range range; /* must be the first member; range.at is its name */
    struct held *maps;  /* the newest map */
};

/* The block of one owner. */
struct ledger_live {
    struct range range; /* must be the first member */
    frag_size requested;
    uint32_t owner;
    bool is_live;
    bool is_listed; /* in the list of disturbed blocks; it stays there if it is
                       freed, with by = FRAG_UNDISTURBED */
    enum frag_disturbance by;
    struct ledger_live *next; /* in that list */
};

struct frag_ledger {
    struct ranges held, live;
    struct ranges missing;  /* maps that were removed under a live block */
    struct ranges memories; /* of struct memory */
    struct ledger_live *disturbed;
    bool faulty;
    char fault[256];
    uint32_t owners;
    /* The blocks by owner, in parts that stay where they are: they are members
     * of the sets above. */
    struct ledger_live **parts; /* [part_count], each of PART owners */
    size_t part_count;
};

enum { PART = 1024 };

/* owner < l->owners */
static struct ledger_live *live_of(const struct frag_ledger *l, uint32_t owner)
{
    return &l->parts[owner / PART][owner % PART];
}

static struct ledger_live *make_part(uint32_t first)
{
    struct ledger_live *part = calloc(PART, sizeof(*part));

    for (uint32_t i = 0; part && i < PART; i++)
        part[i].owner = first + i;
    return part;
}

enum frag_err frag_ledger_grow(struct frag_ledger *l, uint32_t owners)
{
    const size_t count = ((size_t)owners + PART - 1) / PART;
    struct ledger_live **parts;

    parts = realloc(l->parts, (count + 1) * sizeof(struct ledger_live *));
    if (!parts)
        return FRAG_NOMEM;
    l->parts = parts;
    for (; l->part_count < count; l->part_count++) {
        parts[l->part_count] = make_part((uint32_t)l->part_count * PART);
        if (!parts[l->part_count])
            return FRAG_NOMEM;
    }
    l->owners = owners;
    return FRAG_OK;
}

struct frag_ledger *frag_ledger_open(uint32_t owners)
{
    struct frag_ledger *l = calloc(1, sizeof(*l));

    if (l && frag_ledger_grow(l, owners) != FRAG_OK) {
        frag_ledger_close(l);
        return NULL;
    }
    return l;
}

static void free_all(struct ranges *t)
{
    for (struct range *r = ranges_pop(t); r; r = ranges_pop(t))
        free(r);
}

void frag_ledger_close(struct frag_ledger *l)
{
    if (!l)
        return;
    free_all(&l->held);
    free_all(&l->missing);
    free_all(&l->memories);
    for (size_t i = 0; i < l->part_count; i++)
        free(l->parts[i]);
    free(l->parts);
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

/* --------------------------------------------------------- disturbed --- */

static void disturb(struct frag_ledger *l, struct ledger_live *b,
                    enum frag_disturbance by)
{
    b->by = by;
    if (b->is_listed)
        return;
    b->is_listed = true;
    b->next = l->disturbed;
    l->disturbed = b;
}

/* Marks all live blocks in the range as disturbed. */
static void disturb_all(struct frag_ledger *l, frag_addr addr, frag_size size,
                        enum frag_disturbance by)
{
    const frag_addr end = addr + size;

    while (addr < end) {
        struct range *b = ranges_overlap(&l->live, addr, end - addr);

        if (!b)
            return;
        disturb(l, (struct ledger_live *)b, by);
        addr = b->at + b->size;
    }
}

/* Marks the live blocks in a part of a held range as copied over, and those
 * that use the same memory through another map. */
static void disturb_memory(struct frag_ledger *l, const struct held *h,
                           frag_addr addr, frag_size size)
{
    if (!h->memory)
        disturb_all(l, addr, size, FRAG_COPIED_OVER);
    else
        for (const struct held *g = h->memory->maps; g; g = g->older)
            disturb_all(l, g->range.at + (addr - h->range.at), size,
                        FRAG_COPIED_OVER);
}

void frag_ledger_copied(struct frag_ledger *l, frag_addr dst, frag_size size)
{
    const frag_addr end = dst + size;

    while (dst < end) {
        const struct range *r = ranges_overlap(&l->held, dst, end - dst);
        frag_addr to;

        if (!r)
            return;
        dst = r->at > dst ? r->at : dst;
        to = r->at + r->size < end ? r->at + r->size : end;
        disturb_memory(l, (const struct held *)r, dst, to - dst);
        dst = to;
    }
}

bool frag_ledger_disturbed(struct frag_ledger *l, uint32_t *owner,
                           enum frag_disturbance *by)
{
    while (l->disturbed) {
        struct ledger_live *b = l->disturbed;

        l->disturbed = b->next;
        b->is_listed = false;
        *by = b->by;
        *owner = b->owner;
        if (*by != FRAG_UNDISTURBED)
            return true;
    }
    return false;
}

/* ------------------------------------------------------------ memory --- */

/* The memory of that name; it is created if it has no map yet. NULL if the host
 * has no memory. */
static struct memory *memory_of(struct frag_ledger *l, uint64_t name)
{
    struct memory *m = (struct memory *)ranges_at(&l->memories, name);

    if (m)
        return m;
    m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->range.at = name;
    m->range.size = 1;
    ranges_add(&l->memories, &m->range);
    return m;
}

static void link_map(struct held *h, struct memory *m)
{
    h->memory = m;
    h->older = m->maps;
    if (m->maps)
        m->maps->newer = h;
    m->maps = h;
}

static void unlink_map(struct frag_ledger *l, struct held *h)
{
    struct memory *m = h->memory;

    if (h->older)
        h->older->newer = h->newer;
    if (h->newer)
        h->newer->older = h->older;
    else
        m->maps = h->older;
    if (m->maps)
        return;
    ranges_remove(&l->memories, &m->range);
    free(m);
}

/* A live block that uses the bytes [addr, addr + size) of a map through another
 * map of the same memory; NULL if there is none. */
static const struct range *shown_twice(const struct frag_ledger *l,
                                       const struct held *h, frag_addr addr,
                                       frag_size size)
{
    const struct held *g = h->memory ? h->memory->maps : NULL;

    for (; g; g = g->older) {
        const struct range *hit =
            g == h ? NULL
                   : ranges_overlap(&l->live, g->range.at + addr - h->range.at,
                                    size);

        if (hit)
            return hit;
    }
    return NULL;
}

/* As shown_twice, for [addr, addr + size), which is held and may span several
 * maps. */
static const struct range *shared_with(const struct frag_ledger *l,
                                       frag_addr addr, frag_size size)
{
    const frag_addr end = addr + size;

    while (addr < end) {
        const struct range *r = ranges_upto(&l->held, addr);
        const frag_addr to = r->at + r->size < end ? r->at + r->size : end;
        const struct range *hit =
            shown_twice(l, (const struct held *)r, addr, to - addr);

        if (hit)
            return hit;
        addr = to;
    }
    return NULL;
}

static enum frag_err blame_sharing(struct frag_ledger *l, frag_addr addr,
                                   frag_addr other)
{
    return frag_ledger_blame(l,
                             "the live block at 0x%" PRIx64
                             " shares memory with the one at 0x%" PRIx64,
                             addr, other);
}

/* Checks a map that was added under live blocks: no other live block may use
 * its bytes. */
static enum frag_err cover(struct frag_ledger *l, const struct held *h)
{
    const frag_addr end = h->range.at + h->range.size;
    frag_addr at = h->range.at;

    for (const struct range *b = ranges_overlap(&l->live, at, end - at);
         b && at < end;
         b = at < end ? ranges_overlap(&l->live, at, end - at) : NULL) {
        const frag_addr from = b->at > at ? b->at : at;
        const frag_addr to = b->at + b->size < end ? b->at + b->size : end;
        const struct range *hit = shown_twice(l, h, from, to - from);

        if (hit)
            return blame_sharing(l, b->at, hit->at);
        at = to;
    }
    return FRAG_OK;
}

enum frag_err frag_ledger_hold(struct frag_ledger *l, frag_addr addr,
                               frag_size size, uint64_t group, uint64_t memory)
{
    struct memory *m = NULL;
    struct range *gone;
    struct held *h;

    if (ranges_overlap(&l->held, addr, size))
        return frag_ledger_blame(
            l, "memory at 0x%" PRIx64 " (%" PRIu64 " bytes) is held twice",
            addr, size);
    h = malloc(sizeof(*h));
    if (h && memory)
        m = memory_of(l, memory);
    if (!h || (memory && !m)) {
        free(h);
        return FRAG_NOMEM;
    }
    *h = (struct held){.range = {.at = addr, .size = size}, .group = group};
    ranges_add(&l->held, &h->range);
    if (m)
        link_map(h, m);
    gone = ranges_at(&l->missing, addr);
    if (gone && gone->size == size) {
        ranges_remove(&l->missing, gone);
        free(gone);
        disturb_all(l, addr, size, FRAG_REMAPPED);
        FRAG_TRY(cover(l, h));
    }
    return l->faulty ? FRAG_CONTRACT : FRAG_OK;
}

static enum frag_err blame_gone(struct frag_ledger *l, frag_addr addr,
                                frag_size size, frag_addr block)
{
    return frag_ledger_blame(
        l,
        "memory at 0x%" PRIx64 " (%" PRIu64
        " bytes) was released under the live block at 0x%" PRIx64,
        addr, size, block);
}

/* Removes one range of held memory. */
static enum frag_err drop_range(struct frag_ledger *l, struct held *h)
{
    struct range *r = &h->range;
    const struct range *hit = ranges_overlap(&l->live, r->at, r->size);

    if (hit && !h->memory)
        return blame_gone(l, r->at, r->size, hit->at);
    ranges_remove(&l->held, r);
    if (h->memory)
        unlink_map(l, h);
    if (hit)
        ranges_add(&l->missing, r);
    else
        free(h);
    return FRAG_OK;
}

enum frag_err frag_ledger_drop(struct frag_ledger *l, frag_addr addr,
                               frag_size size)
{
    frag_size gone = 0;

    while (gone < size) {
        struct range *r = ranges_at(&l->held, addr + gone);

        if (!r || r->size > size - gone)
            return frag_ledger_blame(
                l, "memory at 0x%" PRIx64 " was released but is not held",
                addr + gone);
        gone += r->size;
        FRAG_TRY(drop_range(l, (struct held *)r));
    }
    return l->faulty ? FRAG_CONTRACT : FRAG_OK;
}

enum frag_err frag_ledger_settle(struct frag_ledger *l)
{
    for (struct range *r = ranges_from(&l->missing, 0); r;
         r = ranges_from(&l->missing, 0)) {
        const struct range *hit = ranges_overlap(&l->live, r->at, r->size);

        if (hit)
            return blame_gone(l, r->at, r->size, hit->at);
        ranges_remove(&l->missing, r);
        free(r);
    }
    return l->faulty ? FRAG_CONTRACT : FRAG_OK;
}

/* ------------------------------------------------------------ blocks --- */

/* Whether [addr, addr + size) lies in one segment, or in adjacent maps of one
 * group. */
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

/* Describes why the block is no valid answer; NULL if it is valid. */
static const char *flaw(const struct frag_ledger *l, frag_size requested,
                        const struct frag_block *block)
{
    if (block->addr % FRAG_ALIGNMENT)
        return "is not aligned to 256 bytes";
    if (block->size < requested)
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
    struct ledger_live *b = live_of(l, owner);
    const char *what = flaw(l, b->requested, block);
    const struct range *hit;

    if (what)
        return frag_ledger_blame(l,
                                 "block %" PRIu32 " at 0x%" PRIx64 " (%" PRIu64
                                 " bytes for %" PRIu64 ") %s",
                                 owner, block->addr, block->size, b->requested,
                                 what);
    b->range.at = block->addr;
    b->range.size = block->size;
    ranges_add(&l->live, &b->range);
    b->is_live = true;
    hit = shared_with(l, block->addr, block->size);
    if (hit)
        return blame_sharing(l, block->addr, hit->at);
    return l->faulty ? FRAG_CONTRACT : FRAG_OK;
}

enum frag_err frag_ledger_alloc(struct frag_ledger *l, uint32_t owner,
                                frag_size requested,
                                const struct frag_block *block)
{
    if (owner >= l->owners || live_of(l, owner)->is_live)
        return frag_ledger_blame(l, "block %" PRIu32 " is live already", owner);
    live_of(l, owner)->requested = requested;
    return accept(l, owner, block);
}

enum frag_err frag_ledger_free(struct frag_ledger *l, uint32_t owner,
                               const struct frag_block *block)
{
    struct ledger_live *b = owner < l->owners ? live_of(l, owner) : NULL;

    if (!b || !b->is_live)
        return frag_ledger_blame(l, "block %" PRIu32 " was freed but not live",
                                 owner);
    ranges_remove(&l->live, &b->range);
    b->is_live = false;
    b->by = FRAG_UNDISTURBED;
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
    struct ledger_live *b = owner < l->owners ? live_of(l, owner) : NULL;

    if (!b || !b->is_live)
        return frag_ledger_blame(l, "block %" PRIu32 " was moved but not live",
                                 owner);
    ranges_remove(&l->live, &b->range);
    b->is_live = false;
    disturb(l, b, FRAG_MOVED);
    return accept(l, owner, block);
}
