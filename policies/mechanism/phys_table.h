/* phys_table.h - the memory of each page of a range of addresses. The table has
 * entries up to the highest page that ever had memory, so a range of many pages
 * of which few are mapped takes little host memory.
 *
 * A zeroed struct phys_table is empty: no page has memory.
 */
#ifndef FRAG_POLICIES_MECHANISM_PHYS_TABLE_H
#define FRAG_POLICIES_MECHANISM_PHYS_TABLE_H

#include <stdlib.h>
#include <string.h>

#include "policies/device/backend.h"
#include "traces/grow.h"

struct phys_table {
    frag_phys *page; /* [known]; 0: no memory */
    uint64_t known, room;
};

/* The memory of a page; 0: none. */
static inline frag_phys phys_of(const struct phys_table *t, uint64_t page)
{
    return page < t->known ? t->page[page] : 0;
}

/* Makes sure that the first `count` pages have entries. NOMEM; then nothing
 * changed. */
FRAG_MUST_CHECK static inline enum frag_err phys_reserve(struct phys_table *t,
                                                         uint64_t count)
{
    if (count <= t->known)
        return FRAG_OK;
    if (!GROW(t->page, t->room, count))
        return FRAG_NOMEM;
    memset(t->page + t->known, 0,
           (size_t)(count - t->known) * sizeof(*t->page));
    t->known = count;
    return FRAG_OK;
}

static inline void phys_fini(struct phys_table *t)
{
    free(t->page);
    *t = (struct phys_table){0};
}

#endif
