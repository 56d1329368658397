#!/usr/bin/env python3
"""check_need.py: checks that policy expandable needs hardly more than a program
allocates.

On every recording with a peak of 1 GiB or more (one recording in four with
FRAG_SHORT), `fragsim fit` must name at most 1.02 times the peak of the requested
memory, as a capacity and as a limit of the process. The least bound that serves the
program may lie below this need, if a larger one fails: by at most 0.2 % of the peak.
Prints the mean and the worst.

Environment: FRAG_SHORT, FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR (the
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

FOLDER = pathlib.Path(harness.SHARED) / "recorded"
LEAST, MOST = 2 ** 30, 1.02
BAND = 0.002
CUT = re.compile(r"__|_frames|_kineto|_cpp")  # variants of other recordings


def needs(path):
    """(need over the peak, band over the peak, row) of each device and kind of bound."""
    found = []
    for bound in ("capacity", "process-limit"):
        done = subprocess.run(
            [FRAGSIM, "fit", "-q", "-j1", "-p", "expandable", f"--{bound}=inf",
             "--json", "-", str(path)], check=True, capture_output=True, text=True)
        found += [(row["need_bytes"] / row["lower_bound_bytes"],
                   (row["need_bytes"] - row["fit_bytes"]) / row["lower_bound_bytes"], row)
                  for row in json.loads(done.stdout)["results"]
                  if row["lower_bound_bytes"] >= LEAST]
    return found


def main():
    paths = [p for p in sorted(FOLDER.glob("*/*.pickle.xz")) if not CUT.search(p.name)]
    if not os.access(FRAGSIM, os.X_OK) or not paths:
        print(f"check_need: no tool at {FRAGSIM} or no recordings; skipped")
        return 77
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = sum(pool.map(needs, harness.sample(paths)), [])
    wrong = [r for r in found if r[0] > MOST or r[1] > BAND]
    for ratio, band, row in wrong:
        print(f"{row['trace']}, {row['bound']}: {ratio:.4f}, "
              f"a band of {band:.4f}")
    worst = max(found, key=lambda r: r[0])
    print(f"{len(found)} needs: mean {sum(r[0] for r in found) / len(found):.4f}, worst "
          f"{worst[0]:.4f} ({worst[2]['trace']}); {sum(r[1] > 0 for r in found)} with a band")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
