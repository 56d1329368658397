#!/usr/bin/env python3
"""check_plan.py: checks plans of known instances and of recordings, and prints
a table.

Environment: FRAG_SHORT (one instance and one recording in four), FRAGSIM (the tool;
default build/fragsim), FRAG_SHARED_DIR (the folder of instances and recordings; skipped
with 77 if it is absent).

  minimalloc   with 32 million steps, A to K at most 1,048,576 bytes high,
               C 1,039,360 (the optimum), D 1,030,144, J 1,024,000
  recordings   with default settings, at most 1 % above the lower bound, and
               most of them at the bound
  fit          one plan serves all capacities: it takes less than four times
               the processor time of a replay
  plan:online  training with equal steps, at most 1 %; also in the last steps,
               with expandable for the rest, at most 10 %
"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import harness
from harness import FRAGSIM

ROOT, SHARED = pathlib.Path(harness.ROOT), pathlib.Path(harness.SHARED)
CEILING = 1048576
KNOWN = {"C": 1039360, "D": 1030144, "J": 1024000}
RECORDED = ["bert_serve", "generate", "gnn_sample", "gpt2_train", "leak",
            "llama_accum", "llama_ckpt", "llama_empty", "llama_fixed",
            "llama_noamp", "llama_varlen", "lstm_varlen", "moe_train",
            "multistream", "rcnn_train", "resnet_varres", "rlhf", "t5_varlen",
            "unet_multires", "cudagraph"]
AT_BOUND = ["cudagraph", "generate", "gnn_sample", "gpt2_train", "leak",
            "llama_ckpt", "llama_noamp", "lstm_varlen", "moe_train",
            "multistream", "resnet_varres", "rlhf", "t5_varlen",
            "unet_multires"]
EQUAL_STEPS = ["gpt2_train", "llama_fixed", "llama_noamp"]


def plan(path, policy, command="replay"):
    """Returns the row of the run and its processor seconds."""
    before = os.times()
    done = subprocess.run([FRAGSIM, command, str(path), "-p", policy, "-q",
                           "--check", "--json", "-"],
                          check=True, capture_output=True)
    after = os.times()
    seconds = (after.children_user - before.children_user +
               after.children_system - before.children_system)
    return json.loads(done.stdout)["results"][0], seconds


def check(name, row, seconds, good):
    gap = "optimal" if row["optimal"] else f"{100 * row['gap_to_bound']:.3f} %"
    print(f"{name:16} {row['lower_bound_bytes']:>14} "
          f"{row['peak_reserved_bytes']:>14} {gap:>9} {seconds:8.2f} s"
          f"{'' if good else '  FAILED'}", flush=True)
    return good


def instances():
    total, good = 0.0, True
    for letter in harness.sample("ABCDEFGHIJK"):
        path = SHARED / "foreign/minimalloc" / f"{letter}.1048576.csv"
        row, seconds = plan(path, "plan:effort=32000000")
        total += seconds
        good &= check(letter, row, seconds,
                      row["peak_reserved_bytes"] <= KNOWN.get(letter, CEILING))
    print(f"minimalloc's instances in {total:.1f} s")
    return good


def bound(path, row):
    """The lower bound does not count blocks that the program freed and another
    stream still uses, because a policy may wait for the stream; plan does not
    wait. The policy `direct` reserves just the blocks that cannot be reused."""
    return max(row["lower_bound_bytes"],
               plan(path, "direct")[0]["peak_reserved_bytes"]
               if path.name.startswith("multistream") else 0)


def recordings():
    good = True
    for name in harness.sample(RECORDED):
        path = SHARED / "recorded/dev" / f"{name}.pickle.xz"
        row, seconds = plan(path, "plan")
        most = (1 if name in AT_BOUND else 1.01) * bound(path, row)
        good &= check(name, row, seconds, row["peak_reserved_bytes"] <= most)
    return good


def fit():
    path = SHARED / "recorded/dev/llama_varlen.pickle.xz"
    once = plan(path, "plan")[1]
    seconds = plan(path, "plan", "fit")[1]
    print(f"fit: {seconds / once:.1f} times the processor time of a replay")
    return seconds < 4 * once


def online():
    """If all steps are alike, the plan is found and holds nearly all memory at
    the end: the warm-up by expandable alone reserved more."""
    good = True
    for name in EQUAL_STEPS:
        path = SHARED / "recorded/dev" / f"{name}.pickle.xz"
        row, seconds = plan(path, "plan:online")
        good &= check(name, row, seconds, row["gap_to_bound"] <= 0.01)
        row, _ = plan(path, "plan:online,rest=expandable")
        rise = row["end_reserved_bytes"] / row["lower_bound_bytes"] - 1
        print(f"{'':16} {100 * rise:.3f} % at the end with expandable")
        good &= rise <= 0.1  # large pages stay while memory is plentiful
    return good


def main():
    if not os.access(FRAGSIM, os.X_OK) or not SHARED.is_dir():
        print(f"check_plan: no tool at {FRAGSIM} or no folder {SHARED}; skipped")
        sys.exit(77)
    good = instances()
    good &= recordings()
    good &= fit()
    good &= online()
    sys.exit(0 if good else 1)


main()
