#!/usr/bin/env python3
"""recordings.py OUT.csv BOUND [NAME...]: what recorded jobs need with PyTorch's
expandable segments, with pages of 2 MiB, and with a limit that counts pages.

BOUND is limit (of the process) or capacity (of the device); NAME selects recordings
of ../shared/recorded/dev (default: all). Then says the ratios of need and lower
bound, the peak of the requested bytes. Environment: FRAGSIM (default
build/fragsim), FRAG_SHARED_DIR.
"""
import csv
import glob
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tables"))
from data_header import replayed, write_csv  # noqa: E402

ROOT = os.path.join(HERE, "..", "..")
FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
ON = "expandable_segments:True"
POLICIES = {
    "default": "torch@2.15",
    "expandable": f"torch@2.15:{ON}",
    "small_pages": f"torch@2.15:{ON},experiment:small_pages",
    "mapped_limit": f"torch@2.15:{ON},experiment:mapped_limit",
    "patch": f"torch@2.15:{ON},experiment:small_pages+mapped_limit",
}
KEPT = ["trace", "device", "bound", "lower_bound_bytes", "peak_reserved_bytes",
        "need_bytes", "need_num_alloc_retries", "need_modelled_device_seconds"]


def main():
    out, bound = sys.argv[1:3]
    names = sys.argv[3:]
    paths = [path for path in sorted(glob.glob(os.path.join(
        SHARED, "recorded", "dev", "*.pickle.xz")))
        if not names or os.path.basename(path).split(".pickle")[0] in names]
    words = [word for policy in POLICIES.values() for word in ("-p", policy)]
    text = subprocess.run(
        [FRAGSIM, "fit", "-q", "-j1", "-cinf" if bound == "capacity" else "--process-limit=inf", "--csv=-", *paths, *words],
        check=False, stdout=subprocess.PIPE, text=True).stdout
    rows = list(csv.DictReader(text.splitlines()))
    short = {policy: name for name, policy in POLICIES.items()}
    for row in rows:
        row["policy"] = short[row["policy"]]
    write_csv(out, replayed(FRAGSIM, f"paper/upstream/recordings.py {bound}",
                            f"{len(paths)} recordings of PyTorch 2.11 on an H200"),
              ["policy", *KEPT], rows)
    for name in POLICIES:
        ratios = sorted(int(row["need_bytes"]) / int(row["lower_bound_bytes"])
                        for row in rows if row["policy"] == name)
        print(f"{name}: {len(ratios)} devices, geometric mean "
              f"{statistics.geometric_mean(ratios):.4f}, median "
              f"{statistics.median(ratios):.4f}, nine of ten at most "
              f"{ratios[len(ratios) * 9 // 10]:.4f}, worst {ratios[-1]:.4f}")


if __name__ == "__main__":
    main()
