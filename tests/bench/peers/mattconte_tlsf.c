/* mattconte_tlsf.c - drives github.com/mattconte/tlsf, whose boundary tags lie
 * inside the memory that it manages. Offsets and sizes are divided by SCALE, so
 * that its pools, which have less than 4 GiB each, cover PEER_ROOM; their pages
 * exist only where a tag is. */
#include "tests/bench/peers/peer.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <tlsf.h>

enum { POOLS = 2, SCALE = 16 };

struct heap {
    tlsf_t tlsf;
    char *memory;
};

static size_t pool_bytes(void)
{
    return PEER_ROOM / SCALE / POOLS;
}

void *mattconte_tlsf_open(void)
{
    struct heap *h = malloc(sizeof(*h));

    if (!h)
        return NULL;
    h->memory = mmap(NULL, POOLS * pool_bytes(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    h->tlsf = h->memory != MAP_FAILED ? tlsf_create(malloc(tlsf_size())) : NULL;
    for (size_t i = 0; h->tlsf && i < POOLS; i++)
        if (!tlsf_add_pool(h->tlsf, h->memory + i * pool_bytes(), pool_bytes()))
            return NULL;
    return h->tlsf ? h : NULL;
}

void mattconte_tlsf_close(void *heap)
{
    struct heap *h = heap;

    munmap(h->memory, POOLS * pool_bytes());
    free(h->tlsf);
    free(h);
}

bool mattconte_tlsf_alloc(void *heap, uint64_t bytes, uint64_t *offset,
                          void **handle)
{
    struct heap *h = heap;
    char *at = tlsf_malloc(h->tlsf, bytes / SCALE);

    *handle = at;
    *offset = (uint64_t)(at - h->memory) * SCALE;
    return at != NULL;
}

void mattconte_tlsf_free(void *heap, uint64_t offset, void *handle)
{
    struct heap *h = heap;

    (void)offset;
    tlsf_free(h->tlsf, handle);
}
