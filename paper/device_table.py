#!/usr/bin/env python3
"""device_table.py [FILE]: what paper/device.sh found, as a page.

Reads paper/data/device_*.csv, whose first line says where
and how each was made; writes paper/device.md, or FILE.
"""
import csv
import json
import os
import statistics
import sys

PAPER = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(PAPER, "data")


def rows(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        about = file.readline().strip("# \n")
        return about, list(csv.DictReader(file))


def limits(lines):
    about, found = rows("device_limits.csv")
    same = sum(r["same"] == "1" for r in found)
    traces = sorted({r["trace"] for r in found})
    lines += [
        "## The same numbers", "",
        f"{about}.", "",
        f"{len({r['policy'] for r in found})} policies on {len(traces)} "
        f"recordings ({', '.join(traces)}) at 1.02 and 0.9 times of what each "
        f"asks for: **{same} of {len(found)}** runs have every count of the "
        "simulated one (peak reserved, OOMs and where the first is, calls, "
        "segments). Contents were checked in all of them: no byte wrong, "
        f"{sum(int(r['leaked_bytes']) for r in found)} bytes left on the "
        "device.", ""]
    for r in found:
        if r["same"] != "1":
            lines.append(f"- `{r['policy']}` on {r['trace']} at "
                         f"{r['capacity_bytes']}: {r['difference']}")
    lines += [
        "", "CuPy's choice among equal blocks is by address, and where the "
        "driver puts a segment after others were given back is not always "
        "where the arena's rule says. It is the same in a process of its own.",
        ""]


def times(lines):
    about, found = rows("device_times.csv")
    policies = list(dict.fromkeys(r["policy"] for r in found))
    traces = list(dict.fromkeys(r["trace"] for r in found))
    ratio = {(r["trace"], r["policy"]): float(r["modelled_ratio"])
             for r in found}
    near = sum(0.8 <= x <= 1.2 for x in ratio.values())
    lines += [
        "## Modelled over measured seconds", "",
        f"{about}.", "",
        f"The driver's calls of a run with everything given back at its end, "
        f"the quickest of three runs; costs calibrated on the same machine. "
        f"Within 20 %: {near} of {len(ratio)}.", "",
        "| policy | " + " | ".join(traces) + " | median |",
        "|---|" + "---:|" * (len(traces) + 1)]
    for p in policies:
        mine = [ratio[t, p] for t in traces]
        lines.append(f"| `{p}` | " + " | ".join(f"{x:.2f}" for x in mine) +
                     f" | {statistics.median(mine):.2f} |")
    lines += ["", "The model is a quiet machine's, so it is under what was "
              "measured: two runs of the same calls on this shared host differ "
              "by up to 1.5 times. Not here are `vma` and `size_class`: they "
              "give back and take large segments in turn, which the driver "
              "clears first, and the model, which does not know that, said "
              "0.36 to 0.88 of their time.", ""]


def pytorch(lines):
    about, found = rows("device_pytorch.csv")
    lines += ["## Beside PyTorch's own allocator", "", f"{about}.", "",
              "| recording | settings | peak reserved, PyTorch | ours | "
              "ns an event, PyTorch | ours |", "|---|---|---:|---:|---:|---:|"]
    for r in found:
        lines.append(f"| {r['trace']} | {r['conf'] or 'default'} | "
                     f"{int(r['pytorch_reserved']):,} | "
                     f"{int(r['real_reserved']):,} | {r['pytorch_ns']} | "
                     f"{r['real_ns']} |")
    lines.append("")


def direct(lines):
    about, found = rows("device_direct.csv")
    lines += ["## The price of no cache", "", f"{about}.", "",
              "| recording | `direct`, ns an event | `torch` | factor |",
              "|---|---:|---:|---:|"]
    ns = {(r["trace"], r["policy"]): float(r["real_ns_per_event"])
          for r in found}
    for t in dict.fromkeys(r["trace"] for r in found):
        one, other = ns[t, "direct"], ns[t, "torch"]
        lines.append(f"| {t} | {one:,.0f} | {other:,.0f} | {one / other:.0f} |")
    lines.append("")


def end(lines):
    about, found = rows("device_end.csv")
    lines += ["## The true end of memory", "", f"{about}.", "",
              "Without a limit the simulated device serves all; the real one "
              "refuses when its memory is gone, which is less than its "
              "150,109,880,320 B by what the context holds.", "",
              "| policy | peak reserved | first OOM |", "|---|---:|---:|"]
    for r in found:
        lines.append(f"| `{r['policy']}` | "
                     f"{int(r['real_peak_reserved_bytes']):,} | "
                     f"event {r['real_first_oom_event']} |")
    lines.append("")


def main():
    lines = ["# On the device", "",
             "Made by `paper/device_table.py` from `data/device_*.csv`; "
             "`paper/device.sh` runs all of it on a machine with the GPU, "
             "without attendance.", ""]
    limits(lines)
    times(lines)
    pytorch(lines)
    direct(lines)
    end(lines)
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(PAPER,
                                                              "device.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines).rstrip() + "\n")


main()
