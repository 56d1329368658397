/* heights.h - the addresses of a run without those that were never reserved, so
 * that segments are drawn without gaps: the height of an address is the number
 * of ever reserved bytes below it. */
#ifndef FRAG_SIM_CLI_FIGURES_HEIGHTS_H
#define FRAG_SIM_CLI_FIGURES_HEIGHTS_H

#include "sim/cli/figures/figure_track.h"

/* A range of addresses that was reserved at some time. */
struct reserved_range {
    frag_addr addr;
    frag_size size;
    frag_size below; /* bytes of the ranges at lower addresses */
};

struct heights {
    struct reserved_range *ranges; /* by address */
    size_t count;
    frag_size bytes; /* sum over the ranges */
};

/* Joins the reserved ranges of a track. False if the host has no memory. The
 * caller frees out->ranges, also then. */
bool heights_make(const struct spans *reserved, struct heights *out);

/* Number of ever reserved bytes below addr. */
frag_size height_of(const struct heights *h, frag_addr addr);

#endif
