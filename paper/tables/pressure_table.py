#!/usr/bin/env python3
"""pressure_table.py [-j N]: the driver's time and the peak of `expandable` at
capacities from 1.01 times the peak to unlimited, on the default recordings of
../shared, beside PyTorch's allocator and `remap`.

Each recording is replayed as `fragsim replay TRACE -c CAPACITIES -p POLICY...`
with the capacities and policies below, once as it is and once REPEATED times in a row.
Writes data/pressure.csv (one row for each recording, policy and capacity) and
pages/pressure.md (the tables made from it). It takes two minutes on two cores.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from data_header import RECORDINGS, replayed, write_csv
from places import DATA, PAGES
from policy_table import FRAGSIM, SHARED, recordings

CAPACITIES = ["1.01x", "1.02x", "1.05x", "1.1x", "1.25x", "1.5x", "2x", "4x",
              "inf"]
SUBJECT = "expandable"
POLICIES = ["torch", "torch:expandable_segments:True", SUBJECT,
            SUBJECT + ":largest=2MiB", "remap", "remap:pack=full"]
MEASURED = POLICIES[:-1]  # the last one is of fragsim 0.1; its rows stay as data
REPEATED = 20
TIGHT = ["1.02x", "1.05x", "1.1x", "1.25x"]
COLUMNS = ["trace", "policy", "capacity", "capacity_bytes", "lower_bound_bytes",
           "peak_reserved_bytes", "num_ooms", "num_segment_alloc",
           "num_segment_free", "num_map", "num_unmap", "num_synchronize",
           "modelled_device_seconds", "again_seconds", "again_ooms",
           "recorded_seconds"]
HEAD = """# Policies with maps, far from the capacity and close to it

{count} recordings of PyTorch 2.11 on an H200, replayed by `paper/tables/pressure_table.py`
into `paper/data/pressure.csv`. The bound is the capacity of the device, a multiple of the
peak of the requested memory; no run has a limit of the process. Seconds are the modelled time of all driver calls, the sum over the recordings
(costs of an H200, `real/data/nvidia-h200-costs.csv`). This time does not include waits
for the work on the device; `waits` counts them. `dearer` counts the recordings on which
the policy's calls cost more than those of `torch` without a limit, which is what the
default costs far from its capacity. `dearer here` compares with `torch` at the same
capacity, on the recordings that `torch` runs there. A run with an OOM goes on without the refused
blocks, so its seconds are not those of the whole program.

"""
READING = """
## Reading

- Without a limit the calls of `{subject}` cost {free:.2f} of those of PyTorch's expandable
  segments, since pages are large while the device is empty. With pages of 2 MiB
  (`largest=2MiB`) they cost {pages:.0f} times as much.
- A request that misses memory when the device refuses takes what it misses from free
  pages. At 1.05 times the peak all {count} recordings run, with {waits} waits for the
  device, most of them in {most}.
- At 1.02 times the peak {run} of {count} run. {died} have peaks below 1 GiB, where 2 % are a
  few pages of 2 MiB; `remap` runs them by page sharing.
- Up to twice the peak the calls of `{subject}` cost more than those of expandable
  segments: memory that is mapped when the device is nearly full is mapped by small
  pages, 20 ms for a GiB. This is paid once in a run, when the memory is first used, and
  again after each empty_cache. What a long training pays stands above: memory that
  moves does so in chunks of a sixteenth of what is idle, which is little where the
  whole program is small.
- The driver's time for a page does not depend on its size, and giving access to a range
  in one call saves nothing (`paper/data/maps.csv`).
- The model holds for one program that has the device for itself. If another program
  takes memory, `{subject}` learns its bound from the first refusal.
"""


def ask(*words):
    done = subprocess.run([FRAGSIM, *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["results"]


def replay_of(path):
    command = ["replay", "-q", path, "--json", "-", "-c", ",".join(CAPACITIES)]
    for policy in MEASURED:
        command += ["-p", policy]
    return ask(*command)


def replay(path):
    rows = replay_of(path)
    [recorded] = ask("info", "--json", "-", path)[0]["devices"]
    with tempfile.TemporaryDirectory() as folder:
        longer = os.path.join(folder, "longer.h5")
        subprocess.run([FRAGSIM, "import", "-q", path, "-e",
                        f"repeat:times={REPEATED}", "-o", longer], check=True)
        for row, many in zip(rows, replay_of(longer)):
            row["again_seconds"] = (seconds(many) - seconds(row)) / (REPEATED - 1)
            row["again_ooms"] = many["num_ooms"]
            row["recorded_seconds"] = recorded["duration_seconds"]
    left = {policy: list(CAPACITIES) for policy in MEASURED}
    for row in rows:
        row["capacity"] = left[row["policy"]].pop(0)
    return rows


def seconds(row):
    return float(row["modelled_device_seconds"])


def ratio(row):
    return float(row["peak_reserved_bytes"]) / float(row["lower_bound_bytes"])


def pick(rows, **wanted):
    return [r for r in rows if all(r[k] == v for k, v in wanted.items())]


def total(rows, column):
    return sum(int(row[column]) for row in rows)


def dearer_here(rows, torch):
    """The recordings on which the policy costs more than torch at the same
    capacity, of those that torch runs there."""
    runs = {r["trace"]: seconds(r) for r in torch if int(r["num_ooms"]) == 0}
    some = [r for r in rows if r["trace"] in runs]
    return f"{sum(seconds(r) > runs[r['trace']] for r in some)} of {len(some)}"


def summary(rows, default, torch):
    """One line: a policy at a capacity. `default` has torch's seconds without a
    limit, by recording; `torch` has its rows at this capacity."""
    return [f"{sum(int(r['num_ooms']) == 0 for r in rows)} of {len(rows)}",
            f"{sum(map(seconds, rows)):.3f}",
            str(sum(seconds(r) > default[r["trace"]] for r in rows)),
            dearer_here(rows, torch),
            f"{sum(map(ratio, rows)) / len(rows):.3f}",
            f"{max(map(ratio, rows)):.2f}",
            str(total(rows, "num_map") + total(rows, "num_segment_alloc")),
            str(total(rows, "num_unmap") + total(rows, "num_segment_free")),
            str(total(rows, "num_synchronize"))]


def reading(rows, count):
    """The figures of READING."""
    def of(policy, capacity):
        return pick(rows, policy=policy, capacity=capacity)

    free = {p: sum(map(seconds, of(p, "inf"))) for p in POLICIES}
    died = [r for r in of(SUBJECT, "1.02x") if int(r["num_ooms"])]
    assert all(int(r["lower_bound_bytes"]) < 2 ** 30 for r in died)
    return READING.format(
        subject=SUBJECT, count=count, free=free[SUBJECT] / free[POLICIES[1]],
        pages=free[POLICIES[3]] / free[POLICIES[1]],
        waits=total(of(SUBJECT, "1.05x"), "num_synchronize"),
        most=" and ".join(
            f"`{r['trace']}` ({r['num_synchronize']})" for r in sorted(
                of(SUBJECT, "1.05x"), key=lambda r: -int(r["num_synchronize"]))[:2]),
        run=count - len(died),
        died=", ".join(f"`{r['trace']}`" for r in died))


def is_refused(row):
    """Whether a request is refused, once or in a later repetition."""
    return int(row["num_ooms"]) > 0 or int(row["again_ooms"]) > 0


def share(row):
    """Percent of the recorded time that the calls of a later repetition take."""
    return 100 * float(row["again_seconds"]) / float(row["recorded_seconds"])


def again(rows):
    """The tables of later repetitions."""
    lines = ["", "## A long training", "",
             f"Each recording {REPEATED} times in a row: the modelled time of the calls in a",
             "later repetition, as a percentage of the time that the recorded program took.",
             "A program pays its first maps once; this it pays as long as it runs. The",
             "repetitions are alike, and waits are not modelled: programs whose shapes change",
             "pay more (steps.md). Only recordings without an OOM in any repetition count.",
             "`llama_empty`, which empties its cache in each step, is left out of the mean and",
             "the worst.", "",
             "| policy | " + " | ".join(f"{c}: mean, worst" for c in TIGHT) + " |",
             "|---|" + "---|" * len(TIGHT)]
    for policy in POLICIES:
        cells = []
        for capacity in TIGHT:
            some = sorted((share(r), r["trace"])
                          for r in pick(rows, policy=policy, capacity=capacity)
                          if r["trace"] != "llama_empty" and not is_refused(r))
            cells.append(f"{sum(x for x, _ in some) / len(some):.2f} of {len(some)}, "
                         f"{some[-1][0]:.2f} ({some[-1][1]})" if some else "")
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    lines += ["", "Recordings without an OOM, once and in all repetitions, of all:", "",
              "| policy | " + " | ".join(TIGHT) + " |", "|---|" + "---|" * len(TIGHT)]
    for policy in POLICIES:
        cells = []
        for capacity in TIGHT:
            some = pick(rows, policy=policy, capacity=capacity)
            cells.append(f"{sum(not int(r['num_ooms']) for r in some)}, "
                         f"{sum(not is_refused(r) for r in some)} of {len(some)}")
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    lines += ["", f"| recording | peak, MiB | `{SUBJECT}`, "
              + " | ".join(TIGHT) + " |", "|---|---:|" + "---:|" * len(TIGHT)]
    for trace in sorted({r["trace"] for r in rows}):
        mine = [pick(rows, trace=trace, policy=SUBJECT, capacity=c)[0] for c in TIGHT]
        lines.append(f"| {trace} | {int(mine[0]['lower_bound_bytes']) >> 20} | " + " | ".join(
            "OOM" if is_refused(r) else f"{share(r):.2f}" for r in mine) + " |")
    return "\n".join(lines) + "\n"


def markdown(rows):
    default = {r["trace"]: seconds(r)
               for r in pick(rows, policy="torch", capacity="inf")}
    lines = ["| capacity | policy | run | seconds | dearer | dearer here | reserved, mean | "
             "worst | maps | unmaps | waits |",
             "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for capacity in CAPACITIES:
        torch = pick(rows, policy="torch", capacity=capacity)
        for policy in POLICIES:
            some = pick(rows, policy=policy, capacity=capacity)
            lines.append(f"| {capacity} | `{policy}` | "
                         + " | ".join(summary(some, default, torch)) + " |")
    lines += ["", "`run`: recordings without an OOM. `reserved`: peak reserved "
              "divided by the lower bound,", "the peak of live requests in "
              "units of block addresses. Maps and unmaps include segments.", "",
              f"## `{SUBJECT}` on each recording", "",
              "Milliseconds in the driver's calls; in brackets the peak "
              "reserved over the lower bound.", "",
              "| recording | `torch`, inf | "
              + " | ".join(CAPACITIES[1:]) + " |",
              "|---|---:|" + "---:|" * len(CAPACITIES[1:])]
    for trace in sorted(default):
        cells = [pick(rows, trace=trace, policy="torch", capacity="inf")[0]]
        cells += [pick(rows, trace=trace, policy=SUBJECT, capacity=c)[0]
                  for c in CAPACITIES[1:]]
        lines.append(f"| {trace} | " + " | ".join(
            "OOM" if int(r["num_ooms"]) else
            f"{1000 * seconds(r):.1f} ({ratio(r):.2f})" for r in cells) + " |")
    return (HEAD.format(count=len(default)) + "\n".join(lines) + "\n" + again(rows)
            + reading(rows, len(default)))


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    paths = recordings()
    if not paths:
        print("pressure_table: there are no recordings in", SHARED)
        return 77
    with ThreadPoolExecutor(jobs) as pool:
        rows = sum(pool.map(replay, paths), [])
    write_csv(os.path.join(DATA, "pressure.csv"),
              replayed(FRAGSIM, "paper/tables/pressure_table.py", RECORDINGS), COLUMNS,
              rows)
    with open(os.path.join(PAGES, "pressure.md"), "w", encoding="utf-8") as out:
        out.write(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
