/* The figures, one line each in the order of the manual: a name and what is
 * drawn. The file is sim/cli/figures/<name>.c, the script plots/<name>.gp. */
FIGURE(timeline, "reserved and allocated memory over the events of each run, "
                 "with capacity and OOM points")
FIGURE(compare, "peak reserved of each run against peak requested")
FIGURE(pareto, "memory against its price: peak reserved over the lower bound "
               "against modelled seconds of driver calls, a point a policy, "
               "and the front that no policy beats in both")
FIGURE(breakdown, "what lies in the reserved bytes of each run at its peak: "
                  "requested, rounding, pending, free, unusable")
FIGURE(heatmap, "peak reserved over the lower bound, policy by trace, in "
                "numbers and colours")
FIGURE(frontier, "which policy survives which capacity, where the others meet "
                 "their first OOM, and how many they have")
FIGURE(sweep, "peak reserved over the values of one parameter of a policy")
FIGURE(distributions, "of a trace: sizes and lifetimes of its requests, and of "
                      "the bytes they ask for")
FIGURE(map, "of a trace: addresses over events under a policy, blocks coloured "
            "by lifetime, size or stream")
