#!/usr/bin/env python3
"""check_rmm.py: compares logs of RMM's logging adaptor with the counts of RMM's
own StatisticsResourceAdaptor of the same run: what the importer counts, and what
a replay on RMM's resources serves. The bundled log is always there, the others
are in FRAG_SHARED_DIR. tests/test_rmm_places.c compares addresses.

Environment: FRAGSIM (the tool), FRAG_SHARED_DIR.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.environ.get("FRAGSIM", "build/fragsim")
SHARED = os.environ.get("FRAG_SHARED_DIR", "../shared")
FOREIGN = os.path.join(SHARED, "foreign", "rmm")
BUNDLED = os.path.join(ROOT, "traces", "bundled", "recorded")

# log, counts, and replays that refuse what RMM refused: (policy, capacity).
LOGS = [
    (f"{BUNDLED}/rmm_query.dev0.csv.xz", f"{BUNDLED}/rmm_query.json",
     [("rmm_pool", "760MiB"), ("rmm_arena:size=760MiB", "inf"),
      ("cuda_async", "760MiB")]),
    (f"{FOREIGN}/cupy_pool.csv.xz", f"{FOREIGN}/cupy_pool.json",
     [("rmm_pool", "79GiB"), ("rmm_pool:initial=64MiB", "79GiB")]),
    (f"{FOREIGN}/cupy_arena.csv.xz", f"{FOREIGN}/cupy_arena.json",
     [("rmm_arena:size=64MiB", "79GiB"), ("rmm_arena:size=1GiB", "79GiB")]),
]


def results(*arguments):
    done = subprocess.run([TOOL, *arguments, "--json", "-"], text=True,
                          capture_output=True, check=False)
    assert done.returncode in (0, 1), (arguments, done.stderr)
    return json.loads(done.stdout)["results"]


def check_counts(log, counts):
    device, = results("info", log)[0]["devices"]
    found = {
        "total_count": device["requests"]["alloc"] - device["failed_requests"],
        "peak_bytes": device["peak_served_bytes"],
        "current_bytes": device["end_live_bytes"],
        "current_count": device["end_live_blocks"],
    }
    assert device["failed_requests"] == 1, device
    for key, value in found.items():
        assert value == counts[key], (log, key, value, counts[key])
    return device


def check_replay(log, counts, policy, capacity):
    row, = results("replay", log, "-q", "-p", policy, "-c", capacity)
    assert row["num_ooms"] == 1, (policy, row)
    assert row["peak_requested_bytes"] == counts["peak_bytes"], (policy, row)
    # RMM's resources allocate multiples of 256 bytes, cuda_async of 512.
    more = row["peak_allocated_bytes"] - counts["peak_bytes"]
    assert 0 <= more < 512 * counts["peak_count"], (policy, row)


def check_free_streams(log):
    """A CSV of events lacks the streams of frees, which matter here."""
    with tempfile.TemporaryDirectory() as folder:
        events = os.path.join(folder, "events.csv")
        subprocess.run([TOOL, "export", log, "-o", events, "-q"], check=True)
        peaks = [results("replay", path, "-q", "-p",
                         "cuda_async:opportunistic=no")[0]
                 ["peak_reserved_bytes"] for path in (log, events)]
    assert peaks[0] != peaks[1], peaks
    print(f"frees on another stream: {peaks[0]} bytes, without: {peaks[1]}")


def main():
    for log, statistics, replays in LOGS:
        if not os.path.exists(log):
            print(f"skipped: no {log}")
            continue
        with open(statistics, encoding="utf-8") as file:
            counts = json.load(file)
        counts = counts.get("counts", counts)
        check_counts(log, counts)
        for policy, capacity in replays:
            check_replay(log, counts, policy, capacity)
        print(f"{os.path.basename(log)}: {counts['total_count']} allocations, "
              f"peak {counts['peak_bytes']} bytes, as RMM counts")
    check_free_streams(LOGS[0][0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
