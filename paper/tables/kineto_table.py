#!/usr/bin/env python3
"""kineto_table.py [OUTPUT]: writes paper/pages/kineto.md, which compares the trace of
torch.profiler with the snapshot of the same run.

The runs are those of ../shared/recorded/dev that have both files
(NAME.pickle.xz and NAME.kineto.json.xz). Each pair is replayed under several
policies; the page states how far the peaks are apart, and which of the requests
differ.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

from places import PAGES, ROOT

FRAGSIM = os.environ.get("FRAGSIM", os.path.join(ROOT, "build", "fragsim"))
SHARED = os.environ.get("FRAG_SHARED_DIR", os.path.join(ROOT, "..", "shared"))
FOLDER = os.path.join(SHARED, "recorded", "dev")
TORCH = "torch@2.11"  # of the runs; the profiler's trace does not name the release
POLICIES = (TORCH, "expandable", "best_fit", "first_fit", "bfc", "cuda_async")
QUANTUM = 512  # bytes, to which PyTorch rounds requests


def fragsim(*arguments):
    return subprocess.run([FRAGSIM, *arguments], capture_output=True,
                          text=True, check=True).stdout


def info(path):
    trace = json.loads(fragsim("info", "--json", "-", path))["results"][0]
    return trace["devices"][0]


def replay(path):
    """The results of the policies, by name."""
    policies = [word for name in POLICIES for word in ("-p", name)]
    rows = json.loads(fragsim("replay", path, "-q", *policies,
                              "--json", "-"))["results"]
    return {row["policy"]: row for row in rows}


def events(path):
    """(op, id, bytes) of each event."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "events.csv")
        fragsim("export", path, "-o", target)
        with open(target, encoding="utf-8") as file:
            lines = file.read().split()[1:]
    return [tuple(line.split(",")[:3]) for line in lines]


def mib(size):
    return f"{size / 2**20:.3f}"


class Run:
    """One run with both files."""

    def __init__(self, kineto):
        self.name = os.path.basename(kineto).removesuffix(".kineto.json.xz")
        snapshot = kineto.replace(".kineto.json.xz", ".pickle.xz")
        with open(snapshot.replace(".pickle.xz", ".json"),
                  encoding="utf-8") as file:
            self.facts = json.load(file)
        self.infos = info(snapshot), info(kineto)
        self.replays = replay(snapshot), replay(kineto)
        self.compare(events(snapshot), events(kineto))

    def compare(self, snapshot, kineto):
        """Counts the events that differ, and the blocks by their size."""
        self.same_order = ([event[:2] for event in snapshot]
                           == [event[:2] for event in kineto])
        self.as_asked = self.rounded = self.larger = self.smaller = 0
        for (op, _, asked), (_, _, granted) in zip(snapshot, kineto):
            if op != "alloc":
                continue
            asked, granted = int(asked), int(granted)
            whole = -(-asked // QUANTUM) * QUANTUM
            self.as_asked += granted == asked
            self.rounded += granted == whole != asked
            self.larger += granted > whole
            self.smaller += granted < asked

    def summary(self):
        both = self.infos
        return (f"| {self.name} | {both[0]['requests']['alloc']} "
                f"| {both[1]['requests']['alloc']} "
                f"| {'yes' if self.same_order else 'no'} "
                f"| {self.as_asked} | {self.rounded} | {self.larger} "
                f"| {self.smaller} |")

    def peaks(self):
        stats = self.facts["stats"]
        cells = [stats["allocated_bytes.all.peak"],
                 stats["reserved_bytes.all.peak"]]
        both = [one[TORCH]["peak_allocated_bytes"] for one in self.replays]
        asked = [one[TORCH]["peak_requested_bytes"] for one in self.replays]
        return (f"| {self.name} | {mib(cells[0])} | {mib(both[0])} "
                f"| {mib(both[1])} | {mib(asked[0])} | {mib(asked[1])} "
                f"| {mib(cells[1])} |")

    def policies(self):
        for policy in POLICIES:
            peaks = [one[policy]["peak_reserved_bytes"]
                     for one in self.replays]
            apart = 100 * (peaks[1] / peaks[0] - 1)
            yield (f"| {self.name} | {policy} | {mib(peaks[0])} "
                   f"| {mib(peaks[1])} | {apart:+.3f} % |")


PAGE = """# The trace of torch.profiler against the snapshot of the same run

Made by `paper/tables/kineto_table.py`; do not edit. The runs are those of
`../shared/recorded/dev` that were recorded both ways at once: with
torch.profiler (profile_memory=True) and with _record_memory_history, PyTorch
{torch} on an {device}. Sizes are in MiB.

## The requests

"Same order": the allocs and frees of both files are the same sequence of blocks.
The other columns count the allocs whose size in the profile is exactly what was
asked, what was asked rounded up to 512 bytes, more than that, or less than asked.

| run | allocs, snapshot | allocs, profile | same order | as asked | rounded | larger | smaller |
|---|---|---|---|---|---|---|---|
{summary}

## Peaks under the torch policy

| run | allocated, PyTorch's counter | allocated, snapshot | allocated, profile | requested, snapshot | requested, profile | reserved, PyTorch's counter |
|---|---|---|---|---|---|---|
{peaks}

## Peak reserved under each policy

| run | policy | snapshot | profile | apart |
|---|---|---|---|---|
{policies}

## Why the two are not equal

- The profile has the sizes of blocks. What was asked is less, so the peak of the
  requested bytes of a profile is PyTorch's peak of the allocated bytes, and
  internal fragmentation cannot be seen in it.
- A policy that rounds as PyTorch does maps a size that is rounded already to
  itself. Only the blocks in the column "larger" can change its decisions: PyTorch
  did not split off the rest of a block, and the replay requests block and rest
  together. Policies that round in another way differ by their rounding.
- The profile has no streams and no segments. With several streams, a block is
  reusable at once in its replay, which underestimates reserved memory; both runs
  above use one stream, so this page does not measure that.
- Both runs were profiled from their first allocation. A profile that begins later
  has one number for everything that was live before, and the free memory between
  those blocks is not in it.
- The replay of a run without a limit places segments as the simulated device does,
  so its peak may differ from PyTorch's own counter, with either file;
  `fragsim validate` replays the recorded placement, and needs the snapshot.
"""


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(PAGES, "kineto.md")
    runs = [Run(path) for path in sorted(
        glob.glob(os.path.join(FOLDER, "*.kineto.json.xz")))]
    page = PAGE.format(
        torch=runs[0].facts["torch"], device=runs[0].facts["device"],
        summary="\n".join(run.summary() for run in runs),
        peaks="\n".join(run.peaks() for run in runs),
        policies="\n".join(row for run in runs for row in run.policies()))
    with open(target, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
