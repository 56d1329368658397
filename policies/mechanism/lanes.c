/* lanes.c - insertion into the table of lanes.h. */
#include "policies/mechanism/lanes.h"

#include <stdlib.h>

/* The place of a stream and pool that is not in the table. */
static void place(struct lanes *lanes, struct lane lane)
{
    size_t i = lanes_hash(lane.pool, lane.stream);

    while (lanes->table[i & lanes->mask].user)
        i++;
    lanes->table[i & lanes->mask] = lane;
}

static enum frag_err widen(struct lanes *lanes)
{
    const size_t room = lanes->table ? (lanes->mask + 1) * 2 : 8;
    struct lanes wide = {calloc(room, sizeof(*wide.table)), room - 1,
                         lanes->count};

    if (!wide.table)
        return FRAG_NOMEM;
    for (size_t i = 0; lanes->table && i <= lanes->mask; i++)
        if (lanes->table[i].user)
            place(&wide, lanes->table[i]);
    free(lanes->table);
    *lanes = wide;
    return FRAG_OK;
}

enum frag_err lanes_add(struct lanes *lanes, frag_pool pool, frag_stream stream,
                        void *user)
{
    if (!lanes->table || lanes->count > lanes->mask / 2)
        FRAG_TRY(widen(lanes));
    place(lanes, (struct lane){user, pool, stream});
    lanes->count++;
    return FRAG_OK;
}

void lanes_fini(struct lanes *lanes)
{
    free(lanes->table);
    *lanes = (struct lanes){0};
}
