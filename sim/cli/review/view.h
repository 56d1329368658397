/* view.h - the interactive view of a device's memory over time, under one
 * policy or two: one HTML file that needs no network, or the part of a page.
 *
 * The page never draws more than was written: the blocks that cover most bytes
 * and events, and those at the peak, are written one by one. All others are
 * added up in a grid of cells, and by their stacks at some moments; the page
 * says how many they are. So a page has at most about 5 MB, whatever the trace
 * (view_parts.h).
 */
#ifndef FRAG_SIM_CLI_REVIEW_VIEW_H
#define FRAG_SIM_CLI_REVIEW_VIEW_H

#include "sim/cli/figures/figure_track.h"

enum { VIEW_RUNS = 2 }; /* the most policies of a view */

/* What a view shows; borrowed. */
struct view_wish {
    const struct frag_trace *trace;
    const struct frag_device_trace *device; /* of the trace */
    const struct texts *policies;           /* at most VIEW_RUNS; none: torch */
    const struct texts *bounds; /* for each of FRAG_BOUND_KINDS, a list; one
                                   bound in all, or none */
    struct progress *progress;
};

/* Replays the policies and writes the page. The file appears complete or not at
 * all. INVALID if there are several bounds or the device has 2^32 events or
 * more, CORRUPT if a policy reserves no memory; errors of
 * policy_choice_params_of, track_make and page_write. */
enum frag_err view_write(struct view_wish *w, const char *path,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* Writes only the view, which is a part of any page. But for NOMEM, nothing is
 * written on error. */
enum frag_err view_inline(const struct view_wish *w, FILE *out,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
