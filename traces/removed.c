/* removed.c - the names that an earlier version had, and what takes the place
 * of each. The messages about unknown names read this list (traces/nearest.h),
 * and CHANGELOG.md tells it. */
#include <stdbool.h>
#include <string.h>

#include "traces/nearest.h"

/* `what` and `name` are alternatives. */
static const struct {
    const char *what, *name, *instead;
} removed[] = {
    {"command", "batch",
     "use `fragsim dry --try 8,16,32 -- python train.py --batch {}'"},
    {"explain|tune|fit|replay|sweep|steps|leaks|summary|validate|info|import|"
     "compare|export",
     "limit", "write --recorded-limit SIZE"},
    {"top|diff|plot", "limit", "write --rows N"},
    {"replay|compare", "gpu", "write --device-number N"},
    {"plot|report", "font|size",
     "a figure is as large as its contents need; SVG and PDF can be scaled"},
    {"explain|steps|leaks", "font|size|theme|title",
     "`fragsim plot' and `fragsim report' have it"},
    {"fit|replay|sweep|policies", "plugin-seconds",
     "set the variable FRAGSIM_PLUGIN_SECONDS"},
    {"fit|replay|sweep|policies", "plugin-memory",
     "set the variable FRAGSIM_PLUGIN_MEMORY"},
    {"compare", "from", "write `compare --calibrate FILE'"},
    {"explain", "settings",
     "the settings are those of the recording, so leave it out"},
    {"tune", "worth|simplest",
     "enough recorded settings stay, else the setting with most room is "
     "chosen"},
    {"tune", "no-vmm", "write --without expandable_segments"},
    {"tune", "as-recorded|further-steps|step-mark|address-rule|costs|total",
     "tune answers for the memory in question; `fragsim replay' has it"},
    {"explain", "total", "it is read from the counters (--stats)"},
    {"summary", "abbreviated", "the rows of the pools are always printed"},
    {"diff", "at-after", "write a second --at"},
    {"validate", "predicted",
     "`fragsim replay -p torch@2.N:SETTINGS' takes no recorded address"},
    {"validate", "anchored", "it is the default, so leave it out"},
    {"validate", "memory-fraction", "write --recorded-limit SIZE"},
    {"import|export", "repeat", "write `import -e repeat:times=N'"},
    {"import", "complete",
     "replay, fit, sweep and tune complete a trace by themselves"},
    {"report", "preface|appendix",
     "the page is one answer; link it from a page of your own"},
    {"replay", "stream",
     "import it to a trace file, whose replay needs no more memory for more "
     "events"},
    {"fit|replay|sweep", "no-check",
     "every policy in a shared library is checked, so leave it out"},
    {"sweep", "param",
     "write a policy each; bash makes them of --policy=NAME:KEY={1,2,3}"},
    {"report", "slowdown", "it is always 1 %, so leave it out"},
    {"sweep", "details", "write --points 2000"},
    {"fit", "bound",
     "use `--capacity inf' for capacity, `--process-limit inf' for limit"},
    {"edit", "pad", "use `scale', which multiplies sizes"},
    {"edit", "round",
     "policies round by themselves, such as -p "
     "torch:roundup_power2_divisions:8"},
    {"edit", "stream",
     "change the streams in the CSV that `fragsim export' writes"},
    {"edit", "interleave",
     "processes share no allocator, so add up what `fragsim fit' says of each"},
    {"edit", "concat", "join the CSVs that `fragsim export' writes"},
    {"generator", "inference",
     "record a server, or take the generator stationary"},
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
    {"policy", "vma|half_fit", "the policy tlsf places in the same way"},
    {"policy", "slab", "the policy size_class has size classes as well"},
    {"policy", "worst_fit", "the policy first_fit places by address as well"},
    {"policy", "ggml_pool",
     "the policy cupy keeps freed memory for each stream "
     "as well"},
    {"figure", "need",
     "use `fragsim plot RESULTS compare --measure need_bytes'"},
    {"figure", "sweep",
     "use `fragsim plot RESULTS compare', a bar for each value"},
    {"plot", "color-by", "choose the colour on the page that `map' writes"},
    {"explain", "map",
     "use `fragsim plot SNAPSHOT map -p torch@recorded -o "
     "FILE.html'"},
    {"remap", "pack|chunks", "use the policy expandable"},
    {"remap", "lodge", "use the policy compact"},
    {"best_fit", "ties",
     "of equal blocks the one with the lowest address is used"},
    {"compact", "strategy|bytes|moves",
     "threshold=1 moves blocks only when the device refuses"},
    {"policies", "keys", "use `fragsim policies torch'"},
    {"policies", "platform", "the settings are read as by PyTorch for CUDA"},
    {"tune", "no-hold-out", "nothing is held out any more, so leave it out"},
    {"tune", "verify-with", "`fragsim compare' replays a trace on a GPU"},
    {"tune", "max-calls-ratio|max-seconds",
     "the table has the calls of each setting, and --without leaves one out"},
};

static bool has(const char *list, const char *word)
{
    const size_t length = strlen(word);

    for (; *list; list += *list == '|') {
        const size_t n = strcspn(list, "|");

        if (n == length && !strncmp(list, word, n))
            return true;
        list += n;
    }
    return false;
}

const char *nearest_removed(const char *what, const char *name)
{
    for (size_t i = 0; i < sizeof(removed) / sizeof(*removed); i++)
        if (has(removed[i].what, what) && has(removed[i].name, name))
            return removed[i].instead;
    return NULL;
}
