/* arena_vmm.c - virtual memory of the arena: reservations, physical memory and
 * maps. It is as strict as the driver: calls must name whole maps and whole
 * granules inside one reservation.
 */
#include <stdlib.h>

#include "sim/arena/arena_parts.h"

struct arena_map {
    struct range range; /* must be the first member */
    uint32_t phys;      /* index in arena.phys */
};

static bool aligned(const struct arena *a, frag_addr addr, frag_size size)
{
    return size > 0 && addr % a->base.granularity == 0 &&
           size % a->base.granularity == 0 && size < (frag_size)1 << 63 &&
           addr < (frag_addr)1 << 63;
}

/* ------------------------------------------------------- reservations --- */

static struct arena_range *hostile_range(struct arena *a, frag_size size)
{
    struct arena_range *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    a->up = frag_round_up(a->up, a->base.granularity);
    p->range.at = a->up;
    p->range.size = size;
    a->up += size;
    return p;
}

/* A reservation at this address. INVALID if the driver uses some of it. */
static enum frag_err fixed_reservation(struct arena *a, frag_addr addr,
                                       frag_size size, struct arena_range **out)
{
    struct arena_range *p;

    FRAG_TRY(driver_withdraw(a, addr, size));
    p = calloc(1, sizeof(*p));
    if (!p)
        return FRAG_NOMEM;
    p->range.at = addr;
    p->range.size = size;
    *out = p;
    return FRAG_OK;
}

/* The first unused row of range_bases for this size; range_count: none. */
static uint64_t next_anchor(const struct arena *a, frag_size size)
{
    uint64_t i = a->range_next;

    while (i < a->opts.range_count &&
           (a->range_used[i] || a->opts.range_sizes[i] != size))
        i++;
    return i;
}

/* Uses the recorded base if there is one; INVALID: there is none, or its range
 * is occupied. */
static enum frag_err anchored_range(struct arena *a, frag_size size,
                                    struct arena_range **out)
{
    const uint64_t i = next_anchor(a, size);

    if (a->opts.rule != FRAG_RULE_ANCHORED || i == a->opts.range_count)
        return FRAG_INVALID;
    a->range_used[i] = true;
    while (a->range_next < a->opts.range_count && a->range_used[a->range_next])
        a->range_next++;
    if (!aligned(a, a->opts.range_bases[i], size) ||
        ranges_overlap(&a->reservations, a->opts.range_bases[i], size) ||
        ranges_overlap(&a->segments, a->opts.range_bases[i], size))
        return FRAG_INVALID;
    return fixed_reservation(a, a->opts.range_bases[i], size, out);
}

static enum frag_err reserve(struct arena *a, frag_size size,
                             struct arena_range **out)
{
    enum frag_err err = anchored_range(a, size, out);

    if (err != FRAG_INVALID)
        return err;
    if (a->opts.rule != FRAG_RULE_HOSTILE)
        return driver_reserve(a, size, out);
    if (size + a->base.granularity > ADDRESS_END - a->up)
        return FRAG_OOM;
    *out = hostile_range(a, size);
    return *out ? FRAG_OK : FRAG_NOMEM;
}

enum frag_err vmm_reserve(struct frag_backend *mem, frag_size size,
                          frag_addr *addr)
{
    struct arena *a = arena_of(mem);
    struct arena_range *p;

    if (!aligned(a, 0, size))
        return FRAG_INVALID;
    arena_tick(a, FRAG_DRIVER_VA_RESERVE, size);
    FRAG_TRY(reserve(a, size, &p));
    ranges_add(&a->reservations, &p->range);
    a->reserved_va += size;
    *addr = p->range.at;
    return FRAG_OK;
}

enum frag_err vmm_free(struct frag_backend *mem, frag_addr addr, frag_size size)
{
    struct arena *a = arena_of(mem);
    struct range *r = ranges_at(&a->reservations, addr);

    if (!r || r->size != size || ranges_overlap(&a->maps, addr, size))
        return FRAG_INVALID;
    arena_tick(a, FRAG_DRIVER_VA_FREE, size);
    ranges_remove(&a->reservations, r);
    a->reserved_va -= size;
    driver_free(a, (struct arena_range *)r);
    return FRAG_OK;
}

/* ---------------------------------------------------- physical memory --- */

/* Makes sure that arena.phys has a free entry. False if the host has no
 * memory. */
static bool phys_room(struct arena *a)
{
    uint32_t room = a->phys_room ? a->phys_room * 2 : 64;
    struct phys *grown;

    if (a->phys_free || a->phys_count < a->phys_room)
        return true;
    if (room < a->phys_room)
        return false;
    grown = realloc(a->phys, room * sizeof(*grown));
    if (!grown)
        return false;
    a->phys = grown;
    a->phys_room = room;
    return true;
}

/* Uses a free entry, which exists, and returns its index. It reuses the entry
 * that was released last, because a policy must not rely on new handles. */
static uint32_t new_phys(struct arena *a, frag_size size)
{
    uint32_t index = a->phys_count;

    if (a->phys_free) {
        index = a->phys_free - 1;
        a->phys_free = a->phys[index].next_free;
    } else {
        a->phys_count++;
    }
    a->phys[index] = (struct phys){.size = size};
    return index;
}

/* Frees the memory if its handle is released and no map uses it. */
static void drop_phys(struct arena *a, uint32_t index)
{
    struct phys *p = &a->phys[index];

    if (!p->released || p->maps)
        return;
    a->used -= p->size;
    *p = (struct phys){.next_free = a->phys_free};
    a->phys_free = index + 1;
}

/* The entry of a handle; NULL if the handle is invalid or released. */
static struct phys *phys_of(struct arena *a, frag_phys phys)
{
    struct phys *p;

    if (phys == 0 || phys > a->phys_count)
        return NULL;
    p = &a->phys[phys - 1];
    return p->size && !p->released ? p : NULL;
}

enum frag_err vmm_create(struct frag_backend *mem, frag_size size,
                         frag_phys *phys)
{
    struct arena *a = arena_of(mem);

    if (!aligned(a, 0, size))
        return FRAG_INVALID;
    arena_tick(a, FRAG_DRIVER_PHYS_CREATE, size);
    if (!phys_room(a))
        return FRAG_NOMEM;
    FRAG_TRY(arena_charge(a, size));
    *phys = new_phys(a, size) + 1;
    return FRAG_OK;
}

enum frag_err vmm_release(struct frag_backend *mem, frag_phys phys,
                          frag_size size)
{
    struct arena *a = arena_of(mem);
    struct phys *p = phys_of(a, phys);

    if (!p || p->size != size)
        return FRAG_INVALID;
    arena_tick(a, FRAG_DRIVER_PHYS_RELEASE, size);
    p->released = true;
    drop_phys(a, (uint32_t)(phys - 1));
    return FRAG_OK;
}

/* --------------------------------------------------------------- maps --- */

static bool inside_one_reservation(const struct arena *a, frag_addr addr,
                                   frag_size size)
{
    const struct range *r = ranges_upto(&a->reservations, addr);

    return r && addr - r->at < r->size && size <= r->size - (addr - r->at);
}

enum frag_err vmm_map(struct frag_backend *mem, frag_addr addr, frag_size size,
                      frag_phys phys)
{
    struct arena *a = arena_of(mem);
    struct phys *p = phys_of(a, phys);
    struct arena_map *m;

    if (!p || p->size != size || !aligned(a, addr, size) ||
        !inside_one_reservation(a, addr, size) ||
        ranges_overlap(&a->maps, addr, size))
        return FRAG_INVALID;
    arena_tick(a, FRAG_DRIVER_MAP, size);
    m = malloc(sizeof(*m));
    if (!m)
        return FRAG_NOMEM;
    *m = (struct arena_map){{.at = addr, .size = size}, (uint32_t)(phys - 1)};
    ranges_add(&a->maps, &m->range);
    p->maps++;
    return FRAG_OK;
}

/* Whether maps tile [addr, addr + size) exactly. */
static bool whole_maps(const struct arena *a, frag_addr addr, frag_size size)
{
    frag_size seen = 0;

    while (seen < size) {
        const struct range *r = ranges_at(&a->maps, addr + seen);

        if (!r || r->size > size - seen)
            return false;
        seen += r->size;
    }
    return true;
}

static void remove_map(struct arena *a, struct range *r)
{
    uint32_t phys = ((struct arena_map *)r)->phys;

    ranges_remove(&a->maps, r);
    a->phys[phys].maps--;
    drop_phys(a, phys);
    free(r);
}

enum frag_err vmm_unmap(struct frag_backend *mem, frag_addr addr,
                        frag_size size)
{
    struct arena *a = arena_of(mem);
    frag_size seen = 0;

    if (!aligned(a, addr, size) || !whole_maps(a, addr, size))
        return FRAG_INVALID;
    while (seen < size) {
        struct range *r = ranges_at(&a->maps, addr + seen);

        arena_tick(a, FRAG_DRIVER_UNMAP, r->size);
        seen += r->size;
        remove_map(a, r);
    }
    return FRAG_OK;
}

/* ------------------------------------------- memory held from the start --- */

static enum frag_err hold_granule(struct arena *a, frag_addr addr)
{
    frag_size size = a->base.granularity;
    frag_phys phys;
    enum frag_err err;

    FRAG_TRY(vmm_create(&a->base, size, &phys));
    err = vmm_map(&a->base, addr, size, phys);
    if (vmm_release(&a->base, phys, size) != FRAG_OK)
        return FRAG_INVALID;
    return err;
}

enum frag_err vmm_hold_maps(struct arena *a, frag_addr addr, frag_size size)
{
    frag_size done = 0;
    enum frag_err err = FRAG_OK;

    if (!aligned(a, addr, size) || !inside_one_reservation(a, addr, size))
        return FRAG_INVALID;
    while (done < size && err == FRAG_OK) {
        err = hold_granule(a, addr + done);
        done += err == FRAG_OK ? a->base.granularity : 0;
    }
    if (err != FRAG_OK && done > 0 &&
        vmm_unmap(&a->base, addr, done) != FRAG_OK)
        return FRAG_INVALID;
    return err;
}

enum frag_err vmm_hold(struct arena *a, frag_addr addr, frag_size size)
{
    struct arena_range *p;

    if (!aligned(a, addr, size))
        return FRAG_INVALID;
    FRAG_TRY(fixed_reservation(a, addr, size, &p));
    ranges_add(&a->reservations, &p->range);
    a->reserved_va += size;
    return FRAG_OK;
}

void vmm_close(struct arena *a)
{
    for (struct range *r = ranges_pop(&a->maps); r; r = ranges_pop(&a->maps))
        free(r);
    for (struct range *r = ranges_pop(&a->reservations); r;
         r = ranges_pop(&a->reservations))
        free(r);
    free(a->phys);
}
