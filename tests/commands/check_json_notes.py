#!/usr/bin/env python3
"""check_json_notes.py: compares the notes that each command prints on stderr
with the arrays `notes` of its JSON, for a set of snapshots whose reading rests
on assumptions: late starts, no history, two devices, and a job that died.

Each line of stderr that begins with the name of an input must be a note in the
JSON, without that name. With --quiet, stderr has no note and the JSON has the
same ones. Exit 1 if a note is missing.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import json
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, need

BASE, MIB = 0x700000000000 + (1 << 40), 1 << 20


def entry(action, addr, size, frames=(), **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0,
            "frames": list(frames), **more}


def segment(blocks):
    return {"device": 0, "address": BASE, "total_size": 20 * MIB, "stream": 0,
            "allocated_size": 0, "active_size": 0, "requested_size": 0,
            "segment_type": "large", "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": [
                {"address": addr, "size": size, "requested_size": size,
                 "state": state, "frames": []}
                for addr, size, state in blocks]}


def life(count, size=2 * MIB):
    """Blocks in one segment, each freed before the next is allocated."""
    entries = []
    for _ in range(count):
        entries += [entry("alloc", BASE, size),
                    entry("free_requested", BASE, size),
                    entry("free_completed", BASE, size)]
    return entries


WHOLE = [(BASE, 20 * MIB, "inactive")]


def snapshots():
    """{name: snapshot}"""
    begin = [entry("segment_alloc", BASE, 20 * MIB)]
    died = begin + life(3) + [entry("oom", 0, 64 * MIB, device_free=0)]
    return {
        "whole.pickle": ([segment(WHOLE)], [begin + life(6)]),
        "late.pickle": ([segment(WHOLE)], [life(2)[1:] + life(6)]),
        "large.pickle": ([segment(WHOLE)],
                         [life(2, 4 * MIB)[1:] + life(6, 4 * MIB)]),
        "bare.pickle": ([segment([(BASE, 4 * MIB, "active_allocated"),
                                  (BASE + 4 * MIB, 16 * MIB, "inactive")])],
                        [[]]),
        "two.pickle": ([segment(WHOLE)], [life(2)[1:], []]),
        "died.pickle": ([segment(WHOLE)], [died]),
    }


# Command lines; T is an input, U another one.
COMMANDS = [
    "info T", "info T U",
    "replay T -p torch -p best_fit -c 8MiB,inf", "replay T U",
    "fit T -p torch -p best_fit", "fit T U -p best_fit",
    "sweep T U -p torch -o sweep.h5", "tune T",
    "explain T -c 8MiB", "top T", "steps T", "leaks T", "summary T",
    "diff T U", "steps T U", "top T U",
    "validate T", "validate T U",
]


def run(words):
    return subprocess.run([FRAGSIM, *words], capture_output=True, text=True,
                          check=False, timeout=120,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})


def text_of(note):
    """The line of a note in `cell_notes`."""
    cells = f"{note['cells']} cells, the first one " if note["cells"] > 1 else ""
    return note["note"] if note["device"] is None else \
        f"device {note['device']}: {cells}{note['first']}: {note['note']}"


def notes_of(value):
    """All strings in arrays named `notes`, at any depth, and the lines of
    `cell_notes`."""
    if isinstance(value, dict) and "cell_notes" in value:
        rest = {k: v for k, v in value.items() if k != "cell_notes"}
        return notes_of(rest) | {text_of(n) for n in value["cell_notes"]}
    if isinstance(value, dict):
        own = value.get("notes", [])
        found = {n for n in own if isinstance(n, str)} \
            if isinstance(own, list) else set()
        return found.union(*(notes_of(v) for v in value.values()), set())
    if isinstance(value, list):
        return set().union(*(notes_of(v) for v in value))
    return set()


def said(stderr, inputs):
    lines = [line for line in stderr.splitlines()
             if not line.startswith("fragsim ")]
    return {line.split(": ", 1)[1] for line in lines for name in inputs
            if line.startswith(name + ": ")}


def check(command, inputs, failures):
    """Returns the number of notes that were compared."""
    names = dict(zip("TU", inputs))
    words = ["=".join(names.get(part, part) for part in word.split("="))
             for word in command.split()]
    done = run([*words, "--force", "--json", "out.json"])
    told = said(done.stderr, inputs)
    if done.returncode > 1 or not os.path.exists("out.json"):
        return 0, done
    with open("out.json", encoding="utf-8") as stream:
        loud = notes_of(json.load(stream))
    os.remove("out.json")
    for note in sorted(told - loud):
        failures.append(f"{' '.join(words)}: not in the JSON: {note}")
    quiet = run([*words, "--force", "--quiet", "--json", "out.json"])
    with open("out.json", encoding="utf-8") as stream:
        silent = notes_of(json.load(stream))
    os.remove("out.json")
    if silent != loud:
        failures.append(f"{' '.join(words)}: --quiet changes the notes in the "
                        f"JSON: {sorted(silent ^ loud)}")
    if said(quiet.stderr, inputs):
        failures.append(f"{' '.join(words)}: --quiet prints notes")
    return len(told), done


def main():
    need(FRAGSIM)
    failures, counts, ran = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, (segments, traces) in snapshots().items():
            with open(name, "wb") as out:
                pickle.dump({"segments": segments, "device_traces": traces},
                            out)
        names = list(snapshots())
        for command in COMMANDS:
            for i, name in enumerate(names):
                other = names[(i + 1) % len(names)]
                inputs = [name, other] if "U" in command else [name]
                count, done = check(command, inputs, failures)
                counts[command] = counts.get(command, 0) + count
                ran.setdefault(command, set()).add(done.returncode)
                if os.environ.get("VERBOSE") and done.returncode > 1:
                    print(command, name, done.returncode, done.stderr[-200:])
        os.chdir(ROOT)
    for command, codes in ran.items():
        if not codes & {0, 1}:
            failures.append(f"{command}: no run succeeded: {sorted(codes)}")
    for failure in failures:
        print(failure)
    print(f"json notes: {sum(counts.values())} notes of {len(COMMANDS)} command "
          "lines compared")
    return 1 if failures or not sum(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
