/* removed.c - the names that an earlier version had, and what takes the place
 * of each. The messages about unknown names read this list (traces/nearest.h),
 * and CHANGELOG.md tells it. */
#include <string.h>

#include "traces/nearest.h"

static const struct {
    const char *what, *name, *instead;
} removed[] = {
    {"command", "batch",
     "use `fragsim dry --try 8,16,32 -- python train.py --batch {}'"},
    {"fit", "bound",
     "use `--capacity inf' for capacity, `--process-limit inf' for limit"},
    {"edit", "pad", "use `scale', which multiplies sizes"},
    {"edit", "round",
     "policies round by themselves, such as -p "
     "torch:roundup_power2_divisions:8"},
    {"edit", "stream",
     "change the streams in the CSV that `fragsim export' writes"},
    {"command", "ranks",
     "use `fragsim steps FILE...' or `fragsim top FILE...'"},
    {"policies", "torch-version",
     "write torch_version:2.N, before the settings"},
    {"command", "calibrate", "use `fragsim compare --calibrate'"},
    {"command", "check",
     "use `fragsim fit -c SIZE', `leaks --fail' or `diff --fail-over', which "
     "end with 1, or the numbers of `replay --json'"},
    {"figure", "distributions",
     "use the CSV that `fragsim export' writes, with each request"},
    {"remap", "pack", "use the policy expandable"},
    {"remap", "chunks", "use the policy expandable"},
    {"remap", "lodge", "use the policy compact"},
    {"policies", "keys", "use `fragsim policies torch'"},
    {"policies", "platform", "the settings are read as by PyTorch for CUDA"},
    {"tune", "no-hold-out", "nothing is held out any more, so leave it out"},
    {"tune", "verify-with", "`fragsim compare' replays a trace on a GPU"},
    {"tune", "max-calls-ratio",
     "the table has the calls of each setting, and --without leaves one out"},
    {"tune", "max-seconds",
     "the table has the calls of each setting, and --without leaves one out"},
};

const char *nearest_removed(const char *what, const char *name)
{
    for (size_t i = 0; i < sizeof(removed) / sizeof(*removed); i++)
        if (!strcmp(removed[i].what, what) && !strcmp(removed[i].name, name))
            return removed[i].instead;
    return NULL;
}
