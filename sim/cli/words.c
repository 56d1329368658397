/* words.c - the table of words. Formulas and units are those of
 * sim/results/columns.c; tests/cli/words.sh checks that the headings of the
 * tables occur here. */
#include "sim/cli/words.h"

#include <stddef.h>

const struct word words[] = {
    {"requested",
     "bytes that the program requested for its live blocks; a block is live "
     "until the program frees it",
     "Memory"},
    {"allocated",
     "bytes that the policy granted to live blocks: requested plus rounding",
     NULL},
    {"active",
     "allocated, plus blocks that are freed and not yet reusable because "
     "another stream may still use them",
     NULL},
    {"reserved", "bytes that the policy holds from the device, in use or not",
     NULL},
    {"capacity",
     "bytes that the device can supply: an amount such as 80GiB, a share of "
     "peak requested such as 0.9x, or inf; beyond it the driver refuses",
     NULL},
    {"process limit",
     "bytes that the allocator of a process may reserve, as PyTorch's "
     "set_per_process_memory_fraction sets them; beyond it the allocator "
     "refuses before the driver is asked, so at equal bytes a run may differ "
     "from one on a full device",
     NULL},
    {"bound", "a capacity, or a process limit, which is then named so", NULL},
    {"unlimited",
     "in the column bound, a device that never runs out of memory; as a "
     "column of `fragsim fit', peak reserved on such a device",
     NULL},
    {"peak requested", "largest value of requested over all events", NULL},
    {"peak allocated", "largest value of allocated over all events", NULL},
    {"peak reserved", "largest value of reserved over all events", NULL},
    {"lower bound",
     "the least memory that any of the compared policies needs for the served "
     "requests: the largest sum, over all events, of the requests of live "
     "blocks, each rounded up to the quantum; a freed block does not count, "
     "even if another stream still uses it, because a policy can wait for that "
     "stream",
     NULL},
    {"quantum",
     "the unit to which a policy rounds requests, 512 or 256 bytes "
     "(`fragsim policies NAME'); where policies are compared, the smallest of "
     "theirs",
     NULL},
    {"gap", "peak reserved / lower bound - 1", NULL},
    {"optimal",
     "printed as the gap if peak reserved equals the lower bound, every "
     "request "
     "was served, and the device, which gives units of 2 MiB, gave no more "
     "than "
     "the lower bound either",
     NULL},
    {"overhead", "peak reserved / peak requested", NULL},
    {"fragmentation", "1 - peak allocated / peak reserved", NULL},

    {"trace", "file name of the trace, without folders and suffixes", "Runs"},
    {"device", "number of the device in the trace", NULL},
    {"policy", "the policy that replayed the trace, as the user wrote it",
     NULL},
    {"events",
     "entries of the trace, in order: allocations, frees, uses by another "
     "stream, empty_cache calls",
     NULL},
    {"OOM",
     "out of memory: a request that could not be met; it is counted and "
     "skipped, and is a result, not an error",
     NULL},
    {"OOMs", "number of OOMs of the run", NULL},
    {"first OOM", "index of the event of the first OOM, from 0", NULL},
    {"retries",
     "requests that were not met at the first attempt: the device refused and "
     "was asked again, or the policy waited for it and returned cached memory",
     NULL},
    {"driver calls",
     "calls of the device's driver that allocate, free, map or unmap memory, "
     "copy blocks or wait",
     NULL},
    {"modelled",
     "time that the driver calls of a run take by the cost model; --costs "
     "sets the model",
     NULL},

    {"need",
     "the least bound from which on nothing fails: the policy meets every "
     "request under it and under every larger one; nowhere if there is none",
     "fragsim fit"},
    {"bytes", "the column need, in bytes", NULL},
    {"headroom",
     "need / peak allocated there - 1: memory that the policy needs beyond its "
     "blocks",
     NULL},
    {"serves from",
     "the least bound under which the policy meets every request at all; "
     "between it and the need a policy can fail with more memory",
     NULL},

    {"saves",
     "1 - peak reserved / peak reserved of the job as it was recorded, over "
     "several traces by the geometric mean of the ratio",
     "fragsim tune"},
    {"knobs", "settings that differ from PyTorch's default", NULL},
    {"calls",
     "in `fragsim tune', driver calls minus those of the recorded settings; in "
     "`fragsim compare', driver calls of the run",
     NULL},
    {"within bounds",
     "yes if the setting meets every request at --capacity and stays within "
     "--max-calls-ratio and --max-seconds on every trace",
     NULL},
    {"settings", "value of PYTORCH_CUDA_ALLOC_CONF", NULL},
    {"held out",
     "a part of the traces, and the saving there of the setting that was "
     "chosen without it",
     NULL},

    {"result",
     "survives: no request of a complete run fails with the change; serves "
     "what was recorded: no recorded or predicted request of a job that died "
     "fails, which is no promise; fails: a request fails; not known: that "
     "depends on what was not recorded",
     "fragsim explain"},

    {"step",
     "an iteration of the program's loop, counted from 1; before and after are "
     "the events before the first complete step and after the last one",
     "fragsim steps, fragsim leaks"},
    {"from event", "index of the first event of the step, from 0", NULL},
    {"live at begin", "requested, where the step begins", NULL},
    {"seconds", "time from the beginning of the step to its end, as recorded",
     NULL},
    {"leaks at",
     "the site of a leak: the innermost line of the user's own code in the "
     "stack of the allocations; grows at: of what may be a leak",
     NULL},
    {"stream", "handle of the CUDA stream of the allocations", NULL},
    {"bytes a step",
     "median growth a step of what the site holds: the slopes between windows "
     "that lie half of the examined ones apart; without marked steps, in 1000 "
     "events",
     NULL},
    {"block sizes", "smallest and largest size of the blocks of a leak", NULL},
    {"left live", "bytes that a leak holds at the end of the last window",
     NULL},
    {"grows in",
     "windows in which what the site holds rises, of all that were examined: a "
     "window is a step, or several of them",
     NULL},
    {"kind",
     "kept: the blocks stay live; replaced: a larger block replaces the block "
     "again and again",
     NULL},
    {"batch", "batch size: samples that the program handles in one step",
     "fragsim batch"},
    {"known as",
     "recorded: the trace is a recording at this batch size; predicted: its "
     "sizes follow from the recordings at other batch sizes",
     NULL},
    {"low",
     "least peak reserved of the replays of this batch size, in which the "
     "requests whose sizes are not known for sure have other sizes",
     NULL},
    {"high", "most peak reserved of these replays", NULL},
    {"constant part",
     "bytes that do not grow with the batch, at the event of peak requested",
     NULL},
    {"per sample",
     "bytes by which peak requested grows for one more sample in the batch",
     NULL},
    {"growing share",
     "per sample * batch / (per sample * batch + constant part)", NULL},

    {"exact",
     "everything that the trace records and that was compared is equal in the "
     "replay; else DIFFERS is printed",
     "fragsim validate"},
    {"segment events",
     "segments that the recorded allocator allocated, freed, mapped or "
     "unmapped, and how many of them the replay repeated",
     NULL},
    {"addresses",
     "allocations, and how many of them have the recorded address in the "
     "replay",
     NULL},
    {"final blocks",
     "blocks of the final snapshot, and how many of them the replay ends "
     "with",
     NULL},
    {"counters",
     "numbers of torch.cuda.memory_stats, and how many of them the replay "
     "agrees with; a counter that the trace does not determine counts as "
     "agreed",
     NULL},

    {"rank",
     "a device of a trace, numbered from 0 in the order of the files and "
     "devices",
     "fragsim ranks"},
    {"steps",
     "complete steps of the recording, by its marks or by the period of its "
     "events",
     NULL},
    {"growth a step",
     "growth of the live bytes from step to step: the median of the slopes "
     "between all pairs of boundaries; - for fewer than two steps",
     NULL},
    {"communication",
     "share of peak requested that buffers of the communication between ranks "
     "hold; ? is a guess from the streams, - is not known",
     NULL},
    {"recorded OOMs", "OOMs that the recording reports", NULL},
    {"free at peak", "capacity - peak reserved of the replay at that capacity",
     NULL},
    {"imbalance", "largest value of the ranks / their mean", NULL},

    {"rule", "what the file of rules demands", "fragsim check"},
    {"found", "the value of the trace; unknown keeps no rule", NULL},
    {"outcome", "ok if the rule holds, else FAILED", NULL},
    {"polled every", "period of a monitor that reads the memory of the job",
     NULL},
    {"signal", "what the monitor reads: allocated or reserved", NULL},
    {"true peak", "largest value of the signal over all events", NULL},
    {"seen at least",
     "smallest of the peaks that the monitor reads from 100 beginnings, evenly "
     "spread over a period",
     NULL},
    {"missed", "1 - seen at least / true peak", NULL},
    {"sees peak", "share of the beginnings that read the true peak", NULL},
    {"warned",
     "share of the beginnings that read --threshold of the capacity, or more, "
     "before the first OOM",
     NULL},
    {"shortest lead",
     "least time from that reading to the OOM, over these beginnings", NULL},
    {"longest lead", "most time from that reading to the OOM", NULL},
    {"live", "bytes of the blocks that the program has not freed, as allocated",
     "fragsim explain"},
    {"pending",
     "bytes of blocks that the program freed and another stream still uses",
     NULL},
    {"cached",
     "reserved bytes that no block uses: reserved - live - pending; a hole is "
     "a range of them between two blocks or at an end of a segment",
     NULL},
    {"largest hole", "bytes of the largest hole", NULL},
    {"not reserved", "limit - reserved", NULL},
    {"limit",
     "bytes that the allocator could reserve when the request failed: the "
     "memory limit of the process, or reserved plus what the device had free",
     NULL},
    {"device free",
     "bytes that the device had free when the request failed, as recorded",
     NULL},
    {"outside",
     "bytes of the device that the allocator neither had reserved nor could "
     "get: of contexts, of libraries, and of other processes",
     NULL},
    {"pool", "number of the memory pool in the trace; 0 is the default pool",
     NULL},
    {"stream", "number of the CUDA stream in the trace", NULL},
    {"blocks",
     "small: blocks of at most 1 MiB, which have segments of their "
     "own; large: all others",
     NULL},
    {"segments", "ranges that the allocator reserved from the device", NULL},
    {"served",
     "yes if the replay with the change meets the request and no other request "
     "fails before",
     NULL},
    {"change",
     "a text of PYTORCH_CUDA_ALLOC_CONF, or what is done in the replay", NULL},

    {"live before the recording",
     "blocks that were allocated before the recording began; the numbers of "
     "events count them first, the number of events does not",
     "fragsim info"},
    {"streams", "CUDA streams that occur in the trace", NULL},
    {"pools",
     "memory pools that occur in the trace: the default pool and private "
     "pools, "
     "such as those of CUDA graphs",
     NULL},
    {"marks", "named beginnings and ends of steps or phases in the recording",
     NULL},
    {"peak live blocks", "largest number of blocks live at once", NULL},
    {"failed requests", "requests that failed in the recording", NULL},
    {"peak with failed ones",
     "peak requested if the requests that failed in the recording had been "
     "served until they were freed, at least for one event; a share such as "
     "0.9x of -c is a share of it",
     NULL},
    {"live at the end",
     "bytes that the blocks requested that are live after the last event",
     NULL},
    {"live blocks at the end",
     "number of blocks that are live after the last event", NULL},
    {"recorded peak reserved",
     "largest value of reserved of the recorded allocator", NULL},
    {"segments at the start",
     "segments that the recorded allocator held when the recording began",
     NULL},
    {"segments at the end",
     "segments that the recorded allocator held when the recording ended",
     NULL},
    {"duration", "time from the first recorded event to the last", NULL},
    {"requests",
     "events by kind: alloc and free; free_requested, a free that waits for "
     "other streams; record_stream, a use by another stream; empty_cache",
     NULL},
    {"recorded answers",
     "actions of the recorded allocator by kind: segment_alloc, segment_free, "
     "segment_map and segment_unmap, which allocate, free, map and unmap "
     "device memory, and oom",
     NULL},

    {"Cur Usage", "value after the event", "fragsim summary"},
    {"Peak Usage", "largest value up to the event", NULL},
    {"Tot Alloc", "sum of all growth up to the event", NULL},
    {"Tot Freed", "sum of all decrease up to the event", NULL},
    {"CUDA OOMs", "the word OOMs above", NULL},
    {"cudaMalloc retries", "the word retries above", NULL},
    {"Allocated memory", "the word allocated above", NULL},
    {"Active memory", "the word active above", NULL},
    {"Requested memory",
     "bytes that the program requested for its active blocks; under a policy "
     "other than torch, for its live blocks",
     NULL},
    {"GPU reserved memory", "the word reserved above", NULL},
    {"Non-releasable memory",
     "free bytes in segments that also hold a live block, so that empty_cache "
     "cannot return them; expandable segments do not count",
     NULL},
    {"Allocations", "number of live blocks", NULL},
    {"Active allocs", "number of active blocks", NULL},
    {"GPU reserved segments",
     "number of segments; expandable ones do not "
     "count",
     NULL},
    {"Non-releasable allocs", "number of free blocks in Non-releasable memory",
     NULL},
    {"Oversize allocations",
     "number of live blocks of at least max_split_size_mb", NULL},
    {"Oversize GPU segments",
     "number of segments of at least max_split_size_mb", NULL},
    {"from large pool",
     "the part in segments that PyTorch uses for requests above 1 MiB", NULL},
    {"from small pool",
     "the part in segments that PyTorch uses for requests up to 1 MiB", NULL},
    {"fragmentation now", "1 - allocated / reserved, after the event", NULL},
    {"mean fragmentation",
     "mean of 1 - allocated / reserved over the events up to this one", NULL},
    {"external",
     "1 - largest free / free: the share of the free memory that one request "
     "cannot use",
     NULL},
    {"internal", "1 - requested / allocated: the share lost by rounding", NULL},
    {"overhead now", "reserved / requested, after the event", NULL},
    {"free", "reserved - active", NULL},
    {"largest free", "largest free range inside one segment", NULL},
    {"rounding", "allocated - requested, of live blocks", NULL},
    {"pending",
     "blocks that the program has freed and another stream may still use",
     NULL},
    {"free here",
     "free bytes in segments of the stream and pool of the event's request; an "
     "event without a request counts as the default stream and pool",
     NULL},
    {"free, other stream",
     "free bytes in segments of the same pool and another stream", NULL},
    {"free, other pool", "free bytes in segments of another pool", NULL},
    {"unusable",
     "free bytes that no request can use: gaps smaller than the quantum of the "
     "policy, and memory that is mapped nowhere",
     NULL},

    {"same",
     "yes if every count of every run on the GPU equals the simulated count, "
     "else the first difference",
     "fragsim compare"},
    {"measured", "time in driver calls of the fastest run on the GPU", NULL},
    {"ratio", "modelled / measured", NULL},
    {"paced",
     "modelled * pace / measured; pace is the measured time of a fixed series "
     "of calls before and after the run, divided by its modelled time",
     NULL},

    {"held",
     "bytes that the program requested for the live blocks of a group; a block "
     "that is freed counts while another stream may still use it",
     "fragsim top, fragsim diff"},
    {"share", "held bytes of the group, relative to all held bytes", NULL},
    {"sum", "sum of the shares of this group and the groups above it", NULL},
    {"blocks", "number of live blocks; in `fragsim diff', its change", NULL},
    {"oldest",
     "age of the oldest block of the group at the moment, in steps, or in "
     "events if no steps were found",
     NULL},
    {"site",
     "innermost frame of a stack in the program's own code, as FUNCTION "
     "(FILE:LINE); unknown if no frames were recorded",
     NULL},
    {"function", "site without the line", NULL},
    {"stack", "all frames of an allocation", NULL},
    {"size", "requested bytes of a block", NULL},
    {"class", "sizes between two powers of 2", NULL},
    {"age", "steps since the allocation of a block", NULL},
    {"seconds", "time since the allocation of a block", NULL},
    {"pool", "PyTorch's pool of the block, such as that of a CUDA graph", NULL},
    {"stream", "CUDA stream of the allocation, as a raw handle", NULL},
    {"change",
     "in `fragsim diff', bytes after minus bytes before; for result files, the "
     "change of peak reserved",
     NULL},
    {"of growth",
     "change of the group, relative to the change of all held bytes; below 0 "
     "if it went against it",
     NULL},
    {"before", "held bytes of the group at the first moment", NULL},
    {"after", "held bytes of the group at the second moment", NULL},

    {"call", "kind of driver call", "fragsim calibrate"},
    {"fixed, us", "modelled time of a call of any size, in microseconds", NULL},
    {"us a MiB", "modelled time added for each MiB of a call, in microseconds",
     NULL},
    {"residual", "median over the sizes of |1 - modelled / measured|", NULL},
    {"worst", "largest value over the sizes of |1 - modelled / measured|",
     NULL},
    {NULL, NULL, NULL},
};
