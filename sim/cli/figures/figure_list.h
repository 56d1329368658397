/* figure_list.h - the list of all figures, in the order of the manual: name and
 * contents. sim/cli/figures/figure_NAME.c writes the data of figure NAME and
 * plots/NAME.gp draws it. The file has no guard: it is included with different
 * definitions of FIGURE. */
FIGURE(timeline, "reserved and allocated memory over the events of each run, "
                 "with capacity and OOM points")
FIGURE(compare, "one number of each run, which --measure names: peak reserved, "
                "against peak requested, or need_bytes, the least bound from "
                "which on nothing fails; more than 24 runs are sorted")
FIGURE(pareto, "memory and its price: peak reserved over the lower bound "
               "against modelled seconds of driver calls, one point for each "
               "policy, and the front of the policies that no other policy "
               "beats in both")
FIGURE(breakdown, "parts of the reserved bytes of each run at its peak: "
                  "requested, rounding, pending, free, unusable")
FIGURE(heatmap, "peak reserved over the lower bound, policy by trace, in "
                "numbers and colours")
FIGURE(frontier, "which policy survives which capacity; for the others, where "
                 "the first OOM is and how many OOMs there are")
