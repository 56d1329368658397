#!/usr/bin/env python3
"""check_peaks.py: who may rearrange memory holds hardly more than is allocated.

remap and compact on every recording of default settings, each answer proved by
the ledger: peak reserved is at most 1.02 of peak allocated rounded up to the
granularity, and 1.035 where remap may not touch what lives, but for 1.02 if it
lodges early. Prints each policy's worst and its price.

Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR (the
folder of the recordings; skipped with 77 where there is none).
"""
import json
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = os.environ.get("FRAGSIM", str(ROOT / "build/fragsim"))
SHARED = pathlib.Path(os.environ.get("FRAG_SHARED_DIR", ROOT.parent / "shared"))
GRANULE, MIB = 2 ** 21, 2 ** 20
MOST = {"remap": 1.02, "remap:mesh=no": 1.035,
        "remap:mesh=no,lodge=early": 1.02, "compact": 1.02}
VARIANTS = re.compile(r"__|_frames|_kineto|_cpp")


def measure(path):
    command = [TOOL, "replay", str(path), "-q", "--check", "--json", "-"]
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
    if not os.access(TOOL, os.X_OK) or not paths:
        print(f"check_peaks: no tool at {TOOL} or no recordings; skipped")
        return 77
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        traces = list(pool.map(measure, paths))
    for rows in traces:
        for name, row in rows.items():
            print(f"{row['trace']:14} {name:25} {ratio(row):.4f}")
    good = [report(name, [rows[name] for rows in traces]) for name in MOST]
    return 0 if all(good) else 1


sys.exit(main())
