"""inside_page.py: the page that inside_torch.py makes from its rows."""
import csv
import json
import os
import statistics
from collections import Counter

from lockstep import median_interval, total_interval

WARM = 5  # rounds of a sitting that no ratio is taken from: caches fill in them
AIM = 1.01  # of a step
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
}
LOOPS = {  # what allocators.py calls it
    "default": "PyTorch", "expandable": "PyTorch:expandable_segments:True",
    "remap": "PyTorch over remap", "torch": "PyTorch over torch"}
COMPACT = ("remap", "page8", "page16", "early")  # meant to reach the aim
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
    """{(sitting, step): answers by side}: a side that is in few rounds is held against
    the others' same steps, which had the same work."""
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
    """(seconds of the side, of PyTorch's default) by round: of its two processes the
    mean, but for the second default, which is held against the first."""
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
    """Driver calls a step and what they took; PyTorch does not time its own."""
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
    """{side: {steps made: {(reserved, allocated)}}}; of programs that all came to their
    end only that, as step 0."""
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
    """The last step that each side has made."""
    return min(max(made) for made in peaks.values())


def ratios(peaks):
    return ", ".join(f"{p / q:.3f}" for p, q in sorted(peaks))


def memory_cells(peaks, side):
    """After the last step of all sides, and after its own."""
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
    """What two processes of the same kind differ by, and how many rounds there
    were."""
    for workload in workloads(rows, "round"):
        rounds = rounds_of(rows, workload)
        sittings = {r["sitting"] for r in of(rows, "round", workload)}
        pairs = pairs_of(rounds, "again")
        if pairs:
            spread = sorted(a / b for a, b in pairs)
            yield (f"- `{workload}`: {len(pairs)} rounds in {len(sittings)} "
                   f"sittings of fresh processes; one default against the other: "
                   f"{ranged(median_interval(spread))} %, half of the rounds "
                   f"between {percent(spread[len(spread) // 4])} and "
                   f"{percent(spread[3 * len(spread) // 4])} %.")


# ---- the allocator's part of a step ----

def loops_of(path):
    """ns a request by recording and allocator, in passes that keep the cache."""
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
    """What a side spends in its allocator: means of a step. The driver's calls are
    timed in each step, all else in some."""

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
        """Than PyTorch's default, in % of the step: as timed in the program, and by
        the loops."""
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
    """Of its steps those of no driver call, in %."""
    calls = [r[side]["calls"] for r in rounds if side in r]
    return 100 * calls.count(0) / len(calls)


def verdicts(rows, loops):
    """The aim: at most 1.02 times of what is allocated, a step at most 1 % longer."""
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
    """What two lists of losses or token hashes differ in."""
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
                   f"PyTorch made {r['history']['alloc']} segments and gave back "
                   f"{r['history']['free']}; the trace has {r['trace']['alloc']} "
                   f"and {r['trace']['free']}. {others(r['others'])}")
    for r in of(rows, "end"):
        if "trace" in r and r["workload"] not in PROGRAMS:
            yield (f"- `{r['workload']}` in turns: PyTorch counts {r['allocs']} "
                   f"device allocations and {r['frees']} frees, the trace "
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
        return "PyTorch's are NOT all in the trace in their order."
    if not left:
        return "They are the same, in order."
    sizes = ", ".join(f"{n} B" for n in sorted({n for _, n in left}))
    return (f"PyTorch's are all in it, in order; the other {len(left)} are "
            f"requests of the libraries under it ({sizes}).")


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

{about}; made by `paper/inside_torch.py` from `data/inside_torch.jsonl`.

A process a side, all on one GPU at once, advance in turn, one step of training or one
token each (`lockstep.py`): what slows the machine slows all sides of a round. The order
goes through a Williams design. Some sides take a turn in every fourth round only and are
held against the same steps of the others. All sides take their turns on the same core,
since two cores differ. A step's time is taken from the turn to the end of the device's
work. Its ratio is to the mean of two processes with PyTorch's default in the same round;
the median of the ratios has a 95 % interval of order statistics, the ratio of all seconds
one of a bootstrap over rounds. The first {warm} rounds of a sitting are not counted.
`within 1 %` is `yes` or `no` where the whole interval says so, of the median and of all
steps.

## Memory and time

{times}

What can be told apart:

{resolution}

Of PyTorch's allocators the driver calls are its own counts (num_device_alloc and
num_device_free), of ours every memory call of the driver, mapping and unmapping too, and
their time has the waits for the device in it that an unmap needs. Peaks are those after
the last step that each side has made, and after its own last one, as fragmentation grows.

## The allocator's part of a step

{parts}

Timed in the program: the driver's calls in each step; all else in every fourth, from the
start of our `alloc` and `free` to their end, the lock and a reading of the clock (20 to 30
ns) in it. PyTorch's own are not timed in the program. In a loop: the recording of the same
workload through PyTorch's `raw_alloc` and `raw_delete` alone, the cache kept
(`allocators.py`); for ours PyTorch's table of what a pluggable allocator gave is in it.

The aim was at most 1.02 times of what is allocated, at a step at most 1 % longer:

{verdicts}

What a loop shows is of warm caches: `torch`, the same algorithm, takes a quarter to a half
more in the program than in its loop. So what stands as more than PyTorch's loop is more
than it costs, and the clock decides. `page` is what `remap` maps at once, and each map and
unmap costs the driver the same whatever its size: larger pages make fewer calls, and leave
more of the last page of a block unused. In a program of 1 GiB (`generate`) that is too much,
and there pages of 2 MiB make none; in one of 10 GiB pages of 8 MiB make a third of the
calls. Bursts are what is left: the steps that make calls make hundreds.

## Losses

{losses}

`sums in one order`: PyTorch's deterministic algorithms, attention in plain products, and
nothing compiled, which torchvision would do with its deterministic roi_align for a minute.
Values are of the loss of each step, of `generate` all tokens of each call. With the
kernels as they are two runs of PyTorch's default differ as well: the line of `PyTorch,
default once more` says by how much.

## The recorder

{recorded}

{program}

A step of the C program makes 32 calls that are recorded. Two processes of it differ by
more than the recorder takes, from their start to their end; so it also takes steps with
the recorder's calls and with the driver's own in one process, in turn.
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
