#!/usr/bin/env python3
"""steps_table.py: what a step costs under policy `expandable` and under PyTorch's
expandable segments, close to the limit of the process and far from it.

  steps_table.py
    pages/steps.md from data/steps.csv, data/steps_ends.csv, data/steps_ranks.csv
  steps_table.py import STEPS.jsonl DEVICE DRIVER DATE COMMIT
    the first two from the rows of gpu/steps.py
  steps_table.py ranks ROWS.jsonl DEVICE DRIVER DATE COMMIT
    the third from the rows of gpu/ranks.py
"""
import collections
import json
import math
import os
import random
import sys

from data_header import measured, read_csv, write_csv
from lockstep import total_interval
from places import DATA, PAGES

STEPS, ENDS, RANKS = (os.path.join(DATA, name) for name in
                      ("steps.csv", "steps_ends.csv", "steps_ranks.csv"))
SIDES = {"fragsim": "`expandable`", "segments": "expandable segments",
         "pages12": "expandable segments with pages of 12 MiB"}
BOUNDS = ["1.02", "1.05", "1.1"]
END = ["program", "group", "side", "outcome", "reserved", "allocated", "retries",
       "created", "released", "driver_calls", "driver_ns", "first_calls", "first_ns"]
OOM = ("OutOfMemoryError", "docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory",
       "no room for")  # words of PyTorch's and of the class's error
HEAD = """# What a step costs, close to the limit

{about}; two GPUs: {about_ranks}; made by `paper/tables/steps_table.py` from
`paper/data/steps.csv`, `paper/data/steps_ends.csv` and `paper/data/steps_ranks.csv`.

Ten programs (`gpu/truth_programs.py`, `gpu/real_programs.py`) under a limit of the
process of so many times the peak that PyTorch's default allocates. All sides of a program
are at work on one GPU and advance in turns of a step (`lockstep.py`); a cell is the sum
of the steps over that of the default without a limit in the same rounds, and in brackets
a bootstrap interval of 95 %. All steps count but the first, which makes the model and
loads kernels; each ends with a wait for the device. "died": a request was refused. Two
GPUs of one host were at work at once, and `again`, the default once more, shows what this
table can tell: it is off by up to {worst_again:.0f} % in one group of sides. Nine programs
have a second group of sides, made on another day's version of the policy: the default,
`again`, and three sides at 1.02; `expandable` at 1.02 is the sum of both groups, {first}
% over the default in the first and {second} in the second (geometric means of the nine).

"""


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def round_rows(rows):
    return [{"program": r["program"], "group": r["group"], "round": r["round"],
             "side": side, "ms": ms, "driver_ms": r["driver_ms"].get(side)}
            for r in rows if r["kind"] == "round" for side, ms in r["ms"].items()]


def end_rows(rows):
    found = []
    for row in rows:
        if row["kind"] == "end":
            found.append(row | {"outcome": "survived"})
        elif row["kind"] == "failed" and row["side"] != "peak":
            died = any(word in row["words"] for word in OOM)
            found.append(row | {"outcome": "died" if died else "failed"})
    return found


def rank_rows(rows):
    """`reserved` is the most of the two ranks, up to this round."""
    return [{"program": r["mode"], "group": 1, "round": r["round"], "side": side,
             "ms": round(1000 * one["seconds"], 3),
             "reserved": max(one["peak_reserved"], one["rank 1"]["peak_reserved"])}
            for r in rows if r["kind"] == "ranks" for side, one in r["sides"].items()]


def bring(path, device, driver, date, commit):
    rows = rows_of(path)
    head = measured(device, driver, date, f"paper/gpu/steps.py run, at {commit}")
    rounds = round_rows(rows)
    write_csv(STEPS, head, list(rounds[0]), rounds)
    write_csv(ENDS, head, END, end_rows(rows))


def bring_ranks(path, device, driver, date, commit):
    """No side may have died: each has as many rounds as the default."""
    rounds = rank_rows(rows_of(path))
    count = collections.Counter((r["program"], r["side"]) for r in rounds)
    assert all(n == count[program, "default"] for (program, _), n in count.items()), count
    command = f"paper/gpu/ranks.py run, at {commit}"
    write_csv(RANKS, measured(device, driver, date, command), list(rounds[0]), rounds)


# ---- the page ----

def side_of(name, bound):
    return f"{name} {bound}".strip()


class Turns:
    """Pairs (ms of a side, ms of the default in the same round), in order."""

    def __init__(self, path):
        self.about, self.rows = read_csv(path)
        self.rounds = collections.defaultdict(dict)
        for r in self.rows:
            self.rounds[r["program"], r["group"], int(r["round"])][r["side"]] = \
                float(r["ms"])
        self.series = collections.defaultdict(lambda: collections.defaultdict(list))
        for (program, group, _), sides in self.rounds.items():
            for side, ms in sides.items() if "default" in sides else ():
                self.series[program, side][group].append((ms, sides["default"]))
        self.pairs = {key: joined(groups) for key, groups in self.series.items()}
        self.programs = sorted({r["program"] for r in self.rows})

    def reserved(self, program, side):
        """The most bytes; of two ranks, the larger one's."""
        return max(int(r["reserved"]) for r in self.rows
                   if (r["program"], r["side"]) == (program, side))


    def later(self, program, side):
        """The same pairs, of the later half of each group."""
        return joined(self.series[program, side], later_half)


def later_half(values):
    return values[len(values) // 2:]


def joined(groups, part=list):
    """The values of all groups, or this part of each."""
    return [value for values in groups.values() for value in part(values)]


class Steps(Turns):
    """On one GPU; with how each side ended."""

    def __init__(self):
        super().__init__(STEPS)
        self.ends = {(r["program"], r["side"]): r for r in reversed(read_csv(ENDS)[1])}
        # By group: (ms in the driver, ms of the step)
        self.clock = collections.defaultdict(lambda: collections.defaultdict(list))
        for r in self.rows:
            if r["driver_ms"]:
                self.clock[r["program"], r["side"]][r["group"]].append(
                    (float(r["driver_ms"]), float(r["ms"])))

    def survived(self, program, side):
        return self.ends.get((program, side), {}).get("outcome") == "survived"

    def cell(self, program, side):
        if not self.survived(program, side):
            return self.ends.get((program, side), {}).get("outcome", "")
        return shown(*total_interval(self.pairs[program, side]))

    def over(self, program, bound, other="segments"):
        """The policy over another side at the same limit, in common rounds."""
        a, b = side_of("fragsim", bound), side_of(other, bound)
        return [(r[a], r[b]) for (p, _, _), r in self.rounds.items()
                if p == program and a in r and b in r]

    def inside(self, program, bound, part=list):
        """Percent of the steps' time that the policy spent in the driver, over a part of
        the steps."""
        clock = joined(self.clock[program, side_of("fragsim", bound)], part) or [(0, 1)]
        return 100 * sum(a for a, _ in clock) / sum(b for _, b in clock)


def shown(ratio, interval):
    low, high = ("{:+.1f}".format(100 * (x - 1)) for x in interval)
    return f"{100 * (ratio - 1):+.1f} ({low} to {high})"


def mean_ratio(lists, draws=500):
    """The geometric mean of the programs' ratios, with a bootstrap of their rounds."""
    draw = random.Random(1)

    def mean(chosen):
        return math.exp(sum(math.log(sum(a for a, _ in c) / sum(b for _, b in c))
                            for c in chosen) / len(chosen))

    found = sorted(mean([draw.choices(pairs, k=len(pairs)) for pairs in lists])
                   for _ in range(draws))
    return mean(lists), (found[draws // 40], found[-1 - draws // 40])


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(row) + " |" for row in rows), ""]


def main_table(steps, name):
    bounds = [b for b in BOUNDS
              if any((p, side_of(name, b)) in steps.ends for p in steps.programs)]
    return table(["program", *(f"{b}x" for b in bounds)],
                 [[p, *(steps.cell(p, side_of(name, b)) for b in bounds)]
                  for p in steps.programs])


def driver_table(steps):
    return table(["program", *(f"{b}x: all steps, later half" for b in BOUNDS)],
                 [[p, *(f"{steps.inside(p, b):.2f}, {steps.inside(p, b, later_half):.2f}"
                        for b in BOUNDS)] for p in steps.programs])


def means(steps):
    """Over the programs that both sides survive."""
    rows = []
    for bound in BOUNDS:
        mine = side_of("fragsim", bound)
        alive = [p for p in steps.programs if steps.survived(p, mine)]
        cells = [f"{bound}x", str(len(alive)),
                 shown(*mean_ratio([steps.pairs[p, mine] for p in alive]))]
        for other in ("segments", "pages12"):
            both = [p for p in alive if steps.survived(p, side_of(other, bound))]
            cells += [str(len(both)), shown(*mean_ratio(
                [steps.over(p, bound, other) for p in both]))] if both else ["", ""]
        rows.append(cells)
    return table(["limit", "programs alive", "`expandable` over the default, %",
                  "both alive", "over expandable segments, %",
                  "both alive", "over pages of 12 MiB, %"], rows)


def two_ranks(ranks):
    rows = []
    for program in ranks.programs:
        for name, side in sorted(ranks.pairs):
            pairs = ranks.pairs[name, side]
            if name != program:
                continue
            rows.append([program.upper(), side, str(len(pairs)),
                         f"{ranks.reserved(name, side) / 2**30:.2f}"] +
                        ["" if side == "default" else shown(*total_interval(some))
                         for some in (pairs, ranks.later(name, side))])
    return table(["training", "side", "rounds", "reserved, GiB", "over the default, %",
                  "in the later half"], rows)


def replicate(steps):
    """The pairs of `expandable` at 1.02, of the programs that have two groups: those of
    the first groups, and those of the second."""
    twice = [g for (_, side), g in steps.series.items()
             if side == side_of("fragsim", "1.02") and len(g) == 2]
    return [[g[name] for g in twice] for name in ("1", "2")]


def controls(steps):
    found = [total_interval(pairs)[0] for p in steps.programs
             for pairs in steps.series[p, "again"].values()]
    return 100 * max(abs(x - 1) for x in found)


def main():
    act = {"import": bring, "ranks": bring_ranks}.get(" ".join(sys.argv[1:2]))
    if act:
        return act(*sys.argv[2:])
    steps, ranks = Steps(), Turns(RANKS)
    first, second = (shown(*mean_ratio(lists)) for lists in replicate(steps))
    text = [HEAD.format(about=steps.about, about_ranks=ranks.about, first=first,
                        second=second, worst_again=controls(steps))]
    for name, title in SIDES.items():
        text += [f"## {title}: percent above the default without a limit", "",
                 *main_table(steps, name)]
    text += ["## The default once more", "",
             *table(["program", "rounds", "percent above the default"],
                    [[p, str(len(steps.pairs[p, "again"])), steps.cell(p, "again")]
                     for p in steps.programs]),
             "## Time in the driver", "",
             "Percent of the time of the steps that the policy itself measured in its calls:",
             "creates, maps, unmaps, releases, and waits, in which the GPU works on. This has",
             "no noise of the machine but that of the calls. Where the program grows in its",
             "first steps, a long training pays what the later half does.", "",
             *driver_table(steps),
             "## All programs", "",
             "Geometric means, over the default of the programs that `expandable` survives,",
             "over another side of those that both survive.", "",
             *means(steps),
             "## Two GPUs", "",
             "A Llama model of 8 layers, tokens of varying lengths, a rank on each GPU",
             "(`gpu/ranks_program.py`), turns of one step of both ranks. With DDP most of",
             "the difference is in the first rounds, in which the peak grows; with FSDP it",
             "stays.", "",
             *two_ranks(ranks)]
    with open(os.path.join(PAGES, "steps.md"), "w", encoding="utf-8") as out:
        out.write("\n".join(text).rstrip("\n") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
