#!/usr/bin/env python3
"""check_peaks.py: checks that a policy which may rearrange memory reserves
hardly more than it allocates.

It runs remap and compact on every recording with default settings; the ledger
verifies each answer. Peak reserved must be at most 1.02 times the peak
allocated, rounded up to the granularity. For remap, which must not touch live
blocks, the limit is 1.035. Prints each policy's worst ratio and its cost.

Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR (the
folder of the recordings; skipped with 77 if it is absent).
"""
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import harness
from harness import FRAGSIM

ROOT, SHARED = pathlib.Path(harness.ROOT), pathlib.Path(harness.SHARED)
GRANULE, MIB = 2 ** 21, 2 ** 20
MOST = {"remap": 1.035, "compact": 1.02}
VARIANTS = re.compile(r"__|_frames|_kineto|_cpp")


def measure(path):
    command = [FRAGSIM, "replay", str(path), "-q", "--check", "--json", "-"]
    for name in MOST:
        command += ["-p", name]
    done = subprocess.run(command, check=True, capture_output=True)
    return dict(zip(MOST, json.loads(done.stdout)["results"]))


def ratio(row):
    whole = -(-row["peak_allocated_bytes"] // GRANULE) * GRANULE
    return row["peak_reserved_bytes"] / whole


def report(name, rows):
    worst = max(rows, key=ratio)
    print(f"{name:25} worst {ratio(worst):.4f} ({worst['trace']}) of "
          f"{len(rows)}; {sum(r['modelled_device_seconds'] for r in rows):.3f}"
          f" s modelled, {sum(r['num_map'] for r in rows)} maps, "
          f"{sum(r['bytes_moved'] for r in rows) / MIB:.0f} MiB moved")
    return all(ratio(r) <= MOST[name] and not r["num_ooms"] for r in rows)


def main():
    paths = [p for p in sorted((SHARED / "recorded/dev").glob("*.pickle.xz"))
             if not VARIANTS.search(p.name)]
    if not os.access(FRAGSIM, os.X_OK) or not paths:
        print(f"check_peaks: no tool at {FRAGSIM} or no recordings; skipped")
        return 77
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        traces = list(pool.map(measure, paths))
    for rows in traces:
        for name, row in rows.items():
            print(f"{row['trace']:14} {name:25} {ratio(row):.4f}")
    good = [report(name, [rows[name] for rows in traces]) for name in MOST]
    return 0 if all(good) else 1


sys.exit(main())
