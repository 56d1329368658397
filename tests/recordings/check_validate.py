#!/usr/bin/env python3
"""check_validate.py [bundled|anchored|predicted|others|foreign]: runs `fragsim
validate` on recordings.

bundled: traces/bundled; all must be exact.

anchored: recorded/dev with recorded segment addresses; all must be exact.

predicted: the same with addresses from the arena's model of the driver; all but
the addresses must be equal in at least 59 (an independent model of the rules
reaches 55).

others: predicted, with the memory of other users learned from another recording
of the same program, so no address of a recording is used to predict its own; at
least 89. A recording whose program was recorded once is predicted without. The
list was developed on the programs of which TUNED has the names; the counts of
these and of all other programs are printed separately, and so is the cause of
each miss.

foreign: the two public snapshots of foreign/pytorch; both must be exact.

Names each recording that is not exact, with its first divergence and, if
addresses were predicted, the first address that differs, which is its cause.
Exit 1 if fewer recordings are exact than stated above, 77 if ../shared or the
tool is absent.
Environment: FRAGSIM (the tool; default build/fragsim), FRAG_SHARED_DIR.
"""
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from harness import FRAGSIM, ROOT, SHARED


# kind: files, options, how many must be exact (None: all)
KINDS = {
    "bundled": (os.path.join(ROOT, "traces/bundled/*.p[it]*"), [], None),
    "anchored": ("recorded/dev/*.pickle.xz", [], None),
    "predicted": ("recorded/dev/*.pickle.xz", ["--predicted"], 59),
    "others": ("recorded/dev/*.pickle.xz", ["--predicted"], 89),
    "foreign": ("foreign/pytorch/*.pickle*", [], None),
}

# Programs on whose recordings the rules of sim/arena/learn.c were found.
TUNED = {"leak", "unet_multires", "llama_varlen", "generate", "bert_serve",
         "moe_train"}
# Endings of names that do not change the program or its requests.
ENDINGS = ("_frames", "_kineto", "_cpp")


def agrees(row):
    return row["verdict"] in ("exact", "equal in sizes")


def validate(path, options):
    """The rows of one recording. Exit 1 only means that one row is not exact.
    """
    command = [FRAGSIM, "validate", path, "-q", "--json", "-", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        return [{"verdict": "", "first_divergence":
                 f"exit {done.returncode}: {done.stderr.strip()}"}]
    rows = json.loads(done.stdout)["results"]
    if (done.returncode == 0) != all(agrees(row) for row in rows) or \
            any(row["exact"] != (row["verdict"] == "exact") or
                row["exact"] and row["addresses_matched"] < row["allocs"]
                for row in rows):
        return [{"verdict": "", "first_divergence":
                 f"exit {done.returncode} contradicts the rows"}]
    return rows


def program(path):
    name = os.path.basename(path).split(".")[0].split("__")[0]
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return {"rcnn": "rcnn_train"}.get(name, name)


def run_of(path):
    """One process, of which there can be several snapshots."""
    return os.path.basename(path).split(".")[0]


def other_run(path, paths):
    """Another run of the program: the one with default settings, else the first
    by name; None if there is none. Expandable segments have no addresses that
    other users of the address space could move."""
    same = [p for p in paths if program(p) == program(path) and
            run_of(p) != run_of(path) and "_exp" not in p]
    default = [p for p in same if run_of(p) == program(p)]
    return (default or same or [None])[0]


def cause(row, other):
    """Why the decisions of a recording were not predicted."""
    if other is None:
        return "the program was recorded once; hidden memory is not known"
    moved = row.get("cause") or {}
    return (f"at event {moved.get('event')}, other users of the address space "
            f"did not do what they did in {os.path.basename(other)}")


def tally(kind, paths, exact, addresses):
    print(f"{kind}: {len(exact)} of {len(paths)} equal, {addresses} of them in "
          "all addresses")
    if kind != "others":
        return
    for name, is_tuned in (("developed on", True), ("held out", False)):
        part = [p for p in paths if (program(p) in TUNED) == is_tuned]
        print(f"    programs {name}: {sum(p in exact for p in part)} of "
              f"{len(part)}")


def wrong_counters(row):
    return [f"{stat['name']}: recorded {stat['recorded']}, "
            f"replayed {stat['replayed']}"
            for stat in row.get("stats", [])
            if stat["determined"] and stat["recorded"] != stat["replayed"]]


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "anchored"
    pattern, options, least = KINDS[kind]
    paths = sorted(glob.glob(os.path.join(SHARED, pattern)))
    if not paths and kind == "bundled":
        print(f"check_validate: no recordings at {pattern}")
        return 1
    if not paths or not os.access(FRAGSIM, os.X_OK):
        print("check_validate: no recordings or no tool; skipped")
        return 77
    exact, addresses = [], 0
    for path in paths:
        other = other_run(path, paths) if kind == "others" else None
        rows = validate(path, options +
                        (["--hidden-from", other] if other else []))
        if rows and all(agrees(row) for row in rows):
            exact.append(path)
            addresses += all(row["exact"] for row in rows)
            continue
        for row in rows:
            if kind == "others":
                print(f"{os.path.basename(path)}: {cause(row, other)}")
                continue
            print(f"{os.path.basename(path)}: {row.get('first_divergence')}",
                  f"caused by: {row.get('cause')}",
                  *wrong_counters(row)[:5], sep="\n    ")
    tally(kind, paths, exact, addresses)
    return 0 if len(exact) >= (len(paths) if least is None else least) else 1


if __name__ == "__main__":
    sys.exit(main())
