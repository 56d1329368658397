/* allocators.c - the table of the allocators of a program, by reference and by
 * name. */
#include "traces/import/allocators.h"

#include <inttypes.h>
#include <stdio.h>

#include "traces/build/build.h"
#include "traces/grow.h"
#include "traces/text.h"

void allocators_fini(struct allocators *t)
{
    free(t->items);
    live_fini(&t->refs);
    live_fini(&t->names);
}

static uint32_t find(const struct live *table, uint64_t key)
{
    const struct live_row *row = live_find(table, key);

    return row ? row->slot : UINT32_MAX;
}

uint32_t allocators_find(const struct allocators *t, uint64_t ref)
{
    return find(&t->refs, ref);
}

uint32_t allocators_named(const struct allocators *t, uint32_t string)
{
    return find(&t->names, string);
}

/* Sets the value of a key, which may be in the table. */
static bool set_row(struct live *t, uint64_t key, uint32_t slot)
{
    struct live_row *row = live_find(t, key);

    if (!row)
        return live_put(t, key, slot);
    row->slot = slot;
    return true;
}

static enum frag_err add(struct allocators *t, uint64_t ref, const char *name,
                         struct allocator a)
{
    const uint32_t index = (uint32_t)t->count;

    if (index == UINT32_MAX - 1 || !GROW(t->items, t->room, t->count + 1) ||
        !set_row(&t->refs, ref, index) || !set_row(&t->names, a.string, index))
        return FRAG_NOMEM;
    snprintf(a.name, sizeof(a.name), "%s", name);
    t->items[t->count++] = a;
    return FRAG_OK;
}

enum frag_err allocators_add_resource(struct allocators *t, uint64_t ref,
                                      uint32_t string, const char *name)
{
    return add(t, ref, name,
               (struct allocator){.device = t->devices++,
                                  .owner = (uint32_t)t->count,
                                  .string = string});
}

enum frag_err allocators_add(struct allocators *t, uint64_t ref,
                             uint32_t string, const char *name, uint32_t parent,
                             bool owns_memory)
{
    struct allocator a = t->items[parent];

    a.string = string;
    a.requests = 0;
    if (owns_memory) {
        a.pool = ++t->pools;
        a.owner = (uint32_t)t->count;
    }
    return add(t, ref, name, a);
}

/* The text of a device: its name, and the pools that had requests. */
struct text {
    char words[1024];
    uint64_t pools;
    bool has_requests;
};

static void add_owner(struct text *text, const struct allocator *a)
{
    enum { MOST = 8 };

    if (!a->requests)
        return;
    text->has_requests = true;
    if (!a->pool || ++text->pools > MOST)
        return;
    text_add(text->words, sizeof(text->words), ", ", "%s%" PRIu32 " is %s",
             text->pools > 1 ? "" : "; of its pools, ", a->pool, a->name);
    if (text->pools == MOST)
        text_add(text->words, sizeof(text->words), ", ", "and so on");
}

enum frag_err allocators_note(const struct allocators *t,
                              struct frag_build *build)
{
    for (uint64_t i = 0; i < t->count; i++) {
        const struct allocator *resource = &t->items[i];
        struct text text = {.pools = 0};

        if (resource->owner != i || resource->pool)
            continue;
        for (uint64_t k = i; k < t->count; k++)
            if (t->items[k].owner == k &&
                t->items[k].device == resource->device)
                add_owner(&text, &t->items[k]);
        if (text.has_requests)
            FRAG_TRY(frag_build_note(
                build, "device %" PRIu32 " is the memory resource %s%s",
                resource->device, resource->name, text.words));
    }
    return FRAG_OK;
}
