#!/usr/bin/env python3
"""empty_cache_table.py [-j N]: what torch.cuda.empty_cache() every 1, 10 or 100
steps does to the peak and to the price of the default recordings.

One sweep replays each recording of policy_table.py with PyTorch's default
settings, with `sweep --edit`: the recorded calls of empty_cache are left out,
and calls at the ends of steps are added. A recording without steps gets them
every 1000, 10000 and 100000 events. Writes data/empty_cache.csv,
pages/empty_cache.md and, with gnuplot, pages/empty_cache.svg.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

from data_header import RECORDINGS, replayed, write_csv
from places import DATA, PAGES, PAPER
from policy_table import FRAGSIM, SHARED, recordings

BASE = "no-empty-cache"
STEPS = {"1": "every-steps=1", "10": "every-steps=10",
         "100": "every-steps=100"}
EVENTS = {"1": "every=1000", "10": "every=10000", "100": "every=100000"}
COLUMNS = ["trace", "unit", "period", "edit", "calls", "peak_reserved_bytes",
           "peak_allocated_bytes", "driver_calls", "modelled_device_seconds"]
CALLS = ["num_segment_alloc", "num_segment_free", "num_map", "num_unmap"]
MIB = 2 ** 20


def edits(periods):
    """{edit: period}."""
    found = {"none": "recorded", BASE: "never"}
    for period, key in periods.items():
        found[f"{BASE};empty-cache:{key}"] = period
    return found


def calls_added(notes):
    for note in notes:
        match = re.search(r"calls added, beside the events: (\d+) of", note)
        if match:
            return int(match.group(1))
    return 0


def sweep(paths, periods, unit, jobs):
    """The rows of all cells, and the traces of which a cell failed."""
    named = edits(periods)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "rows.json")
        command = [FRAGSIM, "sweep", "-q", "-j", str(jobs), *paths,
                   "-o", os.path.join(folder, "rows.h5"), "--json", out]
        for edit in named:
            command += ["--edit", edit]
        done = subprocess.run(command, check=False, capture_output=True,
                              text=True)
        if not os.path.exists(out):
            raise SystemExit(done.stderr)
        with open(out, encoding="utf-8") as file:
            cells = json.load(file)["results"]
    rows = []
    for cell in cells:
        cell["period"] = named[cell["edit"] or "none"]
        cell["unit"] = unit
        cell["calls"] = calls_added(cell["notes"])
        cell["driver_calls"] = sum(cell[name] for name in CALLS)
        rows.append(cell)
    count = {row["trace"]: 0 for row in rows}
    for row in rows:
        count[row["trace"]] += 1
    return [r for r in rows if count[r["trace"]] == len(named)]


def measure(paths, jobs):
    rows = sweep(paths, STEPS, "steps", jobs)
    done = {row["trace"] for row in rows}
    rest = [p for p in paths
            if os.path.basename(p).split(".")[0] not in done]
    return rows + (sweep(rest, EVENTS, "1000 events", jobs) if rest else [])


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def cell_text(row, base):
    if not row["calls"] and row["period"] not in ("never", "recorded"):
        return "never due"
    change = row["peak_reserved_bytes"] / base["peak_reserved_bytes"] - 1
    return (f"{row['peak_reserved_bytes'] / MIB:.0f} ({change:+.1%}), "
            f"{row['driver_calls']}, {row['modelled_device_seconds']:.3f}")


def table(rows):
    periods = ["recorded", "never", "100", "10", "1"]
    lines = ["| recording | " + " | ".join(
        p if p in ("recorded", "never") else f"every {p}" for p in periods) +
        " |", "|---|" + "---|" * len(periods)]
    for name in sorted({r["trace"] for r in rows}):
        mine = {r["period"]: r for r in rows if r["trace"] == name}
        steps = mine["1"]["calls"]
        unit = mine["1"]["unit"]
        lines.append(f"| {name}, {steps} {unit} | " + " | ".join(
            cell_text(mine[p], mine["never"]) for p in periods) + " |")
    return lines


def summary(rows):
    lines = ["| period | recordings with a call | peak, geometric mean | "
             "least peak | most peak | driver calls, sum | seconds, sum | "
             "seconds a call |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
    base = {r["trace"]: r for r in rows if r["period"] == "never"}
    for period in ("100", "10", "1"):
        mine = [r for r in rows if r["period"] == period and r["calls"]]
        ratios = [r["peak_reserved_bytes"] /
                  base[r["trace"]]["peak_reserved_bytes"] for r in mine]
        added = sum(r["driver_calls"] - base[r["trace"]]["driver_calls"]
                    for r in mine)
        seconds = sum(r["modelled_device_seconds"] -
                      base[r["trace"]]["modelled_device_seconds"]
                      for r in mine)
        calls = sum(r["calls"] for r in mine)
        lines.append(f"| {period} | {len(mine)} | "
                     f"{geometric_mean(ratios):.3f} | {min(ratios):.3f} | "
                     f"{max(ratios):.3f} | {added:+} | {seconds:+.2f} | "
                     f"{seconds / calls:.4f} |")
    return lines


def real_run(rows):
    """llama_empty is the program of llama_varlen with a call in every step."""
    cells = {(r["trace"], r["period"]): r for r in rows}
    edited = cells.get(("llama_varlen", "1"))
    real = cells.get(("llama_empty", "recorded"))
    if not edited or not real:
        return []
    texts = [f"{r['peak_reserved_bytes'] / MIB:.0f} MiB and "
             f"{r['driver_calls']} driver calls" for r in (edited, real)]
    return ["One program was recorded both ways: `llama_empty` is "
            "`llama_varlen` with a call in every step. The",
            f"edited `llama_varlen` has {texts[0]}; the recorded "
            "`llama_empty`",
            f"has {texts[1]}.", ""]


def markdown(rows):
    without = sorted({r["trace"] for r in rows if r["unit"] != "steps"})
    names = sorted({r["trace"] for r in rows})
    better = [n for n in names if any(
        r["trace"] == n and r["period"] == "1" and r["peak_reserved_bytes"] <
        next(b["peak_reserved_bytes"] for b in rows if b["trace"] == n and
             b["period"] == "never") for r in rows)]
    return "\n".join([
        "# empty_cache: what its period buys and costs", "",
        f"{len(names)} recordings of PyTorch 2.11 on an H200; made by "
        "`paper/tables/empty_cache_table.py`, in one",
        "`fragsim sweep --edit`, from `paper/data/empty_cache.csv`. PyTorch's default "
        "settings, unlimited",
        "capacity. The recorded calls of empty_cache are left out, except in "
        "the column `recorded`; then a",
        "call is added at the end of every 1st, 10th or 100th step. "
        + ("Every recording has steps." if not without else
           "These recordings have no steps, so the unit is 1000 events: "
           + ", ".join(without) + "."),
        "\"never due\" means that the recording is shorter than the period.",
        "",
        "Compared with never; sums are over the recordings in which a call "
        "was due:", "", *summary(rows), "",
        f"With a call after every step the peak falls on {len(better)} of "
        f"{len(names)} recordings: {', '.join(better)}.",
        "",
        "Each cell: peak reserved in MiB (against never), driver calls, "
        "modelled seconds of these calls.", "", *table(rows), "", *real_run(rows),
        "![peak against price](empty_cache.svg)", "",
        "Limits: the seconds are those of the driver calls by the cost model. "
        "An empty_cache call also",
        "waits for the device; how long depends on the work in flight, which "
        "no recording has. Steps are",
        "those that `fragsim steps` finds. In `generate` and `rlhf` they are "
        "partly generated tokens, and in",
        "`cudagraph` a program could not make such a call while it captures a "
        "graph.", ""])


def draw(rows):
    """Each point is a recording with one period: its peak and its price."""
    if not shutil.which("gnuplot"):
        print("empty_cache_table: without gnuplot there is no figure",
              file=sys.stderr)
        return
    base = {r["trace"]: r for r in rows if r["period"] == "never"}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as data:
        data.write("period\tpeak\tseconds\ttrace\n")
        for row in rows:
            if row["period"] in STEPS and row["calls"]:
                never = base[row["trace"]]
                ratio = row["peak_reserved_bytes"] / \
                    never["peak_reserved_bytes"]
                more = row["modelled_device_seconds"] / \
                    never["modelled_device_seconds"]
                data.write(f"{row['period']}\t{ratio:.6f}\t{more:.6f}\t"
                           f"{row['trace']}\n")
        data.flush()
        subprocess.run(["gnuplot", "-e", f"in='{data.name}'; "
                        f"out='{os.path.join(PAGES, 'empty_cache.svg')}'",
                        os.path.join(PAPER, "tables", "empty_cache.gp")], check=True)


def main():
    jobs = int(sys.argv[2]) if sys.argv[1:2] == ["-j"] else os.cpu_count()
    paths = recordings()
    if not paths:
        print("empty_cache_table: there are no recordings in", SHARED)
        return 77
    rows = measure(paths, jobs)
    rows.sort(key=lambda r: (r["trace"], r["period"]))
    write_csv(os.path.join(DATA, "empty_cache.csv"),
              replayed(FRAGSIM, "paper/tables/empty_cache_table.py", RECORDINGS),
              COLUMNS, rows)
    text = markdown(rows)
    with open(os.path.join(PAGES, "empty_cache.md"), "w",
              encoding="utf-8") as out:
        out.write(text)
    draw(rows)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
