/* shadow_backend.h - a backend with contents, for tests. One byte stands for
 * each quantum of physical memory and is reached through every mapping of it.
 * `copy` copies these bytes; it refuses overlapping ranges, which a device
 * would garble. Memory that a copy reads may be unmapped only after a
 * synchronize.
 *
 * Include after cmocka.h.
 */
#ifndef FRAG_TESTS_SUPPORT_SHADOW_BACKEND_H
#define FRAG_TESTS_SUPPORT_SHADOW_BACKEND_H

#include "policies/device/relay.h"
#include "policies/policy.h"

#include <stdlib.h>

enum { SHADOW_PHYS = 1 << 14, SHADOW_MAPS = 1 << 13, SHADOW_COPIES = 1 << 12 };

struct shadow_map {
    frag_addr addr;
    frag_size size;
    frag_phys phys;
};

struct shadow {
    union { /* base is that of the relay */
        struct frag_relay relay;
        struct frag_backend base;
    };
    unsigned char *bytes[SHADOW_PHYS]; /* by handle */
    struct shadow_map maps[SHADOW_MAPS];
    size_t count;
    uint64_t copies, spoils; /* copies so far; the number of the copy that
                              * changes a byte, from 1 */
    frag_addr queued[SHADOW_COPIES]; /* sources since the last synchronize */
    size_t queued_count;
};

/* The byte of an address. */
static inline unsigned char *shadow_at(struct shadow *s, frag_addr addr)
{
    for (size_t i = 0; i < s->count; i++)
        if (addr >= s->maps[i].addr && addr - s->maps[i].addr < s->maps[i].size)
            return &s->bytes[s->maps[i].phys]
                            [(addr - s->maps[i].addr) / FRAG_QUANTUM];
    fail_msg("memory that is not mapped was used");
    return NULL;
}

/* The bytes of a range, in parts that each lie in one map. */
static inline frag_size shadow_stretch(struct shadow *s, frag_addr addr,
                                       frag_size size)
{
    for (size_t i = 0; i < s->count; i++)
        if (addr >= s->maps[i].addr && addr - s->maps[i].addr < s->maps[i].size)
            return s->maps[i].addr + s->maps[i].size - addr < size
                       ? s->maps[i].addr + s->maps[i].size - addr
                       : size;
    return size;
}

/* The byte that a block of that name has in a quantum of it; no two chunks are
 * alike. */
static inline unsigned char shadow_byte(unsigned char value, frag_size quantum)
{
    return (unsigned char)(value + quantum / 61);
}

static inline void shadow_write(struct shadow *s, const struct frag_block *b,
                                unsigned char value)
{
    for (frag_size at = 0; at < b->size;) {
        const frag_size n = shadow_stretch(s, b->addr + at, b->size - at);

        unsigned char *bytes = shadow_at(s, b->addr + at);

        for (frag_size i = 0; i < n / FRAG_QUANTUM; i++)
            bytes[i] = shadow_byte(value, at / FRAG_QUANTUM + i);
        at += n;
    }
}

/* Offset of the first quantum that is not as written; UINT64_MAX: none. */
static inline frag_size
shadow_wrong(struct shadow *s, const struct frag_block *b, unsigned char value)
{
    for (frag_size at = 0; at < b->size;) {
        const frag_size n = shadow_stretch(s, b->addr + at, b->size - at);
        const unsigned char *bytes = shadow_at(s, b->addr + at);

        for (frag_size i = 0; i < n / FRAG_QUANTUM; i++)
            if (bytes[i] != shadow_byte(value, at / FRAG_QUANTUM + i))
                return at + i * FRAG_QUANTUM;
        at += n;
    }
    return UINT64_MAX;
}

static inline bool shadow_has(struct shadow *s, const struct frag_block *b,
                              unsigned char value)
{
    return shadow_wrong(s, b, value) == UINT64_MAX;
}

static inline void shadow_add(struct shadow *s, frag_addr addr, frag_size size,
                              frag_phys phys)
{
    assert_true(s->count < SHADOW_MAPS);
    s->maps[s->count++] = (struct shadow_map){addr, size, phys};
}

/* New bytes for a handle. */
static inline void shadow_create(struct shadow *s, frag_phys phys,
                                 frag_size size)
{
    assert_true(phys < SHADOW_PHYS);
    free(s->bytes[phys]);
    s->bytes[phys] = calloc(size / FRAG_QUANTUM, 1);
    assert_non_null(s->bytes[phys]);
}

static inline void shadow_unmap(struct shadow *s, frag_addr addr,
                                frag_size size)
{
    for (size_t i = 0; i < s->queued_count; i++)
        if (s->queued[i] >= addr && s->queued[i] < addr + size)
            fail_msg("memory was unmapped while a copy may read it");
    for (size_t i = 0; i < s->count;) {
        if (s->maps[i].addr >= addr && s->maps[i].addr < addr + size)
            s->maps[i] = s->maps[--s->count];
        else
            i++;
    }
}

static inline void shadow_copy(struct shadow *s, frag_addr dst, frag_addr src,
                               frag_size size)
{
    assert_true(dst + size <= src || src + size <= dst);
    assert_true(s->queued_count < SHADOW_COPIES);
    s->queued[s->queued_count++] = src;
    for (frag_size at = 0; at < size; at += FRAG_QUANTUM)
        *shadow_at(s, dst + at) = *shadow_at(s, src + at);
    if (++s->copies == s->spoils)
        *shadow_at(s, dst + size / 2) ^= 0x80;
}

static inline void shadow_segment(struct shadow *s, frag_addr addr,
                                  frag_size size)
{
    frag_phys slot = SHADOW_PHYS - 1;

    while (s->bytes[slot])
        slot--;
    shadow_create(s, slot, size);
    shadow_add(s, addr, size, slot);
}

static inline void shadow_segment_free(struct shadow *s, frag_addr addr)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->maps[i].addr == addr) {
            free(s->bytes[s->maps[i].phys]);
            s->bytes[s->maps[i].phys] = NULL;
            s->maps[i] = s->maps[--s->count];
            break;
        }
}

/* The device copies no bytes. */
static inline enum frag_err shadow_serve(struct frag_relay *relay,
                                         struct frag_relayed *c)
{
    struct shadow *s = (struct shadow *)relay;

    if (c->call == FRAG_DRIVER_COPY) {
        shadow_copy(s, c->at, c->with, c->size);
        return FRAG_OK;
    }
    if (c->call == FRAG_DRIVER_SYNCHRONIZE)
        s->queued_count = 0;
    FRAG_TRY(frag_relay_pass(relay->under, c));
    if (c->call == FRAG_DRIVER_PHYS_CREATE)
        shadow_create(s, c->at, c->size);
    else if (c->call == FRAG_DRIVER_MAP)
        shadow_add(s, c->at, c->size, c->with);
    else if (c->call == FRAG_DRIVER_UNMAP)
        shadow_unmap(s, c->at, c->size);
    else if (c->call == FRAG_DRIVER_SEGMENT_ALLOC)
        shadow_segment(s, c->at, c->size);
    else if (c->call == FRAG_DRIVER_SEGMENT_FREE)
        shadow_segment_free(s, c->at);
    return FRAG_OK;
}

static inline void shadow_open(struct shadow *s, struct frag_backend *inner)
{
    memset(s, 0, sizeof(*s));
    frag_relay_open(&s->relay, inner, shadow_serve);
    s->relay.ops.name = "shadow";
}

static inline void shadow_close(struct shadow *s)
{
    for (size_t i = 0; i < SHADOW_PHYS; i++)
        free(s->bytes[i]);
}

#endif
