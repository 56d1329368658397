#!/usr/bin/env python3
"""check_rmm.py: compares logs of RMM's logging adaptor with the counts of RMM's
own StatisticsResourceAdaptor of the same run: what the importer counts, and what
a replay on RMM's resources serves. The bundled log is always there, the others
are in FRAG_SHARED_DIR. tests/unit/policies/test_rmm_places.c compares addresses.

Environment: FRAGSIM (the tool), FRAG_SHARED_DIR.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SHARED

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
    done = subprocess.run([FRAGSIM, *arguments, "--json", "-"], text=True,
                          capture_output=True, check=False)
    assert done.returncode in (0, 1), (arguments, done.stderr)
    return json.loads(done.stdout)["results"]


def check_counts(log, counts):
    device, = results("info", log)[0]["devices"]
    found = {
        "total_count": device["requests"]["alloc"] - device["failed_requests"],
        "peak_bytes": device["peak_requested_bytes"],
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
        subprocess.run([FRAGSIM, "export", log, "-o", events, "-q"], check=True)
        peaks = [results("replay", path, "-q", "-p",
                         "cuda_async:opportunistic=no")[0]
                 ["peak_reserved_bytes"] for path in (log, events)]
    assert peaks[0] != peaks[1], peaks
    print(f"frees on another stream: {peaks[0]} bytes, without: {peaks[1]}")


def run(*arguments):
    """Returns the lines on stderr, without the name of the file."""
    done = subprocess.run([FRAGSIM, *arguments], text=True, check=True,
                          capture_output=True)
    return [line.split(": ", 1)[1] for line in done.stderr.splitlines()]


def check_edited_free_streams(log):
    """An edit that keeps all events keeps the streams of frees, and the notes of the
    trace once each."""
    with tempfile.TemporaryDirectory() as folder:
        def at(name):
            return os.path.join(folder, name)

        # An edit has no answers, so a request that failed is one like others.
        served = at("served.h5")
        run("edit", log, "-o", served, "-e", "scale:factor=1")
        said = run("edit", served, "-o", at("edited.h5"), "-e",
                   "slice:events=0..")
        assert said and len(said) == len(set(said)), said
        for policy in ("rmm_pool", "cuda_async:opportunistic=no"):
            peaks = [results("replay", path, "-q", "-p", policy)[0]
                     ["peak_reserved_bytes"] for path in (log, at("edited.h5"))]
            assert peaks[0] == peaks[1], (policy, peaks)
    print(f"{os.path.basename(log)}: edits keep the streams of frees")


def check_words(log):
    """What is PyTorch's is not said of RMM's log."""
    for verb in ("top", "summary"):
        done = subprocess.run([FRAGSIM, verb, log, "-q"], text=True, check=True,
                              capture_output=True)
        assert "PyTorch" not in done.stdout, done.stdout
        assert "_record_memory_history" not in done.stdout, done.stdout
        assert ("formats have stacks" if verb == "top" else
                " torch memory summary, device ID 0 ") in done.stdout, done.stdout


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
    check_edited_free_streams(LOGS[0][0])
    check_words(LOGS[0][0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
