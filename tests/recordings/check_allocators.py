#!/usr/bin/env python3
"""check_allocators.py [ROWS] [--misses] [--kind NAME]: compares policies with
what the real allocators of RMM, CuPy, the CUDA driver and JAX did.

ROWS (default: ../shared/oracle/allocators.jsonl.xz) has one JSON object for each
replay of a recording's requests through a real allocator on a GPU; the requests
are those of ../shared/recorded/dev. Each row is replayed with the policy of the
same allocator, and what the row holds is compared: peak reserved, the number and
the events of segments, the first refused request. The script prints N of M for
each allocator, and the first cause of each miss. It fails if an allocator agrees
in fewer rows than the table ALLOCATORS states.

The rows of ../paper/data/run_ahead.csv (paper/gpu/run_ahead.py) show the CUDA driver's
pool on devices that are behind the host. No trace shows how far, so such a row
counts if it lies within the range of the policies RANGE. The script fails if fewer
rows of a kind do, or are equal to one policy, than the table RUN_AHEAD states.

Environment: FRAGSIM (the tool), FRAG_SHARED_DIR (skips without the recordings).
"""
import argparse
import collections
import csv
import importlib.util
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, SHARED

SEEDS = 32  # of a policy that shows the spread of its allocator
MOST = 40000  # events of a stream, as the real allocators got them
ALLOC, FREE, TRIM = 0, 1, 2


def converter():
    """The function that made the streams of the real allocators."""
    path = os.path.join(SHARED, "oracle", "events.py")
    spec = importlib.util.spec_from_file_location("events", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.convert


class Streams:
    """The events of each recording, and CSV files of their beginnings."""

    def __init__(self, folder):
        self.convert, self.folder, self.events = converter(), folder, {}

    def of(self, trace):
        if trace not in self.events:
            path = os.path.join(SHARED, "recorded", "dev",
                                trace + ".pickle.xz")
            with lzma.open(path) as file:
                self.events[trace] = self.convert(pickle.load(file))[:MOST]
        return self.events[trace]

    def write(self, trace, count, trims):
        """Writes the first `count` events. Returns the path and, for each
        event of the file, its number in the stream."""
        path = os.path.join(self.folder, f"{trace}.csv")
        numbers = []
        live = set()
        with open(path, "w", encoding="utf-8") as out:
            out.write("op,id,bytes,stream\n")
            for i, (op, stream, name, size) in enumerate(self.of(trace)[:count]):
                if op == ALLOC and size:
                    out.write(f"alloc,{name},{size},{stream}\n")
                    live.add(name)
                elif op == FREE and name in live:
                    out.write(f"free,{name},,\n")
                    live.discard(name)
                elif op == TRIM and trims:
                    out.write("empty_cache,,,\n")
                else:
                    continue
                numbers.append(i)
        return path, numbers


def replay(path, policies, capacity):
    """The rows of the policies, in their order."""
    command = [FRAGSIM, "replay", "-q", path, "--stop-at-oom", "--json", "-"]
    for policy in policies:
        command += ["-p", policy]
    if capacity:
        command += ["-c", f"{capacity}B", "--address-rule", "exact"]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, (command, done.stderr)
    rows = json.loads(done.stdout)["results"]
    assert len(rows) == len(policies), command
    return rows


def first_oom(result, numbers):
    event = result["first_oom_event"]
    return None if event is None else numbers[event]


def same_segments(row, result, numbers):
    """Pairs (what, real, simulated) that an allocator on cudaMalloc shows."""
    return [("first refusal", row["first_oom_index"],
             first_oom(result, numbers)),
            ("peak reserved", row["peak_reserved"],
             result["peak_reserved_bytes"]),
            ("segments", row["num_segments"], result["num_segment_alloc"])]


def same_driver_pool(row, result, numbers):
    return [("first refusal", row["first_oom_index"],
             first_oom(result, numbers)),
            ("peak reserved", row["reserved_high"],
             result["peak_reserved_bytes"])]


def same_jax(row, result, _):
    return [("peak of the pool", row["stats"]["peak_pool_bytes"],
             result["peak_reserved_bytes"]),
            ("peak in use", row["stats"]["peak_bytes_in_use"],
             result["peak_allocated_bytes"])]


Kind = collections.namedtuple(
    "Kind", "policy limit_is_capacity trims compare equal has_seed",
    defaults=[False])
# kind of row: (policy for a limit, whether the limit is the device's, whether
# a trim reaches the allocator, what is compared, rows that are equal or within
# the spread, whether the policy has seeds)
ALLOCATORS = {
    "rmm_pool": Kind(lambda n: "rmm_pool", True, False, same_segments, 39),
    "rmm_pool_initial": Kind(lambda n: "rmm_pool:initial=1GiB", True, False,
                             same_segments, 20),
    "rmm_pool_max": Kind(lambda n: f"rmm_pool:maximum={n}", False, False,
                         same_segments, 40),
    "rmm_arena": Kind(lambda n: f"rmm_arena:size={n}", True, False,
                      same_segments, 40),
    "rmm_binning": Kind(lambda n: "rmm_binning:smallest=256KiB,largest=4MiB",
                        True, False, same_segments, 36),
    "cupy": Kind(lambda n: "cupy", True, True, same_segments, 80, True),
    "cupy_limit": Kind(lambda n: f"cupy:limit={n}", False, True,
                       same_segments, 20, True),
    # Synchronized after every free, as is async_keep_sync; async_keep is
    # synchronized at trims only.
    "async": Kind(lambda n: "cuda_async:sync=1", False, True, same_driver_pool, 20),
    "async_keep": Kind(lambda n: "cuda_async:threshold=inf", False, True,
                       same_driver_pool, 20),
    "async_keep_sync": Kind(lambda n: "cuda_async:threshold=inf,sync=1", False,
                            True, same_driver_pool, 20),
    "jax": Kind(lambda n: "bfc", False, False, same_jax, 20),
}

# What a trace cannot show about cuda_async: synchronized after every free, an
# idle device, and devices that are 3 requests or more behind the host.
RANGE = ["cuda_async:sync=1"] + [f"cuda_async:run_ahead={n}"
                                 for n in (0, 3, 10, 100, 1000000)]
# kind of row in run_ahead.csv: (policy that models it best, rows that are equal
# to it, rows within the range)
RUN_AHEAD = {
    "sync": ("cuda_async:sync=1", 20, 20),
    "every100": ("cuda_async:sync=100", 11, 19),
    "idle": ("cuda_async", 19, 20),
    "keep": ("cuda_async", 20, 20),
    "work8": ("cuda_async", 5, 19),
    "work64": ("cuda_async:run_ahead=1000000", 8, 17),
}


def compare(row, kind, policies, streams, count):
    """For each policy, the pairs of a replay of the first `count` events."""
    path, numbers = streams.write(row["trace"], count, kind.trims)
    results = replay(path, policies,
                     row["limit"] if kind.limit_is_capacity else None)
    return [kind.compare(row, result, numbers) for result in results]


def is_in_spread(row, kind, streams):
    """Whether the real allocator lies within what the seeds of a policy show:
    the event of the first refusal, and the peak."""
    policy = kind.policy(row["limit"])
    sign = "," if ":" in policy else ":"
    runs = compare(row, kind, [f"{policy}{sign}seed={seed}"
                               for seed in range(SEEDS)], streams, MOST)
    for k in (0, 1):  # the first refusal and the peak
        never = float("inf")
        values = [never if run[k][2] is None else run[k][2] for run in runs]
        real = never if runs[0][k][1] is None else runs[0][k][1]
        if not min(values) <= real <= max(values):
            return False
    return True


def check(row, streams):
    """Returns the first difference of a row as text, or None."""
    kind = ALLOCATORS[row["allocator"]]
    count = row.get("used_events", MOST)
    if row["first_oom_index"] is not None:
        count = row["first_oom_index"] + 1
    for what, real, simulated in compare(row, kind, [kind.policy(row["limit"])],
                                         streams, count)[0]:
        if real != simulated:
            return f"{what}: real {real}, simulated {simulated}"
    return None


def run_ahead_rows():
    """The rows of run_ahead.csv as {(kind, trace): peak}, and its first line."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                        "paper", "data", "run_ahead.csv")
    with open(path, encoding="utf-8") as file:
        device = file.readline().strip("# \n")
        return {(row["kind"], row["trace"]): int(row["reserved_high_bytes"])
                for row in csv.DictReader(file)}, device


def run_ahead_peaks(streams, traces):
    """{policy: {trace: peak}} of the policies of RANGE and RUN_AHEAD."""
    policies = sorted(set(RANGE) | {p for p, _, _ in RUN_AHEAD.values()})
    peaks = {policy: {} for policy in policies}
    for trace in traces:
        path, _ = streams.write(trace, MOST, True)
        for policy, row in zip(policies, replay(path, policies, None)):
            peaks[policy][trace] = row["peak_reserved_bytes"]
    return peaks


def check_run_ahead(streams):
    """Prints a line for each kind; returns the number of kinds that agree in
    fewer rows than they did."""
    rows, _ = run_ahead_rows()
    peaks = run_ahead_peaks(streams, sorted({trace for _, trace in rows}))
    fewer = 0
    for kind, (policy, least_equal, least_within) in RUN_AHEAD.items():
        real = {trace: peak for (k, trace), peak in rows.items() if k == kind}
        equal = sum(peaks[policy][trace] == peak
                    for trace, peak in real.items())
        within = sum(min(peaks[p][trace] for p in RANGE) <= peak <=
                     max(peaks[p][trace] for p in RANGE)
                     for trace, peak in real.items())
        print(f"driver, {kind:9} {equal:3} of {len(real)} equal to {policy}, "
              f"{within} within the range")
        fewer += equal < least_equal or within < least_within
    return fewer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="?", default=os.path.join(
        SHARED, "oracle", "allocators.jsonl.xz"))
    parser.add_argument("--kind", help="only rows of this allocator")
    parser.add_argument("--misses", action="store_true",
                        help="print the first cause of each miss")
    given = parser.parse_args()
    if not os.path.exists(given.rows):
        print(f"skipped: no file {given.rows}")
        return 77
    whole = not given.kind and given.rows == parser.get_default("rows")
    opened = lzma.open if given.rows.endswith(".xz") else open
    with opened(given.rows, "rt") as file:
        rows = [json.loads(line) for line in file]
    equal, near, total = (collections.Counter() for _ in range(3))
    with tempfile.TemporaryDirectory() as folder:
        streams = Streams(folder)
        for row in rows:
            name = row["allocator"]
            if given.kind and name != given.kind:
                continue
            total[name] += 1
            miss = check(row, streams)
            equal[name] += miss is None
            if miss and ALLOCATORS[name].has_seed:
                if is_in_spread(row, ALLOCATORS[name], streams):
                    near[name] += 1
                    miss += "; within the spread of the seeds"
            if miss and given.misses:
                print(f"{name} {row['trace']} limit {row['limit']}: {miss}")
        fewer = check_run_ahead(streams) if whole else 0
    for name, number in total.items():
        kind = ALLOCATORS[name]
        spread = f", {near[name]} more within the spread" * kind.has_seed
        print(f"{name:17} {equal[name]:3} of {number}{spread}")
        fewer += whole and equal[name] + near[name] < kind.equal
    if fewer:
        print(f"{fewer} allocators agree in fewer rows than they did")
    return 1 if fewer else 0


if __name__ == "__main__":
    sys.exit(main())
