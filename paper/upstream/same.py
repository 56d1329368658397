#!/usr/bin/env python3
"""same.py: whether two builds of PyTorch allocate the same way. Each kind of random
script (tests/gpu/releases/scripts.py) runs with both on the stand-ins for CUDA's
libraries, with the same seed, and the snapshots are compared: every action with
its address, every block, every counter. Addresses are compared as distances
from the lowest one, because a process has its own.

usage: same.py PYTHON PYTHON STANDINS OUT.csv CHUNKS SCRIPTS SEED [KIND...]

STANDINS is the folder of the stand-ins (build/dry). A row of OUT.csv is a kind:
kind, snapshots, actions, calls of the driver, snapshots that differ.
"""
import csv
import glob
import json
import os
import pickle
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "..", "..", "tests", "gpu", "releases", "scripts.py")
SMALL = ("full", "throw")  # kinds that need a small device
KINDS = ["plain", "expandable", "streams", "limit", "full", "pools", "pool_limit",
         "no_split", "use_on_oom", "ended", "ended_limit", "graphs",
         "graphs_limit", "throw", "reserve"]
TIMES = ("time_us", "time_ns", "frames", "compile_context", "user_metadata")


def run(python, standins, kind, folder, chunks, each, seed):
    env = dict(os.environ,
               FRAGSIM_DRY_MEMORY="2048" if kind in SMALL else "32768",
               LD_LIBRARY_PATH=f"{standins}:{os.path.join(standins, '13')}")
    subprocess.run([python, SCRIPTS, folder, kind, chunks, each, "200", seed],
                   env=env, check=True, stderr=subprocess.DEVNULL)


def plain(path):
    """A snapshot without times, and addresses and streams by their distance from
    the lowest and their order of appearance."""
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    traces = [entry for device in snapshot["device_traces"] for entry in device]
    lowest = min([entry["addr"] for entry in traces
                  if entry["action"] not in ("oom", "snapshot")] +
                 [segment["address"] for segment in snapshot["segments"]],
                 default=0)
    streams = {}

    def stream(value):
        return streams.setdefault(value, len(streams))

    actions = [tuple((key, entry[key] - lowest if key == "addr" and
                      entry["action"] not in ("oom", "snapshot") else
                      stream(entry[key]) if key == "stream" else entry[key])
                     for key in sorted(entry) if key not in TIMES)
               for entry in traces]
    blocks = [(segment["address"] - lowest, segment["total_size"],
               segment["segment_type"], segment.get("is_expandable"),
               stream(segment["stream"]), segment.get("segment_pool_id"),
               [(block["address"] - lowest, block["size"], block["state"],
                 block["requested_size"]) for block in segment["blocks"]])
              for segment in snapshot["segments"]]
    return actions, blocks


def stats(path):
    with open(path.replace(".pickle", ".json"), encoding="ascii") as file:
        return json.load(file)["stats"]


def main():
    first, second, standins, out, chunks, each, seed = sys.argv[1:8]
    rows = []
    for kind in sys.argv[8:] or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            ways = [os.path.join(folder, way) for way in ("a", "b")]
            for python, way in zip((first, second), ways):
                run(python, standins, kind, way, chunks, each, seed)
            names = [{os.path.basename(path)
                      for path in glob.glob(os.path.join(way, "*.pickle"))}
                     for way in ways]
            count = actions = differ = calls = 0
            differ += len(names[0] ^ names[1])
            for name in sorted(names[0] & names[1]):
                one, two = [os.path.join(way, name) for way in ways]
                a, b = plain(one), plain(two)
                count += 1
                actions += len(a[0])
                calls += stats(one)["num_device_alloc"]
                if a != b or stats(one) != stats(two):
                    differ += 1
                    at = next((i for i, (x, y) in enumerate(zip(a[0], b[0]))
                               if x != y), -1)
                    print(kind, name, "action", at,
                          a[0][at] if at >= 0 else "", b[0][at] if at >= 0 else "",
                          [key for key in stats(one)
                           if stats(one)[key] != stats(two).get(key)][:5],
                          file=sys.stderr)
            rows.append([kind, count, actions, calls, differ])
            print(*rows[-1], flush=True)
    with open(out, "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kind", "snapshots", "actions", "device_allocs", "differ"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
