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

/* Replays the runs, which are of one device and differ in their policies, and
 * writes the page. The file appears complete or not at all. INVALID if a policy
 * reserves no memory or the device has 2^32 events or more; errors of
 * track_make and publish. */
enum frag_err view_write(const struct trace_view *runs, size_t count,
                         const char *path,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* Copies the view of a page that view_write wrote into another page. IO,
 * CORRUPT if the file holds no view. */
enum frag_err view_copy(FILE *out, const char *path,
                        struct frag_error *e) FRAG_MUST_CHECK;

#endif
