"""inside_page.py: makes the page of inside_torch.py from its rows."""
import csv
import json
import os
import statistics
from collections import Counter

from lockstep import median_interval, total_interval

WARM = 5  # first rounds of a series, without ratios: the caches fill
AIM = 1.01  # ratio of step times
MEMORY_AIM = 1.02
BOTH = ("default", "again")  # PyTorch's default, twice
NAMES = {
    "default": "PyTorch, default",
    "again": "PyTorch, default once more",
    "expandable": "PyTorch, `expandable_segments:True`",
    "remap": "fragsim, `remap`",
    "page16": "fragsim, `remap:page=16MiB`",
    "page8": "fragsim, `remap:page=8MiB`",
    "early": "fragsim, `remap:lodge=early`",
    "torch": "fragsim, `torch`",
    "recorded": "PyTorch, default, under `fragsim record`",
    "full": "fragsim, `remap:pack=full`",
    "full110": "fragsim, `remap:pack=full`, capacity 1.1 times the peak",
    "full102": "fragsim, `remap:pack=full`, capacity 1.02 times the peak",
}
LOOPS = {  # the names in allocators.py
    "default": "PyTorch", "expandable": "PyTorch:expandable_segments:True",
    "remap": "PyTorch over remap", "torch": "PyTorch over torch"}
COMPACT = ("remap", "page8", "page16", "early")  # these should reach the aim
PROGRAMS = {"both": "a step, in one process", "work": "a step, a process each",
            "whole": "a whole run of 100 steps"}


def of(rows, kind, workload=None):
    return [r for r in rows if r["kind"] == kind
            and workload in (None, r.get("workload"))]


def workloads(rows, kind):
    return [w for w in dict.fromkeys(r["workload"] for r in of(rows, kind))
            if w not in PROGRAMS]


# ---- times ----

def steps_of(rows, workload):
    """{(sitting, step): answers by side}: a side that runs in few rounds is compared
    with the same steps of the others, which do the same work."""
    held, taken = {}, Counter()
    for r in of(rows, "round", workload):
        for side, found in r["sides"].items():
            step = taken[r["sitting"], side]
            taken[r["sitting"], side] += 1
            if step >= WARM:
                held.setdefault((r["sitting"], step), {})[side] = found
    return held


def rounds_of(rows, workload):
    held = steps_of(rows, workload)
    return [held[key] for key in sorted(held)]


def pairs_of(rounds, side):
    """(seconds of the side, seconds of PyTorch's default) by round. The default is
    the mean of its two processes, except for the second default, which is compared
    with the first."""
    against = BOTH[:1] if side == "again" else BOTH
    return [(r[side]["seconds"],
             statistics.mean(r[b]["seconds"] for b in against))
            for r in rounds if all(s in r for s in (side, *against))]


def percent(ratio):
    return f"{100 * (ratio - 1):+.2f}"


def ranged(found):
    """A ratio and its interval, as percent above 1."""
    middle, interval = found
    if not interval:
        return f"{percent(middle)} (too few rounds)"
    return f"{percent(middle)} ({percent(interval[0])} to {percent(interval[1])})"


def verdict(interval):
    """Whether the ratio is at most AIM."""
    if not interval or interval[0] <= AIM < interval[1]:
        return "open"
    return "yes" if interval[1] <= AIM else "no"


def time_cells(rounds, side):
    """Median step in ms, both ratios, the verdicts on them."""
    pairs = pairs_of(rounds, side)
    if not pairs:
        return ["-"] * 4
    step = f"{1e3 * statistics.median(s for s, _ in pairs):.2f}"
    if side == "default":
        return [step, "", "", ""]
    middle = median_interval([a / b for a, b in pairs])
    total = total_interval(pairs)
    return [step, ranged(middle), ranged(total),
            f"{verdict(middle[1])}, {verdict(total[1])}"]


def driver_cells(rounds, side):
    """Driver calls per step and their time; PyTorch does not time its calls."""
    mine = [r[side] for r in rounds if side in r and "calls" in r[side]]
    if not mine:
        return ["-", "-"]
    calls = statistics.mean(m["calls"] for m in mine)
    if "ns" not in mine[0]:
        return [f"{calls:.2f}", ""]
    took = sum(m["ns"] for m in mine) * 1e-9
    return [f"{calls:.2f}", f"{1e3 * took / len(mine):.2f} "
            f"({100 * took / sum(m['seconds'] for m in mine):.2f} %)"]


def peaks_of(rows, workload):
    """{side: {steps made: {(reserved, allocated)}}}. If all programs came to their
    end, only the values at the end, as step 0."""
    ends = of(rows, "end", workload)
    if len({len(r["values"]) for r in ends}) == 1:
        found = [(r["side"], 0, r) for r in ends]
    else:
        found = [(side, step + 1, r)
                 for (_, step), sides in steps_of(rows, workload).items()
                 for side, r in sides.items()]
    peaks = {}
    for side, step, r in found:
        peaks.setdefault(side, {}).setdefault(step, set()).add(
            (r["peak_reserved"], r["peak_allocated"]))
    return peaks


def step_of_all(peaks):
    """The last step that all sides have made."""
    return min(max(made) for made in peaks.values())


def ratios(peaks):
    return ", ".join(f"{p / q:.3f}" for p, q in sorted(peaks))


def memory_cells(peaks, side):
    """Memory after the last step that all sides made, and after the own last step."""
    made = peaks.get(side)
    if not made:
        return ["-"] * 3
    same, last = made[step_of_all(peaks)], max(made)
    return [", ".join(f"{p / 2**30:.3f}" for p, _ in sorted(same)), ratios(same),
            f"{ratios(made[last])} ({last or 'its end'})"]


def worst_ratio(peaks, side):
    made = peaks[side]
    return max(p / q for step in (step_of_all(peaks), max(made))
               for p, q in made[step])


def line(cells):
    return "| " + " | ".join(cells) + " |"


def times(rows):
    yield from ["| workload | allocator | reserved, GiB | / allocated | / allocated at "
                "last (steps) | step, ms | median ratio, % above 1 | all steps, % "
                "above 1 | within 1 % | driver calls a step | ms in them (of the step) "
                "|", "|---|---|---:|---:|---:|---:|---|---|---|---:|---|"]
    for workload in workloads(rows, "round"):
        rounds = rounds_of(rows, workload)
        peaks = peaks_of(rows, workload)
        sides = [s for s in NAMES if any(s in r for r in rounds)]
        for side in sides:
            yield line([f"`{workload}`", NAMES[side],
                        *memory_cells(peaks, side),
                        *time_cells(rounds, side),
                        *driver_cells(rounds, side)])


def resolution(rows):
    """The difference between two processes of the same kind, and the number of
    rounds."""
    for workload in workloads(rows, "round"):
        rounds = rounds_of(rows, workload)
        sittings = {r["sitting"] for r in of(rows, "round", workload)}
        pairs = pairs_of(rounds, "again")
        if pairs:
            spread = sorted(a / b for a, b in pairs)
            yield (f"- `{workload}`: {len(pairs)} rounds in {len(sittings)} "
                   f"series of new processes; ratio of one default to the other: "
                   f"{ranged(median_interval(spread))} %, half of the rounds "
                   f"between {percent(spread[len(spread) // 4])} and "
                   f"{percent(spread[3 * len(spread) // 4])} %.")


# ---- the allocator's part of a step ----

def loops_of(path):
    """ns per request by recording and allocator, in passes that keep the cache."""
    if not os.path.exists(path):
        return {}
    found = {}
    with open(path, encoding="utf-8") as file:
        for r in csv.DictReader(l for l in file if not l.startswith("#")):
            if r.get("steady_ns_per_event"):
                found.setdefault((r["trace"], r["allocator"]), []).append(
                    float(r["steady_ns_per_event"]))
    return {key: statistics.median(ns) for key, ns in found.items()}


class Part:
    """The time of a side in its allocator: means of a step. The driver's calls are
    timed in each step, all else in some steps."""

    def __init__(self, rounds, side, loop):
        mine = [r[side] for r in rounds if side in r]
        timed = [m for m in mine if m.get("timed_calls")]
        counted = timed or [m for m in mine if "requests" in m]
        self.known, self.loop = bool(counted), loop
        self.inside = self.looped = None
        if not counted:
            return
        self.step = 1e3 * statistics.mean(m["seconds"] for m in mine)
        self.requests = statistics.mean(
            m["timed_calls" if timed else "requests"] for m in counted)
        self.looped = loop and self.requests * loop * 1e-6
        if timed:
            self.own = 1e-6 * statistics.mean(m["timed_ns"] - m["ns"]
                                              for m in timed)
            self.inside = self.own + 1e-6 * statistics.mean(m["ns"]
                                                            for m in mine)

    def share(self, ms):
        return "-" if ms is None else f"{ms:.2f} ({100 * ms / self.step:.2f} %)"

    def more(self, own):
        """The difference to PyTorch's default, in % of the step: as timed in the
        program, and by the loops."""
        return [f"{100 * (ms - own.looped) / self.step:+.2f}"
                if ms is not None and own.looped else ""
                for ms in (self.inside, self.looped)]


def parts(rows, loops):
    yield from ["| workload | allocator | step, ms | requests and frees a step | ms "
                "timed in the program (of the step) | ns each in a loop | ms by the "
                "loop (of the step) | more than PyTorch's, timed, % of the step | by "
                "the loops |", "|---|---|---:|---:|---|---:|---|---:|---:|"]
    for workload in workloads(rows, "round"):
        rounds = rounds_of(rows, workload)
        found = {side: Part(rounds, side, loops.get((workload, LOOPS.get(side))))
                 for side in NAMES if side not in ("again", "recorded")}
        for side, part in found.items():
            if part.known:
                yield line([
                    f"`{workload}`", NAMES[side], f"{part.step:.2f}",
                    f"{part.requests:,.0f}", part.share(part.inside),
                    f"{part.loop:,.0f}" if part.loop else "-",
                    part.share(part.looped),
                    *(part.more(found["default"])
                      if found["default"].known else ["", ""])])


def quiet_share(rounds, side):
    """The share of its steps without a driver call, in %."""
    calls = [r[side]["calls"] for r in rounds if side in r]
    return 100 * calls.count(0) / len(calls)


def verdicts(rows, loops):
    """The aim: reserve at most 1.02 times the allocated memory, in steps at most 1 %
    longer."""
    yield from ["| workload | policy | / allocated, at most | within 1.02 | step by the "
                "clock, median, % above 1 | within 1 %, median and all steps | in the "
                "allocator more than PyTorch's loop, % of a step | in the driver's calls "
                "| steps without one |", "|---|---|---:|---|---|---|---:|---:|---:|"]
    for workload in workloads(rows, "round"):
        rounds, peaks = rounds_of(rows, workload), peaks_of(rows, workload)
        own = Part(rounds, "default", loops.get((workload, LOOPS["default"])))
        for side in COMPACT:
            ours = Part(rounds, side, None)
            if side not in peaks or ours.inside is None:
                continue
            memory = worst_ratio(peaks, side)
            clock = time_cells(rounds, side)
            yield line([f"`{workload}`", NAMES[side], f"{memory:.3f}",
                        "yes" if memory <= MEMORY_AIM else "no", clock[1], clock[3],
                        f"{100 * (ours.own - own.looped) / ours.step:+.2f}"
                        if own.looped else "-",
                        f"{100 * (ours.inside - ours.own) / ours.step:.2f}",
                        f"{quiet_share(rounds, side):.0f} %"])


# ---- losses ----

def difference(mine, reference):
    """The difference between two lists of losses or token hashes."""
    n = min(len(mine), len(reference))
    wrong = [i for i in range(n) if mine[i] != reference[i]]
    if not wrong:
        return f"equal in {n}"
    if isinstance(mine[0], str):
        return f"{n - len(wrong)} of {n} equal"
    largest = max(abs(mine[i] - reference[i]) / abs(reference[i])
                  for i in wrong)
    return (f"equal in the first {wrong[0]} of {n}, then by up to "
            f"{largest:.1e} of the loss")


def losses(rows):
    yield from ["| workload | kernels | allocator | losses against PyTorch's "
                "default |", "|---|---|---|---|"]
    for kind, kernels in (("losses", "sums in one order"), ("end", "as they are")):
        for workload in workloads(rows, kind):
            values = {r["side"]: r["values"]  # the last of each
                      for r in of(rows, kind, workload) if r.get("values")}
            for side in NAMES:
                if side != "default" and {side, "default"} <= set(values):
                    yield line([f"`{workload}`", kernels, NAMES[side],
                                difference(values[side], values["default"])])


# ---- the recorder ----

def recorded(rows):
    for r in of(rows, "losses"):
        if "trace" in r:
            yield (f"- `{r['workload']}` with the allocator's own history on: "
                   f"PyTorch allocated {r['history']['alloc']} segments and freed "
                   f"{r['history']['free']}; the trace has {r['trace']['alloc']} "
                   f"and {r['trace']['free']}. {others(r['others'])}")
    for r in of(rows, "end"):
        if "trace" in r and r["workload"] not in PROGRAMS:
            yield (f"- `{r['workload']}` in turns: PyTorch counts {r['allocs']} "
                   f"device allocations and {r['frees']} frees, the trace has "
                   f"{r['trace']['alloc']} and {r['trace']['free']}.")
    for r in of(rows, "end"):
        if "trace" in r and r["workload"] in PROGRAMS:
            same = [r["allocs"], r["frees"]] == [r["trace"]["alloc"],
                                                r["trace"]["free"]]
            yield (f"- The CUDA program in C, {PROGRAMS[r['workload']]}: "
                   f"{r['allocs']} requests and {r['frees']} frees; the trace has "
                   f"{'the same' if same else r['trace']}.")


def others(left):
    if left is None:
        return "PyTorch's requests are NOT all in the trace in their order."
    if not left:
        return "The requests are the same, in order."
    sizes = ", ".join(f"{n} B" for n in sorted({n for _, n in left}))
    return (f"PyTorch's requests are all in it, in order; the other {len(left)} "
            f"requests come from the libraries under it ({sizes}).")


def program_times(rows):
    yield from ["| the CUDA program in C | ms without | runs or steps | with the "
                "recorder, % above 1 | within 1 % | us more a step or run | without "
                "it once more |", "|---|---:|---:|---|---|---:|---|"]
    for workload, what in PROGRAMS.items():
        rounds = rounds_of(rows, workload)
        pairs = pairs_of(rounds, "recorded")
        if pairs:
            middle = median_interval([a / b for a, b in pairs])
            more = statistics.median(a - b for a, b in pairs)
            yield line([what, time_cells(rounds, "default")[0],
                        str(len(rounds)), ranged(middle), verdict(middle[1]),
                        f"{1e6 * more:.1f}", time_cells(rounds, "again")[1]])


# ---- the page ----

TEXT = """# Policies of fragsim inside PyTorch

{about}; made by `paper/gpu/inside_torch.py` from `paper/data/inside_torch.jsonl`.

Each allocator has its own process. All processes run on one GPU at once and advance
in turns of one training step or one token each (`lockstep.py`). So a disturbance of
the machine slows down all processes of a round. The order within the rounds goes
through a Williams design. Some processes run in every fourth round only and are
compared with the same steps of the others. All processes use the same core for their
turns, since two cores differ in speed. The time of a step goes from the start of the
turn to the end of the device's work. Its ratio is to the mean of two processes with
PyTorch's default in the same round. The median of the ratios has a 95 % interval of
order statistics; the ratio of all seconds has a 95 % interval of a bootstrap over
rounds. The first {warm} rounds of a series are not counted. `within 1 %` is `yes` or
`no` if the whole interval is on that side of the limit, first for the median, then
for all steps.

## Memory and time

{times}

The resolution of these measurements:

{resolution}

For PyTorch's allocators, the driver calls are PyTorch's own counts (num_device_alloc
and num_device_free). For fragsim's policies they are all memory calls of the driver,
including maps and unmaps, and their time includes the waits for the device that an
unmap needs. Fragmentation grows with time, so peaks are listed twice: after the last
step that all allocators reached, and after the allocator's own last step.

## The allocator's part of a step

{parts}

Timed in the program: the driver's calls in each step, and all else in every fourth
step. These times go from the start of fragsim's `alloc` and `free` to their end, with
the lock and one reading of the clock (20 to 30 ns). PyTorch's own allocator is not
timed in the program. In a loop: the recording of the same workload, replayed through
PyTorch's `raw_alloc` and `raw_delete` alone, with the cache kept (`allocators.py`).
For fragsim's policies this includes PyTorch's table of the blocks of a pluggable
allocator.

The aim was to reserve at most 1.02 times the allocated memory, with steps at most 1 %
longer:

{verdicts}

A loop runs with warm caches: `torch`, the same algorithm, takes a quarter to a half
more time in the program than in its loop. So the column about PyTorch's loop
overstates the cost, and the clock decides. `page` is the size that `remap` maps at
once. A map or an unmap costs the driver the same at every size, so larger pages mean
fewer calls, but leave more of the last page of a block unused. In a program of 1 GiB
(`generate`) that is too much, and pages of 2 MiB make no calls there. In a program of
10 GiB, pages of 8 MiB make a third of the calls. Bursts remain: a step that makes
calls makes hundreds.

## Losses

{losses}

`sums in one order` uses PyTorch's deterministic algorithms, attention in plain
products, and no compilation, since torchvision would compile for a minute with its
deterministic roi_align. The values are the loss of each step, and for `generate` all
tokens of each call. With the kernels as they are, two runs of PyTorch's default differ
too; the row of `PyTorch, default once more` shows by how much.

## The recorder

{recorded}

{program}

A step of the C program makes 32 recorded calls. Two processes of this program differ
by more than the cost of the recorder, from start to end. So one process also alternates
between steps with the recorder's calls and steps with the driver's own.
{failed}"""


def failures(rows):
    found = of(rows, "failed")
    if not found:
        return ""
    return "\n## What failed\n\n" + "\n".join(
        f"- `{r['workload']}`, {r['what']}, {r['side']}: "
        f"{r['words'].splitlines()[-1][:200]}" for r in found) + "\n"


def where(rows):
    found = of(rows, "about")
    a = found[0]
    return (f"PyTorch {a['torch']}, driver {a['driver']}, {a['cores']} cores, "
            f"{', '.join(sorted({r['date'] for r in found}))}")


def page(rows, loops):
    return TEXT.format(about=where(rows), warm=WARM,
                       times="\n".join(times(rows)),
                       resolution="\n".join(resolution(rows)),
                       parts="\n".join(parts(rows, loops)),
                       verdicts="\n".join(verdicts(rows, loops)),
                       losses="\n".join(losses(rows)),
                       recorded="\n".join(recorded(rows)),
                       program="\n".join(program_times(rows)),
                       failed=failures(rows))


def make_page(path, out):
    with open(path, encoding="utf-8") as file:
        text = page([json.loads(l) for l in file],
                    loops_of(os.path.join(os.path.dirname(path),
                                          "device_pytorch.csv")))
    with open(out, "w", encoding="utf-8") as file:
        file.write(text)
