"""claims_measures.py: the claims of four articles on PyTorch's memory (A leaks, B
fragmentation, C out of memory, D memory management and several GPUs), each with a
function that measures it. Verdicts follow from the numbers; none is typed beside one.

A function calls m.put(macro, text, what, ...) for each number and returns (verdict,
reason). claims.py runs them and makes the table and the page.
"""
import collections
import json
import os
import re
import statistics

from data_header import read_csv
from places import DATA, PAGES

MIB, GIB = 1 << 20, 1 << 30
TRUE, PARTLY, WRONG, NOT = "true", "partly", "wrong", "not measurable"
CLAIMS = collections.OrderedDict()


class Missing(Exception):
    """A measurement is not in the data."""


def claim(number, text):
    def put(function):
        CLAIMS[number] = (text, function)
        return function
    return put


# ---- forms of a number ----

def size(count):
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if abs(count) >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count:.0f} B"


def share(value):
    return f"{100 * value:.1f} %" if abs(value) < 0.1 or value > 0.995 and value < 1 \
        else f"{100 * value:.0f} %"


def change(value):
    """A ratio as a change in percent."""
    return f"{100 * (value - 1):+.0f} %" if round(100 * (value - 1)) else "0 %"


def seconds(value):
    return f"{1e6 * value:.1f} µs" if value < 1e-3 else f"{1e3 * value:.1f} ms" \
        if value < 1 else f"{value:.1f} s"


def times(value):
    return f"{value:.2f}"


class Data:
    """The sources. Each read says which file, command and device it comes from."""

    def __init__(self, folder=DATA):
        self.folder = folder
        self.recorded, self.recorded_head = self.lines("claims_recorded.jsonl")
        self.runs, self.runs_head = {}, {}
        rows, heads = self.lines("claims_runs.jsonl", several=True)
        self.runs_head = heads
        for row in rows:
            self.runs[row["name"]] = row
        self.where = {}

    def lines(self, name, several=False):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return [], {} if not several else []
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        heads = [r for r in rows if r["name"] == "header"]
        rest = [r for r in rows if r["name"] != "header"]
        return rest, heads if several else heads[0]

    def source(self, file, command, device):
        self.where = {"data": file, "command": command, "device": device}

    def of(self, verb, words="RECORDING"):
        """The digests of one fragsim command."""
        found = [r for r in self.recorded if r["name"] == verb]
        if not found:
            raise Missing(f"claims_recorded.jsonl has no {verb}")
        command = {"counters": "fragsim validate RECORDING.pickle.xz",
                   "replay": "fragsim replay RECORDING -p torch@recorded --json -",
                   "monitors": f"paper/tables/monitors.py RECORDING{words}",
                   "gen": "fragsim gen training:jitter=0.8 --seed 7 -o made.h5"}
        self.source("data/claims_recorded.jsonl",
                    command.get(verb, f"fragsim {verb} {words} --json -"),
                    self.recorded_head["device"])
        return found

    def run(self, name):
        """The row of one program on a GPU."""
        row = self.runs.get(name)
        if row is None or "error" in row:
            raise Missing(f"the program {name} has no result"
                          + (f" ({row['error']})" if row else ""))
        part = "two" if name.startswith(("ranks_", "pair")) else "all"
        heads = [h for h in self.runs_head if h["command"].endswith(part)] \
            or self.runs_head
        words = {"two": "two FOLDER", "all": f"one {name} FOLDER"}[part]
        if name.startswith("turns_"):
            words = f"all FOLDER {name}"
        self.source("data/claims_runs.jsonl", f"paper/gpu/claims_programs.py {words}",
                    heads[0]["device"])
        return row

    def named(self, *names):
        """The last numbers come from these programs."""
        self.where = {**self.where, "command": "paper/gpu/claims_programs.py all FOLDER "
                      + " ".join(dict.fromkeys(names))}

    def turns(self, group):
        row = self.run(group)
        return row["seconds_median"], row["rounds"]

    def table(self, name, command, device=None):
        path = os.path.join(self.folder, name)
        head, rows = read_csv(path)
        self.source("data/" + name, command, device or "NVIDIA H200")
        return head, rows


class Measure:
    """Collects the numbers of one claim."""

    def __init__(self, data):
        self.data, self.rows = data, []

    def put(self, macro, text, what, value=None, unit="", n=1):
        self.rows.append({"macro": "Claim" + macro, "text": text, "measurement": what,
                          "value": text if value is None else value, "unit": unit,
                          "n": n, **self.data.where})
        return value

    def ratio(self, macro, value, what, n=1, form=times):
        self.put(macro, form(value), what, round(value, 6), "1", n)
        return value

    def count(self, macro, found, of, what):
        self.put(macro, f"{found} of {of}", what, found, "count", of)
        return found

    def bytes(self, macro, value, what, n=1):
        self.put(macro, size(value), what, value, "byte", n)
        return value

    def time(self, macro, value, what, n):
        self.put(macro, seconds(value), what, value, "s", n)
        return value

    def range(self, macro, values, what, form=times):
        """The least, the median and the most of several ratios."""
        low, mid, high = min(values), statistics.median(values), max(values)
        self.put(macro + "Least", form(low), f"{what}: least", round(low, 6), "1",
                 len(values))
        self.put(macro + "Median", form(mid), f"{what}: median", round(mid, 6), "1",
                 len(values))
        self.put(macro + "Most", form(high), f"{what}: most", round(high, 6), "1",
                 len(values))
        return low, mid, high


def peak(data, name, key="peak_allocated"):
    return data.run(name)[key]


def against(data, one, other, key="peak_allocated"):
    """one / other, where both are programs."""
    found = peak(data, one, key) / peak(data, other, key)
    data.named(one, other)
    return found


def compared(data, pairs, key="peak_allocated"):
    """The ratio of each pair of programs."""
    found = [against(data, *pair, key=key) for pair in pairs]
    data.named(*[name for pair in pairs for name in pair])
    return found


AMP = [("gpt_bf16", "gpt_fp32"), ("gpt_fp16", "gpt_fp32"),
       ("cnn_b32_bf16", "cnn_b32"), ("cnn_b32_fp16", "cnn_b32"),
       ("linear_bf16", "linear_fp32"), ("linear_b16384_bf16", "linear_b16384_fp32")]
CHECKPOINT = [("gpt_fp32_checkpoint", "gpt_fp32"), ("gpt_bf16_checkpoint", "gpt_bf16"),
              ("gpt_bf16_long_checkpoint", "gpt_bf16_long"),
              ("gpt_b32_checkpoint", "gpt_b32"), ("cnn_b32_checkpoint", "cnn_b32"),
              ("cnn_b32_bf16_checkpoint", "cnn_b32_bf16")]


def time_pairs(data, pairs):
    """Step times of the first over those of the second, where both ran in turns."""
    found, groups = {}, ("turns_gpt", "turns_batch", "turns_cnn", "turns_linear")
    for group in groups:
        medians, rounds = data.turns(group)
        for one, other in pairs:
            if one in medians and other in medians:
                found[one] = (medians[one] / medians[other], rounds)
    data.named(*groups)
    return found


# ---- article A: leaks ----

@claim("A1", "The allocator takes large chunks from the driver, so that small requests are cheap.")
def a1(m):
    rows = m.data.of("replay")
    allocs = sum(r["allocs"] for r in rows)
    hits = 1 - sum(r["num_segment_alloc"] for r in rows) / allocs
    m.ratio("Hits", hits, "requests served without a call of the driver", allocs, share)
    call = m.data.run("calls")["seconds"][str(MIB)]
    m.time("CallCaching", call["caching"], "1 MiB from the cache and back", 200)
    m.time("CallNaive", call["naive"], "cudaMalloc and cudaFree of 1 MiB", 200)
    return TRUE if hits > 0.9 and call["caching"] < call["naive"] else WRONG, \
        "nearly every request is served from segments that the process already has"


@claim("A2", "memory_summary(device=None) before, in and after the loop shows the state of "
       "the GPUs.")
def a2(m):
    shown = len(m.data.run("pair")["summary_of_none"])
    m.count("SummaryDevices", shown, 2, "devices in memory_summary(device=None) of a "
            "process that uses two")
    return PARTLY if shown == 1 else TRUE, "None is the current device, not all devices"


@claim("A3", "empty_cache() lowers the memory in use.")
def a3(m):
    r = m.data.run("emptied")
    m.bytes("EmptiedAllocated", r["allocated_before"] - r["allocated_after"],
            "allocated bytes that one call releases")
    m.bytes("EmptiedReserved", r["reserved_before"] - r["reserved_after"],
            "reserved bytes that it releases")
    kept = r["reserved_after"] - r["allocated_after"]
    m.bytes("EmptiedKept", kept, "free bytes that it cannot release")
    return PARTLY if r["allocated_before"] == r["allocated_after"] else TRUE, \
        "it lowers what the process reserves, never what tensors hold"


@claim("A4", "gc.collect() in the loop lowers the memory in use.")
def a4(m):
    plain = peak(m.data, "cycles_no_cycle")
    for macro, name, what in (("CyclesAutomatic", "automatic", "automatic collection"),
                              ("CyclesCollect", "collect", "gc.collect() each step")):
        m.bytes(macro, peak(m.data, "cycles_" + name),
                f"peak of objects in reference cycles, {what}", 60)
    m.bytes("CyclesNone", plain, "peak of the same objects without a cycle", 60)
    same = m.ratio("CollectPeak", against(m.data, "varlen_collect", "varlen_never"),
                   "peak of a training program with gc.collect() each step, relative", 20)
    spent, n = m.data.turns("turns_empty")
    m.ratio("CollectTime", spent["varlen_collect"] / spent["varlen_never"],
            "its step time", n, change)
    return PARTLY if same > 0.99 else TRUE, \
        "only objects in reference cycles wait for the collector; other tensors are " \
        "freed at once"


@claim("A5", "len(memory_snapshot()) is the number of allocated blocks.")
def a5(m):
    r = m.data.run("summary")
    m.put("SnapshotItems", str(r["snapshot_items"]), "items of memory_snapshot()")
    m.put("SnapshotBlocks", str(r["blocks_active"]), "allocated blocks in them")
    return TRUE if r["snapshot_items"] == r["blocks_active"] else WRONG, \
        "the items are segments; each holds several blocks"


@claim("A6", "The snapshot shows which tensors use most memory.")
def a6(m):
    r, *_ = m.data.of("top", "traces/bundled/leak_frames.pickle.xz --by stack")
    known = sum(b for name, b in r["groups"] if name != "unknown") / r["held_bytes"]
    m.ratio("TopKnown", known, "bytes at the peak for which a line of the program is known",
            len(r["groups"]), share)
    return PARTLY, "it names the line that allocated a block, if stacks were recorded; " \
        "a block has no name of a tensor"


@claim("A7", "gc.get_referrers() finds what keeps a tensor alive.")
def a7(m):
    r = m.data.run("referrers")
    m.put("ReferrersList", "yes" if r["finds_python_list"] else "no",
          "finds a list that holds the tensor")
    m.put("ReferrersGraph", "yes" if r["finds_graph"] else "no",
          "finds the autograd graph that holds its bytes")
    found = (r["finds_python_list"], r["finds_graph"])
    return {(True, True): TRUE, (False, False): WRONG}.get(found, PARTLY), \
        "it sees references of Python, not those of autograd's graph"


@claim("A8", "no_grad() in evaluation avoids the saved intermediates.")
def a8(m):
    base = m.data.run("eval_grad")["before"]
    full = peak(m.data, "eval_grad") - base
    for macro, name in (("NoGrad", "no_grad"), ("Inference", "inference")):
        m.ratio(macro, (peak(m.data, "eval_" + name) - base) / full,
                f"peak above the weights with {name}, relative to none", 4)
    return TRUE if m.rows[0]["value"] < 0.95 else WRONG, "outputs remain, saved tensors do not"


@claim("A9", "The profiler's table, sorted by self_cuda_memory_usage, shows the ten heaviest "
       "operations.")
def a9(m):
    r = m.data.run("profiled")
    good = isinstance(r["table_self_cuda_memory_usage"], int)
    m.put("ProfilerKey", "yes" if good else "no", "PyTorch 2.11 accepts the old key")
    return PARTLY if good else WRONG, "the old name still sorts; the column is now called " \
        "Self CUDA Mem, in operations, not tensors; that its first ten are the heaviest was " \
        "not checked"


@claim("A10", "Losses that are kept pile up intermediates; the fix doubled the speed.")
def a10(m):
    m.bytes("LossGraph", m.data.run("losses_graph")["bytes_a_step"],
            "growth a step if each loss keeps its graph", 60)
    m.bytes("LossAppend", m.data.run("losses_append")["bytes_a_step"],
            "growth a step if losses are kept after backward()", 60)
    spent, n = m.data.turns("turns_losses")
    gain = m.ratio("LossSpeed", spent["losses_append"] / spent["losses_item"],
                   "time without the fix over time with it", n)
    return TRUE if gain >= 1.8 else PARTLY, \
        "the leak is real; nothing here runs twice as fast without it"


@claim("A11", "With a leak, a smaller batch is only a stopgap.")
def a11(m):
    small, large = m.data.of("leaks", "traces/bundled/leak_frames.pickle.xz -c 80GiB")
    for macro, r in (("LeakSmall", small), ("LeakLarge", large)):
        m.put(macro, f"{r['least_steps_to_oom']:,} steps",
              f"a leaking program survives with {r['capacity']}", r["least_steps_to_oom"],
              "step", r["num_steps"])
    return TRUE if large["verdict"] == "leak" else WRONG, \
        "more room delays the failure in proportion and does not avoid it"


@claim("A12", "Call empty_cache() once per epoch or batch, not more often.")
def a12(m):
    peaks = {k: against(m.data, "varlen_" + k, "varlen_never", "peak_reserved")
             for k in ("epoch", "step")}
    m.ratio("EmptyEpochPeak", peaks["epoch"], "peak reserved, a call every 5 steps", 20, change)
    m.ratio("EmptyStepPeak", peaks["step"], "peak reserved, a call each step", 20, change)
    spent, n = m.data.turns("turns_empty")
    cost = {k: spent["varlen_" + k] / spent["varlen_never"] for k in ("epoch", "step")}
    m.ratio("EmptyEpochTime", cost["epoch"], "median step, a call every 5 steps", n, change)
    m.ratio("EmptyStepTime", cost["step"], "median step, a call each step", n, change)
    _, rows = m.data.table("empty_cache.csv", "paper/tables/empty_cache_table.py")
    found = collections.defaultdict(dict)
    for r in rows:
        found[r["trace"]][r["period"]] = int(r["peak_reserved_bytes"])
    falls = sum(f["1"] < f["never"] for f in found.values())
    m.count("EmptyFalls", falls, len(found), "recordings whose peak falls with a call each step")
    return PARTLY if falls < len(found) else TRUE, \
        "it is a trade: a lower peak for slower steps, on some programs only"


@claim("A13", "Some of the missing memory belongs to the system, not to PyTorch.")
def a13(m):
    r = m.data.run("context")
    m.bytes("OutsideFirst", r["outside_after_first_tensor"],
            "device memory outside of the allocator after the first tensor")
    m.bytes("OutsideTrained", r["outside_after_training"], "the same after training")
    return TRUE if r["outside_after_first_tensor"] > 0 else WRONG, \
        "the CUDA context and libraries hold it; the allocator's counters do not show it"


# ---- article B: fragmentation ----

@claim("B1", "Out of memory happens although enough memory is free, because no piece is large "
       "enough.")
def b1(m):
    rows = m.data.of("explain")
    enough = sum(r["cached_bytes"] + r["not_reserved_bytes"] >= r["request_bytes"] for r in rows)
    split = sum(r["cause"] == "fragmentation" for r in rows)
    m.count("OomEnough", enough, len(rows), "failed requests for which enough bytes were free")
    m.count("OomFragmentation", split, len(rows), "failures whose cause is fragmentation")
    return TRUE if enough > len(rows) / 2 else PARTLY, \
        "the limits of these recordings were chosen near the peak of the tensors, where packing " \
        "decides; the counts are no rate of failures in the field"


@claim("B2", "Fragmentation is worse with complex models, large batches and dynamic shapes.")
def b2(m):
    rows = [r for r in m.data.of("counters") if r["batch"] and not r["oom"]]
    programs = collections.defaultdict(list)
    for r in rows:
        name = r["trace"].rsplit("_b", 1)[0]
        programs[name].append((r["batch"],
                               1 - r["peak_allocated_bytes"] / r["peak_reserved_bytes"]))
    grows = 0
    for found in programs.values():
        found.sort()
        half = len(found) // 2
        grows += statistics.mean(f for _, f in found[-half:]) > \
            statistics.mean(f for _, f in found[:half])
    m.count("BatchWorse", grows, len(programs),
            "programs whose larger batches (upper half of the sizes) fragment more")
    made = collections.defaultdict(list)
    for r in m.data.of("gen"):
        made[r["jitter"]].append(r["peak_reserved_bytes"] / r["peak_allocated_bytes"])
    keys = sorted(made, key=float)
    low, high = (statistics.mean(made[k]) for k in (keys[0], keys[-1]))
    m.ratio("JitterNone", low, "reserved over allocated, generated training, equal batches",
            len(made[keys[0]]))
    m.ratio("JitterMost", high, f"the same, batches up to {share(float(keys[-1]))} shorter",
            len(made[keys[-1]]))
    fixed, varied = [r["peak_reserved_bytes"] / r["peak_allocated_bytes"]
                     for name in ("llama_fixed", "llama_varlen")
                     for r in m.data.of("replay") if r["trace"].endswith(name + ".pickle.xz")]
    m.ratio("LlamaFixed", fixed, "llama_fixed, equal lengths")
    m.ratio("LlamaVaried", varied, "llama_varlen, varying lengths")
    parts = (grows == len(programs), high > low, varied > fixed)
    return TRUE if all(parts) else PARTLY if any(parts) else WRONG, \
        "neither the size of a batch nor varying lengths decide alone; the numbers differ " \
        "from program to program"


@claim("B3", "The pool searches a suitable block; irregular requests fragment it.")
def b3(m):
    rows = m.data.of("replay")
    values = [r["peak_reserved_bytes"] / r["peak_allocated_bytes"] for r in rows]
    _, _, most = m.range("Pool", values, "peak reserved over peak allocated, 20 programs")
    return TRUE if most > 1.5 else PARTLY, "the search is a best fit, which a replay " \
        "reproduces; programs with varying sizes are at the upper end"


@claim("B4", "memory_summary() has a section \"Fragmentation\" and the use of each tensor.")
def b4(m):
    r = m.data.run("summary")
    m.put("SummaryFragmentation", "yes" if r["has_fragmentation"] else "no",
          "the text contains \"ragmentation\"")
    m.put("SummaryTensor", "yes" if r["per_tensor"] else "no", "the text names a tensor")
    return TRUE if r["has_fragmentation"] and r["per_tensor"] else WRONG, \
        "the nearest row is \"Non-releasable memory\""


@claim("B5", "del output, loss and empty_cache() in each iteration lower the memory.")
def b5(m):
    pairs = [("gpt_drop_empty", "gpt_fp32"), ("cnn_b32_drop_empty", "cnn_b32"),
             ("varlen_drop_empty", "varlen_never")]
    held = compared(m.data, pairs)
    taken = compared(m.data, pairs, "peak_reserved")
    m.range("DropAllocated", held, "peak allocated with both, relative, three programs", change)
    m.range("DropReserved", taken, "peak reserved, likewise", change)
    spent, n = m.data.turns("turns_empty")
    m.ratio("DropTime", spent["varlen_drop_empty"] / spent["varlen_never"],
            "step time of the third", n, change)
    return WRONG if min(taken) > 0.99 and min(held) > 0.99 else \
        PARTLY if max(held) > 0.99 or max(taken) > 0.99 else TRUE, \
        "the peak of the tensors is where both are needed; what can fall is the cache, with " \
        "varying lengths"


@claim("B6", "empty_cache() releases unused blocks and so eases fragmentation.")
def b6(m):
    rows = m.data.of("explain")
    step = [c for r in rows for c in r["changes"] if c[0] == "empty_cache" and "each step" in c[1]]
    served = sum(c[2] for c in step)
    m.count("EmptyServesStep", served, len(step),
            "failed requests that a call at the start of each step would have served")
    r = m.data.run("emptied")
    left = (r["reserved_after"] - r["allocated_after"]) / \
        (r["reserved_before"] - r["allocated_before"])
    m.ratio("EmptyLeft", left, "free bytes that one call cannot release, of all free bytes",
            1, share)
    return PARTLY if 0 < served < len(step) else TRUE if served else WRONG, \
        "only segments without a live block are released"


@claim("B7", "Tuning the batch size makes a program fit.")
def b7(m):
    m.data.source("pages/batch.md", "paper/tables/batch_table.py", "NVIDIA H100")
    with open(os.path.join(PAGES, "batch.md"), encoding="utf-8") as file:
        cells = [line.split("|") for line in file if re.match(r"\| \w+ \| \d+ of \d+ \|", line)
                 and "%" in line.split("|")[3]]
    pairs = [list(map(int, c[6].split(" of "))) for c in cells if len(c) == 9]
    right, of = (sum(p[i] for p in pairs) for i in (0, 1))
    m.count("BatchRight", right, of, "predictions of the largest batch that fits, from two "
            "smaller ones, that are right")
    return PARTLY if right == of else WRONG, "the largest batch can be predicted from two " \
        "runs, if there is one that fits; a program whose weights do not fit was not run"


@claim("B8", "Checkpointing of activations trades time for memory.")
def b8(m):
    held = compared(m.data, CHECKPOINT)
    m.range("CheckpointPeak", held, "peak allocated, relative", change)
    spent = [v for v, _ in time_pairs(m.data, CHECKPOINT).values()]
    m.range("CheckpointTime", spent, "step time, relative", change)
    return TRUE if max(held) < 1 < min(spent) else PARTLY, "both directions, on each pair"


@claim("B9", "torch.cuda.memory.efficient_coalesce() compacts the pool, since PyTorch 1.9.")
def b9(m):
    r = m.data.run("summary")
    m.put("CoalesceExists", "yes" if r["has_efficient_coalesce"] else "no",
          "the module has that name")
    m.put("CoalesceNames", str(len(r["names_with_coalesce"])),
          "names in torch.cuda.memory with coalesce or compact")
    return TRUE if r["has_efficient_coalesce"] else WRONG, "there is no such function"


@claim("B10", "A custom allocator for one block size avoids fragmentation.")
def b10(m):
    need = needs_over_bound(m)
    better = sum(need["slab"][t] < need["torch"][t] for t in need["torch"])
    m.count("SlabBetter", better, len(need["torch"]),
            "programs that need less with size classes (slab) than with PyTorch's default")
    for macro, policy in (("SlabOver", "slab"), ("TorchOver", "torch")):
        m.ratio(macro, statistics.geometric_mean(need[policy].values()),
                f"need over the lower bound, {policy}, geometric mean", len(need[policy]))
    return PARTLY if better else WRONG, \
        "of programs with blocks of one size none was measured; with many sizes, classes " \
        "strand a part of each, which a full device returns"


@claim("B11", "Checkpointing restored the batch size and took 20 % less time.")
def b11(m):
    spent, n = m.data.turns("turns_batch")
    gain = m.ratio("RestoredTime", spent["gpt_b32_checkpoint"] / spent["gpt_b32_accumulate4"],
                   "time a step of 32 with checkpointing, relative to four of 8 accumulated",
                   n, change)
    m.ratio("RestoredPeak", against(m.data, "gpt_b32_checkpoint", "gpt_b32"),
            "peak allocated against 32 without", 4, change)
    return TRUE if gain < 0.85 else WRONG, \
        "recomputation costs more than the smaller batches do"


@claim("B12", "Frequent empty_cache() is slow, because memory must be initialised again.")
def b12(m):
    spent, n = m.data.turns("turns_empty")
    slow = m.ratio("EmptySlow", spent["varlen_step"] / spent["varlen_never"],
                   "median step with a call each step", n, change)
    never, r = m.data.run("varlen_never"), m.data.run("varlen_step")
    m.put("EmptyCalls", f"{r['driver_allocs'] + r['driver_frees']} and "
          f"{never['driver_allocs'] + never['driver_frees']}",
          "calls of cudaMalloc and cudaFree in 20 steps, with and without", n=20)
    return PARTLY if slow > 1.02 else WRONG, "slower by the calls that release and take segments " \
        "again, and by their waits; whether the driver clears memory was not measured"


def needs_over_bound(m):
    """{policy: {trace: need as the capacity of a device, over the lower bound}}"""
    _, rows = m.data.table("needs.csv", "paper/tables/policy_table.py")
    need = collections.defaultdict(dict)
    for r in rows:
        if r["bound"] == "capacity":
            need[r["policy"]][r["trace"]] = int(r["need_bytes"]) / int(r["lower_bound_bytes"])
    return need


@claim("B13", "Fragmentation cannot be removed entirely.")
def b13(m):
    need = needs_over_bound(m)
    for macro, policy, what in (
            ("GapTorch", "torch", "PyTorch's default"),
            ("GapExpandable", "torch:expandable_segments:True", "expandable segments"),
            ("GapRemap", "remap", "a policy that remaps pages")):
        m.ratio(macro, statistics.geometric_mean(need[policy].values()),
                f"need over the lower bound, geometric mean, {what}", len(need[policy]),
                lambda v: f"{v:.3f}")
    least = min(statistics.geometric_mean(v.values()) for v in need.values())
    return PARTLY if least > 1 else WRONG, "no policy here reaches the bound, which does not " \
        "show that none could; pages of 2 MiB leave little"


@claim("B14", "Nsight Systems shows more detail.")
def b14(_):
    return NOT, "that tool was not run; it records calls of the driver, below the allocator"


# ---- article C: out of memory ----

@claim("C1", "memory_summary() shows allocated, available and cached memory of each device.")
def c1(m):
    r = m.data.run("summary")
    m.put("SummaryAvailable", "yes" if r["has_available"] else "no",
          "the text has a row of available memory")
    m.put("SummaryRows", str(len(r["rows"]) - 1), "kinds of rows that it has")
    return TRUE if r["has_available"] else PARTLY, \
        "allocated and reserved, of one device; free memory comes from mem_get_info()"


@claim("C2", "Nsight finds the layer with most memory, and leaks.")
def c2(_):
    return NOT, "that tool was not run; `fragsim top --by stack` and `fragsim leaks` answer " \
        "this from a snapshot"


@claim("C3", "Cached memory is not released and leads to OOM; empty_cache() forces garbage "
       "collection.")
def c3(m):
    rows = m.data.of("explain")
    now = [c for r in rows for c in r["changes"] if c[0] == "empty_cache" and "directly" in c[1]]
    served = sum(c[2] for c in now)
    m.count("EmptyServesNow", served, len(now),
            "failed requests that empty_cache() directly before them would have served")
    r = m.data.run("retried")
    m.bytes("RetriedCached", r["alone"]["cached"], "cache that a request released by itself")
    m.put("RetriedServed", "yes" if r["alone"]["served"] else "no",
          "the request was served, without empty_cache()")
    knot = m.data.run("emptied")["cycle_survives_empty_cache"]
    m.put("KnotSurvives", "yes" if knot else "no",
          "an unreachable object survives empty_cache()")
    return WRONG if not served and r["alone"]["served"] and knot else PARTLY, \
        "the allocator releases its cache and retries before it raises the error; garbage " \
        "collection is Python's"


@claim("C4", "Catch the error, halve the batch and try again.")
def c4(m):
    r = m.data.run("halved")
    m.put("HalvedBatches", ", ".join(str(t["batch"]) for t in r["tried"]),
          f"batches tried with a limit of {size(r['limit'])}; the last one fits",
          len(r["tried"]), "count", len(r["tried"]))
    done = not r["tried"][-1]["oom"]
    return TRUE if done else WRONG, "each failed try was freed and its cache emptied"


@claim("C5", "Gradient accumulation over four steps cuts the memory.")
def c5(m):
    pairs = [("gpt_b32_accumulate4", "gpt_b32"), ("cnn_b32_accumulate4", "cnn_b32"),
             ("cnn_b32_bf16_accumulate4", "cnn_b32_bf16")]
    _, _, most = m.range("Accumulate", compared(m.data, pairs),
                         "peak allocated, four of 8 against 32", change)
    return TRUE if most < 0.9 else PARTLY, "weights, gradients and the optimizer's state stay"


@claim("C6", "Mixed precision (AMP) halves the memory.")
def c6(m):
    found = compared(m.data, AMP)
    low, _, most = m.range("AmpPeak", found, "peak allocated with autocast, relative", change)
    halves = sum(v <= 0.55 for v in found)
    m.count("AmpHalves", halves, len(found), "pairs in which it falls by 45 % or more")
    return TRUE if halves == len(found) else PARTLY if low < 0.9 else WRONG, \
        "activations shrink, weights do not, and their copies in 16 bits come on top" + \
        ("; a stack of linear layers takes more" if most > 1 else "")


@claim("C7", "Depthwise-separable convolutions, pruning and quantisation save memory.")
def c7(m):
    conv = m.ratio("Separable", against(m.data, "separable_b32", "cnn_b32"),
                   "peak of training with separable convolutions, relative", 4, change)
    r = m.data.run("pruned")
    mask = m.ratio("PruneMasks", r["with_masks"] / r["weights"],
                   "weights with the masks of torch.nn.utils.prune, relative", 64)
    q = m.data.run("quantised")
    small = m.ratio("QuantInt", q["int8"] / q["fp32"], "weights as int8, relative", 1)
    good = [conv < 1, mask < 1, small < 1]
    return TRUE if all(good) else PARTLY if any(good) else WRONG, \
        "fewer weights do not mean fewer activations, and masks are stored beside the weights"


@claim("C8", "del, no_grad() and moving to the CPU free memory.")
def c8(m):
    r = m.data.run("lifetimes")
    m.bytes("CpuCopyHeld", r["after_cpu_copy"], "held of a tensor of 64 MiB after .cpu()")
    m.bytes("DelHeld", r["after_del"], "held after del")
    m.bytes("DelReserved", r["reserved_after_del"], "reserved after del")
    return TRUE if r["after_del"] == 0 and r["after_cpu_copy"] == 0 else PARTLY, \
        "a copy on the CPU frees nothing until the original is deleted, and the cache keeps " \
        "the bytes"


@claim("C9", "Data loading takes memory.")
def c9(m):
    r = m.data.run("pinned")
    m.bytes("PinnedDevice", r["device_used"], "GPU memory of 256 MiB of pinned host memory")
    m.bytes("Prefetched", r["prefetched"], "GPU memory of the same batches, prefetched")
    return PARTLY, "host memory, unless batches are moved to the GPU before their turn"


@claim("C10", "set_per_process_memory_fraction() limits the process, and CUDA graphs optimize "
       "memory.")
def c10(m):
    r = m.data.run("fraction")
    m.bytes("FractionLimit", r["limit"], "limit that was set")
    m.bytes("FractionUsed", r["used"], "in use on the device at that limit")
    with_, without = m.data.run("graphs_without"), m.data.run("graphs")
    with_, without = without, with_
    ratio = m.ratio("GraphsHeld", with_["reserved_after_empty_cache"] /
                    without["reserved_after_empty_cache"],
                    "reserved after empty_cache(), with five CUDA graphs over without", 5)
    good = [r["used"] <= r["limit"], ratio < 1]
    return TRUE if all(good) else PARTLY if r["reserved"] <= r["limit"] else WRONG, \
        "the limit holds for the caching allocator only; graphs keep private pools"


@claim("C11", "A CNN of 512 x 512: batch 8 failed, two changes allow 32, and 30 % more speed.")
def c11(m):
    held = {}
    for macro, name, what in (
            ("CnnCheckpoint", "cnn_b32_bf16_checkpoint", "bf16 and checkpointing"),
            ("CnnAccumulate", "cnn_b32_bf16_accumulate4", "bf16 and accumulation of four")):
        held[name] = m.ratio(macro + "Peak", against(m.data, name, "cnn_b8"),
                             f"peak of batch 32 with {what}, relative to 8 in fp32", 4, change)
        spent, n = m.data.turns("turns_cnn")
        m.ratio(macro + "Speed", 4 * spent["cnn_b8"] / spent[name],
                "its pictures a second, relative", n, change)
    fits = [v <= 1 for v in held.values()]
    fast = [r["value"] >= 1.3 for r in m.rows[1::2]]
    both = [a and b for a, b in zip(fits, fast)]
    return TRUE if all(both) else PARTLY if any(fits) or any(fast) else WRONG, \
        "the larger batch fits where the smaller failed only if its peak is not above that of " \
        "the smaller"


@claim("C12", "Accumulation costs time.")
def c12(m):
    found = []
    for group, one, other in (("turns_batch", "gpt_b32_accumulate4", "gpt_b32"),
                              ("turns_cnn", "cnn_b32_accumulate4", "cnn_b32"),
                              ("turns_cnn", "cnn_b32_bf16_accumulate4", "cnn_b32_bf16")):
        spent, _ = m.data.turns(group)
        found.append(spent[one] / spent[other])
    m.data.named("turns_batch", "turns_cnn")
    low, _, high = m.range("AccumulateTime", found, "step time, four of 8 against 32", change)
    return TRUE if low > 1.01 else PARTLY if high > 1.01 else WRONG, \
        "smaller kernels use the GPU less well"


@claim("C13", "First reduce the batch and call empty_cache(), then profile.")
def c13(m):
    rows = m.data.of("explain")
    served = collections.Counter()
    for r in rows:
        kinds = {(c[0], "directly" in c[1]) for c in r["changes"] if c[2]}
        served["now"] += ("empty_cache", True) in kinds
        served["step"] += ("empty_cache", False) in kinds
        served["setting"] += ("setting", False) in kinds
    for macro, key, what in (("FirstNow", "now", "empty_cache() before the request"),
                             ("FirstStep", "step", "empty_cache() at each step"),
                             ("FirstSetting", "setting", "a setting of the allocator")):
        m.count(macro, served[key], len(rows), f"failures that {what} avoids")
    return WRONG if served["now"] >= served["setting"] else PARTLY, \
        "a smaller batch lowers any peak; empty_cache() after the failure lowers none, and a " \
        "snapshot says which remedy serves"


# ---- article D: memory management and several GPUs ----

@claim("D1", "The allocator requests large chunks and subdivides them.")
def d1(m):
    rows = m.data.of("replay")
    each = [r["allocs"] / r["num_segment_alloc"] for r in rows]
    m.range("PerSegment", each, "requests for each segment taken", lambda v: f"{v:,.0f}")
    return TRUE if min(each) > 2 else WRONG, "segments are reused"


@claim("D2", "Gradients live until zero_grad().")
def d2(m):
    r = m.data.run("lifetimes")
    m.bytes("GradHeld", r["after_backward"], "gradients after backward()")
    m.bytes("GradZeroed", r["after_zero_grad_false"], "after zero_grad(set_to_none=False)")
    m.bytes("GradNone", r["after_zero_grad_true"], "after zero_grad(set_to_none=True)")
    return TRUE if r["after_zero_grad_true"] == 0 < r["after_zero_grad_false"] else PARTLY, \
        "they end only if they are set to None, which is the default"


@claim("D3", "A transfer between GPUs adds memory.")
def d3(m):
    r = m.data.run("pair")
    m.bytes("TransferFirst", r["after_transfer"][0], "allocated on the first GPU, of 64 MiB")
    m.bytes("TransferSecond", r["after_transfer"][1], "on the second GPU")
    return TRUE if min(r["after_transfer"]) > 0 else WRONG, "source and copy both live"


@claim("D4", "The cache is kept after a delete; every GPU has its own pool.")
def d4(m):
    r = m.data.run("pair")
    for number, macro in enumerate(("KeptFirst", "KeptSecond")):
        m.bytes(macro, r["reserved_after_del"][number], f"reserved on GPU {number} after del")
    return TRUE if min(r["reserved_after_del"]) > 0 and max(r["after_del"]) == 0 else WRONG, \
        "both GPUs keep their bytes"


@claim("D5", "The allocator caches up to 20 % more than the tensors need.")
def d5(m):
    rows = m.data.of("counters")
    over = [r["peak_reserved_bytes"] / r["peak_allocated_bytes"] - 1 for r in rows]
    m.range("Cached", over, "cached beyond peak allocated, at the peaks", share)
    above = m.count("CachedAbove", sum(v > 0.2 for v in over), len(over),
                    "runs with more than 20 %")
    default = [r["peak_reserved_bytes"] / r["peak_allocated_bytes"] - 1
               for r in m.data.of("replay")]
    m.range("CachedDefault", default, "the same, 20 programs with default settings", share)
    return WRONG if above else TRUE, "20 % is no bound. The larger number of runs includes settings of the allocator, also " \
        "unfavourable ones; the 20 programs have the default"


@claim("D6", "CUDA_LAUNCH_BLOCKING, NCCL_DEBUG and PYTHONMALLOC help with GPU memory.")
def d6(m):
    same = m.ratio("Variables", against(m.data, "variables_set", "variables"),
                   "peak allocated with all of them set, relative", 3)
    return PARTLY if same == 1 else TRUE, "they help to find errors; the memory on the GPU is " \
        "the same"


@claim("D7", "A thread that reads the memory once a second shows its peak.")
def d7(m):
    r = m.data.run("polled")
    seen = m.ratio("PollSeen", r["seen"]["1.0"]["allocated"] / r["true_allocated"],
                   "of the true peak of allocated bytes, seen by a poll each second",
                   r["seen"]["1.0"]["polls"], share)
    rows = [p for r in m.data.of("monitors", "") if not r["capacity_bytes"]
            for p in r["polls"]
            if p["signal"] == "allocated" and p["period_seconds"] == 1]
    m.ratio("PollLeast", statistics.median(p["least_seen_bytes"] / p["peak_bytes"]
                                           for p in rows),
            "least that such a poll sees of the peak, median of recordings", len(rows), share)
    return WRONG if seen < 0.99 or m.rows[-1]["value"] < 0.9 else TRUE, \
        "a peak lasts milliseconds; max_memory_allocated() keeps it"


@claim("D8", "Rank, world size and device of each process can be printed.")
def d8(m):
    rows = [m.data.run(f"ranks_{r}") for r in (0, 1)]
    good = sum(r["rank_and_world"] == [r["rank"], 2] and r["current_device"] == r["rank"]
               for r in rows)
    m.count("RanksRight", good, len(rows), "ranks that report their own rank and device")
    return TRUE if good == len(rows) else WRONG, "as set up by the program"


@claim("D9", "A list of losses leaks memory over the epochs; .item() is the fix.")
def d9(m):
    for macro, name, what in (("ItemGrowth", "item", "loss.item()"),
                              ("AppendGrowth", "append", "loss, after backward()"),
                              ("GraphGrowth", "graph", "loss, without backward()")):
        m.bytes(macro, m.data.run("losses_" + name)["bytes_a_step"],
                f"growth a step of a list of {what}", 60)
    item, append, graph = (r["value"] for r in m.rows)
    return TRUE if item == 0 < append < graph else PARTLY, \
        "after backward() a loss keeps its scalar only; without it, the whole graph"


@claim("D10", "With several GPUs one may be full while others are idle; free is total minus "
       "cached.")
def d10(m):
    r = next(r for r in m.data.of("ranks") if "multi_dp" in r["trace"])
    over = m.ratio("DpImbalance", r["imbalance"]["peak_reserved"]["max_to_mean_ratio"],
                   "largest over mean peak reserved of two GPUs under DataParallel", 2)
    c = m.data.run("context")
    m.bytes("FreeWrong", c["total_minus_reserved"] - c["free"],
            "total minus cached is above the true free memory by")
    return PARTLY if over > 1.05 else WRONG, "the imbalance is real, the formula forgets the " \
        "context and other libraries"


@claim("D11", "DistributedSampler balances the memory of the GPUs.")
def d11(m):
    rows = [m.data.run(f"ranks_{r}")["sampler"] for r in (0, 1)]
    for macro, kind in (("SamplerEqual", "equal"), ("SamplerDifferent", "different")):
        peaks = [r[kind] for r in rows]
        m.ratio(macro, max(peaks) / min(peaks),
                f"larger over smaller peak of two ranks, samples of {kind} lengths", 32)
    equal, different = (r["value"] for r in m.rows)
    return PARTLY if equal < 1.01 <= different else TRUE if different < 1.01 else WRONG, \
        "it deals out the same number of samples, not the same number of tokens"


@claim("D12", "Efficiency: default 60 %, empty_cache() 75 %, AMP 85 %, checkpointing 90 %.")
def d12(m):
    def used(names):
        ratios = [peak(m.data, n) / peak(m.data, n, "peak_reserved") for n in names]
        m.data.named(*names)
        return ratios

    rows = m.data.of("replay")
    found = {"Default": [r["peak_allocated_bytes"] / r["peak_reserved_bytes"] for r in rows]}
    m.range("EfficiencyDefault", found["Default"], "peak allocated over peak reserved, default",
            share)
    _, cached = m.data.table("empty_cache.csv", "paper/tables/empty_cache_table.py")
    found["Empty"] = [int(r["peak_allocated_bytes"]) / int(r["peak_reserved_bytes"])
                      for r in cached if r["period"] == "1"]
    m.range("EfficiencyEmpty", found["Empty"], "empty_cache() each step", share)
    for macro, what, pairs in (("Amp", "AMP", AMP),
                               ("Checkpoint", "checkpointing", CHECKPOINT)):
        found[macro] = used([one for one, _ in pairs])
        m.range("Efficiency" + macro, found[macro], what, share)
    said = {"Default": 0.6, "Empty": 0.75, "Amp": 0.85, "Checkpoint": 0.9}
    near = sum(abs(statistics.median(v) - said[k]) <= 0.05 for k, v in found.items())
    m.count("EfficiencyNear", near, len(said), "medians within 5 points of the article's figure")
    order = sorted(said, key=lambda k: statistics.median(found[k]))
    return TRUE if near == len(said) else WRONG if order != list(said) else PARTLY, \
        "checkpointing and AMP change what is needed, not how well the cache is used; each " \
        "range is wider than the differences of the table"


@claim("D13", "A decorator shows the increase and the peak of a function.")
def d13(m):
    r = m.data.run("lifetimes")
    m.bytes("FunctionDelta", r["function_delta"], "increase of a forward pass")
    m.bytes("FunctionOut", r["out_bytes"], "bytes of its output")
    m.bytes("FunctionPeak", r["function_peak"], "its peak")
    return TRUE if r["function_delta"] == r["out_bytes"] < r["function_peak"] else PARTLY, \
        "if the peak is reset before; the unit is MiB, not MB"


@claim("D14", "An all-reduce shows that NCCL works.")
def d14(m):
    rows = [m.data.run(f"ranks_{r}") for r in (0, 1)]
    good = sum(r["all_reduce_right"] for r in rows)
    m.count("AllReduce", good, len(rows), "ranks with the right sum")
    return TRUE if good == len(rows) else WRONG, "it says nothing about memory"


@claim("D15", "TensorBoard, wandb.watch(), Ray and Horovod monitor the memory.")
def d15(_):
    return NOT, "these products were not run, and the claim names no figure"


@claim("D16", "record_function(), export_chrome_trace() and the top ten by cuda_memory_usage "
       "show the phases.")
def d16(m):
    r = m.data.run("profiled")
    m.put("ChromeEvents", str(r["chrome_memory_events"]), "memory events in the trace of a step")
    m.put("ChromePhase", "yes" if r["chrome_has_phase"] else "no", "the phase is in the trace")
    good = r["chrome_memory_events"] > 0 and r["chrome_has_phase"] and \
        isinstance(r["table_cuda_memory_usage"], int)
    return TRUE if good else PARTLY, "`fragsim info` reads that trace"


@claim("D17", "Pruning in mid-run frees memory.")
def d17(m):
    r = m.data.run("pruned")
    m.ratio("PruneAllocated", r["rows_removed"] / r["weights"],
            "weights after half of the rows were removed", 64, share)
    stuck = r["reserved_after"] / r["rows_removed"]
    m.ratio("PruneReserved", stuck, "reserved over allocated then, after empty_cache()", 64)
    return PARTLY if stuck > 1.05 else TRUE, "the freed bytes lie between the weights that stay"


@claim("D18", "Serving reuses pooled memory over many requests.")
def d18(m):
    r = m.data.run("served")
    m.put("ServeCalls", f"{r['driver_allocs']:,} for {r['requests']:,}",
          "calls of cudaMalloc for all requests of memory in 300 requests served",
          r["driver_allocs"], "count", r["requests"])
    m.ratio("ServeGrowth", r["reserved_at"]["300"] / r["reserved_at"]["100"],
            "reserved after 300 requests over that after 100", 300)
    return TRUE if r["driver_allocs"] < r["requests"] / 20 else WRONG, \
        "the pool still grows late, when an unusual size comes"


@claim("D19", "Placing parts of a model on several GPUs lowers the memory of each.")
def d19(m):
    r = m.data.run("pair")
    most = m.ratio("SplitMost", max(r["split"]) / r["whole"][0],
                   "larger peak of two GPUs, relative to one GPU", 3, share)
    m.ratio("SplitLeast", min(r["split"]) / r["whole"][0], "smaller peak", 3, share)
    return TRUE if most < 0.9 else WRONG, "half of the layers is not half of the memory; " \
        "federated clients were not measured"


@claim("D20", "batch = 0.8 (8 GB - allocated) / (allocated / 32).")
def d20(m):
    rows = [r for r in m.data.of("counters") if r["batch"]]
    programs = collections.defaultdict(dict)
    for r in rows:
        programs[r["trace"].rsplit("_b", 1)[0]][r["batch"]] = r
    right = of = 0
    errors = []
    for found in programs.values():
        fits = [b for b, r in found.items() if not r["oom"]]
        fails = [b for b, r in found.items() if r["oom"]]
        limit = next(iter(found.values()))["limit_bytes"]
        if not fails:
            continue
        for b in fits:
            held = found[b]["peak_allocated_bytes"]
            said = 0.8 * (limit - held) / (held / b)
            of += 1
            right += max(fits) <= said < min(fails)
            errors.append(said / max(fits))
    m.count("FormulaRight", right, of,
            "batch sizes (limit 12 GiB instead of 8 GB) from which it finds the largest "
            "batch that fits")
    m.range("FormulaError", errors, "its batch over the largest that fits")
    return TRUE if right == of else PARTLY if right > of / 2 else WRONG, \
        "it counts weights as if they grew with the batch"


def warnings(data):
    """The polls of the jobs that died; those whose replay meets no OOM do not count."""
    return [p for r in data.of("monitors", " LIMIT") if r["capacity_bytes"]
            for p in r["polls"] if p["warned_ratio"] is not None]


@claim("D21", "Alerts on a threshold come in time to react.")
def d21(m):
    rows = [p for p in warnings(m.data)
            if p["signal"] == "reserved" and p["period_seconds"] == 1]
    always = sum(p["warned_ratio"] == 1 for p in rows)
    m.count("AlertAlways", always, len(rows),
            "failures before which every poll (90 % of reserved, each second) warns")
    m.ratio("AlertShare", statistics.median(p["warned_ratio"] for p in rows),
            "beginnings of the poll that warn, median", len(rows), share)
    return TRUE if always == len(rows) else PARTLY if always else WRONG, \
        "the recorded jobs died after seconds; a slower leak leaves more time"


@claim("D22", "Warn if allocated exceeds 90 % of the total, read every 10 s.")
def d22(m):
    rows = warnings(m.data)
    found = {}
    for macro, signal, period in (("WarnAllocatedSlow", "allocated", 10),
                                  ("WarnAllocated", "allocated", 1),
                                  ("WarnReserved", "reserved", 1)):
        some = [p for p in rows if p["signal"] == signal and p["period_seconds"] == period]
        found[macro] = m.count(macro, sum(p["warned_ratio"] > 0 for p in some), len(some),
                               f"failures of which any poll of {signal} bytes every "
                               f"{period} s warns")
    of = len([p for p in rows if p["signal"] == "allocated"]) / 2
    return TRUE if found["WarnAllocatedSlow"] > 0.9 * of else WRONG, \
        "a fragmented job fails while allocated is far below the total; reserved is the better " \
        "signal. The jobs ran for seconds, so a slow poll rarely meets them at all"


@claim("D23", "Up to 40 % less overhead of allocation than naive cudaMalloc.")
def d23(m):
    calls = m.data.run("calls")["seconds"]
    saved = [1 - c["caching"] / c["naive"] for c in calls.values()]
    least, _, _ = m.range("CallSaved", saved,
                          "time saved for one allocation and release, 4 KiB to 256 MiB", share)
    spent, n = m.data.turns("turns_allocator")
    m.time("StepTime", spent["gpt_bf16"], "training step with the cache", n)
    m.ratio("StepNaive", spent["gpt_bf16@nocache"] / spent["gpt_bf16"],
            "training step without the cache, relative time", n)
    m.ratio("StepPool", spent["gpt_bf16@async"] / spent["gpt_bf16"],
            "training step with cudaMallocAsync, relative time", n)
    spent, n = m.data.turns("turns_serve")
    m.time("ServeStepTime", spent["serve"], "request served with the cache", n)
    m.ratio("ServeStepNaive", spent["serve@nocache"] / spent["serve"],
            "request served without the cache, relative time", n)
    return WRONG if least > 0.5 else TRUE, "a call costs far less; how much a whole step gains " \
        "depends on the program, up to several times"


@claim("D24", "AMP: 30 to 50 % less memory, 15 to 20 % more speed.")
def d24(m):
    saved = [1 - v for v in compared(m.data, AMP)]
    m.range("AmpSaved", saved, "peak allocated saved", share)
    inside = m.count("AmpInside", sum(0.3 <= v <= 0.5 for v in saved), len(saved),
                     "pairs from 30 to 50 %")
    speed = [1 / v - 1 for v, _ in time_pairs(m.data, AMP).values()]
    m.range("AmpSpeed", speed, "more steps a second", share)
    fast = m.count("AmpFast", sum(0.15 <= v <= 0.2 for v in speed), len(speed),
                   "pairs from 15 to 20 %")
    return TRUE if inside == len(saved) and fast == len(speed) else \
        PARTLY if inside + fast else WRONG, "both depend on the program, in both directions"


@claim("D25", "Checkpointing: 80 % less memory, 20 to 30 % slower.")
def d25(m):
    saved = [1 - v for v in compared(m.data, CHECKPOINT)]
    _, _, most = m.range("CheckpointSaved", saved, "peak allocated saved", share)
    slow = [v - 1 for v, _ in time_pairs(m.data, CHECKPOINT).values()]
    m.range("CheckpointSlow", slow, "more time a step", share)
    near = m.count("CheckpointSlowInside", sum(0.2 <= v <= 0.3 for v in slow), len(slow),
                   "pairs from 20 to 30 % slower")
    return TRUE if min(saved) >= 0.75 else PARTLY if near or most >= 0.75 else WRONG, \
        ("no pair saves as much; " if most < 0.75 else "") + \
        "weights, the optimizer's state and the outputs are not checkpointed"


@claim("D26", "Communication takes 10 to 15 % of the memory in distributed training.")
def d26(m):
    rows = [m.data.run(f"ranks_{r}") for r in (0, 1)]
    nccl = statistics.mean(r["outside_after_all_reduce"] - r["outside_before_nccl"]
                           for r in rows)
    m.bytes("Nccl", nccl, "memory that NCCL takes outside of the allocator", len(rows))
    shares = {}
    for layers, size_ in ((1, "one layer"), (8, "eight layers")):
        for kind in ("ddp", "fsdp"):
            runs = [r[f"{kind}_{layers}"] for r in rows]
            if any("error" in r for r in runs):
                raise Missing(f"{kind} failed")
            shares[kind, layers] = nccl / statistics.mean(r["used"] for r in runs)
            m.ratio(f"Nccl{kind.title()}{'Small' if layers == 1 else 'Large'}",
                    shares[kind, layers], f"NCCL in all memory used, {kind.upper()}, {size_}",
                    len(rows), share)
    used = rows[0]["ddp_8"]["used"]
    held = [r for r in m.data.of("top", "ranks_ddp.pickle.xz --by stack")
            if r["trace"] == "ranks_ddp.pickle.xz"]
    if not held:
        raise Missing("the snapshot of a rank was not read")
    buckets = sum(size_ for _, size_ in held[0]["groups"]) / used
    m.ratio("Buckets", buckets, "DDP's buckets in all memory used, at the peak, eight layers",
            1, share)
    both = m.ratio("Communication", buckets + shares["ddp", 8], "both, DDP, eight layers", 1,
                   share)
    values = [*shares.values(), both]
    inside = sum(0.1 <= v <= 0.15 for v in values)
    return TRUE if inside == len(values) else PARTLY if inside else WRONG, \
        "there is no fixed share: NCCL takes a fixed part, and DDP's buckets grow with the " \
        "gradients"


@claim("D27", "TensorFlow's memory is more predictable than PyTorch's.")
def d27(_):
    return NOT, "TensorFlow was not run, and its allocator's rule says nothing about its programs"


@claim("D28", "nvidia-smi, gpustat and nvtop show the memory of the program.")
def d28(m):
    r = m.data.run("context")
    if r["nvml_used"] is None:
        raise Missing("NVML was not there")
    for macro, key, what in (("NvmlUsed", "nvml_used", "used, as NVML (nvidia-smi) says"),
                             ("NvmlReserved", "reserved", "reserved by PyTorch"),
                             ("NvmlAllocated", "allocated", "held by tensors")):
        m.bytes(macro, r[key], what)
    return PARTLY if r["nvml_used"] > 1.05 * r["allocated"] else TRUE, \
        "they show what is taken from the device, with cache and context, not what tensors " \
        "hold; FairScale and DeepSpeed were not run"


@claim("D29", "Test memory strategies under realistic workloads before production.")
def d29(m):
    _, rows = m.data.table("tune_halves.csv", "paper/tables/tune_table.py")
    some = [r for r in rows if r["group"] == "default" and r["settings"] == "no VMM"]
    m.count("HeldOutWorse", sum(int(r["ladder_bytes"]) > int(r["default_bytes"]) for r in some),
            len(some), "settings without expandable segments that were chosen on the first half "
            "of a run and are worse than the default on the second half")
    return PARTLY if m.rows[0]["value"] else WRONG, "what helps on one part of a run can hurt " \
        "on another; production was not observed"


# The ten that matter most to a reader who tunes a job, in the order of the page.
TEN = {"D5": "Cached", "D23": "Overhead", "D12": "Strategies", "C3": "Release",
       "A12": "Period", "C6": "Amp", "D25": "Checkpoint", "B9": "Coalesce", "D22": "Alert",
       "D26": "Communication"}
