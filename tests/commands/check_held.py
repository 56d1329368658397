#!/usr/bin/env python3
"""check_held.py: compares `fragsim top` with sums over the entries of snapshots.

Python reads each snapshot, finds the peak of requested bytes and adds up the
blocks that are held there by stack, stream and requested size. The folded
stacks and the groups of `fragsim top` must be the same, to the byte. The bundled
recordings that begin with the job are read, and those of ../shared with stacks.
The bytes of `fragsim diff` must be the difference of two such groups.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import collections
import json
import lzma
import os
import pickle
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import ROOT, SHARED, output, results, run

RECORDED = os.path.join(SHARED, "recorded")
BUNDLED = ["leak_frames", "leak_cpp", "leak", "gpt2_train", "multistream",
           "lstm_varlen__cap_below"]
DEV = ["rcnn_frames", "llama_varlen_frames"]


def word(text):
    return re.sub(r"[\x00-\x20;\x7f]", "_", text)


def folded(entry):
    frames = entry.get("frames") or []
    return ";".join(f"{word(f['name'])}_({word(f['filename'].split('/')[-1])}:"
                    f"{f['line']})" for f in reversed(frames)) or "unknown"


class Held:
    """The blocks that are held, and the sums over them."""

    def __init__(self):
        self.blocks = {}
        self.live = 0

    def copy(self):
        new = Held()
        new.blocks, new.live = dict(self.blocks), self.live
        return new

    def enter(self, entry):
        action, addr = entry["action"], entry.get("addr")
        if action == "alloc":
            self.blocks[addr] = entry, False
            self.live += entry["size"]
        elif action == "free_requested":
            self.blocks[addr] = self.blocks[addr][0], True
            self.live -= self.blocks[addr][0]["size"]
        elif action == "free_completed":
            del self.blocks[addr]

    def sums(self, key):
        found = collections.Counter()
        for entry, _ in self.blocks.values():
            found[key(entry)] += entry["size"]
        return dict(found)


def peak_of(entries):
    """The blocks held at the first peak. A request that fails is not live."""
    held, best, peak = Held(), None, 0
    for entry in entries:
        held.enter(entry)
        if held.live > peak:
            peak, best = held.live, held.copy()
    return best


def groups(path, by):
    text = output("top", "-q", path, "--by", by, "--rows", "0", "--json", "-")
    return json.loads(text)["results"][0]


def compare(path, what, found, expected):
    if found != expected:
        raise SystemExit(f"{path}: {what}: expected {expected}, found {found}")


def check(path):
    with lzma.open(path) as file:
        entries = [t for t in pickle.load(file)["device_traces"] if t][0]
    held = peak_of(entries)
    by_size = groups(path, "size")
    streams = {int(g["name"].split()[1]): g["held_bytes"]
               for g in groups(path, "stream")["groups"]}
    sizes = {int(g["name"].split()[0]): g["held_bytes"]
             for g in by_size["groups"]}
    compare(path, "requested", by_size["requested_bytes"], held.live)
    compare(path, "streams", streams, held.sums(lambda e: e["stream"]))
    compare(path, "sizes", sizes, held.sums(lambda e: e["size"]))
    if by_size["has_stacks"]:
        lines = output("top", "-q", path, "--folded", "-").splitlines()
        stacks = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2])
                  for line in lines}
        compare(path, "number of stacks", len(stacks), len(lines))
        compare(path, "stacks", stacks, held.sums(folded))
    check_diff(path, by_size)
    return len(held.blocks)


def check_diff(path, peak):
    """The end of the trace against its peak, by size."""
    text = output("diff", "-q", path, path, "--at", "peak", "--at", "end", "--by", "size",
               "--rows", "0", "--json", "-")
    found = json.loads(text)["results"][0]
    end = json.loads(output("top", "-q", path, "--at", "end", "--by", "size",
                         "--rows", "0", "--json", "-"))["results"][0]
    expected = {}
    for place, moment in enumerate((peak, end)):
        for group in moment["groups"]:
            expected.setdefault(group["name"], [0, 0, 0, 0])[place] = (
                group["held_bytes"])
            expected[group["name"]][2 + place] = group["blocks"]
    same = [v for v in expected.values() if v[0] == v[1] and v[2] == v[3]]
    changes = {c["name"]: [c["held_bytes_before"], c["held_bytes_after"],
                           c["blocks_before"], c["blocks_after"]]
               for c in found["changes"]}
    compare(path, "changes", changes,
            {k: v for k, v in expected.items() if v not in same})
    compare(path, "unchanged", found["num_unchanged"], len(same))


def check_moved(folder):
    """Lines that were inserted above a function move its sites, and change nothing."""
    path = os.path.join(ROOT, "traces", "bundled", "leak_frames.pickle.xz")
    with lzma.open(path) as file:
        made = pickle.load(file)
    lists = {id(e["frames"]): e["frames"] for t in made["device_traces"] for e in t
             if e.get("frames")}
    for frame in {id(f): f for frames in lists.values() for f in frames}.values():
        frame["line"] += 2  # so that some lines are those of other sites
    moved = os.path.join(folder, "moved.pickle")
    with open(moved, "wb") as file:
        pickle.dump(made, file)
    found = json.loads(output("diff", "-q", path, moved, "--json", "-"))["results"][0]
    compare(moved, "changes", found["changes"], [])
    compare(moved, "moved", (found["num_moved"], found["num_unchanged"]), (5, 6))
    check_devices(moved, made)


def check_devices(path, made):
    """Each device with events is answered for; stacks are written of one."""
    def write(*traces):
        with open(path, "wb") as file:
            pickle.dump(dict(made, segments=[], device_traces=[*traces]), file)

    trace, = [t for t in made["device_traces"] if t]
    write([], trace, [])
    for verb in "top", "leaks", "steps":
        compare(verb, "devices", [row["device"] for row in results(verb, path)], [1])
    write(pickle.loads(pickle.dumps(trace[:900])), trace)
    rows = results("top", "-q", path)
    compare(path, "device 1", rows[1:], results("top", "-q", path, "--device", 1))
    compare(path, "device 0", rows[0]["held_bytes"], peak_of(trace[:900]).live)
    run("top", "-q", path, "--folded", "-", code=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_moved(folder)
    paths = [os.path.join(ROOT, "traces", "bundled", name + ".pickle.xz")
             for name in BUNDLED]
    if os.path.isdir(RECORDED):
        paths += [os.path.join(RECORDED, "dev", name + ".pickle.xz")
                  for name in DEV]
        causes = os.path.join(RECORDED, "causes")
        paths += [os.path.join(causes, name) for name in
                  sorted(os.listdir(causes)) if name.endswith(".pickle.xz")]
    for path in paths:
        print(f"{os.path.basename(path)}: {check(path)} blocks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
