/* groupings.h - the ways to group blocks, as a table: what blocks of a group
 * have in common, and the text for it. Private to sim/answers/held. */
#ifndef FRAG_SIM_ANSWERS_HELD_GROUPINGS_H
#define FRAG_SIM_ANSWERS_HELD_GROUPINGS_H

#include "sim/answers/held/holders.h"
#include "sim/answers/sites.h"

struct grouped {
    const struct holders *h;
    const struct moment_block *b;
};

struct grouping {
    bool needs_stacks;
    /* Equal numbers: blocks of one group. */
    uint64_t (*number)(const struct grouped *g);
    /* Writes the short text of the group of the block. */
    void (*name)(const struct grouped *g, char text[SITE_TEXT]);
    /* Writes the text that identifies the group; NULL: the name does. */
    void (*key)(const struct grouped *g, FILE *out);
};

extern const struct grouping groupings[HOLDERS_BY_COUNT];

#endif
