#!/usr/bin/env python3
"""check_leaks.py [--table]: what `fragsim leaks` says of programs that are known
to leak, and of programs that are known not to.

Every recording is examined. A program leaks if its name begins with leak, or if
the file beside the recording says so; the sites are those of the program. A
missed leak, a false alarm and a wrong site are errors; a recording that cannot
tell has the verdict unknown, which is counted. Without their marks, too, the
recordings give no false alarm, and what is judged is right. --table prints the
rows as JSON. The bundled recordings are examined if there are no others.
Environment: FRAGSIM (default build/fragsim), FRAG_SHARED_DIR, and FRAG_LEAKS:
a folder of further recordings, each with a .json beside it.
"""
import glob
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SHARED, share

BUNDLED = os.path.join(ROOT, "traces", "bundled", "*.pickle.xz")
GROUPS = ("dev", "causes", "h100", "multi", "batch")
FURTHER = os.environ.get("FRAG_LEAKS", "")
# The lines of the program of the recordings named leak*: the input that the
# graph keeps, the loss, and the hidden layer.
LEAK_LINES = {162, 163, 164}


def fact(path):
    """Whether the program leaks, and the function that does, if known."""
    name = os.path.basename(path).split(".")[0]
    try:
        with open(path.replace(".pickle.xz", ".json").replace(".cpp", ""),
                  encoding="utf-8") as file:
            known = json.load(file)
    except FileNotFoundError:
        known = {}
    return (known.get("leak") is True or name.startswith("leak"),
            known.get("site") if known.get("leak") else None)


def examine(group, path):
    leaks, site = fact(path)
    done = subprocess.run([FRAGSIM, "leaks", "-q", "--json", "-", path],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, (path, done.stderr)
    for row in json.loads(done.stdout)["results"]:
        yield {"group": group, "name": os.path.basename(path),
               "device": row["device"], "leaks": leaks, "site": site,
               "verdict": row["verdict"], "reason": row["reason"],
               "steps": row["num_steps"],
               "growth": row["growth_bytes_per_step"],
               "has_stacks": row["has_stacks"], "found": row["leaks"]}


def fault_of(row):
    if row["verdict"] == "unknown":
        return None
    if row["leaks"] != (row["verdict"] == "leak"):
        return "missed" if row["leaks"] else "false alarm"
    if row["site"] and row["found"][0]["function"] != row["site"]:
        return "wrong site"
    lines = {leak["line"] for leak in row["found"]}
    if row["leaks"] and row["has_stacks"] and not row["site"] and \
            (lines - LEAK_LINES or row["steps"] and lines != LEAK_LINES):
        return "wrong site"
    return None


def rows():
    folder = os.path.join(SHARED, "recorded")
    found = [(group, path) for group in GROUPS
             for path in sorted(glob.glob(os.path.join(folder, group,
                                                       "*.pickle.xz")))]
    found += [("further", path) for path in sorted(glob.glob(os.path.join(
        FURTHER, "*.pickle.xz")))] if FURTHER else []
    found = found or [("bundled", path) for path in sorted(glob.glob(BUNDLED))]
    for group, path in share(found):
        yield from examine(group, path)


def check_without_marks():
    """Nothing but the marks is taken away, so the truth is the same."""
    names = ("leak_frames", "leak", "multistream", "gpt2_train",
             "lstm_varlen__cap_below")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            with lzma.open(BUNDLED.replace("*", name)) as file:
                snapshot = pickle.load(file)
            snapshot["external_annotations"] = []
            path = os.path.join(folder, name + ".pickle.xz")
            with lzma.open(path, "wb", preset=0) as file:
                pickle.dump(snapshot, file, protocol=2)
            for row in examine("unmarked", path):
                assert not fault_of(row), row
                assert row["steps"] == 0, row
                assert (row["verdict"] == "leak") == (name == "leak_frames")
                assert name != "leak" or row["reason"] == "no stacks", row
                assert not name.startswith("leak") or row["found"], row
                assert (row["reason"] is None) == (row["verdict"] != "unknown")


def main():
    table = list(rows())
    if sys.argv[1:] == ["--table"]:
        print(json.dumps(table))
        return
    check_without_marks()
    faults = [(row["group"], row["name"], fault_of(row)) for row in table
              if fault_of(row)]
    for fault in faults:
        print(*fault)
    known = [row for row in table if row["verdict"] != "unknown"]
    print(f"{len(table)} traces, {len(table) - len(known)} cannot tell;"
          f" {sum(row['leaks'] for row in known)} leak, all others do not:"
          f" {len(faults)} errors")
    # A leak that is not seen would be unknown, too.
    unseen = [row["name"] for row in table
              if row["leaks"] and row["verdict"] != "leak"]
    sys.exit(1 if faults or unseen else 0)


if __name__ == "__main__":
    main()
