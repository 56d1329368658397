#!/usr/bin/env python3
"""steps_table.py: what a step costs under policy `expandable` and under PyTorch's
expandable segments, close to the limit of the process and far from it.

  steps_table.py
    pages/steps.md from data/steps.csv, data/steps_ends.csv
  steps_table.py import STEPS.jsonl RANKS.jsonl DEVICE DRIVER DATE
    the data from the rows of gpu/steps.py and of gpu/in_production.py (--only ranks)
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

STEPS, ENDS = (os.path.join(DATA, name) for name in ("steps.csv", "steps_ends.csv"))
SIDES = {"fragsim": "`expandable`", "segments": "expandable segments"}
BOUNDS = ["1.01", "1.02", "1.05", "1.1", "1.25", "2.0", ""]
END = ["program", "ranks", "group", "side", "outcome", "reserved", "allocated", "retries",
       "created", "released", "driver_calls", "driver_ns", "first_calls", "first_ns"]
OOM = ("OutOfMemoryError", "docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory",
       "no room for")  # words of PyTorch's and of the class's error
HEAD = """# What a step costs, close to the limit and far from it

{about}; made by `paper/tables/steps_table.py` from `paper/data/steps.csv` and
`paper/data/steps_ends.csv`.

Ten programs (`gpu/truth_programs.py`, `gpu/real_programs.py`) under a limit of the
process of so many times the peak that PyTorch's default allocates. All sides of a program
are at work on one GPU and advance in turns of a step (`lockstep.py`); a cell is the sum
of the steps over that of the default without a limit in the same rounds, and in brackets
a bootstrap interval of 95 %. All steps count but the first, which makes the model and
loads kernels. "died": a request was refused; the row of live.md says where each policy's
need lies. Four GPUs of one host were at work at once, and `again`, the default once more,
shows what this table can tell: it is off by up to {worst_again:.0f} % in one program.

"""


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def round_rows(rows, ranks):
    """(rows of data/steps.csv, the number of groups of each program)"""
    found, group = [], collections.Counter()
    for row in rows:
        name = row.get("program") or row.get("mode")
        if row["kind"] not in ("round", "ranks"):
            continue
        group[name] += row["round"] == 0
        times = row.get("ms") or {side: round(1000 * one["seconds"], 3)
                                  for side, one in row["sides"].items()}
        found += [{"program": name, "ranks": ranks, "group": group[name],
                   "round": row["round"], "side": side, "ms": ms}
                  for side, ms in times.items()]
    return found


def end_rows(rows, ranks):
    found, group, inside = [], collections.Counter(), {}
    for row in rows:
        name = row.get("program") or row.get("mode") or row.get("workload")
        if row["kind"] in ("round", "ranks"):
            group[name] += row["round"] == 0
        elif row["kind"] in ("end", "ranks end"):
            inside = {"reserved": row.get("peak_reserved"),
                      "allocated": row.get("peak_allocated")} if ranks > 1 else {}
            found.append(row | inside | {"program": name, "ranks": ranks,
                                         "group": group[name], "outcome": "survived"})
        elif row["kind"] == "failed" and row["side"] != "peak":
            died = any(word in row["words"] for word in OOM)
            found.append({"program": name, "ranks": ranks, "group": group[name],
                          "side": row["side"], "outcome": "died" if died else "failed"})
    return found


def bring(steps, ranks, device, driver, date):
    one, two = rows_of(steps), rows_of(ranks)
    head = measured(device, driver, date,
                    "paper/gpu/steps.py run; paper/gpu/in_production.py ranks")
    rounds = round_rows(one, 1) + round_rows(two, 2)
    write_csv(STEPS, head, list(rounds[0]), rounds)
    write_csv(ENDS, head, END, end_rows(one, 1) + end_rows(two, 2))


# ---- the page ----

def side_of(name, bound):
    return f"{name} {bound}".strip()


class Steps:
    """Pairs (ms of a side, ms of the default in the same round)."""

    def __init__(self):
        self.about, rows = read_csv(STEPS)
        rounds = collections.defaultdict(dict)
        for r in rows:
            rounds[r["program"], r["group"], int(r["round"])][r["side"]] = float(r["ms"])
        self.pairs = collections.defaultdict(list)
        for (program, _, _), sides in rounds.items():
            for side, ms in sides.items():
                self.pairs[program, side].append((ms, sides["default"]))
        self.rounds = rounds
        self.ranks = {r["program"]: int(r["ranks"]) for r in rows}
        self.ends = {(r["program"], r["side"]): r for r in reversed(read_csv(ENDS)[1])}

    def programs(self, ranks):
        return sorted(p for p, n in self.ranks.items() if n == ranks)

    def survived(self, program, side):
        return self.ends.get((program, side), {}).get("outcome") == "survived"

    def cell(self, program, side):
        if (program, side) not in self.ends:
            return ""
        if not self.survived(program, side):
            return self.ends[program, side]["outcome"]
        return shown(*total_interval(self.pairs[program, side]))

    def over_segments(self, program, bound):
        """The policy over expandable segments at the same limit, in common rounds."""
        a, b = side_of("fragsim", bound), side_of("segments", bound)
        return [(r[a], r[b]) for (p, _, _), r in self.rounds.items()
                if p == program and a in r and b in r]

    def inside(self, program, bound):
        """Percent of the steps' time that the policy spent in the driver."""
        side = side_of("fragsim", bound)
        if not self.survived(program, side):
            return None
        end = self.ends[program, side]
        ns = int(end["driver_ns"]) - int(end["first_ns"])
        return 100 * ns / 1e6 / sum(ms for ms, _ in self.pairs[program, side])


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


def bound_name(bound):
    return f"{bound}x" if bound else "no limit"


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(row) + " |" for row in rows), ""]


def main_table(steps, name):
    programs = steps.programs(1)
    bounds = [b for b in BOUNDS if any((p, side_of(name, b)) in steps.ends
                                       for p in programs)]
    return table(["program", *map(bound_name, bounds)],
                 [[p, *(steps.cell(p, side_of(name, b)) for b in bounds)]
                  for p in programs])


def means(steps):
    """Over the programs that both sides survive."""
    rows = []
    for bound in BOUNDS:
        mine, theirs = side_of("fragsim", bound), side_of("segments", bound)
        alive = [p for p in steps.programs(1) if steps.survived(p, mine)]
        both = [p for p in alive if steps.survived(p, theirs) and
                steps.over_segments(p, bound)]
        inside = sorted(steps.inside(p, bound) for p in alive)
        rows.append([
            bound_name(bound), str(len(alive)),
            shown(*mean_ratio([steps.pairs[p, mine] for p in alive])),
            str(len(both)) if both else "",
            shown(*mean_ratio([steps.over_segments(p, bound) for p in both]))
            if both else "",
            f"{sum(inside) / len(inside):.1f}, {inside[0]:.1f} to {inside[-1]:.1f}"])
    return table(["limit", "programs alive", "`expandable` over the default, %",
                  "both alive", "over expandable segments, %",
                  "time in the driver, %: mean, least to most"], rows)


def two_ranks(steps):
    rows = []
    for program in steps.programs(2):
        for (name, side), end in sorted(steps.ends.items()):
            if name == program:
                rows.append([program.upper(), side, str(len(steps.pairs[program, side])),
                             f"{int(end['reserved']) / 2**30:.2f}",
                             steps.cell(program, side) if side != "default" else ""])
    return table(["training", "side", "rounds", "reserved, GiB, rank 0",
                  "over the default, %"], rows)


def controls(steps):
    found = [total_interval(steps.pairs[p, "again"])[0] for p in steps.programs(1)]
    return 100 * max(abs(x - 1) for x in found)


def main():
    if sys.argv[1:2] == ["import"]:
        return bring(*sys.argv[2:])
    steps = Steps()
    text = [HEAD.format(about=steps.about, worst_again=controls(steps))]
    for name, title in SIDES.items():
        text += [f"## {title}: percent above the default without a limit", "",
                 *main_table(steps, name)]
    text += ["## The default once more", "",
             *table(["program", "rounds", "percent above the default"],
                    [[p, str(len(steps.pairs[p, "again"])), steps.cell(p, "again")]
                     for p in steps.programs(1)]),
             "## All programs", "",
             "The geometric mean of the programs. The time in the driver is what the",
             "policy itself measured, after the first step, of its calls: maps, unmaps and",
             "waits. It has no noise of the machine but that of the calls; the programs were",
             "cut after 9 to 150 steps, and most maps come in the first ones.", "",
             *means(steps),
             "## Two GPUs", "",
             "A Llama model of 8 layers, tokens of varying lengths, a rank on each GPU",
             "(`gpu/in_production_ranks.py`), turns of one step of both ranks.", "",
             *two_ranks(steps)]
    with open(os.path.join(PAGES, "steps.md"), "w", encoding="utf-8") as out:
        out.write("\n".join(text).rstrip("\n") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
