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

#include "policies/policy.h"

#include <stdlib.h>

enum { SHADOW_PHYS = 1 << 14, SHADOW_MAPS = 1 << 13, SHADOW_COPIES = 1 << 12 };

struct shadow_map {
    frag_addr addr;
    frag_size size;
    frag_phys phys;
};

struct shadow {
    struct frag_backend base;
    struct frag_backend *inner;
    unsigned char *bytes[SHADOW_PHYS]; /* by handle */
    struct shadow_map maps[SHADOW_MAPS];
    size_t count;
    uint64_t copies, spoils; /* copies so far; the number of the copy that
                              * changes a byte, from 1 */
    frag_addr queued[SHADOW_COPIES]; /* sources since the last synchronize */
    size_t queued_count;
};

static inline struct shadow *shadow_of(struct frag_backend *mem)
{
    return (struct shadow *)mem;
}

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

static inline enum frag_err shadow_create(struct frag_backend *mem,
                                          frag_size size, frag_phys *phys)
{
    struct shadow *s = shadow_of(mem);

    FRAG_TRY(s->inner->ops->phys_create(s->inner, size, phys));
    assert_true(*phys < SHADOW_PHYS);
    free(s->bytes[*phys]);
    s->bytes[*phys] = calloc(size / FRAG_QUANTUM, 1);
    assert_non_null(s->bytes[*phys]);
    return FRAG_OK;
}

static inline enum frag_err shadow_release(struct frag_backend *mem,
                                           frag_phys phys, frag_size size)
{
    struct shadow *s = shadow_of(mem);

    return s->inner->ops->phys_release(s->inner, phys, size);
}

static inline enum frag_err shadow_map(struct frag_backend *mem, frag_addr addr,
                                       frag_size size, frag_phys phys)
{
    struct shadow *s = shadow_of(mem);

    FRAG_TRY(s->inner->ops->map(s->inner, addr, size, phys));
    assert_true(s->count < SHADOW_MAPS);
    s->maps[s->count++] = (struct shadow_map){addr, size, phys};
    return FRAG_OK;
}

static inline enum frag_err shadow_unmap(struct frag_backend *mem,
                                         frag_addr addr, frag_size size)
{
    struct shadow *s = shadow_of(mem);

    FRAG_TRY(s->inner->ops->unmap(s->inner, addr, size));
    for (size_t i = 0; i < s->queued_count; i++)
        if (s->queued[i] >= addr && s->queued[i] < addr + size)
            fail_msg("memory was unmapped while a copy may read it");
    for (size_t i = 0; i < s->count;) {
        if (s->maps[i].addr >= addr && s->maps[i].addr < addr + size)
            s->maps[i] = s->maps[--s->count];
        else
            i++;
    }
    return FRAG_OK;
}

static inline enum frag_err shadow_copy(struct frag_backend *mem, frag_addr dst,
                                        frag_addr src, frag_size size,
                                        frag_stream stream)
{
    struct shadow *s = shadow_of(mem);

    (void)stream;
    assert_true(dst + size <= src || src + size <= dst);
    assert_true(s->queued_count < SHADOW_COPIES);
    s->queued[s->queued_count++] = src;
    for (frag_size at = 0; at < size; at += FRAG_QUANTUM)
        *shadow_at(s, dst + at) = *shadow_at(s, src + at);
    if (++s->copies == s->spoils)
        *shadow_at(s, dst + size / 2) ^= 0x80;
    return FRAG_OK;
}

static inline enum frag_err shadow_segment(struct frag_backend *mem,
                                           frag_size size, frag_addr *addr)
{
    struct shadow *s = shadow_of(mem);
    frag_phys slot = SHADOW_PHYS - 1;

    FRAG_TRY(s->inner->ops->segment_alloc(s->inner, size, addr));
    while (s->bytes[slot])
        slot--;
    s->bytes[slot] = calloc(size / FRAG_QUANTUM, 1);
    assert_non_null(s->bytes[slot]);
    assert_true(s->count < SHADOW_MAPS);
    s->maps[s->count++] = (struct shadow_map){*addr, size, slot};
    return FRAG_OK;
}

static inline enum frag_err shadow_segment_free(struct frag_backend *mem,
                                                frag_addr addr, frag_size size)
{
    struct shadow *s = shadow_of(mem);

    FRAG_TRY(s->inner->ops->segment_free(s->inner, addr, size));
    for (size_t i = 0; i < s->count; i++)
        if (s->maps[i].addr == addr) {
            free(s->bytes[s->maps[i].phys]);
            s->bytes[s->maps[i].phys] = NULL;
            s->maps[i] = s->maps[--s->count];
            break;
        }
    return FRAG_OK;
}

static inline enum frag_err shadow_reserve(struct frag_backend *mem,
                                           frag_size size, frag_addr *addr)
{
    struct shadow *s = shadow_of(mem);

    return s->inner->ops->va_reserve(s->inner, size, addr);
}

static inline enum frag_err shadow_va_free(struct frag_backend *mem,
                                           frag_addr addr, frag_size size)
{
    struct shadow *s = shadow_of(mem);

    return s->inner->ops->va_free(s->inner, addr, size);
}

static inline enum frag_err shadow_synchronize(struct frag_backend *mem)
{
    struct shadow *s = shadow_of(mem);

    s->queued_count = 0;
    return s->inner->ops->synchronize(s->inner);
}

static const struct frag_backend_ops shadow_ops = {
    .name = "shadow",
    .segment_alloc = shadow_segment,
    .segment_free = shadow_segment_free,
    .va_reserve = shadow_reserve,
    .va_free = shadow_va_free,
    .phys_create = shadow_create,
    .phys_release = shadow_release,
    .map = shadow_map,
    .unmap = shadow_unmap,
    .copy = shadow_copy,
    .synchronize = shadow_synchronize,
};

static inline void shadow_open(struct shadow *s, struct frag_backend *inner)
{
    memset(s, 0, sizeof(*s));
    s->base = *inner;
    s->base.ops = &shadow_ops;
    s->inner = inner;
}

static inline void shadow_close(struct shadow *s)
{
    for (size_t i = 0; i < SHADOW_PHYS; i++)
        free(s->bytes[i]);
}

#endif
