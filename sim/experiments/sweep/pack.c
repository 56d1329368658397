/* pack.c - appends values to a growing array of bytes, and reads values from
 * bytes. */
#include "sim/experiments/sweep/pack.h"

#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"

void pack_raw(struct pack *p, const void *bytes, size_t size)
{
    if (p->failed || !size)
        return;
    if (!GROW(p->bytes, p->room, p->size + size)) {
        p->failed = true;
        return;
    }
    memcpy(p->bytes + p->size, bytes, size);
    p->size += size;
}

void pack_number(struct pack *p, uint64_t n)
{
    pack_raw(p, &n, sizeof(n));
}

void pack_text(struct pack *p, const char *text)
{
    size_t n = text ? strlen(text) + 1 : 0;

    pack_number(p, n);
    pack_raw(p, text, n);
}

void *pack_done(struct pack *p, size_t *size)
{
    if (p->failed) {
        free(p->bytes);
        return NULL;
    }
    *size = p->size;
    return p->bytes;
}

struct unpack unpack_from(const void *bytes, size_t size)
{
    return (struct unpack){bytes, (const char *)bytes + size, false};
}

static const char *consume(struct unpack *u, uint64_t size)
{
    const char *at = u->at;

    if (u->failed || size > (uint64_t)(u->end - u->at)) {
        u->failed = true;
        return NULL;
    }
    u->at += size;
    return at;
}

void unpack_raw(struct unpack *u, void *out, size_t size)
{
    const char *at = consume(u, size);

    if (at)
        memcpy(out, at, size);
}

uint64_t unpack_number(struct unpack *u)
{
    uint64_t n = 0;

    unpack_raw(u, &n, sizeof(n));
    return n;
}

const char *unpack_text(struct unpack *u)
{
    uint64_t n = unpack_number(u);
    const char *text = consume(u, n);

    if (!text || !n)
        return NULL;
    if (memchr(text, '\0', n) == text + n - 1)
        return text;
    u->failed = true;
    return NULL;
}

void *unpack_items(struct unpack *u, uint64_t count, size_t item,
                   bool *no_memory)
{
    const char *at = NULL;
    void *items;

    if (count <= SIZE_MAX / item)
        at = consume(u, count * item);
    if (!at) {
        u->failed = true;
        return NULL;
    }
    items = malloc(count * item + 1);
    if (!items)
        *no_memory = true;
    else
        memcpy(items, at, count * item);
    return items;
}

bool unpack_done(const struct unpack *u)
{
    return !u->failed && u->at == u->end;
}
