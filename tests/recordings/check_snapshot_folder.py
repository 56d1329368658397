#!/usr/bin/env python3
"""check_snapshot_folder.py [FOLDER [LEAST]]: runs `fragsim validate` on every
PyTorch snapshot below a folder and prints a table: the file, its events, the
verdict with the first divergence and its cause, and the fields that tell which
version of PyTorch wrote the file.

The default folder is traces/bundled, where every snapshot must be exact but
those of NOT_EXACT. In another folder, at least LEAST (default 0) must be exact. A file that is no
snapshot is named and not counted. Exit 1 if fewer are exact, or if the tool
crashes or runs for more than a minute.
Environment: FRAGSIM (the tool; default build/fragsim).
"""
import gzip
import json
import lzma
import os
import pickle
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import BUNDLED, FRAGSIM

SUFFIXES = (".pickle", ".pkl", ".pt", ".pickle.xz", ".pickle.gz", ".pkl.gz",
            ".pkl.xz")
SECONDS = 60

# A block that mallocWithAddress placed where the program told it to.
NOT_EXACT = {"releases/pools/placed.pickle.xz"}

# Fields that every version since 2.0 writes, so they tell nothing.
COMMON = {
    "file": {"segments", "device_traces"},
    "segment": {"device", "address", "total_size", "allocated_size",
                "active_size", "stream", "segment_type", "blocks"},
    "block": {"size", "state"},
    "entry": {"action", "addr", "device_free", "size", "stream", "frames"},
    "settings": set(),
}

# A part of a note or of an error, and the cause of a divergence. The first row
# that applies counts.
CAUSES = [
    ("has no history", "no history"),
    ("has neither events nor segments", "no history"),
    ("nothing can be compared", "too little history"),
    ("expandable segments were held before",
     "late start with expandable segments"),
    ("sizes are uncertain", "late start: a block of uncertain size"),
    ("lie in no known segment", "late start: a block in no known segment"),
    ("the recording lacks the beginning", "late start"),
    ("no constant memory limit", "the device's free memory changed"),
    ("no free_completed", "the recording omits completions"),
    ("the process had a memory limit", "the limit is not recorded"),
    ("limit is taken from an oom entry", "the limit is that of the device"),
    ("the memory limit is not known", "the limit is not recorded"),
]


class Data(pickle.Unpickler):
    """Reads data only: a snapshot names no class."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"names {module}.{name}")


def load(path):
    with open(path, "rb") as file:
        magic = file.read(6)
    opens = (lzma.open if magic == b"\xfd7zXZ\0" else
             gzip.open if magic[:2] == b"\x1f\x8b" else open)
    with opens(path, "rb") as file:
        return Data(file).load()


def fields_of(snapshot):
    """The fields of the snapshot besides COMMON, as one text."""
    segments = snapshot.get("segments", [])
    parts = {
        "file": [snapshot],
        "segment": segments[:50],
        "block": [b for s in segments[:50] for b in s.get("blocks", [])[:20]],
        "entry": [e for t in snapshot.get("device_traces", [])
                  for e in t[:200] + t[-200:]],
        "settings": [snapshot.get("allocator_settings", {})],
    }
    words = []
    for kind, items in parts.items():
        names = sorted({k for item in items for k in item} - COMMON[kind])
        words += [f"{kind}: " + " ".join(names)] if names else []
    return "; ".join(words)


def validate(path):
    """The exit code, the rows and the text on stderr."""
    try:
        done = subprocess.run([FRAGSIM, "validate", path, "--json", "-"],
                              capture_output=True, text=True, check=False,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, [], f"ran for more than {SECONDS} s"
    rows = json.loads(done.stdout)["results"] if done.stdout else []
    return done.returncode, rows, done.stderr.strip()


def cause_of(text):
    return next((cause for part, cause in CAUSES if part in text), "not known")


def moved(first):
    """Whether both sides map memory, at different addresses."""
    return first and all(first[side].startswith("segment_map ")
                         for side in ("expected", "found"))


def cause_of_row(row):
    if moved(row["first_divergence"]):
        return "an expandable reservation at another address"
    return cause_of(" ".join(row["notes"]))


def verdict_of(code, rows, stderr):
    """Whether the snapshot is exact, and the cell that says so."""
    if not rows:
        last = stderr.splitlines()[-1] if stderr else ""
        return False, f"exit {code}: {cause_of(stderr)}: {last}"
    cells = []
    for row in rows:
        first = row["first_divergence"]
        cell = row["verdict"]
        if not row["exact"]:
            cell += f" ({cause_of_row(row)})"
        if first:
            cell += (f" at event {first['event']} of {row['events']}: recorded "
                     f"{first['expected']}, replayed {first['found']}")
        if row["limit_source"] not in ("none", "given"):
            cell += f" [limit: {row['limit_source']}]"
        cells.append(cell)
    return all(row["exact"] for row in rows), " / ".join(sorted(set(cells)))


def files_below(folder):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder)
                  for name in names if name.endswith(SUFFIXES))


def fields_in(path):
    """The fields of a snapshot; None if the file is something else. A file that
    Python cannot read as data may still be a snapshot."""
    try:
        snapshot = load(path)
    except (pickle.UnpicklingError, EOFError, ValueError, OSError, IndexError,
            KeyError, AttributeError, lzma.LZMAError) as e:
        return f"(not read: {str(e).splitlines()[0]})"
    if isinstance(snapshot, dict) and "segments" in snapshot:
        return fields_of(snapshot)
    return None


class Table:
    """The rows that were printed, counted."""

    def __init__(self):
        self.exact = self.total = self.broken = 0

    def add(self, path, name):
        fields = fields_in(path)
        if fields is None:
            print(f"{name} | not a snapshot")
            return
        code, rows, stderr = validate(path)
        self.broken += code not in (0, 1, 2, 3)
        if fields.startswith("(not read") and code in (2, 3):
            print(f"{name} | not a snapshot: {stderr.splitlines()[-1]}")
            return
        is_exact, verdict = verdict_of(code, rows, stderr)
        self.exact += is_exact
        self.total += 1
        events = sum(row["events"] for row in rows)
        print(f"{name} | {events} | {verdict} | {fields}", flush=True)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else BUNDLED
    table = Table()
    for path in files_below(folder):
        table.add(path, os.path.relpath(path, folder))
    least = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if folder == BUNDLED:
        least = max(table.total - len(NOT_EXACT), 1)
    print(f"{table.exact} of {table.total} exact, {table.broken} crashed or "
          "hung")
    return 0 if table.exact >= least and not table.broken else 1


if __name__ == "__main__":
    sys.exit(main())
