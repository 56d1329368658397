#!/usr/bin/env python3
"""compare_import.py: compares the calls that `test_import_torch --dump FILE`
passes to the builder with the contents that Python's own unpickler finds in the
same file.

usage: compare_import.py TEST_PROGRAM SNAPSHOT...
"""
import lzma
import pickle
import subprocess
import sys

ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc",
           "segment_free", "segment_map", "segment_unmap", "oom"}
STATES = {"inactive": 0, "active_pending_free": 1, "active_awaiting_free": 1,
          "active_allocated": 2}


def stack(frames):
    return " ".join(f"{f['filename']}:{f['line']}:{f['name']}" for f in frames)


def entries(snapshot):
    for device, trace in enumerate(snapshot["device_traces"]):
        for e in trace:
            if e["action"] not in ACTIONS:
                continue
            addr = e["device_free" if e["action"] == "oom" else "addr"]
            yield (f"entry {device} {e['action']} {addr} {e['size']} "
                   f"{e['stream']} {e['time_us'] * 1000}",
                   stack(e.get("frames", [])))


def segments(snapshot):
    for s in snapshot["segments"]:
        yield (f"segment {s['device']} {s['address']} {s['total_size']} "
               f"{s['stream']} {s['segment_pool_id'][0]} "
               f"{s['segment_pool_id'][1]} {int(s['segment_type'] == 'small')} "
               f"{int(s['is_expandable'])}", "")
        for b in s["blocks"]:
            yield (f"block {s['device']} {b['address']} {b['size']} "
                   f"{b['requested_size']} {STATES[b['state']]}", "")


def marks(snapshot):
    kinds = {"START": "begin", "END": "end"}
    for a in snapshot["external_annotations"]:
        yield (f"mark {a['device']} {kinds[a['stage']]} {a['time_us'] * 1000} "
               f"{a['name']}", "")


def dumped(program, path):
    text = subprocess.run([program, "--dump", path], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    stacks = {}
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word == "stack":
            number, _, frames = rest.partition(" ")
            stacks[number] = frames
        elif word == "entry":
            entry, _, number = line.partition(" stack ")
            yield entry, stacks[number] if number else ""
        elif word in ("segment", "block", "mark"):
            yield line, ""


def kind(line):
    return "segment" if line[0].startswith("block") else line[0].split()[0]


def compare(program, path):
    data = open(path, "rb").read()
    if path.endswith(".xz"):
        data = lzma.decompress(data)
    snapshot = pickle.loads(data)
    found = list(dumped(program, path))
    wrong = 0
    for name, expected in (("entry", entries(snapshot)),
                           ("segment", segments(snapshot)),
                           ("mark", marks(snapshot))):
        expected = list(expected)
        given = [line for line in found if kind(line) == name]
        if expected != given:
            first = next((p for p in zip(expected, given) if p[0] != p[1]),
                         (len(expected), len(given)))
            print(f"{path}: {name}: expected {first[0]}, found {first[1]}")
            wrong += 1
    print(f"{path}: {len(found)} lines {'differ' if wrong else 'agree'}")
    return wrong


def main():
    program, *paths = sys.argv[1:]
    sys.exit(1 if sum(compare(program, path) for path in paths) else 0)


main()
