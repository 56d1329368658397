#!/usr/bin/env python3
"""oom_review.py SNAPSHOT CAPACITY [FOLDER]: reviews a failed PyTorch job in
Python, cell by cell: paste the cells into a notebook. CAPACITY is the memory of
the device, such as 24GiB; the figures are written into FOLDER (default: .).
The package fragsim must be installed, with pandas and h5py.
"""
# %% The snapshot is that of fragsim.record, or of PyTorch's _dump_snapshot.
import os
import sys

import fragsim

snapshot, capacity, folder = (sys.argv[1:] + ["."])[:3]
results = os.path.join(folder, "review.h5")

# %% Why did it die?
why = fragsim.answer("explain", snapshot)
for device in why.rows():
    print(f"device {device['device']}: {device['cause_text']}: {device['evidence']}")
    print("  not known:", *device["unknown"], sep="\n    ")
print(why.table("changes")[["device", "result", "change"]].to_string(index=False))

# %% What would other settings and allocators have reserved, and which fit?
runs = fragsim.replay(
    snapshot, capacity=["inf", capacity], output=results, force=True,
    policies=["torch", "torch:expandable_segments:True", "best_fit"])
runs["GiB"] = runs.peak_reserved_bytes / 2**30
print(runs[["policy", "capacity_bytes", "GiB", "num_ooms"]].to_string(index=False))
for note in runs.notes.explode().dropna().unique():
    print("note:", note)

# %% How much memory does each of them need?
needs = fragsim.fit(snapshot, capacity="inf",
                    policies=["torch", "torch:expandable_segments:True"])
print(needs[["policy", "need_bytes", "step_bytes"]].to_string(index=False))

# %% Which setting is best?
chosen = fragsim.tune(snapshot, capacity=capacity, table="chosen")
print("export PYTORCH_CUDA_ALLOC_CONF=" + chosen.settings[0] if len(chosen)
      else f"no setting is promised to survive {capacity}")

# %% The memory over time, with pandas; and as figures, which need gnuplot.
series = fragsim.read(results, "series", run=0)
print(series[["event", "allocated_max", "reserved_max"]].max().to_string())
try:
    print(fragsim.plot(results, "timeline", os.path.join(folder, "timeline.svg"),
                       capacity="inf", force=True))
except fragsim.Error as error:
    print(f"no figure: {error}")
