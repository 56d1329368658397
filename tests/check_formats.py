#!/usr/bin/env python3
"""check_formats.py: imports every sample of ../shared/formats/samples and compares
its counts with expected.json, which was computed without fragsim. A sample that
no importer reads must be refused with the words in REFUSED.

Environment: FRAGSIM (the tool), FRAG_SHARED_DIR (skips without the samples).
"""
import glob
import json
import os
import subprocess
import sys

TOOL = os.environ.get("FRAGSIM", "build/fragsim")
SHARED = os.environ.get("FRAG_SHARED_DIR", "../shared")
SAMPLES = os.path.join(SHARED, "formats", "samples")

# The folders whose samples an importer reads.
READ = []
# Samples that are refused: exit code 3 and these words on stderr.
REFUSED = {}
# Counts that differ from expected.json on purpose: (folder, name, key): reason.
KNOWN = {}

# key of expected.json: what `info --json` states of a device.
COUNTS = {
    "allocs": lambda d: d["requests"]["alloc"] - d["initial_blocks"]
                        - d["failed_requests"],
    "frees": lambda d: d["requests"]["free"] - d["failed_requests"],
    "failures": lambda d: d["failed_requests"],
    "unmatched_frees": lambda d: d["initial_blocks"],
    "peak_live_bytes": lambda d: d["peak_served_bytes"],
    "end_live_bytes": lambda d: d["end_live_bytes"],
}


def fragsim(*arguments):
    return subprocess.run([TOOL, *arguments], text=True, capture_output=True,
                          check=False)


def info(path):
    done = fragsim("info", "--json", "-", path)
    assert done.returncode == 0, (path, done.stderr)
    return json.loads(done.stdout)["results"][0]


def check(folder, name, wanted, device):
    """Returns the number of counts that were compared."""
    number = 0
    for key, value in COUNTS.items():
        if key not in wanted or (folder, name, key) in KNOWN:
            continue
        assert value(device) == wanted[key], (folder, name, key,
                                              value(device), wanted[key])
        number += 1
    return number


def main():
    if not os.path.isdir(SAMPLES):
        print(f"skipped: no folder {SAMPLES}")
        return 77
    for folder in READ:
        with open(os.path.join(SAMPLES, folder, "expected.json"),
                  encoding="utf-8") as file:
            expected = json.load(file)
        for name, wanted in expected.items():
            path = os.path.join(SAMPLES, folder, name)
            if (folder, name) in REFUSED:
                continue
            devices = info(path)["devices"]
            number = check(folder, name, wanted, devices[0])
            print(f"{folder}/{name}: {number} counts equal")
    for (folder, name), words in REFUSED.items():
        done = fragsim("info", os.path.join(SAMPLES, folder, name))
        assert done.returncode == 3 and words in done.stderr, done
        print(f"{folder}/{name}: refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
